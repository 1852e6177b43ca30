"""The report of a fit: one self-contained HTML page on what a model found, and how far to trust it.

For readers who know their data and not the algorithm. Each section is a template; one that makes no sense for the model
is left out, and the page says so at its end.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan._messages import many
from sylvan.app.report import figures, listing, tables
from sylvan.app.report.facts import Findings, Given
from sylvan.pages.page import Page
from sylvan.pages.words import NotHere

__all__ = ["write_report"]


def write_report(
    model: Any, path: str | os.PathLike[str], *, X: Any = None, Y: Any = None, suggestions: pd.DataFrame | None = None,
    recovery: pd.DataFrame | None = None, scores: Any = None, title: str | None = None,
    facts: Mapping[Any, Any] | None = None, warnings: Iterable[object] = (), promise: str = "",
) -> Path:  # fmt: skip
    """Write the report of a fit as one HTML page that needs nothing else, and return its path.

    Parameters
    ----------
    model : a fitted DeepForestClassifier; of classes, sections on missing labels are left out
    path : the page; it is replaced in one step
    X, Y : the training data, to describe features and unknown cells; without them the page says what the model knows
    suggestions : from `model.suggest_labels`; None: what that gives by itself, or the best 50 if that is nothing. A
        column `written` says which of them are suggested: the others are the next best. Columns `reasons` and `similar`
        are shown, too: lists, as `Reasons.top` and `Reasons.similar` of `model.explain_cells` have them, or text. What
        decides labels is summed up from lists.
    recovery : from `model.check_recovery`
    scores : dict or DataFrame of measures on test data
    title : heading of the page
    facts : dict of what else a reader should know: names of files, the command, times, versions
    warnings : what a reader must not miss, such as warnings of the fit: put at the top
    promise : what is known of all suggestions that are written, in a sentence

    Examples
    --------
    >>> import tempfile
    >>> from sylvan import slcforest
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> model = slcforest(20, max_layers=2, random_state=0).fit(X[:200], Y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, f"{folder}/report.html", X=X[:200]).name
    'report.html'
    """
    found, given = Findings(model), Given(X, Y, suggestions, recovery, scores, facts, promise)
    found.choose(given.written)
    known = {"found": found, "given": given, "model": model, "draw": partial(figures.picture_of, model)}
    page = Page(title or "Report of a fit", _subtitle(found), Path(__file__).parent / "templates", known)
    for text in [warnings] if isinstance(warnings, str) else warnings:
        page.warn(text)
    left_out: list[str] = []
    for name, template, describe in _SECTIONS:
        try:
            page.section(name, page.attempt(f"The section “{name}”", template, partial(describe, page, found, given)))
        except NotHere as reason:
            left_out.append(f"{name}: {reason}.")
    if left_out:
        page.section("What is not on this page", page.render("left_out.html", left_out=left_out))
    return page.write(path)


def _subtitle(found: Findings) -> str:
    model, names = found.model, found.labels if found.form.has_labels else found.model.classes_
    what = many(len(names), found.form.noun, "classes" if found.form.noun == "class" else None)
    size = f"{many(found.n_rows, 'row')}, {many(model.n_features_in_, 'feature')}"
    return f"{size}, {what}, {many(model.n_layers_, 'layer')}"


_SECTIONS: tuple[tuple[str, str, Callable[..., dict[str, Any]]], ...] = (
    ("Summary", "summary.html", tables.describe_missing),
    ("Data", "data.html", tables.describe_data),
    ("Layers", "layers.html", tables.describe_layers),
    ("Labels found missing", "missing.html", tables.describe_missing),
    ("Calibration", "calibration.html", lambda *_: {}),
    ("Suggestions", "suggestions.html", listing.describe_suggestions),
    ("What decides labels", "decides.html", listing.describe_deciders),
    ("Check by hiding", "recovery.html", tables.describe_recovery),
    ("Scores on test data", "scores.html", tables.describe_scores),
    ("Rules", "rules.html", tables.describe_rules),
    ("Important features", "features.html", tables.describe_features),
    ("How it was made", "making.html", tables.describe_making),
)
