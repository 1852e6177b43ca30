"""The list of suggestions on the page, their reasons, and what these say about each label."""

from typing import Any

import pandas as pd

from sylvan.app.report.facts import TOP, Findings, Given
from sylvan.labels.reasons import Reason
from sylvan.pages.page import Cell, Page, Table, number
from sylvan.pages.words import MINUS, brief, percent, rows_of

#: Suggestions on the page: more would make it slow.
MOST = 20_000
_DECIDERS = 3


def describe_suggestions(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """List the most probable missing labels, best first."""
    if found.form.has_many_classes or (given.suggestions is None and not found.n_candidates):
        return {"frame": pd.DataFrame()}  # the template says why
    frame, source = _suggestions(found, given)
    shown = frame.head(MOST)
    layers = "layer" in shown and bool(shown["layer"].notna().any())
    told = [name for name in ("reasons", "similar") if name in shown and shown[name].map(_is_told).any()]
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


def _is_told(value: Any) -> bool:
    return isinstance(value, (str, list)) and bool(value)


def _lines(told: Any, name: str) -> Cell:
    """Return reasons or similar rows, one below the other; text is shown as it is."""
    kind = "reasons" if name == "reasons" else f"reasons {name}"
    if not _is_told(told):
        return Cell("", kind)
    return Cell("", kind, lines=[(told, "")] if isinstance(told, str) else [_line(one) for one in told])


def _line(one: Any) -> tuple[str, str]:
    if not isinstance(one, Reason):
        return str(one._replace(row=brief(one.row))), ""
    value = brief(one.value) if isinstance(one.value, str) else one.value
    what, size = str(one._replace(feature=brief(one.feature), value=value)).rsplit(" ", 1)
    return f"{what} {size.replace('-', MINUS)}", "for" if one.contribution > 0 else "against"


def describe_deciders(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell which features are named most in the reasons for suggestions of each label."""
    frame = given.suggestions
    if frame is None or "reasons" not in frame:
        return {"table": None}
    reasons = [
        (str(line.label), one.feature, abs(one.contribution), one.contribution > 0)
        for line in rows_of(frame)
        for one in (line.reasons if isinstance(line.reasons, list) else ())
    ]
    named = pd.DataFrame(reasons, columns=["label", "feature", "weight", "for"])
    found_of = named.groupby(["label", "feature"], sort=False).agg({"weight": "sum", "for": "mean"}).reset_index()
    sizes, rows = frame["label"].astype(str).value_counts(), []
    by_label = dict(list(found_of.groupby("label", sort=False)))
    for label in (name for name in sizes.index if name in by_label):
        best = by_label[label].sort_values("weight", ascending=False, kind="stable").head(_DECIDERS)
        for feature, weight, share in zip(best["feature"], best["weight"], best["for"]):
            rows.append([label, sizes[label], feature, number(weight / sizes[label]), Cell(percent(share), "number")])
    head = ["Label", "Listed cells", "Feature", "Counts on average", "Speaks for it"]
    return {"table": Table(head, rows) if rows else None, "most": _DECIDERS}
