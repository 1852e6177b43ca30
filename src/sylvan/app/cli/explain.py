"""`sylvan explain`: what a model goes by."""

from typing import Any

import click

from sylvan._messages import did_you_mean, some
from sylvan.app.cli.listing import parts_in_words
from sylvan.app.cli.options import FILE, command, file_options, result_options
from sylvan.app.cli.predict import label_table, open_rows, tell_unseen
from sylvan.app.cli.steps import read_model
from sylvan.app.cli.terminal import print_json, show, show_table
from sylvan.labels.reasons import Reason, signed

_LINES, _BARS = 20, 8  # lines of tables, and bars
_WORDS, _SIMILAR = 3, 5  # reasons in words, and similar rows
_BAR = 14  # characters of the longest bar


@command("""
sylvan explain songs.sylvan                       important features, and rules
sylvan explain songs.sylvan s17                   a row of the fit (fit --with-rows)
sylvan explain songs.sylvan s17 --label tag_sad   why?
sylvan explain songs.sylvan s901 --data new.csv   a new row
sylvan explain songs.sylvan --top 50 --json
""")
@click.argument("model", type=FILE)
@click.argument("row", required=False)
@click.option("--data", type=FILE, help="The table of ROW. Default: that of the fit (stored by --with-rows).")
@click.option("--label", metavar="LABEL", help="Say what speaks for this label in ROW, and against it.")
@click.option(
    "--top", type=click.IntRange(1), metavar="NUMBER", help="Features and rules to list. Default: 20; 8 reasons."
)
@file_options
@result_options
def explain(**options: Any) -> None:
    """Show the features that matter most to a stored MODEL, its rules (algorithm imldf), or why it says what of a ROW.

    ROW is an id, or a row number (from 1) if the table has no id column. For a row of the fit, P(present) is the chance
    that a label is present, given whether it was recorded, as trees say that have not seen the row (--json also has
    what these say whether or not it was recorded, "out_of_sample"). For a new row, "probability" is that of predict:
    with models of auto the chance that a label is present; with others, that it would be recorded. Reasons are
    features, with what each adds to the probability or takes from it; none of them is a cause. Do not trust rules
    (imldf) with a stability below a half.
    """
    model, schema, about = read_model(options["model"])
    for name in ("data", "label"):
        if options["row"] is None and options[name] is not None:
            raise click.UsageError(f"--{name} needs a ROW: the id, or the number, of a row.")
    if options["row"] is None:
        found = _whole(model, schema, options["top"] or _LINES)
    elif options["data"] is None:
        found = _own_row(model, schema, options)
    else:
        found = _new_row(model, schema, options, about)
    if options["as_json"]:
        print_json(found)
    elif options["label"] is not None:
        _draw_reasons(found)
    else:
        for name, part in found.items():
            _print_part(name, part)


def _whole(model: Any, schema: Any, top: int) -> dict[str, Any]:
    importances = model.feature_importances_
    names = [str(name) for name in getattr(model, "feature_names_in_", schema.features)]
    order = (-importances).argsort(kind="stable")[:top]
    facts = {"layers": model.n_layers_, "labels": model.n_labels_, "features": model.n_features_in_}
    facts |= {key.replace("_", " "): value for key, value in parts_in_words(model).items()}
    best = [{"feature": names[at], "importance": float(importances[at])} for at in order if importances[at] > 0]
    found: dict[str, Any] = {"model": facts, "features": best}
    rules = getattr(model, "interactions_", None)
    if rules is not None:
        rules = rules.sort_values("stability", ascending=False, kind="stable").head(top).reset_index()
        found["rules"] = rules[["interaction", "rule", "says", "support", "stability"]].to_dict("records")
    used = " ".join(str(rule["rule"]) for rule in found.get("rules", []))
    codes = {name: dict(enumerate(values)) for name, values in schema.categories.items() if name in used}
    return found | ({"codes": codes} if codes else {})


def _own_row(model: Any, schema: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return what the fit found about one of its rows."""
    row = options["row"]
    try:
        fitted = model.labels_
    except AttributeError:
        ways = "fit it with --with-rows, or name the table with --data"
        raise click.UsageError(f"The model file has nothing about single rows of the fit: {ways}.") from None
    at = _position([str(name) for name in fitted.rows], row, "the rows of the fit (--data names another table)")
    if options["label"] is not None:
        return _reasons(model, schema, options, None, fitted.rows[at])
    proba = model.oos_proba_[at]
    if not fitted.form.has_labels:
        lines = [{"class": str(name), "out_of_sample": float(p)} for name, p in zip(model.classes_, proba)]
        return {"row": row, "classes": sorted(lines, key=lambda line: -line["out_of_sample"])}
    labels = fitted.state
    lines = []
    states = {"recorded": labels.recorded, "imputed": labels.current, "suggested": fitted.suggested}
    for j, name in enumerate(fitted.label_names):
        state = next((word for word, cells in states.items() if cells[at, j]), "not recorded")
        line: dict[str, Any] = {"label": str(name), "state": state}
        if model.calibration_ is None:  # otherwise nothing is imputed between layers
            line["layer"] = int(labels.since[at, j]) or None
        # A recorded label is believed; what a calibrated model says of its cell is what it would say of a zero.
        certain = model.calibration_ is not None and labels.recorded[at, j]
        present = 1.0 if certain else float(fitted.missing[at, j])
        line |= {"out_of_sample": float(proba[j]), "probability": present}
        lines.append(line)
    found = model.explain_cells(rows=fitted.rows[at], top=_WORDS)
    lines = _with_words(lines, found, schema)
    return {"row": row, "labels": sorted(lines, key=lambda line: (-line["probability"], -line["out_of_sample"]))}


def _new_row(model: Any, schema: Any, options: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    table = open_rows(options["data"], schema, options | {"quiet": True}, about)
    frame = table.whole(text=schema.text_columns)
    names = [str(name) for name in frame.index]
    if schema.id in frame:
        names = [f"row {name}" if cell != cell else str(cell) for cell, name in zip(frame[schema.id], names)]
    at = _position(names, options["row"], str(options["data"]))
    unseen: dict[str, list[str]] = {}
    X = schema.features_of(frame.iloc[[at]], unseen)
    tell_unseen(unseen)
    if options["label"] is not None:
        return _reasons(model, schema, options, X, X.index[0])
    proba = label_table(model, X, True).iloc[0]
    predicted = label_table(model, X, False).iloc[0]
    if not model.decider_.form.has_labels:
        lines = [{"class": str(k), "probability": float(p)} for k, p in proba.sort_values(ascending=False).items()]
        found = {"row": options["row"], "prediction": str(predicted["prediction"]), "classes": lines}
    else:
        lines = [{"label": str(k), "predicted": int(predicted[k]), "probability": float(p)} for k, p in proba.items()]
        lines = _with_words(lines, model.explain_cells(X, X.index[0], top=_WORDS), schema)
        found = {"row": options["row"], "labels": sorted(lines, key=lambda line: -line["probability"])}
    if hasattr(model, "interactions_"):
        holds = model.explain(X).head(options["top"] or _LINES)
        found["rules that hold"] = holds[["interaction", "rule", "says", "stability"]].to_dict("records")
    return found


def _with_words(lines: list[dict[str, Any]], found: Any, schema: Any) -> list[dict[str, Any]]:
    """Return lines about all labels of a row, each with its reasons in words."""
    return [
        line | {"reasons": "; ".join(map(str, schema.in_words(reasons)))}
        for line, reasons in zip(lines, found.top(_WORDS))
    ]


def _reasons(model: Any, schema: Any, options: dict[str, Any], X: Any, row: Any) -> dict[str, Any]:
    """Return why a row is said to have a label, or not."""
    names = {str(name): name for name in model.decider_.form.label_names}
    if options["label"] not in names:
        noun = model.decider_.form.noun
        known = f"; reasons lead to the {noun}{'es' if noun == 'class' else 's'} {some(list(names))}."
        raise click.UsageError(f"There is no {noun} {options['label']!r}{did_you_mean(options['label'], names, known)}")
    similar = 0 if getattr(vars(model).get("_findings"), "X", None) is None else _SIMILAR
    found = model.explain_cells(X, row, names[options["label"]], similar=similar)
    reasons = schema.in_words(found.top(options["top"] or _BARS)[0])
    added, present = sum(reason.contribution for reason in reasons), float(found.present[0])
    state = {} if X is not None else _state_of(model, row, names[options["label"]])
    told: dict[str, Any] = {
        "row": options["row"], model.decider_.form.noun: options["label"],
        "probability": present, "base": float(found.base_present[0]),
        "reasons": [reason._asdict() for reason in reasons], "rest": present - float(found.base_present[0]) - added,
        "in_words": "; ".join(map(str, reasons[:_WORDS])),
    }  # fmt: skip
    return told | state | ({"similar": [one._asdict() for one in found.similar[0]]} if similar else {})


def _state_of(model: Any, row: Any, label: Any) -> dict[str, Any]:
    """Say whether a cell of the fit is recorded, suggested or neither, and whether it could have been forgotten."""
    fitted = model.labels_
    at = fitted.rows.get_loc(row), list(fitted.label_names).index(label)
    neither = "not recorded" if fitted.form.has_labels else "another class is recorded"
    state = "recorded" if fitted.recorded[at] else "suggested" if fitted.suggested[at] else neither
    return {"state": state, "may_be_missing": bool(fitted.state.candidates.any())}


def _draw_reasons(found: dict[str, Any]) -> None:
    """Print reasons as bars, to the right what speaks for the label, to the left what speaks against it."""
    state, noun = found.get("state", ""), "label" if "label" in found else "class"
    show(f"{found[noun]} in row {found['row']}{state and f' ({state})'}", bold=True)
    what = "present" if noun == "label" else found[noun]
    given = ", if it was not recorded" if found.get("may_be_missing") else ""
    show(f"P({what}{given}): {found['base']:.2f} for any row, {found['probability']:.2f} for this one:")
    lines = [Reason(**reason) for reason in found["reasons"]]
    most = max((abs(line.contribution) for line in lines), default=1.0)
    texts = [(*str(line).rsplit(" ", 1), _bar(line.contribution / most)) for line in lines]
    texts.append(("all other features", signed(found["rest"]), ""))
    width = max(len(name) for name, *_ in texts)
    for name, added, bar in texts:
        show(f"  {name:<{width}}  {added:>5}  {bar}".rstrip())
    show(f"In words: {found['in_words']}")
    if found.get("similar"):
        others = "; ".join(f"{each['row']} ({each['share']:.0%})" for each in found["similar"])
        show(f"Similar rows that have it recorded, by the share of trees that agree: {others}")


def _bar(share: float) -> str:
    n = round(abs(share) * _BAR)
    return " " * _BAR + "|" + "#" * n if share >= 0 else " " * (_BAR - n) + "#" * n + "|"


def _position(names: list[str], row: str, where: str) -> int:
    if row in names:
        return names.index(row)
    hint = did_you_mean(row, names, f"; they are called {names[0]!r} to {names[-1]!r}.", cutoff=0.7)
    raise click.UsageError(f"There is no row {row!r} in {where}{hint}")


def _print_part(name: str, part: Any) -> None:
    if isinstance(part, str) or not part:
        show(f"{name}: {part or 'none'}")
    elif isinstance(part, dict):
        for key, value in part.items():
            text = ", ".join(f"{k} = {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
            show(f"{key}: {text}")
    else:
        why = [(line.get("label"), line["reasons"]) for line in part if "reasons" in line]
        part = [{key: value for key, value in line.items() if key != "reasons"} for line in part]
        if "state" in part[0]:  # a row of the fit: one probability is enough to read
            part = [{key: value for key, value in line.items() if key != "out_of_sample"} for line in part]
        heads = [key.replace("_", " ") for key in part[0]]
        heads = ["P(present)" if head == "probability" and "state" in heads else head for head in heads]
        justify = "".join("r" if isinstance(value, float) else "l" for value in part[0].values())
        show_table(heads, (line.values() for line in part), justify, name)
        if why:
            show("Why, most probable first:", bold=True)
        for label, text in why:
            show(f"{label}: {text}")
