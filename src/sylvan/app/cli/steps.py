"""What several commands do: check where results go, read tables and models, make and fit a model."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import click

import sylvan
from sylvan._files import check_target
from sylvan._messages import did_you_mean, once_each
from sylvan.app.cli.terminal import counting, gigabytes, in_options, say
from sylvan.exceptions import DecisionError, TableError


def check_free(force: bool, *paths: Path | None, inputs: Sequence[Path | None] = (), needed: int = 0) -> None:
    """Refuse, before any work, what cannot be written later.

    These are files that are read, that are there already (unless `force`), that two results have in common, that are no
    regular files, and those in folders where nothing can be written, or with less than `needed` bytes left.
    """
    given = [path for path in paths if path is not None]
    read = [path.resolve() for path in inputs if path is not None]
    for at, path in enumerate(given):
        if path.resolve() in read:
            raise click.UsageError(f"{path} is read by this command; write the result to another file.")
        if path.resolve() in [other.resolve() for other in given[:at]]:
            raise click.UsageError(f"{path} is named twice; each result needs a file of its own.")
        try:
            target = check_target(path)
        except OSError as error:
            raise click.UsageError(str(error)) from error
        if target.exists() and not force:
            raise click.UsageError(f"{path} is there already; --force replaces it.")
        if not os.access(target.parent, os.W_OK):
            raise click.UsageError(f"{path} cannot be written: the folder {target.parent} is read-only for you.")
        _check_space(target, needed)


def _check_space(path: Path, needed: int) -> None:
    """End if a disk is full: some bytes are written for a test, and what is free is compared with what is needed."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(bytes(1 << 16))
        free = shutil.disk_usage(path.parent).free
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from error
    if free < needed:
        raise click.ClickException(
            f"{path} cannot be written: it needs about {gigabytes(needed)}, and the disk has {gigabytes(free)} free."
        )


_TABLE = (
    "label_file", "id", "drop", "categorical", "missing", "blank", "classes", "separator", "positive", "negative",
    "absent", "zeros", "dates",
)  # fmt: skip


def read_training(options: dict[str, Any]) -> Any:
    """Read the table that the data options name."""
    said = {name: options[name] for name in _TABLE} | format_of(options)
    table = sylvan.app.tables.read_training_table(options["data"], options["labels"] or None, **said)
    for note in table.notes:
        say(in_options(note), options["quiet"])
    return table


def format_of(options: dict[str, Any], about: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what the options say about text files, or else what a model was fitted with."""
    known = (about or {}).get("format", {})
    known = known if isinstance(known, dict) else {}
    usual = {"decimal": known.get("decimal"), "encoding": known.get("encoding")}
    names = ("delimiter", "decimal", "encoding", "sheet")
    given = {name: options[name] for name in names if options[name] is not None}
    return usual | given


def make_model(options: dict[str, Any]) -> Any:
    """Build the estimator that the model options name."""
    name = options["algorithm"]
    given: dict[str, Any] = {"random_state": options["seed"], "n_jobs": options["jobs"]}
    sizes = {"n_trees": options["trees"], "max_layers": options["layers"], "effort": options["effort"]}
    given |= {key: size for key, size in sizes.items() if size}
    if options["effort"] and name != "auto":
        raise click.UsageError(f"--effort is of auto; {name} has --trees and --layers.")
    if options["threshold"]:
        given["decision_threshold"] = _value(options["threshold"])
    given |= {"zeros": options["zeros"]} if options["zeros"] else {}
    given |= {"absent_label": sylvan.labels.words.ABSENT} if options["absent"] else {}
    if options["frequency"]:
        given |= _frequency(name, options["frequency"])
    nested: dict[str, Any] = {}
    for text in options["settings"]:
        key, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--set is NAME=VALUE, got {text!r}.")
        (nested if "__" in key else given)[key.strip()] = _value(value)
    try:
        model = getattr(sylvan, name)(**given)
    except TypeError as error:
        raise click.UsageError(f"{name} cannot be made with {', '.join(sorted(given))}: {error}.") from error
    if "impute__frequency" in nested:
        raise click.UsageError("--set impute__frequency cannot be given as text; --frequency says it.")
    try:
        return model.set_params(**nested)
    except (ValueError, AttributeError) as error:
        key = next(iter(nested))
        hint = did_you_mean(key, model.get_params(), cutoff=0.6)
        raise click.UsageError(f"--set {key}: {str(error).splitlines()[0].split('. Valid')[0]}{hint}") from error


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def _frequency(algorithm: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return what is known of c, or how it is estimated, as arguments of an algorithm that takes it."""
    frequency = sylvan.labels.frequency
    takes = {name: signature(getattr(sylvan, name)).parameters for name in sylvan.ALGORITHMS}
    if "frequency" not in takes[algorithm]:
        names = ", ".join(name.replace("_", "-") for name, parameters in takes.items() if "frequency" in parameters)
        raise click.UsageError(f"--frequency is for {names}; {algorithm} does not take it.")
    scaled = {"threshold_on": "scaled"} if "threshold_on" in takes[algorithm] else {}
    ways = {"top_rate": (frequency.TopRate, scaled), "percentile": (frequency.OutOfBagPercentile, {}),
            "tice": (frequency.TIcE, scaled)}  # fmt: skip
    way = texts[0].lower().replace("-", "_")
    by_label = [text for text in texts if "=" in text]
    if by_label and len(by_label) < len(texts):
        raise click.UsageError("--frequency is either LABEL=NUMBER, for some labels, or one value for all.")
    if len(texts) > 1 and not by_label:
        raise click.UsageError("--frequency can be given several times as LABEL=NUMBER only.")
    if way in ways:
        kind, more = ways[way]
        return {"frequency": kind(), **more}
    known: Any = {label: _share(value) for label, _, value in (text.rpartition("=") for text in by_label)}
    known = known or _share(texts[0])
    usual = getattr(getattr(sylvan, algorithm)().impute, "frequency", None)
    if hasattr(usual, "within"):  # its own estimator takes numbers and ranges
        return {"frequency": known}
    if any(isinstance(value, tuple) for value in (known.values() if by_label else [known])):
        raise click.UsageError(f"--frequency as a range is for auto; {algorithm} needs numbers.")
    return {"frequency": frequency.KnownFrequency(known), **scaled}


def _share(text: str) -> float | tuple[float, float]:
    """Return a share, or a range of shares."""
    try:
        numbers = [float(part) for part in text.split("-", 1)]
    except ValueError:
        numbers = []
    if not numbers or not all(0.0 < number <= 1.0 for number in numbers) or numbers != sorted(numbers):
        raise click.UsageError(
            f"--frequency is a number above 0 and up to 1, a range such as 0.4-0.8, or one of top-rate, percentile, "
            f"tice; got {text!r}."
        )
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def read_decided(table: Any, options: dict[str, Any]) -> Any:
    """Return what the files of decisions say, as a table whose rows are called as those of the training table."""
    import pandas as pd  # noqa: PLC0415 (heavy)

    frames = []
    for path in options["decisions"]:
        try:
            frame = sylvan.labels.decisions.as_table(path)
            if "row" not in frame and table.schema.id is not None:  # the list of suggestions calls it as the table does
                own = table.schema.id.strip().lower()
                frame = frame.rename(columns={own: "row", f"'{own}": "row"})
            sylvan.labels.decisions.check_columns(frame, path)
        except DecisionError as error:
            raise click.UsageError(str(error)) from error
        frames.append(frame)
    if frames and table.Y.ndim == 1:
        raise click.UsageError("--decisions are about labels that may be missing; classes have none.")
    return pd.concat(frames, ignore_index=True) if frames else None


def check_memory(model: Any, table: Any, options: dict[str, Any]) -> None:
    """End before a fit that would not fit into memory."""
    there = None if options["no_memory_check"] else sylvan.app.memory.available_memory()
    needed = 0 if there is None else sylvan.app.memory.estimate_fit_memory(model, table.X, table.Y)
    if there is not None and needed > there:
        raise click.ClickException(
            f"This fit needs about {gigabytes(needed)} of memory, and {gigabytes(there)} are free. Less "
            "effort (--effort quick), fewer trees (--trees), fewer layers (--layers) or another algorithm need less; "
            "--no-memory-check tries all the same."
        )


def fit_model(model: Any, table: Any, options: dict[str, Any], decided: Any = None) -> float:
    """Fit, with a bar that counts layers on a terminal, and return how many seconds that took."""
    import pandas as pd  # noqa: PLC0415 (heavy)

    from sylvan._validation import warn_suspicious_features  # noqa: PLC0415

    check_memory(model, table, options)
    began = time.perf_counter()
    Y = pd.get_dummies(table.Y) if table.Y.ndim == 1 else table.Y.replace(sylvan.labels.words.ABSENT, 0)
    with once_each():
        warn_suspicious_features(table.X.to_numpy(), list(table.X), Y.to_numpy(), list(Y))  # before there is a bar
        with counting("layers", model.max_layers, options["quiet"]) as advance:
            model.set_params(callbacks=[lambda event: advance(1, f"score {event.record.score:.3f}")])
            try:
                model.fit(table.X, table.Y, checkpoint_dir=options["checkpoint"], decisions=decided)
            except (ValueError, TypeError) as error:  # of parameters, or of what the table holds
                raise click.UsageError(in_options(str(error))) from error
            finally:
                model.set_params(callbacks=None)
    return time.perf_counter() - began


def read_model(path: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Return a stored model, the schema of its table and what else its file says."""
    tables = sylvan.app.tables
    try:
        about = sylvan.io.read_about(path)
        model = sylvan.load(path)
    except (ValueError, FileNotFoundError) as error:
        raise TableError(str(error)) from error
    except IsADirectoryError as error:
        raise TableError(f"{path} is a folder; a model file is needed.") from error
    if not hasattr(model, "layers_"):
        raise TableError(f"{path} holds a {type(model).__name__}, which is not a deep forest fitted on a table.")
    model.set_output(predict="default")
    if "table" in about:
        try:
            schema = tables.TableSchema.from_json(about["table"])
            if schema.inputs != [str(name) for name in model.feature_names_in_]:
                raise ValueError("its features are not those of the model")
            return model, schema, about
        except (ValueError, AttributeError) as error:
            raise TableError(f"{path} cannot be read: its notes about the table make no sense ({error}).") from error
    if not hasattr(model, "feature_names_in_"):
        raise TableError(f"{path} was fitted without names of columns; use it in Python: sylvan.load({str(path)!r}).")
    has_labels, named = model.decider_.form.has_labels, getattr(model, "label_names_in_", None) is not None
    bits = has_labels or (named and {str(name) for name in model.classes_} <= {"0", "1", "0.0", "1.0"})
    names = label_names(model) if has_labels or named else ["class"]
    cells = tables.LabelCells(names, "bits" if bits else "classes")
    return model, tables.TableSchema.of_numbers([str(name) for name in model.feature_names_in_], cells), about


def label_names(model: Any) -> list[str]:
    """Return what the labels of a model are called."""
    names = getattr(model, "label_names_in_", None)
    return [f"label_{j}" for j in range(model.n_labels_)] if names is None else [str(name) for name in names]
