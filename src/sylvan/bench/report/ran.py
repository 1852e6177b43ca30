"""Part 1 of the report: what was run, how far it is, what failed."""

from collections.abc import Iterator, Mapping
from typing import Any

from sylvan.bench.report.study import ALPHA, Figures, Study, plain
from sylvan.pages.page import Cell, Table
from sylvan.pages.words import DASH, many

_MOST_ERRORS = 200


def warnings(study: Study) -> Iterator[str]:
    """Say what a reader must know before believing anything below."""
    failed = int((study.cells["status"] == "failed").sum())
    done = int((study.cells["status"] == "done").sum())
    if failed:
        yield f"{failed} of {many(failed + done, 'cell')} failed; their errors are listed in section 1."
    if (waiting := len(study.planned) - failed - done) > 0:
        yield f"The run is not complete: {waiting} of {many(len(study.planned), 'cell')} have not been run yet."
    if not len(study.scores):
        yield "There are no scores: nothing can be compared."
        return
    without = [name for name in study.methods if name not in set(study.scores["method"])]
    if without:
        yield f"Without any score, and so left out of all comparisons: {', '.join(without)}."
    dropped = sum(blocks.n_dropped for blocks in study.blocks.values())
    kept = sum(blocks.n_kept for blocks in study.blocks.values())
    if dropped:
        yield (
            f"Blocks are incomplete: a block is one data set, level, {study.repeat} and measure. Of "
            f"{many(kept + dropped, 'block')}, {dropped} lack a score of at least one method. Comparisons use only the "
            f"{kept} that all methods share."
        )
    count = max((len(study.pooled(name)) for name in study.measures), default=0)
    if len(study.methods) > 1 and 2 / 2**count >= ALPHA:
        yield (
            f"{many(count, 'data set')} with scores of all methods: too few for Wilcoxon's test over data sets, whose "
            f"smallest possible p is {min(1.0, 2 / 2**count):.2g}. No difference between methods can be significant "
            "here."
        )
    if "versions" in study.cells and len({_versions(value) for value in study.cells["versions"]}) > 1:
        yield "The cells were run with different versions of the software; see section 1."
    if "(quick)" in str(study.protocol.title):
        yield "This is a quick run on few rows and small models: do not compare its scores with those of a paper."


def _versions(value: Any) -> str:
    return ", ".join(f"{key} {text}" for key, text in value.items()) if isinstance(value, Mapping) else str(value)


def description(study: Study, _: Figures) -> dict[str, Any]:
    """Tell what was run, when, with which software."""
    cells, several = study.cells, {}
    for label, column in (("Versions", "versions"), ("Machine", "machine")):
        if column in cells and len(cells):
            texts = cells[column].dropna().map(_versions).value_counts()
            lines = [f"{text} ({many(count, 'cell')})" if len(texts) > 1 else text for text, count in texts.items()]
            several[label] = lines or ["not recorded"]
    times = cells["finished"].dropna().map(str) if "finished" in cells else cells["status"][:0]
    return {
        "source": getattr(study.protocol, "source", ""),
        "commands": str(getattr(study.results, "command", "") or "").splitlines(),
        "factors": {name: ", ".join(map(plain, dict.fromkeys(study.planned[name]))) for name in study.factors},
        "several": several,
        "times": (times.min(), times.max()) if len(times) else None,
        "text": str(getattr(study.protocol, "text", "") or ""),
    }


def progress(study: Study, _: Figures) -> dict[str, Any]:
    """Tell how many cells are finished."""
    rows = []
    for dataset in study.datasets:
        planned = study.planned.loc[study.planned["dataset"] == dataset, "method"]
        cells = study.cells[study.cells["dataset"] == dataset]
        row: list[object] = [dataset]
        for method in study.methods:
            status = cells.loc[cells["method"] == method, "status"]
            done, failed = int((status == "done").sum()), int((status == "failed").sum())
            count = max(int((planned == method).sum()), done + failed)
            kind = "bad" if failed else "" if done == count else "near"
            row.append(Cell(f"{done} / {count}" if count else DASH, f"number {kind}".strip()))
        rows.append(row)
    return {"table": Table(["Data set", *study.methods], rows)}


def failures(study: Study, _: Figures) -> dict[str, Any]:
    """List the cells that failed, with their errors."""
    failed = study.cells[study.cells["status"] == "failed"]
    rows = []
    for cell in failed.head(_MOST_ERRORS).to_dict("records"):
        text = str(cell["error"]) if isinstance(cell["error"], str) else ""
        first = next((line for line in text.splitlines() if line.strip()), "no error was recorded")
        error = Cell(first[:200], "wide", folded=text if text.strip() not in ("", first) else "")
        where = [plain(cell[name]) for name in study.factors]
        rows.append([cell["dataset"], *where, plain(cell["repeat"]), cell["method"], error])
    head = study.head("Data set", study.repeat, "Method", "Error")
    return {"table": Table(head, rows), "n": len(failed), "most": _MOST_ERRORS}
