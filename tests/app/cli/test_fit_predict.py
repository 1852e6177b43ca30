"""`sylvan fit`, `predict` and `evaluate`: the same as in Python, from files to files."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import sylvan
from app.cli.running import (
    ENVIRONMENT,
    LABELS,
    TINY,
    call,
    command,
    contents,
    done,
    error_of,
    make_songs,
    nothing_written,
    read_as_text,
    start,
)
from sylvan.app.cli import predict as predict_module
from sylvan.app.tables import read_training_table
from sylvan.io import read_about
from sylvan.labels.frequency import OutOfBagPercentile, TIcE, TopRate
from sylvan.measures import MEASURES

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree", "ignore:A class has fewer rows")
FEATURES = ["tempo", "energy", "depth", "length", "mode"]


def features_of(frame):
    """The features as numbers, by hand: the modes in the order of the alphabet."""
    codes = {"major": 0.0, "minor": 1.0}
    return frame[FEATURES].assign(mode=frame["mode"].map(codes)).astype(float)


def test_fit_is_the_fit_of_python(songs):
    model = sylvan.auto(n_trees=10, max_layers=2, random_state=0, n_jobs=1)
    X = features_of(songs.frame).set_axis(songs.frame["id"])
    model.fit(X, songs.frame[LABELS].set_axis(X.index))
    np.testing.assert_array_equal(model.predict_proba(X), songs.model.predict_proba(X))
    np.testing.assert_array_equal(model.oos_proba_, songs.model.oos_proba_)
    assert songs.model.feature_names_in_.tolist() == FEATURES
    about = read_about(songs.path)
    assert about["algorithm"] == "auto"
    assert about["rows"] == 60
    mode = {"is": "categories", "values": ["major", "minor"], "more": False}
    assert about["table"]["columns"]["readings"]["mode"] == mode


def test_fit_in_a_process(songs, tmp_path):
    found = done(start(songs.folder, "fit", "songs.csv", "--labels", "tag_*", "-o", tmp_path / "m.sylvan", *TINY))
    assert found.stdout == ""
    assert "auto: 60 rows, 5 features, 3 labels; 2 layers, out of sample 0." in found.stderr
    for note in songs.model.summary().notes[2:]:
        assert note in found.stderr
    assert f"Next: sylvan predict {tmp_path / 'm.sylvan'} NEW.csv" in found.stderr
    X = features_of(songs.new)
    np.testing.assert_array_equal(sylvan.load(tmp_path / "m.sylvan").predict_proba(X), songs.model.predict_proba(X))
    assert list(contents(tmp_path)) == [(tmp_path / "m.sylvan").relative_to(tmp_path)]


def test_fit_says_what_it_did_as_json(songs, tmp_path):
    found = done(
        call(songs.folder, "fit", "songs.csv", "-l", "tag_*", "-o", tmp_path / "m.sylvan", "--json", "-q", *TINY)
    )
    facts = json.loads(found.stdout)
    assert {key: facts[key] for key in ("algorithm", "rows", "features", "labels")} == {
        "algorithm": "auto", "rows": 60, "features": 5, "labels": 3,
    }  # fmt: skip
    assert facts["bytes"] == (tmp_path / "m.sylvan").stat().st_size
    assert facts["score"] == songs.model.history_["score"].iloc[facts["layers"] - 1]


def test_options_reach_the_model(songs, tmp_path):
    options = ("--algorithm", "CaFE-SLC", "--seed", "3", "--trees", "4", "--layers", "2", "--jobs", "1")
    more = ("--set", "min_samples_leaf=2", "--set", "impute__threshold=0.4", "--frequency", "0.6")
    done(call(songs.folder, "fit", "songs.csv", "-l", "tag_*", "-o", tmp_path / "m.sylvan", *options, *more))
    model = sylvan.load(tmp_path / "m.sylvan")
    assert model.random_state == 3
    assert model.max_layers == 2
    assert model.impute.threshold == 0.4
    assert {forest.n_trees for forest in model.forests} == {4}
    assert {forest.min_samples_leaf for forest in model.forests} == {2}
    assert model.impute.frequency.frequency == 0.6
    assert model.callbacks is None
    other = tmp_path / "other.sylvan"
    done(call(songs.folder, "fit", "songs.csv", "-l", "tag_*", "-o", other, "--seed", "4", *TINY))
    X = features_of(songs.new)
    assert not np.array_equal(sylvan.load(other).predict_proba(X), songs.model.predict_proba(X))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["0.6"], 0.6),
        (["1"], 1.0),
        (["0.4-0.8"], (0.4, 0.8)),
        (["tag_happy=0.5", "tag_loud=0.3-0.6"], {"tag_happy": 0.5, "tag_loud": (0.3, 0.6)}),
        (["top-rate"], TopRate()),
        (["percentile"], OutOfBagPercentile()),
        (["tice"], TIcE()),
    ],
    ids=str,
)
def test_what_is_known_of_the_frequency_reaches_auto(songs, tmp_path, given, expected):
    options = [part for text in given for part in ("--frequency", text)]
    done(call(songs.folder, "fit", "songs.csv", "-l", "tag_*", "-o", tmp_path / "m.sylvan", *options, *TINY))
    model = sylvan.load(tmp_path / "m.sylvan")
    assert repr(model.impute) == repr(sylvan.auto(frequency=expected).impute)
    if expected == (0.4, 0.8):
        assert ((model.label_frequency_ >= 0.4) & (model.label_frequency_ <= 0.8)).all()
    if isinstance(expected, dict):
        assert model.label_frequency_["tag_happy"] == 0.5
        assert 0.3 <= model.label_frequency_["tag_loud"] <= 0.6


def test_frequencies_by_label_of_other_algorithms(songs, tmp_path):
    options = [part for name in LABELS for part in ("--frequency", f"{name}=0.5")]
    arguments = ("-l", "tag_*", "-a", "flaforest", "-o", tmp_path / "m.sylvan", *options, *TINY)
    done(call(songs.folder, "fit", "songs.csv", *arguments))
    assert sylvan.load(tmp_path / "m.sylvan").label_frequency_.tolist() == [0.5] * 3


@pytest.mark.parametrize("kind", ["tsv", "csv.gz", "parquet", "semicolons", "latin-1", "second file"])
def test_the_same_table_in_any_form_gives_the_same_model(songs, tmp_path, kind):
    frame, options = songs.frame, ["--labels", "tag_*"]
    path = tmp_path / f"table.{kind}" if "." in kind or kind in ("tsv", "parquet") else tmp_path / "table.csv"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "semicolons":
        frame.to_csv(path, index=False, sep=";", decimal=",", lineterminator="\r\n", encoding="utf-8-sig")
        options += ["--decimal", ","]
    elif kind == "latin-1":
        frame.rename(columns={"tag_loud": "tag_öde"}).to_csv(path, index=False, encoding="latin-1")
        options += ["--encoding", "latin-1"]
    elif kind == "second file":
        frame.drop(columns=LABELS).to_csv(path, index=False)
        frame[["id", *LABELS]].sample(frac=1, random_state=0).to_csv(tmp_path / "labels.csv", index=False)
        options = ["--label-file", tmp_path / "labels.csv"]
    else:
        frame.to_csv(path, index=False, sep="\t" if "tsv" in kind else ",")
    done(call(tmp_path, "fit", path, *options, "-o", "m.sylvan", *TINY))
    X = features_of(songs.new)
    np.testing.assert_array_equal(sylvan.load(tmp_path / "m.sylvan").predict_proba(X), songs.model.predict_proba(X))


def test_labels_by_negative_positions(songs, tmp_path):
    done(call(songs.folder, "fit", "songs.csv", "--labels", "-3:", "-o", tmp_path / "m.sylvan", *TINY))
    assert sylvan.load(tmp_path / "m.sylvan").label_names_in_.tolist() == LABELS


def test_a_stopped_fit_goes_on(songs, tmp_path):
    options = ("-l", "tag_*", "-o", tmp_path / "m.sylvan", "--checkpoint", tmp_path / "parts", *TINY)
    done(call(songs.folder, "fit", "songs.csv", *options))
    assert any((tmp_path / "parts").iterdir())
    done(call(songs.folder, "fit", "songs.csv", *options, "--force"))
    X = features_of(songs.new)
    np.testing.assert_array_equal(sylvan.load(tmp_path / "m.sylvan").predict_proba(X), songs.model.predict_proba(X))


def test_a_page_about_the_fit(songs, tmp_path):
    options = ("-o", tmp_path / "m.sylvan", "--report", tmp_path / "page.html", *TINY)
    found = done(call(songs.folder, "fit", "songs.csv", "-l", "tag_*", *options))
    assert f"Report: {tmp_path / 'page.html'}" in found.stderr
    page = (tmp_path / "page.html").read_text()
    assert "songs.csv" in page
    assert "tag_happy" in page


def test_memory_is_looked_at_before_a_fit(songs, tmp_path, monkeypatch):
    memory = pytest.importorskip("sylvan.app.memory")
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    monkeypatch.setattr(memory, "estimate_fit_memory", lambda model, X, Y: X.size * Y.size)
    arguments = ("fit", "songs.csv", "-l", "tag_*", "-o", tmp_path / "m.sylvan", *TINY)
    assert "of memory, and 1 kB are free" in error_of(call(songs.folder, *arguments), code=1)
    assert not list(tmp_path.iterdir())
    done(call(songs.folder, *arguments, "--no-memory-check"))


# Predicting


def expected_table(songs, proba=False):
    X = features_of(songs.new)
    values = songs.model.predict_proba(X).round(6) if proba else songs.model.predict(X)
    return pd.DataFrame(values, columns=LABELS)


@pytest.mark.parametrize("proba", [False, True])
@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz", "out.parquet", None])
def test_predictions_are_those_of_the_model(songs, tmp_path, name, proba):
    out = [] if name is None else ["-o", tmp_path / name]
    found = done(call(songs.folder, "predict", "songs.sylvan", "new.csv", *out, *(["--proba"] if proba else [])))
    if name is None:
        table = pd.read_csv(io.StringIO(found.stdout), dtype={"id": str})
    else:
        assert found.stdout == ""
        assert f"25 rows in {tmp_path / name}." in found.stderr
        assert [path.name for path in tmp_path.iterdir()] == [name]
        if name.endswith("parquet"):
            table = pd.read_parquet(tmp_path / name)
        else:
            table = pd.read_csv(tmp_path / name, dtype={"id": str}, sep="\t" if "tsv" in name else ",")
    assert table["id"].tolist() == songs.new["id"].tolist()  # 007 stays 007
    assert table.columns.tolist() == ["id", *LABELS]
    np.testing.assert_array_equal(table[LABELS].to_numpy(), expected_table(songs, proba).to_numpy())


def test_predict_in_a_process(songs, tmp_path):
    found = done(start(songs.folder, "predict", "songs.sylvan", "new.csv"))
    assert found.stdout == call(songs.folder, "predict", "songs.sylvan", "new.csv").stdout
    assert found.stderr == ""


def test_parts_give_the_same_as_the_whole(songs, tmp_path, monkeypatch):
    """Rows are read a hundred at a time at least, so there are some hundreds."""
    many = make_songs(330, seed=5)
    many.to_csv(tmp_path / "many.csv", index=False)
    many.to_parquet(tmp_path / "many.parquet")
    whole = done(call(tmp_path, "predict", songs.path, "many.csv", "--proba")).stdout
    assert len(whole.splitlines()) == 331
    sizes = []
    labels_of = predict_module.label_table
    monkeypatch.setattr(predict_module, "_NUMBERS", 1)
    monkeypatch.setattr(predict_module, "label_table", lambda m, X, p: sizes.append(len(X)) or labels_of(m, X, p))
    assert done(call(tmp_path, "predict", songs.path, "many.csv", "--proba")).stdout == whole
    assert sizes == [100, 100, 100, 30]
    for source, out in (("many.csv", "out.csv"), ("many.parquet", "out.parquet")):
        done(call(tmp_path, "predict", songs.path, source, "--proba", "-o", out))
    assert (tmp_path / "out.csv").read_text() == whole
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out.parquet"), pd.read_csv(io.StringIO(whole), dtype={"id": str})
    )


def test_columns_in_another_order_and_new_ones(songs, tmp_path):
    frame = songs.new[["mode", "length", "id", "tempo", "depth", "energy"]].assign(price=1, colour="red")
    frame.to_csv(tmp_path / "other.csv", index=False)
    found = done(call(tmp_path, "predict", songs.path, "other.csv"))
    assert found.stdout == call(songs.folder, "predict", "songs.sylvan", "new.csv").stdout
    assert "Columns that the model does not know are left out: 'price', 'colour'." in found.stderr
    assert done(call(tmp_path, "predict", songs.path, "other.csv", "-q")).stderr == ""


def test_rows_are_numbered_if_there_is_no_id(songs, tmp_path):
    songs.new[FEATURES].to_csv(tmp_path / "new.csv", index=False)
    found = pd.read_csv(io.StringIO(done(call(tmp_path, "predict", songs.path, "new.csv")).stdout))
    assert found["row"].tolist() == list(range(1, 26))
    np.testing.assert_array_equal(found[LABELS].to_numpy(), expected_table(songs).to_numpy())


def test_new_categories_are_missing_ones_and_told(songs, tmp_path):
    songs.new.assign(mode=["dorian", "lydian"] + ["minor"] * 23).to_csv(tmp_path / "new.csv", index=False)
    found = done(call(tmp_path, "predict", songs.path, "new.csv", "--proba", "-q"))
    warning = "Warning: column 'mode' has values that the model has not seen, taken as missing: 'dorian', 'lydian'."
    assert found.stderr.splitlines() == [warning]
    X = features_of(songs.new.assign(mode=[None, None] + ["minor"] * 23))
    table = pd.read_csv(io.StringIO(found.stdout))
    np.testing.assert_array_equal(table[LABELS].to_numpy(), songs.model.predict_proba(X).round(6))


def test_marks_of_missing_values_are_remembered(songs, tmp_path):
    """Also with decimal commas, where a mark makes text of a column of numbers."""
    for name, frame in (("songs", songs.frame), ("new", songs.new)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False, sep=";", decimal=",", na_rep="-")
    options = ("-l", "tag_*", "--missing", "-", "--decimal", ",", "-o", "m.sylvan")
    done(call(tmp_path, "fit", "songs.csv", *options, *TINY))
    found = done(call(tmp_path, "predict", "m.sylvan", "new.csv", "--decimal", ",", "--proba"))
    assert found.stdout == done(call(songs.folder, "predict", "songs.sylvan", "new.csv", "--proba")).stdout


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--threshold", "0.97"], "a --threshold below 0.97 at the fit predicts more"),
        (["-a", "slcforest", "--threshold", "0.97"], "--threshold calibrated at the fit predicts more"),
        (["-a", "rf-et", "--threshold", "0.97"], "a smaller --threshold at the fit predicts more"),
    ],
    ids=["auto", "slcforest", "rf-et"],
)
def test_few_predictions_are_told(songs, tmp_path, options, advice):
    model = tmp_path / "m.sylvan"
    done(call(songs.folder, "fit", "songs.csv", "-l", "tag_*", "-o", model, *options, *TINY))
    found = done(call(songs.folder, "predict", model, "new.csv", "-o", tmp_path / "out.csv"))
    assert "labels are predicted for each row, where" in found.stderr
    assert advice in found.stderr
    assert "labels are predicted" not in done(call(songs.folder, "predict", songs.path, "new.csv")).stderr


def test_old_output_is_replaced_only_if_asked(songs, tmp_path):
    (tmp_path / "out.csv").write_text("old")
    arguments = ("predict", "songs.sylvan", "new.csv", "-o", tmp_path / "out.csv")
    with nothing_written(tmp_path):
        assert "out.csv is there already; --force replaces it." in error_of(call(songs.folder, *arguments))
    done(call(songs.folder, *arguments, "--force"))
    assert (tmp_path / "out.csv").read_text().startswith("id,tag_happy")


def test_a_reader_that_has_seen_enough(songs, tmp_path):
    """As `sylvan predict ... | head -1` does it: no message, and no failure."""
    make_songs(4000, seed=5).to_csv(tmp_path / "many.csv", index=False)
    process = subprocess.Popen(
        command("predict", songs.path, "many.csv"), cwd=tmp_path, env=os.environ | ENVIRONMENT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == "id,tag_happy,tag_calm,tag_loud\n"
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert errors == ""


@pytest.fixture(scope="module")
def classes(songs):
    """Songs of three kinds, and a model of them."""
    frame = songs.frame[["id", *FEATURES]].assign(kind=np.where(songs.frame["tempo"] > 0, "01", "1"))
    frame.loc[frame["energy"] > 1, "kind"] = "x"
    frame.to_csv(songs.folder / "kinds.csv", index=False)
    arguments = ("-l", "kind", "--classes", "-a", "gcforest", "-o", "kinds.sylvan", *TINY)
    found = done(call(songs.folder, "fit", "kinds.csv", *arguments))
    assert "3 classes" in found.stderr
    return frame


def test_classes(songs, classes):
    model = sylvan.load(songs.folder / "kinds.sylvan")
    assert model.classes_.tolist() == ["01", "1", "x"]
    found = done(call(songs.folder, "predict", "kinds.sylvan", "new.csv"))
    table = pd.read_csv(io.StringIO(found.stdout), dtype=str)
    X = features_of(songs.new)
    assert table.columns.tolist() == ["id", "prediction"]
    assert table["prediction"].tolist() == model.predict(X).tolist()
    table = pd.read_csv(io.StringIO(done(call(songs.folder, "predict", "kinds.sylvan", "new.csv", "--proba")).stdout))
    np.testing.assert_array_equal(table[["01", "1", "x"]].to_numpy(), model.predict_proba(X).round(6))


def test_two_classes(songs, tmp_path):
    """They are taken as they are, unless it is said how many of the second one were recorded."""
    frame = songs.frame.drop(columns=LABELS).assign(
        kind=np.where(songs.frame["tempo"] > songs.frame["tempo"].median(), "b", "a")
    )
    frame.to_csv(tmp_path / "two.csv", index=False)
    fit = ("fit", "two.csv", "-l", "kind", "--classes", "--with-rows", *TINY)
    found = done(call(tmp_path, *fit, "-o", "two.sylvan"))
    assert ", 2 classes; 2 layers, out of sample " in found.stderr
    assert "Nothing may be missing: two classes are taken as they are." in found.stderr
    model = sylvan.load(tmp_path / "two.sylvan")
    assert model.suggest_labels(top=5).empty
    found = done(call(tmp_path, *fit, "-o", "open.sylvan", "--frequency", "b=0.6-0.9"))
    assert "Label frequency: there is one label; kept within the given limits" in found.stderr
    assert not sylvan.load(tmp_path / "open.sylvan").suggest_labels(top=5).empty
    assert "does not have: ['a']" in error_of(call(tmp_path, *fit, "-o", "no.sylvan", "--frequency", "a=0.6"))


def test_leaves_as_text(songs, tmp_path):
    arguments = ("songs.csv", "--labels", "tag_*", *TINY, "--set", "min_samples_leaf=[2, 4]")
    done(call(songs.folder, "fit", *arguments, "-o", tmp_path / "m.sylvan"))
    leaves = [forest.min_samples_leaf for forest in sylvan.load(tmp_path / "m.sylvan").layers_[0].forests]
    assert leaves == [2, 4]


def test_measures_of_classes(songs, classes):
    found = json.loads(done(call(songs.folder, "evaluate", "kinds.sylvan", "kinds.csv", "--json")).stdout)
    model = sylvan.load(songs.folder / "kinds.sylvan")
    X = features_of(songs.frame)
    right = model.predict(X) == classes["kind"].to_numpy()
    assert found["rows"] == 60
    assert found["scores"]["accuracy"] == pytest.approx(right.mean())
    by_class = [right[classes["kind"] == name].mean() for name in ("01", "1", "x")]
    assert found["scores"]["balanced_accuracy"] == pytest.approx(np.mean(by_class))
    of_true = model.predict_proba(X)[np.arange(60), np.searchsorted(["01", "1", "x"], classes["kind"])]
    assert found["scores"]["log_loss"] == pytest.approx(-np.log(np.clip(of_true, 1e-15, 1)).mean(), rel=1e-6)
    classes.replace({"kind": {"x": "y"}}).to_csv(songs.folder / "other_kinds.csv", index=False)
    assert "Class 'y' in row" in error_of(call(songs.folder, "evaluate", "kinds.sylvan", "other_kinds.csv"))


def test_lists_of_labels(songs, tmp_path):
    lists = [";".join(name for name in LABELS if row[name]) for row in songs.frame.to_dict("records")]
    frame = songs.frame.drop(columns=LABELS).assign(tags=lists)
    frame.to_csv(tmp_path / "lists.csv", index=False)
    arguments = ("-l", "tags", "--label-separator", ";", "-o", "lists.sylvan", *TINY)
    done(call(tmp_path, "fit", "lists.csv", *arguments))
    model = sylvan.load(tmp_path / "lists.sylvan")
    assert sorted(model.label_names_in_) == sorted(LABELS)
    found = pd.read_csv(io.StringIO(done(call(tmp_path, "predict", "lists.sylvan", songs.folder / "new.csv")).stdout))
    assert found.columns.tolist() == ["id", *model.label_names_in_]
    scores = json.loads(done(call(tmp_path, "evaluate", "lists.sylvan", "lists.csv", "--json")).stdout)["scores"]
    Y = songs.frame[list(model.label_names_in_)]
    proba = model.predict_proba(features_of(songs.frame))
    assert scores["micro_auroc"] == pytest.approx(MEASURES["micro_auroc"](Y, proba))


def test_one_label(songs, tmp_path):
    arguments = ("-l", "tag_calm", "--drop", "tag_happy,tag_loud", "-o", tmp_path / "one.sylvan", *TINY)
    done(call(songs.folder, "fit", "songs.csv", *arguments))
    found = read_as_text(io.StringIO(done(call(songs.folder, "predict", tmp_path / "one.sylvan", "new.csv")).stdout))
    model = sylvan.load(tmp_path / "one.sylvan")
    assert found.columns.tolist() == ["id", "tag_calm"]
    assert found["tag_calm"].astype(int).tolist() == np.ravel(model.predict(features_of(songs.new))).tolist()


def test_a_model_from_python_with_names(songs, tmp_path):
    X = features_of(songs.frame)
    model = sylvan.rf_et(5, random_state=0).fit(X, songs.frame[LABELS])
    model.save(tmp_path / "python.sylvan")
    X.to_csv(tmp_path / "x.csv", index=False)
    found = pd.read_csv(io.StringIO(done(call(tmp_path, "predict", "python.sylvan", "x.csv", "--proba")).stdout))
    np.testing.assert_array_equal(found[LABELS].to_numpy(), model.predict_proba(X).round(6))


def test_a_model_of_numbered_classes_from_python(songs, tmp_path):
    """Classes are text in a file, whatever they are in the model."""
    X = features_of(songs.frame)
    y = pd.Series(songs.frame[LABELS].sum(axis=1), name="class")
    model = sylvan.gcforest(n_trees=5, max_layers=2, random_state=0).fit(X, y)
    model.save(tmp_path / "python.sylvan")
    X.assign(**{"class": y}).to_csv(tmp_path / "x.csv", index=False)
    found = json.loads(done(call(tmp_path, "evaluate", "python.sylvan", "x.csv", "--json")).stdout)
    assert found["scores"]["accuracy"] == pytest.approx((model.predict(X) == y).mean())


# Evaluating


def test_measures_are_those_of_python(songs):
    found = json.loads(done(call(songs.folder, "evaluate", "songs.sylvan", "new.csv", "--json", "--by-label")).stdout)
    proba, Y = songs.model.predict_proba(features_of(songs.new)), songs.new[LABELS]
    assert found["rows"] == 25
    assert set(found["scores"]) == {measure.name for measure in MEASURES.values()}
    for name, value in found["scores"].items():
        assert value == pytest.approx(MEASURES[name](Y, proba, threshold=songs.model.decision_threshold_)), name
    assert [line["label"] for line in found["by_label"]] == LABELS
    assert [line["positives"] for line in found["by_label"]] == Y.sum().tolist()
    assert np.mean([line["auroc"] for line in found["by_label"]]) == pytest.approx(found["scores"]["macro_auroc"])


def test_measures_go_by_the_threshold_of_the_model(songs, tmp_path):
    arguments = ("-l", "tag_*", "-o", tmp_path / "m.sylvan", "--set", "decision_threshold=0.2", *TINY)
    done(call(songs.folder, "fit", "songs.csv", *arguments))
    found = json.loads(done(call(songs.folder, "evaluate", tmp_path / "m.sylvan", "new.csv", "--json")).stdout)
    predicted = sylvan.load(tmp_path / "m.sylvan").predict(features_of(songs.new))
    assert found["scores"]["hamming_loss"] == pytest.approx((predicted != songs.new[LABELS].to_numpy()).mean())


def test_evaluate_says_that_rows_were_in_the_fit(songs, tmp_path):
    for name, share, said in (("songs.csv", 1.0, "All rows of songs.csv"), ("new.csv", 0.0, None)):
        found = call(songs.folder, "evaluate", "songs.sylvan", name, "--json")
        assert json.loads(found.stdout)["seen_in_fit"] == share
        assert (said in found.stderr) if said else not found.stderr
    old = pd.read_csv(songs.folder / "songs.csv", dtype={"id": str})[:20]
    pd.concat([old, songs.new]).to_csv(tmp_path / "mixed.csv", index=False)
    found = call(tmp_path, "evaluate", songs.path, "mixed.csv", "--quiet")
    assert "About 44% of the rows of mixed.csv" in found.stderr.replace("\n", " ")


def test_evaluate_in_a_process(songs):
    found = done(start(songs.folder, "evaluate", "songs.sylvan", "new.csv", "--by-label"))
    value = MEASURES["micro_auroc"](songs.new[LABELS], songs.model.predict_proba(features_of(songs.new)))
    line = next(line for line in found.stdout.splitlines() if "micro AUROC" in line)
    assert f"{value:.3f}" in line
    assert "greater" in line
    assert "tag_happy" in found.stdout


def test_labels_in_a_second_file(songs, tmp_path):
    expected = done(call(songs.folder, "evaluate", "songs.sylvan", "new.csv", "--json")).stdout
    songs.new.drop(columns=LABELS).to_csv(tmp_path / "x.csv", index=False)
    songs.new[["id", *LABELS]].sample(frac=1, random_state=1).to_csv(tmp_path / "y.csv", index=False)
    assert done(call(tmp_path, "evaluate", songs.path, "x.csv", "--label-file", "y.csv", "--json")).stdout == expected
    assert "x.csv lacks label columns of the model" in error_of(call(tmp_path, "evaluate", songs.path, "x.csv"))
    songs.new[FEATURES].to_csv(tmp_path / "bare.csv", index=False)  # no id: by order
    songs.new[LABELS].to_csv(tmp_path / "y.csv", index=False)
    found = done(call(tmp_path, "evaluate", songs.path, "bare.csv", "--label-file", "y.csv", "--json"))
    assert found.stdout == expected


def test_rows_with_unknown_labels_are_left_out(songs, tmp_path):
    songs.new.assign(tag_calm=songs.new["tag_calm"].mask(songs.new.index < 5)).to_csv(tmp_path / "x.csv", index=False)
    found = done(call(tmp_path, "evaluate", songs.path, "x.csv", "--json"))
    assert "5 rows with unknown labels are left out." in found.stderr
    songs.new.tail(20).to_csv(tmp_path / "tail.csv", index=False)
    assert found.stdout == done(call(tmp_path, "evaluate", songs.path, "tail.csv", "--json")).stdout
    songs.new.assign(tag_calm="").to_csv(tmp_path / "x.csv", index=False)
    assert "every row has an unknown label" in error_of(call(tmp_path, "evaluate", songs.path, "x.csv"))


def test_undefined_measures_are_null(songs, tmp_path):
    songs.new.assign(tag_calm=0).to_csv(tmp_path / "x.csv", index=False)
    found = done(call(tmp_path, "evaluate", songs.path, "x.csv", "--json", "--by-label")).stdout
    assert "NaN" not in found
    assert json.loads(found)["by_label"][1]["auroc"] is None
    assert done(call(tmp_path, "evaluate", songs.path, "x.csv", "--by-label")).stdout


# Starting


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"]])
def test_help_imports_nothing_heavy(songs, arguments):
    code = (
        "import atexit, sys\n"
        f"sys.argv = ['sylvan', *{arguments!r}]\n"
        "heavy = ('numba', 'sklearn', 'numpy', 'pandas', 'scipy', 'pyarrow')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        "from sylvan.app.cli import main\n"
        "main()\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0
    assert "Usage: sylvan" in found.stdout
    assert found.stderr.strip() == "[]"


def test_every_command_has_help():
    for name in ("impute", "fit", "predict", "evaluate", "explain", "algorithms", "datasets", "completion"):
        found = done(call(".", name, "--help"))
        assert f"Usage: sylvan {name}" in found.stdout
        assert name in done(call(".", "--help")).stdout


def test_the_reader_and_the_command_read_the_same(songs):
    table = read_training_table(songs.folder / "songs.csv", "tag_*")
    assert table.X.index.tolist() == songs.frame["id"].tolist()
    pd.testing.assert_frame_equal(table.X.reset_index(drop=True), features_of(songs.frame))


def test_evaluate_takes_a_whole_table_for_the_labels(songs, tmp_path):
    """Columns that are features of the model are no ids; another one in both files may be, and is not ignored."""
    features = songs.new.drop(columns=["id"])
    features.drop(columns=LABELS).to_csv(tmp_path / "x.csv", index=False)
    features.to_csv(tmp_path / "whole.csv", index=False)
    whole = done(call(songs.folder, "evaluate", "songs.sylvan", tmp_path / "whole.csv", "--json"))
    apart = done(
        call(
            songs.folder,
            "evaluate",
            "songs.sylvan",
            tmp_path / "x.csv",
            "--label-file",
            tmp_path / "whole.csv",
            "--json",
        )
    )
    assert apart.stdout == whole.stdout
    for name, table in (("x.csv", features.drop(columns=LABELS)), ("whole.csv", features)):
        table.assign(key=range(len(table))).to_csv(tmp_path / name, index=False)
    found = call(songs.folder, "evaluate", "songs.sylvan", tmp_path / "x.csv", "--label-file", tmp_path / "whole.csv")
    assert "both have a column 'key': the model does not match rows by it; leave it out" in error_of(found)


def test_notes_are_said_of_new_rows_too(songs, tmp_path):
    (tmp_path / "new.csv").write_text("Songs of 2021\n\n" + songs.new.to_csv(index=False), encoding="utf-8")
    found = done(call(tmp_path, "predict", songs.path, "new.csv"))
    assert "stands above the names of columns" in found.stderr.replace("\n", " ")
    assert "no encoding" in error_of(call(tmp_path, "predict", songs.path, "new.csv", "--encoding", "utf-99"))
