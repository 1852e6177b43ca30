"""Part 1 of the report: what was run, how far it is, what failed."""

from collections.abc import Mapping
from typing import Any

from sylvan.bench.report.study import ALPHA, Figures, Study, arrow, heads, many, measure_name, plain
from sylvan.pages.page import Cell, Html, Page, definitions, details, element, fixed, table


def warn(page: Page, study: Study) -> None:
    """Say at the top what a reader must know before believing anything below."""
    failed = int((study.cells["status"] == "failed").sum())
    done = int((study.cells["status"] == "done").sum())
    if failed:
        page.warn(f"{failed} of {many(failed + done, 'cell')} failed; their errors are listed in section 1.")
    if (waiting := len(study.planned) - failed - done) > 0:
        page.warn(f"The run is not complete: {waiting} of {many(len(study.planned), 'cell')} have not been run yet.")
    if not len(study.scores):
        page.warn("There are no scores: nothing can be compared.")
        return
    without = [name for name in study.methods if name not in set(study.scores["method"])]
    if without:
        page.warn(f"Without any score, and so left out of all comparisons: {', '.join(without)}.")
    dropped = sum(blocks.n_dropped for blocks in study.blocks.values())
    kept = sum(blocks.n_kept for blocks in study.blocks.values())
    if dropped:
        page.warn(
            f"Blocks are incomplete: a block is one data set, level, {repeat_name(study)} and measure. Of "
            f"{many(kept + dropped, 'block')}, {dropped} lack a score of at least one method. Comparisons use only "
            "the "
            f"{kept} that all methods share."
        )
    count = max((len(study.pooled(name)) for name in study.measures), default=0)
    if len(study.methods) > 1 and 2 / 2**count >= ALPHA:
        page.warn(
            f"{many(count, 'data set')} with scores of all methods: too few for Wilcoxon's test over data sets, whose "
            f"smallest possible p is {min(1.0, 2 / 2**count):.2g}. No difference between methods can be significant "
            "here."
        )
    if "versions" in study.cells and len({_versions(value) for value in study.cells["versions"]}) > 1:
        page.warn("The cells were run with different versions of the software; see section 1.")


def repeat_name(study: Study) -> str:
    """What a repeat is called."""
    return str(getattr(study.protocol, "repeat_name", "") or "repeat")


def _versions(value: Any) -> str:
    return ", ".join(f"{key} {text}" for key, text in value.items()) if isinstance(value, Mapping) else str(value)


def describe(page: Page, study: Study, _: Figures) -> None:
    """Say what was run, when, with which software."""
    cells = study.cells
    pairs: list[tuple[object, object]] = [("Protocol", f"{study.protocol.name}: {study.protocol.title}")]
    if source := getattr(study.protocol, "source", ""):
        pairs.append(("Source", source))
    commands = str(getattr(study.results, "command", "") or "").splitlines()
    pairs.append(("Command", Html("<br>".join(element("code", line) for line in commands)) or "not recorded"))
    pairs.append(("Seed", study.protocol.seed))
    pairs.append(("Methods", ", ".join(study.methods) or "none"))
    pairs.append(("Measures", ", ".join(f"{arrow(name)}" for name in study.measures) or "none"))
    for factor in study.factors:
        values = dict.fromkeys(study.planned[factor])
        pairs.append((measure_name(factor), ", ".join(map(plain, values)) or "none"))
    for label, column in (("Versions", "versions"), ("Machine", "machine")):
        if column in cells and len(cells):
            texts = cells[column].dropna().map(_versions).value_counts()
            several = len(texts) > 1
            lines = [f"{text} ({many(count, 'cell')})" if several else text for text, count in texts.items()]
            pairs.append((label, Html("<br>".join(element("span", line) for line in lines)) or "not recorded"))
    if "finished" in cells and cells["finished"].notna().any():
        times = cells["finished"].dropna().map(str)
        pairs.append(("Cells finished", f"from {times.min()} to {times.max()}"))
    page.add(definitions(pairs))
    if text := str(getattr(study.protocol, "text", "") or ""):
        page.add(details("The protocol's file (the command says what was chosen from it)", element("pre", text)))


def progress_table(page: Page, study: Study, _: Figures) -> None:
    """Tell how many cells are finished."""
    rows = []
    for dataset in study.datasets:
        planned = study.planned[study.planned["dataset"] == dataset]
        cells = study.cells[study.cells["dataset"] == dataset]
        row: list[object] = [dataset]
        for method in study.methods:
            done = int(((cells["method"] == method) & (cells["status"] == "done")).sum())
            failed = int(((cells["method"] == method) & (cells["status"] == "failed")).sum())
            count = max(int((planned["method"] == method).sum()), done + failed)
            kind = "bad" if failed else "" if done == count else "near"
            row.append(Cell(f"{done} / {count}" if count else fixed(None), f"number {kind}".strip()))
        rows.append(row)
    level = "a level of each factor, " if study.factors else ""
    note = f"A cell is one fit: a data set, {level}a {repeat_name(study)}, a method."
    caption = f"Cells finished, of those planned. {note} Coloured: some failed."
    if rows:
        page.add_table("cells", caption, table(["Data set", *heads(study.methods)], rows))
    else:
        page.add("No cell was planned.")


def failures(page: Page, study: Study, _: Figures) -> None:
    """List the cells that failed, with their errors."""
    failed = study.cells[study.cells["status"] == "failed"]
    if failed.empty:
        return
    rows = []
    for _index, cell in failed.head(200).iterrows():
        text = str(cell["error"]) if isinstance(cell["error"], str) else "no error was recorded"
        first = next((line for line in text.splitlines() if line.strip()), "no error was recorded")
        whole = details(first[:200], element("pre", text)) if text.strip() != first else first
        where = [plain(cell[name]) for name in study.factors]
        rows.append([cell["dataset"], *where, plain(cell["repeat"]), cell["method"], whole])
    head = ["Data set", *map(measure_name, study.factors), repeat_name(study), "Method", "Error"]
    more = f" The first 200 of {len(failed)}." if len(failed) > 200 else ""
    page.add_table("failed", f"Cells that failed; click an error for all of it.{more}", table(head, rows))
