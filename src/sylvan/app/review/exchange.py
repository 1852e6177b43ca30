"""Cells to decide go to Label Studio or Argilla, and what people answered there comes back as decisions.

Label Studio
    A list of tasks, each with ``data`` and, as a pre-annotation, ``predictions``; the labeling configuration, XML, is
    written beside it. Read back are both exports that have the answers: JSON (``annotations`` of each task, with
    ``completed_by``, ``was_cancelled``, ``updated_at``) and JSON_MIN (a flat line for each annotation, with
    ``annotator`` and ``updated_at``; skipped ones are left out there).
Argilla 2
    A list of records as `Dataset.records.to_json` writes and `from_json` reads it: ``id``, ``fields``, ``metadata``,
    ``suggestions``, ``responses``; the settings, for `Settings.from_json`, are written beside it. Read back are this
    form and `records.to_list(flatten=True)` as JSON or as lines of JSON. Only the flat form says of each response
    whether it was submitted, discarded or a draft.

What a person needs is on the page there; `how`, `chance`, `stratum` and `audit` travel along unseen, so that
audited cells are still audited when they come back. Of audited cells nobody is told what the model thinks.

References
----------
- https://labelstud.io/guide/tasks, https://labelstud.io/guide/predictions: import, pre-annotations
- https://labelstud.io/guide/export, https://labelstud.io/guide/task_format: JSON and JSON_MIN
- https://labelstud.io/tags/choices, https://labelstud.io/tags/table: the labeling configuration
- https://docs.argilla.io/latest/how_to_guides/import_export: records and settings, flat or not
- https://docs.argilla.io/latest/how_to_guides/record: fields, metadata, suggestions, responses
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pandas as pd

from sylvan._files import whole_file
from sylvan._messages import did_you_mean, many
from sylvan.exceptions import DecisionError, TableError
from sylvan.labels.decisions import COLUMNS

LABEL_STUDIO, ARGILLA = FORMATS = ("label-studio", "argilla")
#: What can be answered there, and what it is here.
ANSWERS = {"confirmed": "confirmed", "rejected": "rejected", "cannot tell": "unsure"}
_KEYS = {"confirmed": "a", "rejected": "x", "cannot tell": "u"}
_QUESTION, _ANSWER = "question", "answer"
_DRAW = ("how", "chance", "stratum", "audit")
#: Columns of cells that are no values of the row.
_OWN = ("row", "label", "probability", *_DRAW, "decision", "who", "when")


def export_tasks(cells: pd.DataFrame, path: str | os.PathLike[str], format: str) -> list[Path]:
    """Write cells as tasks for Label Studio or records for Argilla, and return the files.

    Parameters
    ----------
    cells : DataFrame
        row, label; optional: probability, and how, chance, stratum, audit as `plan_audit` gives them. All other columns
        are values of the row, to be shown. Audited cells are written without a probability.
    path : a file that ends in .json
        Beside it a second file is written: what to ask, as ``NAME-config.xml`` for Label Studio's labeling
        configuration or as ``NAME-settings.json`` for Argilla's settings.
    format : {"label-studio", "argilla"}

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from sylvan.app.review.exchange import export_tasks
    >>> cells = pd.DataFrame({"row": ["song 17"], "label": ["rock"], "probability": [0.8], "tempo": [120]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in export_tasks(cells, f"{folder}/tasks.json", "label-studio")]
    ['tasks.json', 'tasks-config.xml']
    """
    path = Path(path)
    if format not in FORMATS:
        raise TableError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
    if path.suffix.lower() != ".json":
        raise TableError(f"{path}: tasks are written as JSON; call the file NAME.json.")
    for column in ("row", "label"):
        if column not in cells.columns:
            raise TableError(f"Cells need the column {column!r}{did_you_mean(column, cells.columns)}")
    if not cells.columns.is_unique:
        raise TableError(f"Cells have two columns {cells.columns[cells.columns.duplicated()][0]!r}.")
    if cells.empty:
        raise TableError(f"There are no cells to write to {path}.")
    tasks = list(_tasks(cells))
    shows_values = any(task["values"] for task in tasks)
    if format == LABEL_STUDIO:
        asked, what = path.with_name(f"{path.stem}-config.xml"), _label_studio_config(shows_values)
        written = [_label_studio_task(task) for task in tasks]
    else:
        asked, what = path.with_name(f"{path.stem}-settings.json"), _to_json(_argilla_settings())
        written = [_argilla_record(task) for task in tasks]
    for file, text in ((asked, what), (path, _to_json(written))):
        with whole_file(file) as out:
            out.write(text.encode("utf-8"))
    return [path, asked]


def read_answers(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read what people answered there, as decisions.

    Parameters
    ----------
    path : an export of Label Studio (JSON or JSON_MIN) or Argilla (JSON, or a JSON record in each line)

    Returns
    -------
    DataFrame with the columns of decisions (`sylvan.labels.decisions.COLUMNS`)
        A line for each answer of each person. Skipped, cancelled, discarded and unfinished answers are none; an audited
        cell without any answer has a line without a decision, and waits.
    """
    items = _read_items(Path(path))
    readers: dict[str, Callable[[Any], bool]] = {
        LABEL_STUDIO: lambda item: _is_task(item) or _is_min(item),
        ARGILLA: lambda item: _is_nested(item) or _is_flat(item),
    }
    found = next((name for name, knows in readers.items() if all(map(knows, items))), None)
    if found is None:
        odd = [at for at, item in enumerate(items, start=1) if not any(knows(item) for knows in readers.values())]
        where = f" (number {odd[0]} is neither)" if odd else ""
        raise TableError(
            f"{path} is not an export of Label Studio (JSON, JSON_MIN) or Argilla with Sylvan's questions{where}."
        )
    read = _label_studio_answers if found == LABEL_STUDIO else _argilla_answers
    lines: list[dict[str, Any]] = []
    for number, item in enumerate(items, start=1):
        where = f"{path}, number {number}"
        cell = _cell(_data_of(item), where)
        answers = [cell | answer for answer in read(item, where)]
        lines += answers or ([cell] if cell["how"] == "audited" else [])
    table = pd.DataFrame(lines, columns=list(COLUMNS), dtype=object)
    return table.fillna({name: "" for name in COLUMNS if name not in ("row", "label", "chance")})


# Out: cells to tasks


def _tasks(cells: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Give each cell as plain values: what is asked, what is shown, and what travels along."""
    shown = [name for name in cells.columns if name not in _OWN]
    for line in cells.to_dict("records"):
        audited = str(line.get("how", "")).strip() == "audited"
        probability: Any = line.get("probability")
        draw = {name: _plain(line[name]) for name in _DRAW if name in line and not _is_missing(line[name])}
        yield {
            "row": _plain(line["row"]), "label": _plain(line["label"]),
            _QUESTION: f"Is the label “{line['label']}” present in row “{line['row']}”?",
            "values": {str(name): _shown(line[name]) for name in shown},
            "probability": None if audited or _is_missing(probability) else float(probability),
            "draw": draw,
        }  # fmt: skip


def _is_missing(value: Any) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value))) or value == ""


def _plain(value: Any) -> Any:
    """Return a name or number as JSON has it; other things as text, by which decisions find them, too."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    if _is_missing(value):
        return ""
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _guess(task: dict[str, Any]) -> tuple[str, float] | None:
    """Return what the model would answer, and how sure it is; nothing of audited cells."""
    p = task["probability"]
    return None if p is None else ("confirmed", p) if p > 0.5 else ("rejected", 1 - p)


def _label_studio_task(task: dict[str, Any]) -> dict[str, Any]:
    data = {name: task[name] for name in ("row", "label", _QUESTION, "values")} | task["draw"]
    guess = _guess(task)
    if guess is None:
        return {"data": data}
    value, score = guess
    result = {"from_name": _ANSWER, "to_name": _QUESTION, "type": "choices", "value": {"choices": [value]}}
    prediction = {"model_version": "sylvan", "score": score, "result": [{"id": _ANSWER, **result}]}
    return {"data": data | {"probability": task["probability"]}, "predictions": [prediction]}


def _label_studio_config(shows_values: bool) -> str:
    choices = "\n".join(f"    <Choice value={quoteattr(text)} hotkey={quoteattr(_KEYS[text])}/>" for text in ANSWERS)
    table = '  <Table name="values" value="$values"/>\n' if shows_values else ""
    return (
        f'<View>\n  <Text name="{_QUESTION}" value="${_QUESTION}"/>\n{table}'
        f'  <Choices name="{_ANSWER}" toName="{_QUESTION}" choice="single-radio" required="true">\n{choices}\n'
        "  </Choices>\n</View>\n"
    )


def _argilla_record(task: dict[str, Any]) -> dict[str, Any]:
    known = {name: task[name] for name in ("row", "label")} | task["draw"]
    fields = {_QUESTION: task[_QUESTION]}
    if task["values"]:
        fields["values"] = "\n".join(f"{name}: {value}" for name, value in task["values"].items())
    guess, suggestions = _guess(task), {}
    if guess is not None:
        known["probability"] = task["probability"]
        suggestions = {_ANSWER: {"value": guess[0], "score": guess[1], "agent": "sylvan"}}
    name = json.dumps([task["row"], task["label"], *filter(None, [task["draw"].get("audit")])], ensure_ascii=False)
    return {
        "id": name, "fields": fields, "metadata": known, "suggestions": suggestions, "responses": {}, "vectors": {},
    }  # fmt: skip


def _argilla_settings() -> dict[str, Any]:
    def field(name: str, title: str, required: bool) -> dict[str, Any]:
        settings = {"type": "text", "use_markdown": False}
        return {"name": name, "title": title, "required": required, "settings": settings}

    options = [{"value": text, "text": text, "description": None} for text in ANSWERS]
    settings = {"type": "label_selection", "options": options, "visible_options": len(options)}
    question = {"name": _ANSWER, "title": "What is true of this row?", "required": True, "settings": settings}
    return {
        "guidelines": "Say what is true of the row, whatever was recorded. If you cannot tell, say so.",
        "questions": [question | {"description": None}],
        "fields": [field(_QUESTION, "Question", True), field("values", "Values of the row", False)],
        "vectors": [],
        "metadata": [],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
    }


# In: exports to decisions


def _read_items(path: Path) -> list[Any]:
    """Return the list that a file holds, as one JSON text or line by line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{path} cannot be read: it is not text in UTF-8.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        try:
            items = json.loads(text)
        except ValueError:
            items = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} cannot be read as JSON: {error}.") from None
    items = [items] if isinstance(items, dict) else items
    if not isinstance(items, list) or not items:
        raise TableError(f"{path} holds no tasks and no records.")
    return items


def _is_task(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("data"), dict)


def _is_min(item: Any) -> bool:
    return isinstance(item, dict) and "annotation_id" in item and "row" in item


def _is_nested(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("fields"), dict) and isinstance(item.get("metadata"), dict)


def _is_flat(item: Any) -> bool:
    own = isinstance(item, dict) and _QUESTION in item and "row" in item
    return own and "annotation_id" not in item and "data" not in item


def _data_of(item: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = item["data"] if _is_task(item) else item["metadata"] if _is_nested(item) else item
    return own


def _cell(data: dict[str, Any], where: str) -> dict[str, Any]:
    """Return which cell is asked about, and how it was drawn."""
    absent = [name for name in ("row", "label") if _is_missing(data.get(name))]
    if absent:
        raise TableError(f"{where} has no {' and no '.join(absent)}: it does not come from tasks that Sylvan wrote.")
    if any(not isinstance(data[name], (str, int, float)) for name in ("row", "label")):
        raise TableError(f"{where}: row and label must be names, got {data['row']!r} and {data['label']!r}.")
    draw = {name: data[name] for name in _DRAW if not _is_missing(data.get(name))}
    return {"row": data["row"], "label": data["label"], "how": "reviewed"} | draw


def _decision(value: Any, where: str) -> str:
    if not isinstance(value, str) or value.strip().lower() not in ANSWERS:
        raise DecisionError(f"{where} is answered {value!r}; an answer is {', '.join(ANSWERS)}.")
    return ANSWERS[value.strip().lower()]


def _person(who: Any) -> str:
    """Return what a person is called: by number, or by what an export tells of them."""
    if isinstance(who, dict):
        who = next((who[key] for key in ("email", "username", "id") if who.get(key) not in (None, "")), "")
    return "" if who is None else str(who)


def _label_studio_answers(item: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
    if _is_min(item) and not _is_task(item):
        if _ANSWER in item:
            yield _label_studio_line(item[_ANSWER], item.get("annotator"), item, where)
        return
    for each in item.get("annotations") or []:
        if not isinstance(each, dict):
            raise TableError(f"{where} has annotations by number only; export them completely.")
        result = each.get("result") or []
        values = [part["value"] for part in result if isinstance(part, dict) and part.get("from_name") == _ANSWER]
        if each.get("was_cancelled"):
            continue
        if result and not values:
            raise TableError(f"{where} does not answer {_ANSWER!r}: it was asked with another configuration.")
        if values:
            yield _label_studio_line(values[0], each.get("completed_by"), each, where)


def _label_studio_line(value: Any, who: Any, dated: dict[str, Any], where: str) -> dict[str, Any]:
    chosen = value.get("choices") if isinstance(value, dict) else value
    if isinstance(chosen, list):
        chosen = chosen[0] if len(chosen) == 1 else chosen
    when = dated.get("updated_at") or dated.get("created_at") or ""
    return {"decision": _decision(chosen, where), "who": _person(who), "when": when}


def _argilla_answers(item: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
    if _is_nested(item):
        responses = (item.get("responses") or {}).get(_ANSWER) or []
        said = [(each.get("value"), each.get("user_id"), each.get("status")) for each in responses]
        # A complete record with one response: that was submitted. Of others nobody knows.
        if len(said) == 1 and item.get("status") == "completed" and said[0][2] is None:
            said = [(*said[0][:2], "submitted")]
    else:
        columns = [item.get(f"{_ANSWER}.responses{end}") or [] for end in ("", ".users", ".status")]
        if len({len(column) for column in columns}) > 1:
            raise TableError(f"{where} has {many(len(columns[0]), 'response')} with other numbers of users or status.")
        said = list(zip(*columns))
    for value, who, status in said:
        if status is None:
            raise TableError(
                f"{where} does not say whether a response was submitted, discarded or a draft. Write the records with "
                "json.dump(dataset.records.to_list(flatten=True), file), which does."
            )
        if status not in ("submitted", "discarded", "draft"):
            raise TableError(f"{where} has a response with the status {status!r}, which is unknown.")
        if status == "submitted":
            yield {"decision": _decision(value, where), "who": _person(who)}
