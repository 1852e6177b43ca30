"""Label Studio and Argilla: files of the documented forms, made by hand, and the way there and back."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from sylvan import auto
from sylvan.app.review.exchange import export_tasks, read_answers
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.exceptions import DecisionError, TableError
from sylvan.labels.decisions import COLUMNS, read_decisions

DRAW = {"how": "audited", "chance": 0.05, "stratum": "ranks 1 to 100, 100 cells", "audit": "a1-count-1-2-3"}


@pytest.fixture
def cells():
    """One audited cell, one that was picked, with values that are numbers, text, nothing and mischief."""
    return pd.DataFrame({
        "row": ["song 1", "song 2"], "label": ["rock", "<b>&\"jazz\""], "probability": [0.9, 0.3],
        "tempo": [120.123456789, np.nan], "text": ["a | b\nc", "<script>alert(1)</script>"],
        **{name: [value, np.nan] for name, value in DRAW.items()},
    })  # fmt: skip


def write(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def task(row="s1", label="rock", annotations=(), **data):
    """A task as Label Studio exports it as JSON (https://labelstud.io/guide/task_format)."""
    return {
        "id": 1, "created_at": "2021-03-09T21:52:49.5Z", "updated_at": "2021-03-09T22:16:08.7Z", "project": 83,
        "data": {"row": row, "label": label, "question": "Is it?", **data}, "annotations": list(annotations),
        "predictions": [{"model_version": "sylvan", "result": [choice("confirmed")], "score": 0.9}],
    }  # fmt: skip


def choice(*values, name="answer"):
    return {
        "from_name": name, "id": "Dx_aB91ISN", "to_name": "question", "type": "choices",
        "value": {"choices": [*values]},
    }  # fmt: skip


def annotation(result, who=10, **more):
    return {
        "id": 1001, "result": result, "was_cancelled": False, "ground_truth": False, "task": 1, "completed_by": who,
        "created_at": "2021-03-09T22:16:08.728353Z", "updated_at": "2021-03-09T22:16:09Z", "lead_time": 4.288, **more,
    }  # fmt: skip


def record(row="s1", label="rock", said=(), **more):
    """A record as Argilla's `records.to_json` writes it."""
    return {
        "id": "x", "fields": {"question": "Is it?"}, "metadata": {"row": row, "label": label}, "vectors": {},
        "suggestions": {"answer": {"value": "confirmed", "score": 0.9, "agent": "sylvan"}},
        "responses": {"answer": list(said)} if said else {}, "status": "pending", "_server_id": "y", **more,
    }  # fmt: skip


def flat(row="s1", label="rock", said=(), **more):
    """A record as Argilla's `records.to_list(flatten=True)` gives it: responses, users and statuses side by side."""
    answers = {
        f"answer.responses{end}": [each[at] for each in said] for at, end in enumerate(("", ".users", ".status"))
    }
    known = {"id": "x", "status": "completed", "_server_id": "y", "question": "Is it?", "row": row, "label": label}
    return known | (answers if said else {"answer.responses": None}) | more


# Tasks


def test_tasks_of_label_studio(cells, tmp_path):
    files = export_tasks(cells, tmp_path / "tasks.json", "label-studio")
    assert [file.name for file in files] == ["tasks.json", "tasks-config.xml"]
    audited, picked = json.loads(files[0].read_text(encoding="utf-8"))
    assert set(audited) == {"data"}  # nothing of what the model thinks
    assert "probability" not in audited["data"]
    assert "0.9" not in json.dumps(audited)
    assert {name: audited["data"][name] for name in DRAW} == DRAW
    assert audited["data"]["values"] == {"tempo": "120.123", "text": "a | b\nc"}
    assert audited["data"]["question"] == "Is the label “rock” present in row “song 1”?"
    assert picked["data"]["probability"] == 0.3
    assert picked["data"]["values"] == {"tempo": "", "text": "<script>alert(1)</script>"}
    assert not set(DRAW) & set(picked["data"])
    (prediction,) = picked["predictions"]
    assert prediction["score"] == pytest.approx(0.7)
    (result,) = prediction["result"]
    assert (result["type"], result["value"]) == ("choices", {"choices": ["rejected"]})
    # What tasks and predictions name is what the configuration has.
    config = ElementTree.fromstring(files[1].read_text(encoding="utf-8"))
    controls = {tag.get("name"): tag for tag in config.iter() if tag.get("name")}
    variables = {tag.get("value") for tag in config.iter() if (tag.get("value") or "").startswith("$")}
    assert variables == {"$question", "$values"}
    assert {name[1:] for name in variables} <= set(picked["data"])
    control = controls[result["from_name"]]
    assert (control.tag, control.get("toName"), control.get("choice")) == ("Choices", result["to_name"], "single-radio")
    assert [each.get("value") for each in control] == ["confirmed", "rejected", "cannot tell"]
    assert controls[result["to_name"]].tag == "Text"


def test_records_of_argilla(cells, tmp_path):
    files = export_tasks(cells, tmp_path / "records.json", "argilla")
    assert [file.name for file in files] == ["records.json", "records-settings.json"]
    audited, picked = json.loads(files[0].read_text(encoding="utf-8"))
    assert audited["suggestions"] == {}
    assert audited["metadata"] == {"row": "song 1", "label": "rock", **DRAW}
    assert audited["fields"]["values"] == "tempo: 120.123\ntext: a | b\nc"
    assert picked["suggestions"]["answer"] == {"value": "rejected", "score": pytest.approx(0.7), "agent": "sylvan"}
    assert picked["metadata"]["probability"] == 0.3
    assert audited["id"] != picked["id"]
    settings = json.loads(files[1].read_text(encoding="utf-8"))
    assert {field["name"] for field in settings["fields"]} == set(picked["fields"])
    (question,) = settings["questions"]
    assert question["name"] in picked["suggestions"]
    assert question["settings"]["type"] == "label_selection"
    assert [option["value"] for option in question["settings"]["options"]] == ["confirmed", "rejected", "cannot tell"]
    assert settings["allow_extra_metadata"]


def test_cells_without_values_need_no_table(tmp_path):
    cells = pd.DataFrame({"row": [np.int64(3)], "label": [2]})
    tasks, config = export_tasks(cells, tmp_path / "t.json", "label-studio")
    assert "Table" not in config.read_text(encoding="utf-8")
    assert json.loads(tasks.read_text(encoding="utf-8"))[0]["data"]["row"] == 3
    records, _ = export_tasks(cells, tmp_path / "t.json", "argilla")
    assert set(json.loads(records.read_text(encoding="utf-8"))[0]["fields"]) == {"question"}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": "csv"}, "one of label-studio, argilla, got 'csv'"),
        ({"path": "tasks.csv"}, r"NAME\.json"),
        ({"cells": pd.DataFrame({"rows": [1], "label": [1]})}, "need the column 'row'.*did you mean 'rows'"),
        ({"cells": pd.DataFrame({"row": [], "label": []})}, "no cells"),
        ({"cells": pd.DataFrame([[1, 2, 3, 4]], columns=["row", "label", "a", "a"])}, "two columns 'a'"),
    ],
)
def test_what_cannot_be_exported(cells, tmp_path, change, match):
    given = {"cells": cells, "path": "tasks.json", "format": "argilla"} | change
    with pytest.raises(TableError, match=match):
        export_tasks(given["cells"], tmp_path / given["path"], given["format"])
    assert not list(tmp_path.iterdir())


# Answers


def test_json_of_label_studio(tmp_path):
    tasks = [
        task(annotations=[annotation([choice("confirmed")])]),
        task("s2", annotations=[
            annotation([choice("rejected"), choice("noisy", name="remark")], who={"id": 3, "email": "ana@example.org"}),
            annotation([choice("cannot tell")], who=4),
        ]),
        task("s3", annotations=[annotation([], was_cancelled=True)]),
        task("s4", annotations=[annotation([choice("confirmed")], was_cancelled=True)], **DRAW),
        task("s5", annotations=[annotation([choice("rejected")])], **DRAW),
        task("s6"),
    ]  # fmt: skip
    found = read_answers(write(tmp_path / "export.json", tasks))
    assert list(found.columns) == list(COLUMNS)
    told = found[["row", "decision", "how", "who", "when"]].to_numpy().tolist()
    at = "2021-03-09T22:16:09Z"
    assert told == [
        ["s1", "confirmed", "reviewed", "10", at],
        ["s2", "rejected", "reviewed", "ana@example.org", at],
        ["s2", "unsure", "reviewed", "4", at],
        ["s4", "", "audited", "", ""],  # skipped, but drawn: it waits
        ["s5", "rejected", "audited", "10", at],
    ]
    assert found.iloc[4][list(DRAW)].to_dict() == DRAW


def test_json_min_of_label_studio(tmp_path):
    """A flat line for each annotation; skipped ones are not in it."""
    known = {"row": "s1", "label": "rock", "question": "Is it?", "id": 1, "annotation_id": 7, "lead_time": 2.5}
    dated = {"annotator": 1, "created_at": "2021-03-09T22:16:08.7Z", "updated_at": "2021-03-09T22:16:09Z"}
    lines = [
        known | dated | {"answer": "confirmed"},
        known | dated | {"annotator": "ana@example.org", "answer": {"choices": ["rejected"]}} | DRAW,
        known | dated | {"row": "s2"},
    ]
    found = read_answers(write(tmp_path / "export.json", lines))
    assert found[["row", "decision", "how", "who"]].to_numpy().tolist() == [
        ["s1", "confirmed", "reviewed", "1"],
        ["s1", "rejected", "audited", "ana@example.org"],
    ]
    assert set(found["when"]) == {"2021-03-09T22:16:09Z"}


@pytest.mark.parametrize("lines", [False, True])
def test_flat_records_of_argilla(tmp_path, lines):
    ana, ben = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    records = [
        flat(said=[("confirmed", ana, "submitted"), ("rejected", ben, "submitted")]),
        flat("s2", said=[("confirmed", ana, "discarded"), ("cannot tell", ben, "draft")]),
        flat("s3", said=[("cannot tell", ben, "submitted")], **DRAW),
        flat("s4", **DRAW),
        flat("s5"),
    ]
    path = tmp_path / "records.json"
    if lines:
        path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    else:
        write(path, records)
    found = read_answers(path)
    assert found[["row", "decision", "who"]].to_numpy().tolist() == [
        ["s1", "confirmed", ana], ["s1", "rejected", ben], ["s3", "unsure", ben], ["s4", "", ""],
    ]  # fmt: skip
    assert found.iloc[3][list(DRAW)].to_dict() == DRAW


def test_nested_records_of_argilla(tmp_path):
    records = [
        record(said=[{"value": "confirmed", "user_id": "u1"}], status="completed"),
        record("s2", said=[{"value": "rejected", "user_id": "u1", "status": "draft"}]),
        record("s3"),
    ]
    found = read_answers(write(tmp_path / "records.json", records))
    assert found[["row", "decision", "who"]].to_numpy().tolist() == [["s1", "confirmed", "u1"]]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ([{"value": "confirmed", "user_id": "u1"}], "pending"),
        ([{"value": "confirmed", "user_id": "u1"}] * 2, "completed"),
    ],
)
def test_drafts_are_not_taken_for_answers(tmp_path, said, status):
    """The nested form does not say which response was submitted."""
    with pytest.raises(TableError, match=r"number 1 does not say whether.*flatten=True"):
        read_answers(write(tmp_path / "r.json", [record(said=said, status=status)]))


@pytest.mark.parametrize(
    ("content", "error", "match"),
    [
        ("[", TableError, "cannot be read as JSON"),
        ("[" * 100_000, TableError, "cannot be read as JSON"),
        ("[]", TableError, "no tasks and no records"),
        ("3", TableError, "no tasks and no records"),
        ("[3]", TableError, r"not an export.*\(number 1 is neither\)"),
        ([{"a": 1}], TableError, "not an export"),
        ([task(), record()], TableError, "not an export"),
        ([task(row=None)], TableError, "number 1 has no row"),
        ([task(row="", label="")], TableError, "has no row and no label"),
        ([task(row=["a"])], TableError, "must be names"),
        ([task(annotations=[4])], TableError, "by number only"),
        ([task(annotations=[annotation([choice("x", name="other")])])], TableError, "another configuration"),
        ([task(annotations=[annotation([choice("perhaps")])])], DecisionError, "'perhaps'; an answer is confirmed"),
        ([task(annotations=[annotation([choice("confirmed", "rejected")])])], DecisionError, "answered"),
        ([flat(said=[("confirmed", "u", "sent")])], TableError, "status 'sent'"),
        ([flat(said=[("maybe", "u", "submitted")])], DecisionError, "'maybe'"),
        ([flat() | {"answer.responses": ["confirmed"]}], TableError, "other numbers of users"),
    ],
)
def test_odd_files(tmp_path, content, error, match):
    path = tmp_path / "odd.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(error, match=match):
        read_answers(path)


def test_files_that_are_no_text_or_not_there(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TableError, match="UTF-8"):
        read_answers(tmp_path / "a.json")
    with pytest.raises(TableError, match="No such file"):
        read_answers(tmp_path / "b.json")


# There and back


def _answer_there(path, format, says):
    """Answer each task as the programs do, and return the file that they export."""
    items = json.loads(path.read_text(encoding="utf-8"))
    if format == "label-studio":
        items = [
            {"id": at, **item, "annotations": [annotation([choice(says(item["data"]))])]}
            for at, item in enumerate(items)
        ]
    else:
        items = [
            {"id": item["id"], **item["fields"], **item["metadata"], "answer.responses": [says(item["metadata"])],
             "answer.responses.users": ["u1"], "answer.responses.status": ["submitted"]}
            for item in items
        ]  # fmt: skip
    return write(path.with_name("back.json"), items)


@pytest.mark.parametrize("format", ["label-studio", "argilla"])
def test_an_audit_comes_back_as_it_was_planned(tmp_path, format):
    """The same intervals as if the plan itself had been filled in."""
    X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    X, Y = X[:200], Y[:200]
    observed = hide_positives(Y, 0.5, random_state=0)
    model = auto(30, max_layers=1, random_state=0).fit(X, observed)
    plan = model.labels_.plan_audit(40, random_state=0)
    path, _ = export_tasks(plan.join(X.iloc[:, :3], on="row"), tmp_path / "tasks.json", format)
    assert plan["row"].dtype != object  # names that are numbers, which files must keep apart from text

    def truth(cell):
        return "confirmed" if Y.loc[cell["row"], cell["label"]] else "rejected"

    found = read_answers(_answer_there(path, format, truth))
    filled = plan.assign(decision=[truth(cell) for cell in plan.to_dict("records")])
    assert found[["row", "label", "decision", *DRAW]].equals(filled[["row", "label", "decision", *DRAW]].astype(object))
    known = model.labels_
    read_decisions(found, known.rows, known.label_names, known.recorded, known.state.candidates)
    pd.testing.assert_frame_equal(known.audit(found).n_missing(), known.audit(filled).n_missing())
