"""`sylvan audit`, and what other commands do with decisions: from a plan to a completed table."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import threadpoolctl

import sylvan
from app.cli.running import LABELS, TINY, call, done, error_of, make_songs, nothing_written, read_as_text
from sylvan.app.cli.choice import Chosen
from sylvan.app.tables import read_training_table
from sylvan.labels.certify import n_expected
from sylvan.labels.decisions import COLUMNS

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Numbers are few: threads of BLAS would only wait for each other."""
    with threadpoolctl.threadpool_limits(1):
        yield


def truth_of(n=60, seed=0):
    """What is present in `make_songs`."""
    values = np.random.default_rng(seed).normal(size=(n, 4)).round(3)
    return np.column_stack([values[:, 0] > 0, values[:, 1] > 0, values[:, 0] + values[:, 2] > 0])


TRUTH = pd.DataFrame(truth_of(), index=[f"{at:03d}" for at in range(60)], columns=LABELS)


def fill_in(path, truth=TRUTH, words=("confirmed", "rejected"), row="row"):
    """Answer a plan, as somebody does who knows the truth; the other cells stay as they are in the file."""
    plan = read_as_text(path)
    bare = [name.removeprefix("'") for name in plan[row]], [name.removeprefix("'") for name in plan["label"]]
    plan["decision"] = [words[not truth.at[cell]] for cell in zip(*bare)]
    plan.to_csv(path, index=False)
    return plan


def run(folder, name, *arguments):
    return call(folder, name, "songs.csv", "-l", "tag_*", *arguments, *TINY)


def python(path, **decisions):
    table = read_training_table(path, "tag_*")
    return table, sylvan.auto(n_trees=10, max_layers=2, random_state=0, n_jobs=1).fit(table.X, table.Y, **decisions)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A folder in which two audits were drawn and answered, and the table completed."""
    folder = tmp_path_factory.mktemp("told")
    make_songs().to_csv(folder / "songs.csv", index=False)
    texts = {"draw": done(run(folder, "audit", "-n", "30", "-o", "first.csv"))}
    blank = read_as_text(folder / "first.csv")
    first = fill_in(folder / "first.csv")
    texts["tell"] = done(run(folder, "audit", "-d", "first.csv"))
    texts["again"] = done(run(folder, "audit", "-d", "first.csv", "--precision", "0.6", "-n", "20", "-o", "second.csv"))
    second = fill_in(folder / "second.csv", words=("Yes", "NO"))
    both = ("-d", "first.csv", "-d", "second.csv")
    made = ("--precision", "0.6", "-o", "out.csv", "--suggestions", "list.csv")
    texts["impute"] = done(run(folder, "impute", *both, *made))
    decided = pd.concat([first, second], ignore_index=True)
    return SimpleNamespace(folder=folder, blank=blank, first=first, both=both, decided=decided, **texts)


def cells_of(table):
    return set(zip(table["row"], table["label"]))


def added_to(folder, name="out.csv"):
    """(id, label) of the cells that became a 1; no other cell may be different."""
    old, new = read_as_text(folder / "songs.csv"), read_as_text(folder / name)
    assert old.drop(columns=LABELS).equals(new.drop(columns=LABELS))
    changed = np.argwhere((old[LABELS] != new[LABELS]).to_numpy())
    assert all((old[LABELS].iat[tuple(at)], new[LABELS].iat[tuple(at)]) == ("0", "1") for at in changed)
    return {(old["id"][row], LABELS[label]) for row, label in changed}


# ------------------------------------------------------------------------------------------ from a plan to a table


def test_a_plan_is_a_table_to_fill_in(told):
    assert told.blank.columns.tolist() == list(COLUMNS)
    assert len(told.blank) == 30
    assert (told.blank[["decision", "who", "when"]] == "").all(axis=None)
    assert set(told.blank["row"]) <= set(TRUTH.index)  # zeros in front stay
    assert not {"probability", "value"} & set(told.blank)
    _, model = python(told.folder / "songs.csv")
    plan = model.labels_.plan_audit(30, random_state=0).astype(str)
    pd.testing.assert_frame_equal(told.blank.drop(columns="chance"), plan.drop(columns="chance"), check_dtype=False)
    assert "30 cells to decide: first.csv. Write confirmed, rejected or unsure" in told.draw.stderr
    assert told.draw.stdout == ""


def test_what_decided_cells_say(told):
    _, model = python(told.folder / "songs.csv", decisions=told.folder / "first.csv")
    table = model.labels_.audit().n_missing()
    for name, line in table.iterrows():
        shown = next(text for text in told.tell.stdout.splitlines() if f" {name} " in text)
        cells = [cell.strip() for cell in shown.split("│")[1:-1]]
        assert cells[2:] == [f"{line[end]:.0f}" for end in ("confirmed", "missing", "low", "high")]
    assert "Missing labels, confirmed ones included, with 90% confidence" in told.tell.stdout
    for note in model.summary().notes[-3:]:
        assert note in told.tell.stderr
    assert "30 cells are decided" in told.tell.stderr


def test_json(told):
    found = json.loads(done(run(told.folder, "audit", *told.both, "--precision", "0.6", "--json")).stdout)
    _, model = python(told.folder / "songs.csv", decisions=told.decided)
    table = model.labels_.audit().n_missing()
    assert [line["label"] for line in found["missing"]] == [*LABELS, "all labels"]
    np.testing.assert_allclose([line["high"] for line in found["missing"]], table["high"])
    certificate = model.labels_.audit().certify(0.6)
    assert (found["certified"], found["suggested"]) == (certificate.certified, len(certificate.cells))
    assert certificate.note in found["notes"]


def test_a_second_plan_asks_of_other_cells(told):
    assert not told.decided.duplicated(["row", "label"]).any()
    assert "20 cells to decide: second.csv" in told.again.stderr
    assert "30 cells are decided" in told.again.stderr
    assert told.decided["audit"].nunique() == 2


def test_the_table_is_completed_as_people_decided(told):
    said = told.decided.set_index(["row", "label"])["decision"].str.lower().isin(["confirmed", "yes"])
    confirmed, rejected = set(said.index[said]), set(said.index[~said])
    added = added_to(told.folder)
    assert len(confirmed) > 5
    assert len(rejected) > 5
    assert confirmed <= added
    assert not rejected & added
    listed = read_as_text(told.folder / "list.csv")
    suggested = set(zip(listed["id"], listed["label"]))
    assert not suggested & set(said.index)
    written = listed[listed["written"] == "1"]
    assert added == confirmed | set(zip(written["id"], written["label"]))
    _, model = python(told.folder / "songs.csv", decisions=told.decided)
    certificate = model.labels_.audit().certify(0.6)
    assert added == confirmed | cells_of(certificate.cells)
    assert certificate.note in told.impute.stderr


def test_the_same_decisions_give_the_same_bytes(told, tmp_path):
    (tmp_path / "songs.csv").write_bytes((told.folder / "songs.csv").read_bytes())
    done(run(tmp_path, "audit", "-n", "30", "-o", "plan.csv"))
    pd.testing.assert_frame_equal(read_as_text(tmp_path / "plan.csv"), told.blank)
    done(run(tmp_path, "audit", "-n", "30", "-o", "plan.csv", "--seed", "1", "--force"))
    assert not read_as_text(tmp_path / "plan.csv").equals(told.blank)


def test_a_list_that_was_filled_in_is_a_file_of_decisions(told, tmp_path):
    """The list of suggestions has an empty column, and reasons to go by; its first column is the id."""
    (tmp_path / "songs.csv").write_bytes((told.folder / "songs.csv").read_bytes())
    done(run(tmp_path, "impute", "-o", "one.csv", "--suggestions", "list.csv"))
    listed = read_as_text(tmp_path / "list.csv")
    assert listed.columns.tolist() == ["id", "label", "probability", "written", "decision", "reasons", "similar"]
    assert (listed["decision"] == "").all()
    listed.loc[:9, "decision"] = [
        "yes" if TRUTH.at[row, label] else "no" for row, label in zip(listed["id"][:10], listed["label"][:10])
    ]
    listed.to_csv(tmp_path / "list.csv", index=False, sep=";", encoding="utf-8-sig")  # as a spreadsheet may
    made = ("-o", "two.csv", "--suggestions", "more.csv", "--json")
    found = json.loads(done(run(tmp_path, "impute", "-d", "list.csv", *made)).stdout)
    said = listed[:10].rename(columns={"id": "row"})
    confirmed = cells_of(said[said["decision"] == "yes"])
    assert found["confirmed"] == len(confirmed) > 0
    assert confirmed <= added_to(tmp_path, "two.csv")
    assert not cells_of(said[said["decision"] == "no"]) & added_to(tmp_path, "two.csv")
    more = read_as_text(tmp_path / "more.csv")
    assert not cells_of(said) & set(zip(more["id"], more["label"]))
    _, model = python(tmp_path / "songs.csv")
    assert found["frequency"] == pytest.approx(dict(zip(LABELS, model.label_frequency_)))


def test_decisions_are_stored_with_a_model(told, tmp_path):
    arguments = (*told.both, "-o", tmp_path / "m.sylvan", "--with-rows", "--json")
    facts = json.loads(done(run(told.folder, "fit", *arguments)).stdout)
    assert facts["labels"] == 3
    model = sylvan.load(tmp_path / "m.sylvan")
    assert len(model.labels_.decisions) == len(told.decided)
    assert model.decider_.recalibration is not None
    _, expected = python(told.folder / "songs.csv", decisions=told.decided)
    assert str(model.summary()) == str(expected.summary())
    done(run(told.folder, "fit", *told.both, "-o", tmp_path / "bare.sylvan", "-q"))
    with pytest.raises(AttributeError, match="stored without the findings"):
        sylvan.load(tmp_path / "bare.sylvan").labels_  # noqa: B018


# ----------------------------------------------------------------------------------------------------- names of rows

IDS = {
    "formulas": lambda at: f"=evil({at})",
    "signs": lambda at: f"{'+-@='[at % 4]}x{at}",
    "quotes in front": lambda at: f"'={at}",
    "separators": lambda at: f'a,{at};"b"\t',
    "words for nothing": lambda at: "NA" if at == 0 else f"None{at}",
    "long numbers": lambda at: str(10**17 + at),
    "dates": lambda at: f"2024-01-{at % 28 + 1:02d}T{at:02d}",
}


@pytest.mark.parametrize("column", ["row", "label", "decision", "ID", "=id"])
def test_the_column_of_ids_may_have_any_name(column, tmp_path):
    make_songs(30).rename(columns={"id": column}).to_csv(tmp_path / "songs.csv", index=False)
    data = ("--id", column, "-a", "rf-et", "--json")
    done(run(tmp_path, "impute", *data, "-o", "one.csv", "--suggestions", "list.csv", "--max-per-label", "1"))
    listed = read_as_text(tmp_path / "list.csv")
    listed.loc[:3, "decision"] = "yes"
    listed.to_csv(tmp_path / "list.csv", index=False)
    done(run(tmp_path, "audit", *data, "-d", "list.csv", "-n", "5", "-o", "plan.csv"))
    said = done(run(tmp_path, "impute", *data, "-d", "list.csv", "-d", "plan.csv", "-o", "two.csv"))
    assert json.loads(said.stdout)["confirmed"] == 4


@pytest.mark.parametrize("name", IDS)
def test_ids_come_back_from_a_plan(name, tmp_path):
    ids = [IDS[name](at).strip() for at in range(30)]
    make_songs(30).assign(id=ids).to_csv(tmp_path / "songs.csv", index=False)
    truth = pd.DataFrame(truth_of(30), columns=LABELS)
    done(run(tmp_path, "audit", "-n", "8", "-o", "plan.csv", "-a", "rf-et", "--set", "max_layers=1"))
    plan = read_as_text(tmp_path / "plan.csv")
    bare = [at if at in ids else at.removeprefix("'") for at in plan["row"]]
    if name in ("formulas", "signs"):
        assert all(cell.startswith("'") for cell in plan["row"])
    plan["decision"] = ["yes" if truth.at[ids.index(row), label] else "no" for row, label in zip(bare, plan["label"])]
    plan.to_csv(tmp_path / "plan.csv", index=False)
    arguments = ("-d", "plan.csv", "-o", "out.csv", "--json", "--max-per-label", "0", "-a", "rf-et")
    found = json.loads(done(run(tmp_path, "impute", *arguments)).stdout)
    confirmed = {(row, label) for row, label, word in zip(bare, plan["label"], plan["decision"]) if word == "yes"}
    assert found["confirmed"] == len(confirmed)
    old, new = read_as_text(tmp_path / "songs.csv"), read_as_text(tmp_path / "out.csv")
    changed = np.argwhere((old != new).to_numpy())
    assert {(ids[row], old.columns[column]) for row, column in changed} == confirmed


def test_rows_without_an_id_are_called_by_number(tmp_path):
    make_songs(30).drop(columns="id").to_csv(tmp_path / "songs.csv", index=False)
    truth = pd.DataFrame(truth_of(30), columns=LABELS, index=[str(at) for at in range(1, 31)])
    done(run(tmp_path, "audit", "-n", "8", "-o", "plan.csv"))
    plan = fill_in(tmp_path / "plan.csv", truth)
    done(run(tmp_path, "impute", "-d", "plan.csv", "-o", "out.csv", "--max-per-label", "0"))
    old, new = read_as_text(tmp_path / "songs.csv"), read_as_text(tmp_path / "out.csv")
    changed = {(str(row + 1), old.columns[column]) for row, column in np.argwhere((old != new).to_numpy())}
    assert changed == cells_of(plan[plan["decision"] == "confirmed"])


def test_labels_in_a_second_file_are_decided(tmp_path):
    songs = make_songs()
    songs.drop(columns=LABELS).to_csv(tmp_path / "x.csv", index=False)
    songs[["id", *LABELS]].sample(frac=1, random_state=0).to_csv(tmp_path / "y.csv", index=False)
    data = ("x.csv", "--label-file", "y.csv", "-l", "tag_*")
    done(call(tmp_path, "audit", *data, "-n", "12", "-o", "plan.tsv", *TINY))
    text = (tmp_path / "plan.tsv").read_text()
    assert text.count("\t") == 13 * 8
    plan = pd.read_csv(tmp_path / "plan.tsv", sep="\t", dtype=str, keep_default_na=False)
    plan["decision"] = ["1" if TRUTH.at[cell] else "0" for cell in zip(plan["row"], plan["label"])]
    plan.to_csv(tmp_path / "plan.tsv", sep="\t", index=False)
    done(call(tmp_path, "impute", *data, "-d", "plan.tsv", "-o", "out.csv", "--max-per-label", "0", *TINY))
    old, new = read_as_text(tmp_path / "y.csv"), read_as_text(tmp_path / "out.csv")
    changed = {(old["id"][row], old.columns[column]) for row, column in np.argwhere((old != new).to_numpy())}
    assert changed == cells_of(plan[plan["decision"] == "1"])


# ----------------------------------------------------------------------------------------------------- what is refused


@pytest.fixture
def nothing_is_fitted(monkeypatch):
    def grow(*args, **options):
        raise AssertionError("a forest was grown")

    monkeypatch.setattr("sylvan.cascade.estimator.grow", grow)


BAD = {
    "no file": (None, "nothing.csv cannot be read as a table of decisions: No such file"),
    "empty": ("", "is empty; decisions need the columns row, label and decision"),
    "unknown row": ("row,label,decision\n999,tag_calm,yes\n", "1 row that the table does not have: '999'"),
    "lost zeros": (
        "row,label,decision\n7,tag_calm,yes\n",
        "not have: '7'; did you mean '007'? Spreadsheets drop zeros",
    ),
    "unknown label": ("row,label,decision\n001,calm,yes\n", "'calm'; did you mean 'tag_calm'?"),
    "odd word": ("id;label;decision\n001;tag_calm;vielleicht\n", "has the decision 'vielleicht'"),
    "no decision": ("row,label\n001,tag_calm\n", "(nothing.csv) need the column 'decision'; it has 'row', 'label'"),
    "how": ("row,label,decision,how\n001,tag_calm,no,guess\n", "'how' says 'audited' or 'reviewed', not 'guess'"),
    "chance": ("row,label,decision,how\n001,tag_calm,no,audited\n", "its chance of being drawn is missing"),
    "two columns": ("row,row,label,decision\n1,2,tag_calm,no\n", "two columns 'row'"),
}


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_bad_decisions_end_every_command_before_a_fit(text, words, songs, tmp_path):
    (tmp_path / "songs.csv").write_bytes((songs.folder / "songs.csv").read_bytes())
    if text is not None:
        (tmp_path / "nothing.csv").write_text(text)
    for name, out in (("audit", "plan.csv"), ("impute", "out.csv"), ("fit", "m.sylvan")):
        with nothing_written(tmp_path):
            assert words in error_of(run(tmp_path, name, "-d", "nothing.csv", "-o", out))


@pytest.mark.usefixtures("nothing_is_fitted")
def test_recorded_cells_cannot_be_decided(songs, tmp_path):
    row = songs.frame.index[songs.frame["tag_calm"] == 1][0]
    for word, words in (("yes", "must not be written into the table"), ("no", "cannot be rejected")):
        (tmp_path / "d.csv").write_text(f"row,label,decision\n{songs.frame['id'][row]},tag_calm,{word}\n")
        error = error_of(run(songs.folder, "impute", "-d", tmp_path / "d.csv", "-o", tmp_path / "out.csv"))
        assert words in error
        assert "recorded already" in error


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit",), "-o FILE says where the cells to decide go"),
        (("audit", "-n", "5", "-d", "d.csv"), "-o FILE says where the cells to decide go"),
        (("audit", "-o", "d.csv", "-d", "d.csv", "--force"), "d.csv is read by this command"),
        (("audit", "-o", "songs.csv", "--force"), "songs.csv is read by this command"),
        (("audit", "-o", "d.csv"), "d.csv is there already; --force replaces it"),
        (("audit", "-o", "p.parquet"), "people fill in a text file"),
        (("audit", "-o", "p.xls"), "tables can be written as .csv"),
        (("audit", "-o", "p.csv", "-n", "0"), "0 is not in the range"),
        (("audit", "-o", "p.csv", "--precision", "1.5"), "1.5 is not in the range"),
        (("audit", "-o", "p.csv", "--confidence", "0"), "is not in the range"),
        (("impute", "-o", "d.csv", "-d", "d.csv", "--force"), "d.csv is read by this command"),
        (("impute", "-o", "o.csv", "--precision", "0.5", "--min-proba", "0.3"), "leave --min-proba out"),
        (("impute", "-o", "o.csv", "--precision", "0.5", "--max-per-label", "3"), "leave --max-per-label out"),
        (("fit", "-o", "d.csv", "-d", "d.csv", "--force"), "d.csv is read by this command"),
    ],
)  # fmt: skip
def test_options_that_cannot_be(arguments, words, songs, tmp_path):
    (tmp_path / "songs.csv").write_bytes((songs.folder / "songs.csv").read_bytes())
    (tmp_path / "d.csv").write_text("row,label,decision\n")
    with nothing_written(tmp_path):
        assert words in error_of(run(tmp_path, *arguments))


@pytest.mark.usefixtures("nothing_is_fitted")
@pytest.mark.parametrize("arguments", [("audit", "-o", "o.csv"), ("fit", "-o", "o.sylvan", "-d", "d.csv")])
def test_classes_cannot_be_decided(arguments, songs, tmp_path):
    (tmp_path / "d.csv").write_text("row,label,decision\n001,mode,yes\n")
    (tmp_path / "songs.csv").write_bytes((songs.folder / "songs.csv").read_bytes())
    name, *more = arguments
    with nothing_written(tmp_path):
        found = call(tmp_path, name, "songs.csv", "-l", "mode", "--classes", "--drop", "tag_*", *more, *TINY)
        assert "labels that may be missing; classes have none" in error_of(found)


def test_a_plan_ends_when_all_is_decided(told, tmp_path):
    songs = make_songs()
    cells = [(row, label) for row in songs.index for label in LABELS if songs.at[row, label] == 0]
    lines = [f"{songs['id'][row]},{label},{'yes' if TRUTH.iloc[row][label] else 'no'}" for row, label in cells]
    (tmp_path / "d.csv").write_text("\n".join(["row,label,decision", *lines]))
    error = error_of(run(told.folder, "audit", "-d", tmp_path / "d.csv", "-o", tmp_path / "plan.csv"))
    assert "no cell left to look at" in error
    assert not (tmp_path / "plan.csv").exists()


def test_nothing_is_open_where_no_label_may_be_missing(tmp_path):
    songs = make_songs(30)
    songs.loc[:3, LABELS] = None  # more than a slip of the pen: then zeros are absent
    songs.to_csv(tmp_path / "songs.csv", index=False)
    found = run(tmp_path, "audit", "-o", "plan.csv", "-n", "9", "--json", "--zeros", "absent")
    assert json.loads(done(found).stdout) == {"audit": "plan.csv", "cells": 9}
    assert set(read_as_text(tmp_path / "plan.csv")["row"]) <= {"000", "001", "002", "003"}


# ------------------------------------------------------------------------------------- what is said before it is done


@pytest.mark.parametrize("options", [[], ["--precision", "0.6"], ["--min-proba", "0.4"]])
def test_what_is_expected_is_said_before_anything_is_written(options, songs, tmp_path, monkeypatch):
    def broken(*args, **options):
        raise OSError(28, "No space left on device", "out.csv")

    monkeypatch.setattr(sylvan.app.tables, "write_completed", broken)
    (tmp_path / "songs.csv").write_bytes((songs.folder / "songs.csv").read_bytes())
    with nothing_written(tmp_path):
        found = run(tmp_path, "impute", "-o", "out.csv", "--suggestions", "list.csv", *options)
    assert found.returncode == 1
    *before, last = found.stderr.splitlines()
    assert last == "Error: out.csv: No space left on device."
    assert "expected to be right and" in before[-1]
    assert "not audited" in before[-1]


@pytest.mark.parametrize(
    ("proba", "precision"),
    [([], 0.8), ([0.9], 0.8), ([0.7], 0.8), ([0.95, 0.9, 0.6, 0.6, 0.1], 0.8), ([0.5] * 9, 0.5), ([0.79] * 5, 0.8)],
)
def test_as_many_are_written_as_are_expected_to_be_right(proba, precision):
    lengths = [n for n in range(1, len(proba) + 1) if sum(proba[:n]) >= precision * n]
    assert n_expected(np.array(proba), precision) == max(lengths, default=0)


NOT_AUDITED = "; that was not audited (see: sylvan audit)."


def chosen(n=4, confirmed=0, **more):
    cells = pd.DataFrame({"row": range(n), "label": list("aabc")[:n], "probability": [0.9, 0.8, 0.7, 0.8][:n]})
    said = pd.DataFrame({"row": range(confirmed), "label": ["a"] * confirmed, "probability": [1.0] * confirmed})
    return Chosen(cells, said, **more)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (chosen(), f"Of 4 new suggestions, 3 are expected to be right and 1 wrong{NOT_AUDITED}"),
        (chosen(1), f"Of 1 new suggestion, 1 is expected to be right and 0 wrong{NOT_AUDITED}"),
        (chosen(audited=True), "Of 4 new suggestions, 3 are expected to be right and 1 wrong; audited cells have "
                               "corrected these numbers, and promise nothing (--precision asks for a promise)."),
        (chosen(0), "Nothing is suggested."),
        (chosen(0, 2), "Written are 0 suggestions and 2 confirmed cells."),
        (chosen(note="80% sure.", certified=True),
         "80% sure. Of 4 new suggestions, 3 are expected to be right and 1 wrong."),
        (chosen(2, 1, note="No list."), "No list. Of 2 new suggestions, 2 are expected to be right and 0 wrong. "
                                        "Written are 2 suggestions and 1 confirmed cell."),
    ],
)  # fmt: skip
def test_promises(made, text):
    assert made.promise == text


@pytest.mark.parametrize("certified", [False, True])
def test_labels_that_a_check_does_not_find_are_left_out_unless_certified(certified):
    names = ["a", "b", "c", "d", "all labels"]
    recovery = pd.DataFrame({"hidden": [2, 3, 0, 4, 9], "recovered": [1, 0, 0, 0, 1]}, index=names)
    made = chosen(note="These 4 cells.", certified=certified)
    doubts = made.leave_out(recovery)
    assert len(doubts) == 1  # nothing is suggested of d, nothing was hidden of c
    assert doubts[0].startswith("b: of 3 hidden labels the check found none; 1 suggestion is ")
    assert made.suggested["label"].tolist() == list("aabc" if certified else "aac")
    assert made.note == ("These 4 cells." if certified else "These 4 cells. 1 cell is left out.")
    assert ("certified" in doubts[0]) == certified


def test_a_check_knows_decisions(told):
    made = (*told.both, "-o", "checked.csv", "--check", "--json", "--force")
    found = json.loads(done(run(told.folder, "impute", *made)).stdout)
    table, model = python(told.folder / "songs.csv", decisions=told.decided)
    expected = model.check_recovery(table.X, table.Y, random_state=0, decisions=told.decided).reset_index()
    assert [line["candidates"] for line in found["check"]] == expected["candidates"].tolist()
    n_open = int((table.Y == 0).to_numpy().sum()) - len(told.decided) + int(expected["hidden"].iloc[-1])
    assert expected["candidates"].iloc[-1] == n_open
