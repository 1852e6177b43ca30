"""The documentation says what is true: its code runs, its output is compared, the site builds and needs no network.

Blocks of a page run in their order, in one folder and one Python namespace. What a fence may say:

    ```python, ```bash                  is run; every command of bash is `sylvan`
    ```... title="in a terminal"        is not run (nor with title="not run"), and is counted below
    ```... title="mine.toml"            is written into the folder under this name
    ```text title="output"              is what the block before it prints
    ```text title="output, may vary"    the same, but numbers may be others
"""

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd
import pytest
from browser import FLAGS, chromium, inspect_page

import sylvan
from sylvan.bench import read_results
from sylvan.measures import get_measure

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LEFT_OUT = ("in a terminal", "not run")
# Modules with an `__all__` whose names have entries of their own. Most names of measures are instances, in a table.
DOCUMENTED = (
    "algorithms",
    "algorithms.tuning",
    "app.report",
    "app.tables",
    "bench",
    "bench.baselines",
    "cascade.augment",
    "cascade.explain",
    "cascade.length",
    "cascade.scanning",
    "datasets",
    "forests",
    "labels.bridges",
    "labels.calibrate",
    "labels.frequency",
    "labels.impute",
    "pairs",
    "plotting",
    "tables",
)
NOT_RUN = {
    "index.md": 1, "howto/comparing-methods.md": 1, "howto/labels-and-cleanlab.md": 1, "howto/review-page.md": 2,
    "howto/messy-tables.md": 1,
    "results/README.md": 1,
}  # fmt: skip

pytestmark = pytest.mark.slow


# ---------------------------------------------------------------------------------------------------- code


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text and the line where the text starts."""

    language: str
    title: str
    text: str
    line: int

    @property
    def is_output(self) -> bool:
        return self.title.startswith("output")

    @property
    def is_run(self) -> bool:
        return self.language in ("python", "bash") and self.title not in LEFT_OUT and not self.text.startswith("--8<--")


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page; those in lists are indented."""
    found = []
    for match in re.finditer(r"^( *)```(\w*)([^\n`]*)\n(.*?)^\1``` *$", text, flags=re.DOTALL | re.MULTILINE):
        indent, language, options, code = match.groups()
        title = re.search(r'title="([^"]*)"', options)
        code = re.sub(f"^{indent}", "", code, flags=re.MULTILINE)
        found.append(Block(language, title[1] if title else "", code, text.count("\n", 0, match.start(4)) + 1))
    return found


PAGES = {
    path.relative_to(DOCS).as_posix(): blocks_of(path.read_text(encoding="utf-8"))
    for path in sorted(DOCS.rglob("*.md"))
}
WITH_CODE = [name for name, blocks in PAGES.items() if any(block.is_run for block in blocks)]

# Runs the blocks that come in by stdin and says what each printed. Lines are those of the page.
RUNNER = r"""
import contextlib, io, json, subprocess, sys, traceback
page, blocks, namespace, printed = *json.load(sys.stdin), {"__name__": "__main__"}, []
for language, text, line in blocks:
    out = io.StringIO()
    if language == "file":
        open(line, "w", encoding="utf-8").write(text)
    elif language == "bash":
        done = subprocess.run(["bash", "-euc", text], capture_output=True, text=True)
        out.write(done.stdout)
        if done.returncode:
            sys.exit(f"{page}, line {line}: {text}\n{done.stdout}{done.stderr}")
    else:
        try:
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * (line - 1) + text, page, "exec"), namespace)
        except BaseException:
            sys.exit(f"{text}\n{traceback.format_exc()}")
    printed.append(out.getvalue())
json.dump(printed, open("printed.json", "w"))
"""


def lines_of(text: str, *, numbers: bool = True) -> list[str]:
    """Return what is compared of a text: its lines without space at their ends; without numbers, words alone."""
    if not numbers:
        text = re.sub(r"-?\d+(,\d{3})*(\.\d+)?(e[-+]?\d+)?|<NA>|NaN", "0", text)
        return [" ".join(line.split()) for line in text.strip().splitlines()]
    return [line.rstrip() for line in text.rstrip().splitlines()]


# Pictures that no page makes, but a script beside them: review.py makes review-*.png.
DRAWN = {
    picture.name
    for script in (DOCS / "assets").glob("*.py")
    for picture in (*script.parent.glob(f"{script.stem}.png"), *script.parent.glob(f"{script.stem}-*.png"))
}


def pictures_of(page: str) -> list[str]:
    """Return the names of the pictures that a page shows."""
    return re.findall(r"!\[[^\]]+\]\((?:\.\./)*assets/([^)]*)\)", (DOCS / page).read_text(encoding="utf-8"))


def run_page(page: str, folder: Path) -> tuple[subprocess.CompletedProcess, dict[int, Block]]:
    """Run the blocks of a page; return what came of it, and the outputs to expect by number of the block."""
    tasks, outputs = [], {}
    for block in PAGES[page]:
        if block.is_output:
            outputs[len(tasks) - 1] = block
        elif block.is_run:
            tasks.append((block.language, block.text, block.line))
        elif re.fullmatch(r"[\w-]+\.\w+", block.title):
            tasks.append(("file", block.text, block.title))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps([page, tasks]),
        cwd=folder,
        env=os.environ | {"PATH": path, "MPLBACKEND": "Agg", "COLUMNS": "120", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, outputs


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory):
    """Pages that are asked for, each in a folder of its own, two at a time."""
    wanted = [item.callspec.params.get("page") for item in request.session.items if hasattr(item, "callspec")]
    alone = "PYTEST_XDIST_WORKER" not in os.environ  # otherwise every worker would run every page
    with ThreadPoolExecutor(2) as pool:
        started = {}

        def start(page: str):
            if page not in started:
                folder = tmp_path_factory.mktemp("page")
                started[page] = folder, pool.submit(run_page, page, folder)
            return started[page]

        for page in WITH_CODE if alone else []:
            if page in wanted:
                start(page)
        yield start
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("page", WITH_CODE)
def test_code_runs_and_prints_what_is_shown(page, runs):
    folder, run = runs(page)
    done, outputs = run.result()
    assert done.returncode == 0, done.stderr
    printed = json.loads((folder / "printed.json").read_text())
    for shown in pictures_of(page):
        assert (folder / shown).is_file() or shown in DRAWN, f"no code on the page makes {shown}"
    for at, block in outputs.items():
        exact = block.title == "output"
        assert lines_of(printed[at], numbers=exact) == lines_of(block.text, numbers=exact), f"{page}, line {block.line}"


def test_every_block_is_run_or_named_here():
    kinds = {block.language for blocks in PAGES.values() for block in blocks}
    assert kinds <= {"python", "bash", "text", "toml", "csv", "console", "json", "html"}, kinds
    left_out = {page: sum(block.title in LEFT_OUT for block in blocks) for page, blocks in PAGES.items()}
    assert {page: number for page, number in left_out.items() if number} == NOT_RUN
    included = re.findall(r'--8<-- "examples/([^"]*)"', (DOCS / "examples.md").read_text(encoding="utf-8"))
    assert sorted(included) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))
    for page, blocks in PAGES.items():
        for before, block in zip([None, *blocks], blocks):
            assert block.title in ("", *LEFT_OUT, "output", "output, may vary") or "." in block.title, (page, block)
            if block.is_output:
                assert block.language == "text", (page, block)
                assert before is not None, (page, block)
                assert before.is_run, (page, block)
            if block.language == "bash" and block.is_run:
                commands = [line for line in block.text.splitlines() if line and not line.startswith((" ", "#"))]
                assert all(command.startswith("sylvan ") for command in commands), (page, block)
            for name in re.findall(r'^--8<-- "([^"]*)"', block.text, flags=re.MULTILINE):
                assert (ROOT / name).parent == ROOT / "examples", "code from elsewhere is run by test_examples.py"
                assert (ROOT / name).is_file()


def test_blocks_are_found():
    text = 'a\n```python\nx = 1\n```\n- b\n\n    ```text title="output"\n    1\n    ```\n\n```\nplain\n```\n'
    assert blocks_of(text) == [
        Block("python", "", "x = 1\n", 3),
        Block("text", "output", "1\n", 8),
        Block("", "", "plain\n", 12),
    ]
    assert lines_of("a  1.5\nb -2 ", numbers=False) == lines_of("a 2,200\nb 3e-7", numbers=False) == ["a 0", "b 0"]
    assert lines_of("a 1") != lines_of("a 2")


def table_after(text: str, *words: str) -> dict[str, dict[str, str]]:
    """Return the first table after some lines, by row and column; bold figures are figures."""
    for word in words:
        text = text[text.index(word) :]
    lines = re.search(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert lines is not None
    rows = [[cell.strip(" *`") for cell in line.strip("|\n").split("|")] for line in lines[0].splitlines()]
    return {row[0]: dict(zip(rows[0], row)) for row in rows[2:]}


def ranks_of_kept(names, methods):
    """Return average ranks over data sets of all that is kept of some runs, where all methods have finished."""
    tables = []
    for name in names:
        packed = (DOCS / f"results/data/{name}.db.xz").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "results.db"
            file.write_bytes(lzma.decompress(packed))
            tables.append(read_results(file).scores)
    scores = pd.concat(tables)
    wide = scores.pivot_table(index=["measure", "dataset", "repeat"], columns="method", values="value")[methods]
    wide = wide.dropna()
    upwards = [get_measure(measure).greater_is_better for measure in wide.index.get_level_values("measure")]
    ranks = wide.mul(np.where(upwards, -1.0, 1.0), axis=0).rank(axis=1)
    return ranks.groupby(["measure", "dataset"]).mean().groupby("measure").mean()


def test_figures_are_those_of_the_results():
    """What is quoted from the pages of results is rounded, and changed when they have changed by more than that."""
    # Small letters throughout: pages of results that were made earlier have "micro auroc", newer ones "micro AUROC".
    quoted = (DOCS / "choosing.md").read_text(encoding="utf-8").lower()
    results = {name: (DOCS / f"results/{name}.md").read_text(encoding="utf-8").lower() for name in "ACD"}
    weak = table_after(quoted, "\n## predicting from weak labels")
    for measure, name in {"micro auroc": "auroc (ranking)", "micro mcc": "mcc (labels)"}.items():
        means = table_after(results["A"], "\n## means over data sets", f"{measure} (")
        assert {method: float(cells[name]) for method, cells in weak.items()} == pytest.approx(
            {name: float(cells["ilr 0.5"]) for name, cells in means.items() if "(published)" not in name}, abs=0.01
        )
    ranks = ranks_of_kept(["C", "C-new"], ["mldf", "imldf", "rf_pct"])
    for method, cells in table_after(quoted, "\n## predicting from complete labels").items():
        for measure in list(cells)[1:]:
            known = ranks.at[measure.replace(" ", "_"), method.replace("-", "_")]
            assert float(cells[measure]) == pytest.approx(known, abs=0.051)
    found = re.search(r"sdf has an accuracy of (\.\d\d) .* it is\s(\.\d\d)", quoted, flags=re.DOTALL)
    accuracy = table_after(results["D"], "\n## means over data sets", "accuracy (")["sdf"]
    for number, points in enumerate(("shared", "strict"), start=1):
        assert float(found[number]) == pytest.approx(float(accuracy[f"points {points}, pairs 500"]), abs=0.01)


# ---------------------------------------------------------------------------------------------------- site


class Page(HTMLParser):
    """What a built page refers to, and what can be referred to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []  # what a browser fetches by itself
        self.styles: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if "href" in values:
            (self.links if tag in ("a", "area") else self.loads).append(values["href"])
        self.loads += [values[name] for name in ("src", "data", "poster") if name in values]
        self.loads += [part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()]
        self.styles.append(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "style":
            self.styles.append(data)


def is_outside(address: str) -> bool:
    return bool(urlsplit(address).scheme not in ("", "data") or urlsplit(address).netloc)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    # Whatever wanted to reach the network would fail.
    closed = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | closed | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    yield folder
    shutil.rmtree(folder.parent, ignore_errors=True)


@pytest.fixture(scope="module")
def pages(site):
    # The page for addresses that are not there has links from the root of a server: nobody sees it on a disk.
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_every_source_has_a_page(site, pages):
    for name in PAGES:
        built = "results/index.html" if name == "results/README.md" else name.removesuffix(".md") + ".html"
        assert site / built in pages


def test_pages_load_nothing_from_outside(site, pages):
    for path, page in pages.items():
        assert not [address for address in page.loads if is_outside(address)], path
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", "\n".join(page.styles)), path
    for path in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_links_lead_somewhere(pages):
    broken = []
    for path, page in pages.items():
        for address in {*page.links, *page.loads}:
            if is_outside(address) or address.startswith("data:"):
                continue
            parts = urlsplit(address)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = target in pages and (unquote(parts.fragment) in pages[target].ids or parts.fragment == "__skip")
            if not target.is_file() or (parts.fragment and not known):
                broken.append((path.name, address))
    assert not broken


def test_rooms_have_pages():
    """What is imported from a room is in the reference, whatever room it is."""
    pages = {path.stem.replace("-", ".") for path in (DOCS / "reference").glob("*.md")} - {"index"}
    assert set(DOCUMENTED) <= pages
    for page in pages:
        import_module(f"sylvan.{page}")
    assert {module for module in vars(sylvan)["_MODULES"] if module not in ("app", "labels")} <= pages


def test_public_names_are_in_the_reference(pages):
    ids = set().union(*(page.ids for page in pages.values()))
    for module in DOCUMENTED:
        names = import_module(f"sylvan.{module}").__all__
        assert {f"sylvan.{module}.{name}" for name in names} <= ids
    assert {
        "sylvan.cascade.estimator.DeepForestClassifier.suggest_labels",  # of a mixin of ours
        "sylvan.labels.contracts.LabelImputer",
        "sylvan.labels.findings.Findings",
        "sylvan.labels.state.Frequency",
        "sylvan.labels.suggestions.apply_suggestions",
        "sylvan.io.load",
        "sylvan.measures.Measure",
        "sylvan.bench.run",
    } <= ids
    of_sklearn = {name for name in ids if name.endswith((".get_params", ".set_params", ".get_metadata_routing"))}
    own = {f"sylvan.cascade.estimator.DeepForestClassifier.{name}" for name in ("get_params", "set_params")}
    assert of_sklearn <= own  # these take arguments of recipes


def _elsewhere(requests, site):
    return [url for url in requests if not url.startswith(site.as_uri())]


@pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("name", ["index.html", "tour.html", "reference/forests.html", "results/A.html"])
def test_page_in_a_browser(site, name, width):
    path = site / name
    found = inspect_page(path, width=width)
    assert found["errors"] == []
    assert _elsewhere(found["requests"], site) == [], "only files of the site may be loaded"
    assert found["width"] == width
    assert found["scroll_width"] <= width, f"wider than a screen of {width} pixels"
    assert all(complete and size > 0 for complete, size, _ in found["images"])


@pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
def test_the_check_sees_what_is_wrong(site):
    path = site / "outside.html"
    text = (site / "index.html").read_text(encoding="utf-8")
    wrong = '<img src="http://127.0.0.1:9/a.png"><script src="assets/none.js"></script><p style="width:900px">wide</p>'
    path.write_text(text.replace("</article>", wrong + "</article>"), encoding="utf-8")
    found = inspect_page(path)
    path.unlink()
    assert _elsewhere(found["requests"], site) == ["http://127.0.0.1:9/a.png"]
    assert len(found["errors"]) == 2
    assert found["scroll_width"] >= 900


@pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
def test_search_works_from_disk(site, tmp_path):
    """Search from a file: a frame stands for the worker that browsers refuse there."""
    command = [chromium(), *FLAGS, "--virtual-time-budget=20000", f"--user-data-dir={tmp_path}", "--dump-dom"]
    run = subprocess.run(
        [*command, (site / "index.html").as_uri() + "?q=crossover"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    shutil.rmtree(tmp_path, ignore_errors=True)
    found = re.findall(r'<a href="([^"]*)" class="md-search-result__link"', run.stdout)
    assert any("concepts.html" in address for address in found), run.stdout[-500:]


def renew(page: str) -> int:
    """Write what the blocks of a page print now into the page, where it differs; return how many differ."""
    path = DOCS / page
    with tempfile.TemporaryDirectory() as folder:
        done, outputs = run_page(page, Path(folder))
        if done.returncode:
            sys.exit(done.stderr)
        printed = json.loads((Path(folder) / "printed.json").read_text())
        for picture in map(Path(folder).joinpath, pictures_of(page)):
            if picture.is_file():
                shutil.copy(picture, DOCS / "assets")
    lines, n_changed = path.read_text(encoding="utf-8").split("\n"), 0
    for at, block in sorted(outputs.items(), reverse=True):
        exact = block.title == "output"
        if lines_of(printed[at], numbers=exact) != lines_of(block.text, numbers=exact):
            first, n_changed = block.line - 1, n_changed + 1
            indent = " " * (len(lines[first - 1]) - len(lines[first - 1].lstrip()))
            lines[first : first + block.text.count("\n")] = [indent + line for line in lines_of(printed[at])]
    path.write_text("\n".join(lines), encoding="utf-8")
    return n_changed


if __name__ == "__main__":  # outputs that a change of behaviour changes: python tests/slow/test_docs.py [PAGE ...]
    for each in sys.argv[1:] or WITH_CODE:
        print(each, renew(each))  # noqa: T201
