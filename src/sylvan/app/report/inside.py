"""What the model is made of: rules, important features, parts and parameters."""

import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy
import sklearn

import sylvan
from sylvan.app.report.figures import add_display
from sylvan.app.report.findings import Findings, Given, NotHere
from sylvan.app.report.words import brief, count, heads, many, named, percent, rows_of
from sylvan.pages.page import Cell, Html, Page, definitions, details, element, number, table

_RULES = 20
_FEATURES = 15
_LONGEST_RULE = 400
_LONGEST_VALUE = 600


def show_rules(page: Page, found: Findings, given: Given) -> None:
    """Show the most stable rules in words, and what they say about each label."""
    try:
        rules = found.model.interactions_
    except AttributeError:
        raise NotHere("this algorithm states no rules; sylvan.imldf does") from None
    if rules.empty:
        raise NotHere("no rules were found")
    page.section("Rules")
    best = rules.sort_values("stability", ascending=False, kind="stable").head(_RULES)
    weak = int((rules["stability"] < 0.5).sum())
    page.add(
        f"{many(len(rules), 'rule')} were found; these are the {len(best)} most stable. Stability is the share of "
        f"resampled forests in which a rule was found again: do not believe much of those below a half ({weak:,} of "
        f"{len(rules):,} here). A rule describes what goes together in these rows; it is no proof of a cause."
    )
    if rules["rule"].str.contains("score of ", regex=False).any():
        page.add(
            "“score of 1.3 > 0.4” means that rule 1.3 (layer 1, number 3) holds, and by some distance; "
            "“score of 1.3 <= 0.4” that it does not hold, or only just."
        )
    rows = [
        [name, _rule(found, name, line.rule), _wide(line.says), count(line.support), number(line.stability, 2)]
        for name, line in zip(best.index, rows_of(best))
    ]
    caption = "The most stable rules. Says: how frequent labels are where the rule holds, and in all training rows."
    page.add_table("rules", caption, table(["Rule", "If", "Says", *heads("Rows", "Stability")], rows))
    caption = "How much more, or less, frequent each label is where a rule holds than in all rows."
    alt = f"A matrix of {many(len(best), 'rule')} and {many(len(found.labels), 'label')}."
    add_display(page, "InteractionMatrixDisplay", found.model, "rules", caption, alt, max_rules=_RULES)


def _rule(found: Findings, name: Any, rule: str) -> Cell:
    """A rule in words; one that is about other rules is spelt out when asked for."""
    text: object = _wide(rule)
    if "score of " in rule:
        spelt = element("pre", brief(found.model.expand_interaction(name), 3000), style="max-width: 40rem")
        text = Html(f"{text}{details('spelt out', spelt)}")
    return Cell(text)


def _wide(text: str) -> Html:
    """Words that would otherwise be squeezed into a narrow column on a phone."""
    style = "display: inline-block; min-width: 13rem; overflow-wrap: anywhere"
    return element("span", brief(text, _LONGEST_RULE), style=style)


def show_features(page: Page, found: Findings, given: Given) -> None:
    """Show the features that the forests split by most."""
    importances = np.asarray(found.model.feature_importances_, dtype=float)
    order = [j for j in np.argsort(-importances, kind="stable")[:_FEATURES] if importances[j] > 0]
    if not order:
        raise NotHere("the forests never split, so that no feature is important")
    page.section("Important features")
    used = int((importances > 0).sum())
    page.add(
        "How much each feature served to tell labels apart, traced back through all layers; all together are "
        f"{percent(1)}. {many(used, 'feature')} of {len(importances):,} {'was' if used == 1 else 'were'} used. Of "
        "features that say the same, each gets a part, and a feature with many values is favoured."
    )
    rows = [
        [
            named(found.features[j]),
            Cell(percent(importances[j]), "number"),
            _bar(importances[j] / importances[order[0]]),
        ]
        for j in order
    ]
    most = f"The {len(order)} most important features." if len(order) > 1 else "The one feature that was used."
    page.add_table("features", most, table(["Feature", *heads("Importance"), ""], rows))


def _bar(share: float) -> Cell:
    style = f"width: {10 * share:.2f}rem; height: 0.8rem; margin-top: 0.2rem; background: var(--link)"
    return Cell(element("div", element("div", style=style), style="width: 10rem"))


def show_making(page: Page, found: Findings, given: Given) -> None:
    """Say which parts and parameters the model has, how long it took and which versions there are."""
    page.section("How it was made")
    model, history = found.model, found.history
    pairs: list[tuple[object, object]] = [
        ("Forests of a layer", _forests(model)),
        ("What a layer passes on", _code(model.augment, "nothing: each layer sees the features alone")),
        ("What fills in labels", _code(model.impute, "nothing: labels stay as they were recorded")),
        ("What chooses the number of layers", _code(model.length, "nothing: all layers are kept")),
        ("Time of the fit", f"{history['seconds'].sum():,.1f} seconds for {many(len(history), 'layer')}"),
        ("Size of the model", f"{model.model_size_ / 1e6:,.1f} MB in memory"),
    ]
    for name, value in (given.facts or {}).items():
        pairs.append((named(name).text, _value(value)))
    versions = {"Sylvan": sylvan.__version__, "Python": platform.python_version(), "NumPy": np.__version__}
    versions |= {"SciPy": scipy.__version__, "scikit-learn": sklearn.__version__, "pandas": pd.__version__}
    pairs.append(("Versions, of this page", ", ".join(f"{name} {version}" for name, version in versions.items())))
    page.add(definitions(pairs))
    rows = [
        [name, element("code", brief(_one_line(value), _LONGEST_VALUE))]
        for name, value in model.get_params(deep=False).items()
        if name != "callbacks"
    ]
    inner = page.table_html("parameters", "The parameters of the model.", table(["Parameter", "Value"], rows))
    page.add(details("Show all parameters", inner))


def _forests(model: Any) -> Html:
    forests, more = model.forests, None
    if callable(forests):
        forests, more = forests(1), " in layer 1; other layers have others"
    return element("span", *_between([_code(forest, "") for forest in forests]), more)


def _between(parts: list[Any]) -> Iterator[Any]:
    for i, part in enumerate(parts):
        yield part if i == 0 else Html(f", {part}")


def _code(part: Any, nothing: str) -> Any:
    return nothing if part is None else element("code", brief(_one_line(part), _LONGEST_VALUE))


def _one_line(value: Any) -> str:
    return " ".join(repr(value).split())


def _value(value: Any) -> object:
    """A fact: numbers and short texts as they are, the rest as code, which may be broken anywhere."""
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, dict):
        value = ", ".join(f"{name} {inner}" for name, inner in value.items())
    elif isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    text = brief(value, _LONGEST_VALUE)
    return element("code", text) if max(map(len, text.split()), default=0) > 30 else text
