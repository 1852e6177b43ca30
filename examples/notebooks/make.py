"""Writes the notebooks: the tour of the documentation, and two of the examples, cell by cell.

python examples/notebooks/make.py
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = ("find_missing_labels", "read_the_rules")
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")  # they lead from page to page


def cells_of_page(text: str) -> list[tuple[str, str]]:
    """Return the cells of a page of the documentation: its text, and its Python; not what that prints."""
    cells, last = [], 0
    for block in _FENCE.finditer(text):
        cells.append(("markdown", text[last : block.start()]))
        if block[1] == "python":
            cells.append(("code", block[3]))
        last = block.end()
    cells.append(("markdown", text[last:]))
    return [(kind, _LINK.sub(r"\\1", source) if kind == "markdown" else source) for kind, source in cells]


def cells_of_script(text: str) -> list[tuple[str, str]]:
    """Return the cells of a script: what it is about, and its paragraphs."""
    about, *statements = ast.parse(text).body
    lines, first = text.splitlines(), about.end_lineno or 0
    words = ast.get_docstring(ast.parse(text)) or ""
    cells, start = [("markdown", re.sub(r"\n    python .*\n", "", words))], first
    for before, after in zip(statements, [*statements[1:], None]):
        end = len(lines) if after is None else after.lineno - 1
        while after is not None and end > (before.end_lineno or 0) and lines[end - 1].startswith("#"):
            end -= 1  # a remark belongs to what it stands above
        both_import = isinstance(before, ast.Import | ast.ImportFrom) and isinstance(after, ast.Import | ast.ImportFrom)
        if after is None or (not lines[end - 1].strip() and not both_import):
            cells.append(("code", "\n".join(lines[start:end])))
            start = end
    return cells


def notebook(cells: list[tuple[str, str]]) -> str:
    """Return the text of a notebook, with no outputs."""
    made: list[dict[str, Any]] = []
    for kind, source in cells:
        if source.strip():
            cell = {
                "cell_type": kind,
                "id": f"cell-{len(made)}",
                "metadata": {},
                "source": source.strip("\n").splitlines(True),
            }
            made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps({"cells": made} | about, indent=1, ensure_ascii=False) + "\n"


def notebooks() -> dict[str, str]:
    """Return all notebooks by the names of their files."""
    found = {"tour.ipynb": notebook(cells_of_page((ROOT / "docs" / "tour.md").read_text(encoding="utf-8")))}
    for name in EXAMPLES:
        script = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        found[f"{name}.ipynb"] = notebook(cells_of_script(script))
    return found


if __name__ == "__main__":
    for name, text in notebooks().items():
        (HERE / name).write_text(text, encoding="utf-8")
