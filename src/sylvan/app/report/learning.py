"""What happened while the model learnt: layers, labels that were found missing, calibration."""

import numpy as np

from sylvan.app.report.figures import add_display
from sylvan.app.report.findings import FEW, Findings, Given, NotHere
from sylvan.app.report.opening import direction, measure_name
from sylvan.app.report.words import add_folded_table, brief, count, heads, listing, many, named, percent, rows_of
from sylvan.pages.page import Cell, Page, details, element, fixed, number, table


def show_layers(page: Page, found: Findings, given: Given) -> None:
    """Show the score of each layer and what it filled in."""
    page.section("Layers")
    model, history, measure = found.model, found.history, found.measure
    grown, kept = len(history), int(model.n_layers_)
    page.add(
        f"{many(grown, 'layer')} {'was' if grown == 1 else 'were'} grown and the first {kept:,} kept. Each layer "
        "learns from the features and from what the layer before it found out. Its score is "
        f"{measure_name(measure.name)}, out-of-sample and against the labels as they were recorded; "
        f"{direction(measure.greater_is_better)}. Differences in the third decimal mean little."
    )
    if grown > 1:
        scores = ", ".join(f"{score:.3f}" for score in history["score"])
        caption = f"Out-of-sample {measure_name(measure.name)} of each layer; layer {kept} is the last that was kept."
        alt = f"Score of each layer: {scores}. The first {kept} were kept."
        add_display(page, "LayerScoreDisplay", model, "layers", caption, alt)
    imputes = found.has_imputer
    head = [
        "Layer",
        *heads(f"{measure_name(measure.name)}"),
        *(heads("Cells filled", "Labels still open") if imputes else []),
    ]
    rows = [
        [
            f"{line.layer}{' (last kept)' if line.layer == kept else ''}",
            number(line.score, kind="best" if line.layer == kept else ""),
            *([count(line.imputed), count(line.active)] if imputes else []),
            number(line.seconds, 1 if line.seconds >= 1 else 2),
        ]
        for line in rows_of(history)
    ]
    caption = "Each layer that was grown."
    if imputes:
        caption += " Cells filled: missing positives that the next layer takes for true."
        caption += " Labels still open: those that may get more."
    add_folded_table(page, "layers", caption, [*head, *heads("Seconds")], rows, "layers")


def show_missing_labels(page: Page, found: Findings, given: Given) -> None:
    """Show what was filled in, with the estimates that allowed it."""
    if found.kind == "multiclass":
        raise NotHere("a row has one of several classes, so that no label can be missing")
    if not found.n_candidates:
        raise NotHere(f"no positive may be missing, as {found.why_complete}")
    if not found.has_imputer and found.frequency is None:
        raise NotHere("this algorithm neither fills in labels nor estimates how many are missing; sylvan.auto does")
    page.section("Labels found missing")
    page.add(*_words(found))
    filled = int(found.imputed.sum())
    by_layer = filled and found.model.n_layers_ > 1 and not found.calibrated
    if by_layer:
        caption = "Recorded (observed) positives, and cells that were filled by the layer that filled them first."
        alt = f"{many(filled, 'cell')} filled in {many(found.model.n_layers_, 'layer')}."
        add_display(page, "ImputationHistoryDisplay", found.model, "filled", caption, alt)
    if found.frequency is not None:
        caption = "The estimate of c for each label, with recorded (observed) and estimated numbers of positives."
        alt = f"Estimates of c; their median is {np.nanmedian(found.frequency):.2f}."
        add_display(page, "LabelFrequencyDisplay", found.model, "frequency", caption, alt)
    _label_table(page, found)
    if by_layer:
        _layer_table(page, found)


def _words(found: Findings) -> list[str]:
    filled = int(found.imputed.sum())
    words = []
    if found.calibrated:
        words.append(
            f"Of {found.places}, {filled:,} {'is' if filled == 1 else 'are'} more probably positive than not. They are "
            "counted as filled; the layers have learnt from the recorded labels alone."
        )
        if found.state.details is not None:
            words.append(f"Estimate of c: {found.state.details.reason}.")
    elif found.has_imputer:
        text = f"Of {found.places}, {filled:,} {'was' if filled == 1 else 'were'} filled"
        if found.kind == "multilabel":
            text += f", of {many(int((found.imputed > 0).sum()), 'label')}"
        words.append(f"{text}." if filled else "Nothing was filled: nothing passed the threshold of the imputer.")
    else:
        words.append("This algorithm fills in nothing; it only estimates how much is missing.")
    if found.frequency is not None:
        share = "were recorded: 0.5 means that half are missing"
        if found.reestimates:
            share = "the last layer was told of, recorded or filled by the layers before"
        bound = f": {found.bound_words}" if found.bound_words else ""
        words.append(
            f"c is the estimated share of a label's true positives that {share}. u is the number of positives that c "
            f"implies, recorded positives divided by c{bound}. Both are estimates; with fewer than {FEW} recorded "
            "positives they are hardly more than guesses."
        )
    return words


def _label_table(page: Page, found: Findings) -> None:
    nothing = np.full(len(found.labels), np.nan)
    c = nothing if found.frequency is None else found.frequency
    u = nothing if found.expected is None else found.expected
    order = np.lexsort([-found.observed, -found.imputed])
    rows = [
        [
            named(found.labels[j]),
            count(found.observed[j]),
            count(found.imputed[j]),
            Cell(element("span", _estimate(found, j, c), class_="note" if found.observed[j] < FEW else None), "number"),
            count(u[j]),
        ]
        for j in order
    ]
    caption = "Each label, most filled first." if found.kind == "multilabel" else "The class that may be missing."
    if ((found.observed < FEW) & np.isfinite(c)).any():
        caption += f" Estimates of c from fewer than {FEW} recorded positives are in soft colours."
    head = [found.kind_of_name.capitalize(), *heads("Recorded", "Filled", "c", "u")]
    add_folded_table(page, "labels", caption, head, rows, "labels")
    silent = [brief(found.labels[j]) for j in np.flatnonzero(found.observed == 0)]
    if silent:
        some = listing(silent[:5]) if len(silent) <= 5 else f"{', '.join(silent[:5])} and {len(silent) - 5:,} more"
        page.add(f"Nothing can be said about labels without a recorded positive: {some}.")


def _estimate(found: Findings, j: int, c: np.ndarray) -> str:
    """Return c of a label, with its interval if it has one."""
    interval = found.interval
    if interval is None or not np.isfinite(c[j]):
        return fixed(c[j], 2)
    return f"{fixed(c[j], 2)} ({fixed(interval[0][j], 2)} to {fixed(interval[1][j], 2)})"


def _layer_table(page: Page, found: Findings) -> None:
    counts = found.imputed_by_layer
    rows = [
        [named(found.labels[j]), *map(count, counts[j])]
        for j in np.argsort(-found.imputed, kind="stable")
        if found.imputed[j]
    ]
    head = [found.kind_of_name.capitalize(), *heads(*(f"Layer {i}" for i in range(1, counts.shape[1] + 1)))]
    caption = (
        "Filled cells by the layer that filled them first; cells that a later layer dropped again are not counted."
    )
    page.add(details("Show what each layer filled", page.table_html("by-layer", caption, table(head, rows))))


def show_calibration(page: Page, found: Findings, given: Given) -> None:
    """Show how often labels were recorded where the model gives them some probability."""
    page.section("Calibration")
    proba = found.model.oos_proba_
    observed = found.observed.sum() / found.state.observed.size
    mean = float(np.mean(proba[:, 1] if found.kind == "binary" else proba))
    page.add(
        "Can a probability be taken at its word? The mean out-of-sample probability of a cell is "
        f"{percent(mean)}; {percent(observed)} of the cells are recorded positives."
    )
    if found.n_candidates:
        page.add(
            "Where positives are missing and the model finds them, less was recorded than is probably there: "
            "probabilities are then greater than the share that was recorded, and should be."
        )
    caption = "Share of cells with a recorded positive against the probability that the model gives, all labels pooled."
    caption += " On the diagonal, the two are the same; below it, less was recorded than the model expects."
    alt = f"Calibration curve; mean probability {percent(mean)}, recorded {percent(observed)}."
    add_display(page, "CalibrationCurveDisplay", found.model, "calibration", caption, alt)
