"""The tables of the page about a fit, and what its templates need beside the findings."""

import platform
from typing import Any

import numpy as np
import pandas as pd
import scipy
import sklearn

import sylvan
from sylvan._messages import many
from sylvan.app.report.facts import FEW, Findings, Given, count_features, unknown_cells
from sylvan.cascade.plan import first_forests
from sylvan.measures import measure_name
from sylvan.pages.page import Cell, Page, Table, number
from sylvan.pages.words import brief, direction, fixed, percent, rows_of

_RULES, _FEATURES = 20, 15
_LONGEST_RULE, _LONGEST_VALUE = 400, 600


def describe_data(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Count features and unknown cells; warn of tables that are not those of the fit."""
    features = None if given.X is None else count_features(given.X)
    if features and (features["n_rows"], features["n"]) != (found.n_rows, found.model.n_features_in_):
        page.warn(
            f"The table of features for this page has {many(features['n_rows'], 'row')} and "
            f"{many(features['n'], 'feature')}; the model was fitted with {found.n_rows:,} and "
            f"{found.model.n_features_in_:,}."
        )
        features = None
    unknown = None if given.Y is None else unknown_cells(found, given.Y)
    if given.Y is not None and unknown is None:
        page.warn("The label table for this page is not the one that the model was fitted with.")
    empty = int((~found.state.recorded.any(axis=1)).sum())
    return {"features": features, "unknown": unknown, "empty": empty, "table": _counts_table(found, unknown)}


def _counts_table(found: Findings, unknown: np.ndarray | None) -> Table:
    names, counts, order = found.labels, found.recorded, np.argsort(-found.recorded, kind="stable")
    head = ["Label", "Recorded positives", "Share of rows"]
    if not found.form.has_labels:
        names = list(found.model.classes_)
        counts = counts if found.form.has_many_classes else np.array([found.n_rows - counts[0], *counts])
        head, order, unknown = ["Class", "Rows", "Share"], np.arange(len(names)), None
    shown = unknown is not None and unknown.any()
    rows = [
        [str(names[j]), counts[j], Cell(percent(counts[j] / found.n_rows), "number"), *([unknown[j]] if shown else [])]  # type: ignore[index]
        for j in order
    ]
    return Table([*head, *(["Unknown cells"] if shown else [])], rows)


def describe_layers(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell the score of each layer and what it imputed."""
    kept, history = int(found.model.n_layers_), found.model.history_
    name = measure_name(found.measure.name)
    head = ["Layer", name, *(["Cells imputed", "Labels still open"] if found.imputes else []), "Seconds"]
    rows = []
    for line in rows_of(history):
        mark = " (last kept)" if line.layer == kept else ""
        imputed = [line.imputed, line.active] if found.imputes else []
        seconds = number(line.seconds, 1 if line.seconds >= 1 else 2)
        rows.append([f"{line.layer}{mark}", number(line.score), *imputed, seconds])
    return {"history": history, "kept": kept, "measure": name, "table": Table(head, rows)}


def describe_missing(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell what is missing, with the estimates that say so."""
    c = np.full(len(found.labels), np.nan) if found.frequency is None else found.frequency
    rows = []
    for j in np.lexsort([-found.recorded, -found.suggested]):
        counts = found.recorded[j], found.suggested[j]
        rows.append([str(found.labels[j]), *counts, _estimate(found, c[j], j), number(found.expected[j], 0)])
    head = [found.form.noun.capitalize(), "Recorded", "Suggested", "c", "Estimated total"]
    layers, since = range(1, found.model.n_layers_ + 1), np.where(found.state.imputed, found.state.since, 0)
    by_layer = [
        [str(found.labels[j]), *((since[:, j] == layer).sum() for layer in layers)]
        for j in np.argsort(-found.suggested, kind="stable")
        if found.imputes and found.state.imputed[:, j].any()
    ]
    silent = [brief(found.labels[j]) for j in np.flatnonzero(found.recorded == 0)]
    most = [j for j in np.argsort(-found.suggested, kind="stable")[:3] if found.suggested[j]]
    return {
        "total": int(found.suggested.sum()),
        "table": Table(head, rows),
        "by_layer": Table([head[0], *(f"Layer {layer}" for layer in layers)], by_layer),
        "several_layers": bool(by_layer) and found.model.n_layers_ > 1 and not found.calibrated,
        "median": float(np.nanmedian(c)) if np.isfinite(c).any() else None,
        "silent": [*silent[:5], *([f"{len(silent) - 5:,} more"] if len(silent) > 5 else [])],
        "most": [f"“{brief(found.labels[j])}” ({found.suggested[j]:,})" for j in most],
        "rest": int(found.suggested.sum() - found.suggested[most].sum()),
        "few": FEW,
    }


def _estimate(found: Findings, c: float, j: int) -> Cell:
    """Return c of a label, with its interval if it has one."""
    text = fixed(c, 2)
    if np.isfinite(c) and found.has_intervals:
        low, high = found.table[["low", "high"]].iloc[j]
        text += f" ({fixed(low, 2)} to {fixed(high, 2)})"
    return Cell(text, "number soft" if found.recorded[j] < FEW else "number")


def describe_recovery(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell how many known positives came back when they were hidden."""
    if given.recovered is None:
        return {}
    frame = given.recovered["by_label"]
    ranked = "median_rank" in frame.columns
    rows = []
    for label, line in zip(frame.index, rows_of(frame)):
        share = number(line.recovered / line.hidden if line.hidden else None, 2)
        chance = number(line.imputed / line.candidates if line.candidates else None, 2)
        rank = [number(line.median_rank, 0)] if ranked else []
        rows.append([str(label), int(line.hidden), int(line.recovered), share, chance, *rank, int(line.candidates)])
    head = ["Label", "Hidden", "Came back", "Share", "By chance", *(["Median rank"] if ranked else []), "Of cells"]
    return {"ranked": ranked, "table": Table(head, rows)}


def describe_rules(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell the most stable rules in words; one that is about other rules is spelt out when asked for."""
    rules = getattr(found.model, "interactions_", None)
    if rules is None:
        return {"rules": None}
    best, rows = rules.sort_values("stability", ascending=False, kind="stable").head(_RULES), []
    for name, line in zip(best.index, rows_of(best)):
        spelt = found.model.expand_interaction(name)[:3000] if "score of " in line.rule else ""
        rule = Cell(brief(line.rule, _LONGEST_RULE), "wide", folded=spelt, fold_title="spelt out" if spelt else "")
        says = Cell(brief(line.says, _LONGEST_RULE), "wide")
        rows.append([name, rule, says, line.support, number(line.stability, 2)])
    table = Table(["Rule", "If", "Says", "Rows", "Stability"], rows)
    return {"rules": rules, "best": best, "most": _RULES, "table": table}


def describe_features(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell the features that the forests split by most."""
    shares = np.asarray(found.model.feature_importances_, dtype=float)
    order = [j for j in np.argsort(-shares, kind="stable")[:_FEATURES] if shares[j] > 0]
    names = getattr(found.model, "feature_names_in_", [f"x{j}" for j in range(len(shares))])
    rows = [
        [str(names[j]), Cell(percent(shares[j]), "number"), Cell(shares[j] / shares[order[0]], "bar")] for j in order
    ]
    return {"used": int((shares > 0).sum()), "n": len(shares), "table": Table(["Feature", "Importance", ""], rows)}


def describe_scores(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell measures on test data, one by one or as a larger table."""
    if given.scores is None:
        return {}
    if given.flat_scores is not None:
        rows = [[measure_name(name), value, Cell(direction(str(name)))] for name, value in given.flat_scores.items()]
        return {"table": Table(["Measure", "Value", "Direction"], rows)}
    frame = pd.DataFrame(given.scores)
    rows = [
        [measure_name(name), *(float(v) if isinstance(v, (int, float, np.number)) else str(v) for v in line)]
        for name, line in zip(frame.index, frame.to_numpy())
    ]
    return {"table": Table(["", *map(measure_name, frame.columns)], rows)}


def describe_making(page: Page, found: Findings, given: Given) -> dict[str, Any]:
    """Tell parts and parameters of the model, and which versions there are."""
    model, modules = found.model, {"Sylvan": sylvan, "NumPy": np, "SciPy": scipy, "scikit-learn": sklearn, "pandas": pd}
    versions = [f"Python {platform.python_version()}", *(f"{name} {it.__version__}" for name, it in modules.items())]
    parameters = [[k, Cell(_one_line(v), "code")] for k, v in model.get_params(deep=False).items() if k != "callbacks"]
    return {
        "forests": first_forests(model),
        "code": _one_line,
        "facts": [(brief(name), _value(value)) for name, value in (given.facts or {}).items()],
        "versions": versions,
        "table": Table(["Parameter", "Value"], parameters),
    }


def _one_line(value: Any) -> str:
    return brief(" ".join(repr(value).split()), _LONGEST_VALUE)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, dict):
        value = ", ".join(f"{name} {inner}" for name, inner in value.items())
    elif isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    return brief(value, _LONGEST_VALUE)
