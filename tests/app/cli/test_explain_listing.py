"""`sylvan explain`, `algorithms`, `datasets` and `completion` say what Python says."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import sylvan
from app.cli.running import LABELS, TINY, call, done, error_of, nothing_written, start
from sylvan import algorithms
from sylvan.datasets import list_datasets, load_digit_attributes

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")
FEATURES = ["tempo", "energy", "depth", "length", "mode"]


def as_json(found):
    return json.loads(done(found).stdout)


def test_features_by_importance(songs):
    found = as_json(call(songs.folder, "explain", "songs.sylvan", "--json"))
    importances = dict(zip(FEATURES, songs.model.feature_importances_))
    assert {line["feature"]: line["importance"] for line in found["features"]} == {
        name: value for name, value in importances.items() if value > 0
    }
    values = [line["importance"] for line in found["features"]]
    assert values == sorted(values, reverse=True)
    assert found["model"]["layers"] == songs.model.n_layers_
    assert found["model"]["labels"] == 3
    assert "rules" not in found
    found = as_json(call(songs.folder, "explain", "songs.sylvan", "--json", "--top", "2"))
    assert len(found["features"]) == 2


def test_explain_in_a_process(songs):
    found = done(start(songs.folder, "explain", "songs.sylvan"))
    assert found.stdout == done(call(songs.folder, "explain", "songs.sylvan")).stdout
    best = FEATURES[int(np.argmax(songs.model.feature_importances_))]
    lines = found.stdout.splitlines()
    table = lines[next(at for at, line in enumerate(lines) if "importance" in line) :]
    assert best in table[2]  # below the head and a line
    assert "layers: 2" in lines


def test_a_row_of_the_fit(songs):
    found = as_json(call(songs.folder, "explain", "songs.sylvan", "007", "--json"))
    assert found["row"] == "007"
    at = songs.frame["id"].tolist().index("007")
    lines = {line["label"]: line for line in found["labels"]}
    assert sorted(lines) == sorted(LABELS)
    for j, name in enumerate(LABELS):
        assert lines[name]["out_of_sample"] == songs.model.oos_proba_[at, j]
    values = [line["probability"] for line in found["labels"]]
    assert values == sorted(values, reverse=True)
    text = done(call(songs.folder, "explain", "songs.sylvan", "007")).stdout
    assert "P(present)" in text  # one number for each label
    assert "out of sample" not in text


def test_states_of_labels(songs):
    """What was recorded is certain; what is probable is suggested; nothing was added between layers."""
    everything = songs.model.suggest_labels(min_proba=0)
    probable = {(row, label): p for row, label, p, _ in everything.itertuples(index=False)}
    suggested = songs.model.suggest_labels()["row"].unique()
    seen = set()
    for row in [*suggested[:3], *songs.frame["id"][:3]]:
        found = as_json(call(songs.folder, "explain", "songs.sylvan", row, "--json"))
        for line in found["labels"]:
            p = probable.get((row, line["label"]))
            state = "recorded" if p is None else "suggested" if p > 0.5 else "not recorded"
            assert (line["state"], line["probability"]) == (state, 1.0 if p is None else p)
            assert "layer" not in line
            seen.add(state)
    assert seen == {"recorded", "suggested", "not recorded"}


def test_states_of_labels_that_were_added(songs, tmp_path):
    """With an algorithm that fills labels in between layers: every added label with its layer."""
    arguments = ("-l", "tag_*", "-a", "slcforest", "--with-rows", "-o", tmp_path / "m.sylvan", *TINY, "--trees", "5")
    done(call(songs.folder, "fit", "songs.csv", *arguments))
    suggested = sylvan.load(tmp_path / "m.sylvan").suggest_labels()
    assert len(suggested) > 0
    for row, label, probability, layer in suggested.head(5).itertuples(index=False):
        found = as_json(call(tmp_path, "explain", "m.sylvan", row, "--json"))
        line = next(line for line in found["labels"] if line["label"] == label)
        assert (line["state"], line["layer"], line["probability"]) == ("imputed", layer, probability)


def test_a_new_row(songs):
    found = as_json(call(songs.folder, "explain", "songs.sylvan", "003", "--data", "new.csv", "--json"))
    X = songs.new[FEATURES].assign(mode=songs.new["mode"].map({"major": 0.0, "minor": 1.0})).iloc[[3]].astype(float)
    proba, predicted = songs.model.predict_proba(X).round(6)[0], songs.model.predict(X)[0]
    lines = {line["label"]: (line["probability"], line["predicted"]) for line in found["labels"]}
    assert lines == {name: (proba[j], predicted[j]) for j, name in enumerate(LABELS)}
    text = done(call(songs.folder, "explain", "songs.sylvan", "003", "--data", "new.csv")).stdout
    assert "tag_happy" in text


def test_reasons_for_a_row_of_the_fit(songs):
    found = as_json(call(songs.folder, "explain", "songs.sylvan", "007", "--label", LABELS[1], "--json"))
    expected = songs.model.explain_cells(rows="007", labels=LABELS[1], similar=5)
    assert found["probability"] == expected.present[0]
    assert found["base"] == expected.base_present[0]
    added = sum(reason["contribution"] for reason in found["reasons"])
    assert added + found["rest"] == pytest.approx(found["probability"] - found["base"])
    by_name = {reason["feature"]: reason for reason in found["reasons"]}
    for reason in expected.top(8)[0]:
        assert by_name[reason.feature]["contribution"] == reason.contribution
    row = songs.frame.set_index("id").loc["007"]
    assert by_name["mode"]["value"] == row["mode"]  # a category by its name, and neither high nor low
    assert by_name["mode"]["level"] == ""
    assert [one["row"] for one in found["similar"]] == [row for row, _ in expected.similar[0]]
    at = songs.frame["id"].tolist().index("007")
    state = "recorded" if songs.model.labels_.recorded[at, 1] else "not recorded"
    assert found["state"] == ("suggested" if songs.model.labels_.suggested[at, 1] else state)
    text = done(call(songs.folder, "explain", "songs.sylvan", "007", "--label", LABELS[1])).stdout
    assert found["in_words"] in text
    given = (
        f"P(present, if it was not recorded): {found['base']:.2f} for any row, {found['probability']:.2f} for this one:"
    )
    assert given in text
    assert "all other features" in text
    assert "|#" in text or "#|" in text


def test_reasons_for_a_new_row(songs):
    arguments = ("explain", "songs.sylvan", "003", "--data", "new.csv", "--label", LABELS[0], "--top", "2")
    found = as_json(call(songs.folder, *arguments, "--json"))
    whole = as_json(call(songs.folder, *arguments[:-4], "--json"))
    assert len(found["reasons"]) == 2
    assert "state" not in found
    (line,) = [line for line in whole["labels"] if line["label"] == LABELS[0]]
    assert line["probability"] == pytest.approx(found["probability"], abs=1e-6)
    assert line["reasons"].startswith(found["in_words"])
    assert "P(present): " in done(call(songs.folder, *arguments)).stdout


def test_labels_that_are_not_there(songs):
    error = error_of(call(songs.folder, "explain", "songs.sylvan", "007", "--label", "tag_happi"))
    assert "There is no label 'tag_happi'; did you mean 'tag_happy'?" in error
    assert "--label needs a ROW" in error_of(call(songs.folder, "explain", "songs.sylvan", "--label", "tag_happy"))


def test_rows_without_names_are_numbered(songs, tmp_path):
    songs.new[FEATURES].to_csv(tmp_path / "new.csv", index=False)
    by_number = as_json(call(tmp_path, "explain", songs.path, "4", "--data", "new.csv", "--json"))
    by_name = as_json(call(songs.folder, "explain", songs.path, "003", "--data", "new.csv", "--json"))
    assert by_number["labels"] == by_name["labels"]


def test_rows_that_are_not_there(songs):
    assert "There is no row '0007' in the rows of the fit (--data names another table); did you mean" in error_of(
        call(songs.folder, "explain", "songs.sylvan", "0007")
    )
    found = error_of(call(songs.folder, "explain", "songs.sylvan", "xyz", "--data", "new.csv"))
    assert "There is no row 'xyz' in new.csv; they are called '000' to '024'." in found
    assert "--data needs a ROW" in error_of(call(songs.folder, "explain", "songs.sylvan", "--data", "new.csv"))


def test_rules_and_codes(songs, tmp_path):
    arguments = ("-l", "tag_*", "-a", "imldf", "-o", tmp_path / "rules.sylvan", *TINY)
    done(call(songs.folder, "fit", "songs.csv", *arguments))
    model = sylvan.load(tmp_path / "rules.sylvan")
    found = as_json(call(songs.folder, "explain", tmp_path / "rules.sylvan", "--json"))
    expected = model.interactions_.sort_values("stability", ascending=False, kind="stable").head(20)
    assert [line["rule"] for line in found["rules"]] == expected["rule"].tolist()
    assert [line["stability"] for line in found["rules"]] == expected["stability"].tolist()
    if any("mode" in line["rule"] for line in found["rules"]):
        assert found["codes"]["mode"] == {"0": "major", "1": "minor"}
    assert done(call(songs.folder, "explain", tmp_path / "rules.sylvan")).stdout
    row = as_json(call(songs.folder, "explain", tmp_path / "rules.sylvan", "003", "--data", "new.csv", "--json"))
    X = songs.new[FEATURES].assign(mode=songs.new["mode"].map({"major": 0.0, "minor": 1.0})).iloc[[3]].astype(float)
    assert [line["rule"] for line in row["rules that hold"]] == model.explain(X).head(20)["rule"].tolist()


@pytest.mark.parametrize("values", [("a", "b"), ("a", "b", "c")])
def test_classes(songs, tmp_path, values):
    kinds = pd.qcut(songs.frame["tempo"].fillna(0), len(values), labels=list(values)).astype(str)
    songs.frame[["id", *FEATURES]].assign(kind=kinds).to_csv(tmp_path / "kinds.csv", index=False)
    arguments = ("-l", "kind", "--classes", "-a", "gcforest", "--with-rows", "-o", "kinds.sylvan", *TINY)
    done(call(tmp_path, "fit", "kinds.csv", *arguments))
    model = sylvan.load(tmp_path / "kinds.sylvan")
    found = as_json(call(tmp_path, "explain", "kinds.sylvan", "007", "--json"))
    assert sorted(line["class"] for line in found["classes"]) == list(values)
    assert sum(line["out_of_sample"] for line in found["classes"]) == pytest.approx(1)
    found = as_json(call(tmp_path, "explain", "kinds.sylvan", "007", "--data", "kinds.csv", "--json"))
    X = songs.frame[FEATURES].assign(mode=songs.frame["mode"].map({"major": 0.0, "minor": 1.0})).iloc[[7]].astype(float)
    why = as_json(call(tmp_path, "explain", "kinds.sylvan", "007", "--label", "b", "--json"))
    assert why["class"] == "b"
    assert why["probability"] == pytest.approx(dict(zip(model.classes_, model.oos_proba_[7]))["b"])
    own = songs.frame["id"].tolist().index("007"), list(model.labels_.label_names).index("b")
    assert why["state"] == ("recorded" if model.labels_.recorded[own] else "another class is recorded")
    text = done(call(tmp_path, "explain", "kinds.sylvan", "007", "--label", "b")).stdout
    given = ", if it was not recorded" if len(values) == 2 else ""  # then b may have been forgotten
    assert f"P(b{given}): {why['base']:.2f} for any row, {why['probability']:.2f} for this one:" in text
    assert "There is no class 'd'" in error_of(call(tmp_path, "explain", "kinds.sylvan", "007", "--label", "d"))
    assert found["prediction"] == model.predict(X)[0]
    proba = {line["class"]: line["probability"] for line in found["classes"]}
    assert list(proba.values()) == sorted(proba.values(), reverse=True)
    assert [proba[name] for name in model.classes_] == model.predict_proba(X)[0].round(6).tolist()
    assert done(call(tmp_path, "explain", "kinds.sylvan", "007")).stdout


def test_algorithms(songs):
    rows = as_json(call(songs.folder, "algorithms", "--json"))
    assert [row["name"] for row in rows] == [name.replace("_", "-") for name in algorithms.__all__]
    assert all(row["about"] and row["forests"] for row in rows)
    text = done(call(songs.folder, "algorithms")).stdout
    assert all(row["name"] in text for row in rows)
    one = done(call(songs.folder, "algorithms", "CaFE-SLC")).stdout
    assert sylvan.cafe_slc.__doc__.strip().splitlines()[0] in one
    assert "impute: strict label complement" in one
    assert as_json(call(songs.folder, "algorithms", "cafe_slc", "--json"))[0]["crossover"] == "yes"
    error = error_of(call(songs.folder, "algorithms", "cafeslc"))
    assert "There is no algorithm 'cafeslc'; did you mean 'cafe_slc'?" in error


def test_datasets(songs, tmp_path):
    assert as_json(call(songs.folder, "datasets", "--json")) == list_datasets()
    assert "digit_attributes" in done(call(songs.folder, "datasets")).stdout.splitlines()
    facts = as_json(call(songs.folder, "datasets", "digit_attributes", "--json"))
    bunch = load_digit_attributes()
    assert facts["rows"] == len(bunch.data)
    assert facts["labels"] == list(bunch.target_names)
    done(call(tmp_path, "datasets", "digit_attributes", "-o", "digits.csv"))
    table = pd.read_csv(tmp_path / "digits.csv")
    labels = [name for name in table.columns if name.startswith("label:")]
    np.testing.assert_array_equal(table[labels].to_numpy(), bunch.target)
    np.testing.assert_array_equal(table.drop(columns=labels).to_numpy(), bunch.data)
    done(call(tmp_path, "datasets", "digit_attributes", "-o", "holes.csv", "--hide", "0.5"))
    holes = pd.read_csv(tmp_path / "holes.csv")[labels].to_numpy()
    assert (holes <= bunch.target).all()
    assert holes.sum() / bunch.target.sum() == pytest.approx(0.5, abs=0.05)
    done(call(tmp_path, "datasets", "digit_attributes", "-o", "again.csv", "--hide", "0.5"))
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "holes.csv").read_bytes()


def test_mistakes_about_datasets(songs, tmp_path):
    (tmp_path / "old.csv").write_text("old")
    for arguments, message in (
        (["-o", "x.csv"], "Which data set?"),
        (["digit_attributes", "-o", "old.csv"], "old.csv is there already; --force replaces it."),
        (["digit_attributes", "-o", "none/x.csv"], "There is no folder none"),
        (["digit_attributes", "-o", "x.doc"], "tables can be written as .csv"),
        (["digit_attributes", "--hide", "1"], "--hide"),
    ):
        with nothing_written(tmp_path):
            assert message in error_of(call(tmp_path, "datasets", *arguments)), arguments


@pytest.mark.parametrize(("error", "code"), [(ValueError("unknown there"), 2), (OSError("no network"), 1)])
def test_data_sets_that_are_nowhere(tmp_path, monkeypatch, error, code):
    def fetch(**options):
        raise error

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    found = error_of(call(tmp_path, "datasets", "digit_atributes"), code)
    assert "No data set 'digit_atributes' was found" in found
    assert "Did you mean 'digit_attributes'?" in found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(songs, shell):
    text = done(call(songs.folder, "completion", shell)).stdout
    assert "_SYLVAN_COMPLETE" in text
    assert f"{shell}_complete" in text


def test_what_is_completed(songs):
    """As the shell asks for it."""
    code = "from sylvan.app.cli.main import sylvan; sylvan(prog_name='sylvan')"
    for words, number, expected in (
        ("sylvan ev", "1", ["evaluate"]),
        ("sylvan fit --algorithm cafe-", "3", [name for name in algorithms.__all__ if name.startswith("cafe_")]),
    ):
        asked = {"_SYLVAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": number}
        found = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, timeout=60
        )
        names = [line.partition(",")[2].replace("-", "_") for line in found.stdout.splitlines()]
        assert sorted(names) == sorted(expected), found.stderr


def test_wrong_commands(songs):
    assert "There is no command 'fitt'; did you mean 'fit'?" in error_of(call(songs.folder, "fitt"))
    assert "No such option" in error_of(call(songs.folder, "fit", "--treees", "3"))
    found = call(songs.folder)
    assert "Usage: sylvan" in found.stdout + found.stderr
    assert sylvan.__version__ in done(call(songs.folder, "--version")).stdout


def test_rows_of_the_fit_are_in_a_model_file_only_if_asked_for(songs, tmp_path):
    """Model files are sent around: without --with-rows nothing in them is about a single row."""
    done(call(songs.folder, "fit", "songs.csv", "-l", "tag_*", "-o", tmp_path / "m.sylvan", *TINY))
    found = error_of(call(tmp_path, "explain", "m.sylvan", "007"))
    assert "has nothing about single rows of the fit: fit it with --with-rows, or name the table with --data." in found
    done(call(tmp_path, "explain", "m.sylvan", "007", "--data", songs.folder / "songs.csv"))
    with pytest.raises(AttributeError, match="stored without the findings"):
        _ = sylvan.load(tmp_path / "m.sylvan").labels_


def test_rows_with_an_empty_id_are_called_by_their_number(songs, tmp_path):
    songs.new.assign(id=["", *songs.new["id"][1:]]).to_csv(tmp_path / "new.csv", index=False)
    found = as_json(call(tmp_path, "explain", songs.path, "row 1", "--data", "new.csv", "--json"))
    assert found["row"] == "row 1"
