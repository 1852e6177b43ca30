"""What can be acted on: suggestions, and the test by hiding known positives."""

from typing import Any

import pandas as pd

from sylvan.app.report.findings import TOP, Findings, Given, NotHere, Recovery
from sylvan.app.report.opening import recovery_sentence
from sylvan.app.report.words import SHOWN, add_folded_table, count, heads, many, named, rows_of
from sylvan.pages.page import Cell, Page, details, number, table

_MOST = 100
_MOST_BY_LABEL = 300
_BEST_OF_LABEL = 3


def show_suggestions(page: Page, found: Findings, given: Given) -> None:
    """List the most probable missing labels, over all and by label."""
    if found.kind == "multiclass":
        raise NotHere("a row has one of several classes, so that there is nothing to suggest")
    if given.suggestions is None and not found.n_candidates:
        raise NotHere(f"no positive may be missing, as {found.why_complete}")
    page.section("Suggestions")
    frame, words = _choose(found, given)
    page.add(words)
    if frame.empty:
        return
    filled = "layer" in frame.columns and bool(frame["layer"].notna().any())
    page.add(_meaning(found, filled))
    head = [
        *heads("Rank"),
        "Row",
        found.kind_of_name.capitalize(),
        *heads("Probability", *(["Layer"] if filled else [])),
    ]
    rows = [_line(rank, line, filled) for rank, line in enumerate(rows_of(frame.head(_MOST)), start=1)]
    page.add_table("suggestions", "The most probable, best first.", table(head, rows[:SHOWN]))
    if rows[SHOWN:]:
        rest = page.table_html("suggestions-more", "The next ones.", table(head, rows[SHOWN:]))
        page.add(details(f"Show the next {len(rows) - SHOWN:,}", rest))
    if len(set(frame["label"])) > 1:
        _by_label(page, frame)


def _choose(found: Findings, given: Given) -> tuple[pd.DataFrame, str]:
    """Return what to list, best first, and a sentence on what it is."""
    if given.suggestions is not None:
        frame = given.suggestions.sort_values("probability", ascending=False, kind="stable")
        return frame, f"{many(len(frame), 'suggestion')} in all, among {found.places}."
    frame = found.model.suggest_labels()
    if not frame.empty and found.has_imputer:
        return frame, f"{many(len(frame), 'suggestion')} in all: those that the imputer filled, among {found.places}."
    if not frame.empty:
        return frame, f"{many(len(frame), 'suggestion')} in all: a probability above 0.5, among {found.places}."
    frame = found.model.suggest_labels(top=TOP)
    which = "the imputer filled none" if found.has_imputer else "none has a probability above 0.5"
    return (
        frame,
        f"The {many(len(frame), 'most probable case')} among {found.places}, although {which}: a ranking, no finding.",
    )


def _meaning(found: Findings, filled: bool) -> str:
    words = ["The probability is that the label is truly there"]
    if found.calibrated:
        words[0] += " although it was not recorded, if positives were left out at random."
    elif found.frequency is None:
        words[0] += "; it is too low if positives are missing, since the model does not know what share was recorded."
    else:
        words[0] += "; it is as good as the estimate of c, and too high where labels are noisy."
    if filled:
        words.append("Layer is the layer that first filled the cell, a dash if none did.")
    return " ".join([*words, "Look at each suggestion before you take it for a fact."])


def _line(rank: int, line: Any, filled: bool) -> list[Cell]:
    cells = [count(rank), named(line.row), named(line.label), number(line.probability)]
    return cells + ([count(None if pd.isna(line.layer) else line.layer)] if filled else [])


def _by_label(page: Page, frame: pd.DataFrame) -> None:
    codes, labels = pd.factorize(frame["label"].to_numpy(dtype=object))  # in order of their best suggestions
    frame = frame.assign(code=codes)
    sizes = frame.groupby("code").size()
    best = frame[frame.groupby("code").cumcount() < _BEST_OF_LABEL]
    best = best.sort_values("code", kind="stable").head(_MOST_BY_LABEL)
    rows = [
        [named(line.label), count(sizes[line.code]), named(line.row), number(line.probability)]
        for line in rows_of(best)
    ]
    head = ["Label", *heads("Suggested in all"), "Row", *heads("Probability")]
    told = best["code"].nunique()
    caption = (
        f"The best {_BEST_OF_LABEL} of each label, for {told:,} of {many(len(labels), 'label')} with a suggestion."
    )
    inner = page.table_html("suggestions-by-label", caption, table(head, rows))
    page.add(details("Show the best few of each label", inner))


def show_recovery(page: Page, found: Findings, given: Given) -> None:
    """Show how many known positives came back when they were hidden."""
    if given.recovery is None:
        if found.kind == "multiclass":
            raise NotHere("a row has one of several classes, so that none can be hidden")
        if not found.n_candidates:
            raise NotHere(f"no positive may be missing, as {found.why_complete}")
        raise NotHere("no test by hiding was given (model.check_recovery(X, Y) makes one)")
    page.section("Check by hiding")
    recovery = Recovery.of(given.recovery)
    page.add(recovery_sentence(recovery))
    page.add(
        "Some recorded positives, which are known to be true, were hidden, and the same kind of model was fitted anew "
        "without them. What came back says how much the model finds. It cannot say how many of the other suggestions "
        "are wrong. Chance is what as many cells picked blindly would have brought back."
    )
    frame = recovery.by_label
    ranked = "median_rank" in frame.columns
    rows = [
        [
            named(label),
            count(line.hidden),
            count(line.recovered),
            number(line.recovered / line.hidden if line.hidden else None, 2),
            number(line.imputed / line.candidates if line.candidates else None, 2),
            *([number(line.median_rank, 0)] if ranked else []),
            count(line.candidates),
        ]
        for label, line in zip(frame.index, rows_of(frame))
    ]
    head = [
        "Label",
        *heads("Hidden", "Came back", "Share", "By chance", *(["Median rank"] if ranked else []), "Of cells"),
    ]
    caption = "Hidden positives of each label."
    if ranked:
        caption += " Median rank: where the hidden ones stand when the cells are ranked by probability; 1 is best."
    if rows:
        add_folded_table(page, "recovery", caption, head, rows, "labels")
