"""The first sections: what was found in a few sentences, the data, the scores on test data."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from sylvan.app.report.findings import FEW, Findings, Given, NotHere, Recovery, count_features, unknown_cells
from sylvan.app.report.words import add_folded_table, brief, bullets, count, heads, listing, many, named, percent
from sylvan.measures import get_measure
from sylvan.pages.page import Cell, Page, definitions, fixed, number, table

_ACRONYMS = {"auroc": "AUROC", "auc": "AUC", "f1": "F1", "mcc": "MCC", "hamming": "Hamming"}
#: A loss of score from the first layer to the last that a reader should know of.
MUCH = 0.01
OUT_OF_SAMPLE = (
    "Out-of-sample means that each row was judged only by trees that had not seen it, as if it were a new row."
)


def measure_name(name: object) -> str:
    """Return the printed name of a measure.

    Examples
    --------
    >>> from sylvan.app.report.opening import measure_name
    >>> measure_name("micro_auroc"), measure_name("hamming_loss")
    ('micro AUROC', 'Hamming loss')
    """
    return " ".join(_ACRONYMS.get(word, word) for word in str(name).split("_"))


def direction(greater: bool) -> str:
    """Say which values of a measure are good."""
    return "greater is better" if greater else "smaller is better"


def score_words(found: Findings) -> str:
    """Name the measure of layers and its value in the last layer that was kept."""
    measure = found.measure
    wrong = found.kind != "multilabel" and measure.name in ("one_error", "hamming_loss")
    meaning = "the share of rows whose class is wrong; " if wrong else ""
    return f"{measure_name(measure.name)} {fixed(found.score)} ({meaning}{direction(measure.greater_is_better)})"


def summarise(page: Page, found: Findings, given: Given) -> None:
    """Say what was found in a few sentences, and how far to trust it."""
    page.section("Summary")
    page.add(" ".join([_what_was_learnt(found), *_what_is_missing(found)]))
    score = f"Its out-of-sample score is {score_words(found)}. {OUT_OF_SAMPLE}"
    page.add(" ".join([*_recovered(given), score, *_tested(given)]))
    page.heading("How far to trust it")
    page.add(bullets(_cautions(found, given)))


def _what_was_learnt(found: Findings) -> str:
    model = found.model
    size = f"from {many(found.n_rows, 'row')} and {many(model.n_features_in_, 'feature')}"
    forest = f"A deep forest of {many(model.n_layers_, 'layer')} learnt"
    if found.kind != "multilabel":
        return f"{forest} to tell {many(len(model.classes_), 'class', 'classes')} apart {size}."
    positives = int(found.observed.sum())
    return (
        f"{forest} {many(len(found.labels), 'label')} {size}; {many(positives, 'positive')} "
        f"{'was' if positives == 1 else 'were'} recorded, {positives / found.n_rows:.2f} for each row."
    )


def _what_is_missing(found: Findings) -> Iterable[str]:
    if found.kind == "multiclass":
        return
    filled = int(found.imputed.sum())
    if not found.n_candidates:
        yield f"No positive may be missing, as {found.why_complete}, so that none was looked for."
    elif filled:
        share = f"{filled:,} ({percent(filled / found.n_candidates)})"
        probable = f"{share} {'is' if filled == 1 else 'are'} probably positive"
        yield f"Of {found.places}, {probable if found.calibrated else f'the model filled {share}'}."
        most = [j for j in np.argsort(-found.imputed, kind="stable")[:3] if found.imputed[j]]
        if len(found.labels) > 1:
            said = [f"“{brief(found.labels[j])}” ({found.imputed[j]:,})" for j in most]
            yield f"{'Most of them are' if filled > found.imputed[most].sum() else 'They are'} for {listing(said)}."
    elif found.calibrated:
        yield (
            f"None of {found.places} is more probably positive than not. The suggestions on this page rank what is "
            "most likely to be missing; they are no finding."
        )
    elif found.has_imputer:
        yield (
            "It filled in nothing: nothing passed the threshold of the imputer. The suggestions on this page rank what "
            "is most likely to be missing; they are no finding."
        )
    else:
        yield (
            "This algorithm fills in nothing while it learns; "
            f"of {found.places}, {found.probable:,} "
            f"{'has' if found.probable == 1 else 'have'} a probability above 0.5."
        )
    if found.share_recorded is not None:
        yield (
            f"It estimates that {percent(found.share_recorded)} of all positives were recorded: this share is called "
            "c on this page."
        )


def _recovered(given: Given) -> Iterable[str]:
    if given.recovery is not None:
        yield recovery_sentence(Recovery.of(given.recovery))


def recovery_sentence(recovery: Recovery) -> str:
    """Say how many hidden positives came back, against chance."""
    if not recovery.hidden:
        return "No known positive could be hidden for a test: no label has two of them."
    hidden, back = recovery.hidden, recovery.recovered
    return (
        f"Of {many(hidden, 'known positive')} that {'was' if hidden == 1 else 'were'} hidden for a test, {back:,} came "
        f"back ({percent(back / hidden)}); by chance it would be {percent(recovery.chance)}."
    )


def _tested(given: Given) -> Iterable[str]:
    values = _flat(given.scores)
    if values:
        said = [f"{measure_name(name)} {fixed(value)}" for name, value in list(values.items())[:3]]
        yield f"On test data it reached {listing(said)}."


def _cautions(found: Findings, given: Given) -> Iterable[str]:
    recorded_as = "labels" if found.kind == "multilabel" else "classes"
    yield f"The score is measured against the {recorded_as} as they were recorded, right or wrong."
    if found.kind == "multiclass":
        return
    if not found.n_candidates:
        yield f"{found.why_complete.capitalize()}: what is wrong there, the model has learnt."
    elif found.kind == "multilabel":
        yield (
            "A 0 in the label table may be a positive that nobody recorded. A model that finds it is marked down for "
            "it: a somewhat lower score can belong to the better model."
        )
    else:
        yield f"A model that finds one of {found.places} is marked down for it."
    recorded, filled = int(found.observed.sum()), int(found.imputed.sum())
    if filled > recorded:
        what = "is probably missing" if found.calibrated else "was filled in"
        yield f"More {what} ({filled:,}) than was recorded ({recorded:,}): right only if most are missing."
    if filled and not found.calibrated and found.lost > MUCH:
        yield (
            f"The score falls by {fixed(found.lost)} from layer 1, which learnt from the recorded labels alone, to the "
            "last layer that was kept: some of what was filled in may be wrong."
        )
    if found.frequency is not None:
        few = int(((found.observed < FEW) & np.isfinite(found.frequency)).sum())
        rest = f" For {many(few, 'label')} with fewer than {FEW} recorded positives, c is hardly more than a guess."
        c = "c, the share of positives that the last layer was told of" if found.reestimates else "c"
        why = (
            ", which takes it that positives were left out at random, whatever their features. If hard cases were left "
            "out more often, c is too high, and more is missing than this page says."
            if found.calibrated
            else ", and too high where labels are noisy, since labels that were filled in confirm each other in the "
            "next layer."
        )
        yield f"Probabilities of missing labels are as good as the estimate of {c}{why}{rest if few else ''}"
    elif found.n_candidates:
        yield (
            "Probabilities of missing labels are too low if positives are missing: the model has no estimate of the "
            "share that was recorded."
        )
    if given.recovery is None and found.n_candidates:
        yield (
            "This page has no check of how many known positives come back when they are hidden: "
            "model.check_recovery(X, Y) makes one. Make it before you act on the suggestions."
        )


def describe_data(page: Page, found: Findings, given: Given) -> None:
    """Count rows, features, labels and their recorded positives."""
    page.section("Data")
    unknown = None
    pairs: list[tuple[object, object]] = [("Rows", f"{found.n_rows:,}"), ("Features", _features(page, found, given))]
    if given.Y is not None:
        unknown, same = unknown_cells(found, given.Y)
        if not same:
            page.warn("The label table given for this page is not the one that the model was fitted with.")
            unknown = None
    if found.kind != "multilabel":
        page.add(definitions([*pairs, ("Classes", f"{len(found.model.classes_):,}")]))
        counts = found.observed if found.kind == "multiclass" else [found.n_rows - found.observed[0], *found.observed]
        rows = [[named(name), count(n), _share(n, found)] for name, n in zip(found.model.classes_, counts)]
        add_folded_table(page, "classes", "Rows of each class.", ["Class", *heads("Rows", "Share")], rows, "classes")
        return
    positives = found.observed.sum()
    empty = int((~found.state.observed.any(axis=1)).sum())
    pairs += [
        ("Labels", f"{len(found.labels):,}"),
        ("Recorded positives", f"{positives:,} of {found.state.observed.size:,} cells"),
        ("Labels for each row", f"{positives / found.n_rows:.2f} on average; {many(empty, 'row')} without any"),
    ]
    if unknown is not None:
        pairs.append(("Unknown cells", f"{unknown.sum():,}"))
    page.add(definitions([*pairs, ("Cells that may be missing positives", f"{found.n_candidates:,}")]))
    head = ["Label", *heads("Recorded positives", "Share of rows")]
    shown = unknown is not None and unknown.any()
    rows = [
        [named(found.labels[j]), count(found.observed[j]), _share(found.observed[j], found)]
        + ([count(unknown[j])] if unknown is not None and shown else [])
        for j in np.argsort(-found.observed, kind="stable")
    ]
    head += heads("Unknown cells") if shown else []
    caption = "Positives of each label as they were recorded, the most frequent labels first."
    add_folded_table(page, "data", caption, head, rows, "labels")


def _share(n: Any, found: Findings) -> Cell:
    return Cell(percent(n / found.n_rows), "number")


def _features(page: Page, found: Findings, given: Given) -> str:
    text = f"{found.model.n_features_in_:,}"
    if given.X is None:
        return text
    counts = count_features(given.X)
    if (counts.n_rows, counts.n) != (found.n_rows, found.model.n_features_in_):
        page.warn(
            f"The table of features given for this page has {many(counts.n_rows, 'row')} and "
            f"{many(counts.n, 'feature')}; the model was fitted with {found.n_rows:,} and {text}."
        )
        return text
    numeric = "all numeric" if counts.numeric == counts.n else f"{counts.numeric:,} of them numeric"
    missing = f"{counts.incomplete:,} with missing values"
    if counts.incomplete:
        missing += f" ({percent(counts.missing_share)} of all values)"
    return f"{text}, {numeric}; {missing}; {counts.constant:,} constant"


def show_scores(page: Page, found: Findings, given: Given) -> None:
    """Show measures on test data, as they were given."""
    if given.scores is None:
        raise NotHere("no scores on test data were given (sylvan evaluate measures them)")
    page.section("Scores on test data")
    page.add(
        "Measured on rows that the model had not seen. If positives are missing in the test labels too, the measures "
        "count what the model finds there as wrong."
    )
    values = _flat(given.scores)
    if values is not None:
        rows = [[measure_name(name), number(value), _good(name)] for name, value in values.items()]
        page.add_table("scores", "Measures on test data.", table(["Measure", *heads("Value"), "Direction"], rows))
        return
    frame = pd.DataFrame(given.scores)
    rows = [[named(measure_name(name)), *map(_any_cell, line)] for name, line in zip(frame.index, frame.to_numpy())]
    kinds = ["number" if pd.api.types.is_numeric_dtype(dtype) else "" for dtype in frame.dtypes]
    head = ["", *(named(measure_name(name), kind) for name, kind in zip(frame.columns, kinds))]
    add_folded_table(page, "scores", "Measures on test data.", head, rows, "lines")


def _any_cell(value: Any) -> Cell:
    return number(float(value)) if isinstance(value, (int, float, np.number)) else named(value)


def _good(name: object) -> str:
    try:
        return direction(get_measure(str(name)).greater_is_better)
    except ValueError:
        return ""


def _flat(scores: Any) -> dict[Any, float] | None:
    """Return scores as one number for each measure, None if they are a larger table."""
    if isinstance(scores, pd.DataFrame):
        if list(scores.columns) == ["measure", "value"]:
            scores = scores.set_index("measure")
        scores = scores.iloc[:, 0] if scores.shape[1] == 1 else scores.iloc[0] if len(scores) == 1 else None
    if scores is None:
        return None
    pairs = dict(scores.items() if isinstance(scores, (Mapping, pd.Series)) else ())
    numbers = all(isinstance(value, (int, float, np.number)) for value in pairs.values())
    return {name: float(value) for name, value in pairs.items()} if pairs and numbers else None
