"""The list of suggestions on the page, their reasons, and what these say about each label."""

import re
from typing import Any

import pandas as pd

from sylvan.app.report.facts import TOP, Findings, Given
from sylvan.pages.page import Cell, Page, Table, number
from sylvan.pages.words import MINUS, brief, percent, rows_of

#: Suggestions on the page: more would make it slow.
MOST = 20_000
_DECIDERS = 3
# One reason in words, such as "no3 = 4.1 (high) +.12", and the end of one that another follows.
_REASON = re.compile(r"\s*(?P<feature>.+?) = (?P<value>.*) (?P<sign>[+\-\u2212])(?P<size>\d*\.?\d+)\s*", re.DOTALL)
_NEXT = re.compile(r"(?<=\d);\s+")


def describe_suggestions(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """List the most probable missing labels, best first."""
    if found.form.has_many_classes or (given.suggestions is None and not found.n_candidates):
        return {"frame": pd.DataFrame()}  # the template says why
    frame, source = _suggestions(found, given)
    shown = frame.head(MOST)
    layers = "layer" in shown and bool(shown["layer"].notna().any())
    told = [name for name in ("reasons", "similar") if name in shown and shown[name].map(_has_text).any()]
    chosen = given.written is not None
    head = ["Rank", "Row", found.form.noun.capitalize(), "Probability"]
    head += [*(["Written"] if chosen else []), *(["Layer"] if layers else [])]
    head += [{"reasons": "Speaks for it, and against", "similar": "Similar rows that have it"}[name] for name in told]
    rows = []
    for rank, line in enumerate(rows_of(shown), start=1):
        row: list[Any] = [rank, str(line.row), str(line.label), line.probability]
        row += [Cell("written") if line.written else Cell("next best", "soft")] if chosen else []
        row += [Cell.of(None if pd.isna(line.layer) else int(line.layer), "layer")] if layers else []
        rows.append(row + [_lines(getattr(line, name), name) for name in told])
    return {
        "frame": frame, "source": source, "layers": layers, "told": told, "table": Table(head, rows),
        "n_written": 0 if given.written is None else len(given.written), "rest": len(frame) - len(shown),
    }  # fmt: skip


def _suggestions(found: Findings, given: Given) -> tuple[pd.DataFrame, str]:
    """Return the list and where it comes from."""
    if given.suggestions is not None:
        return given.suggestions.sort_values("probability", ascending=False, kind="stable"), "given"
    if found.n_likely:
        return found.model.suggest_labels(), "found"
    return found.model.suggest_labels(top=TOP), "ranked"


def _has_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _lines(text: Any, name: str) -> Cell:
    """Return reasons or similar rows, one below the other."""
    kind = "reasons" if name == "reasons" else f"reasons {name}"
    if not _has_text(text):
        return Cell("", kind)
    parts = _NEXT.split(text)
    reasons = [_REASON.fullmatch(part) for part in parts]
    if None in reasons:
        return Cell("", kind, lines=[(brief(part), "") for part in text.split("; ")])
    return Cell("", kind, lines=[_line(reason) for reason in reasons if reason is not None])


def _line(reason: re.Match[str]) -> tuple[str, str]:
    sign, kind = ("+", "for") if reason["sign"] == "+" else (MINUS, "against")
    return f"{brief(reason['feature'])} = {brief(reason['value'])} {sign}{reason['size']}", kind


def describe_deciders(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell which features are named most in the reasons for suggestions of each label."""
    frame = given.suggestions
    if frame is None or "reasons" not in frame or not frame["reasons"].map(_has_text).any():
        return {"table": None}
    reasons = [
        (str(line.label), part["feature"], float(part["size"]) * (1 if part["sign"] == "+" else -1))
        for line in rows_of(frame[frame["reasons"].map(_has_text)])
        for part in map(_REASON.fullmatch, _NEXT.split(line.reasons))
        if part is not None
    ]
    named = pd.DataFrame(reasons, columns=["label", "feature", "size"])
    named["weight"] = named["size"].abs()
    named["for"] = named["size"] > 0
    found_of = named.groupby(["label", "feature"], sort=False).agg({"weight": "sum", "for": "mean"}).reset_index()
    sizes, rows = frame["label"].astype(str).value_counts(), []
    by_label = dict(list(found_of.groupby("label", sort=False)))
    for label in (name for name in sizes.index if name in by_label):
        best = by_label[label].sort_values("weight", ascending=False, kind="stable").head(_DECIDERS)
        for feature, weight, share in zip(best["feature"], best["weight"], best["for"]):
            rows.append([label, sizes[label], feature, number(weight / sizes[label]), Cell(percent(share), "number")])
    head = ["Label", "Listed cells", "Feature", "Counts on average", "Speaks for it"]
    return {"table": Table(head, rows) if rows else None, "most": _DECIDERS}
