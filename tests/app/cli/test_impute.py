"""`sylvan impute`: labels are added where they may be, and nothing else changes."""

import contextlib
import csv
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sylvan
from app.cli.running import LABELS, TINY, call, contents, done, error_of, make_songs, read_as_text, start
from sylvan.app.tables import read_training_table

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")


def impute(folder, *arguments):
    few = ("--trees", "5") if "slcforest" in arguments else ()  # so that some probabilities pass its threshold
    return done(call(folder, "impute", "songs.csv", "-l", "tag_*", *arguments, *TINY, *few))


def fitted(path, algorithm="auto"):
    """The same in Python."""
    table = read_training_table(path, "tag_*")
    make = getattr(sylvan, algorithm)
    n_trees = 5 if algorithm == "slcforest" else 10
    return table, make(n_trees=n_trees, max_layers=2, random_state=0, n_jobs=1).fit(table.X, table.Y)


def suggested(model):
    """What is written if nothing else is asked for: as many as are expected to be right to 80 %."""
    added = model.suggest_labels()
    mean = added["probability"].expanding().mean()
    return added[: int((mean[::-1] >= 0.8).to_numpy().argmax() * -1 + len(mean)) if (mean >= 0.8).any() else 0]


both = pytest.mark.parametrize("algorithm", ["auto", "slcforest"])


def changes(old, new):
    """(row, column, old, new) of each cell that differs."""
    assert new.columns.tolist() == old.columns.tolist()
    assert len(new) == len(old)
    at = zip(*np.nonzero((old != new).to_numpy()))
    return [(row, old.columns[column], old.iat[row, column], new.iat[row, column]) for row, column in at]


def test_the_default_is_auto(songs, tmp_path):
    impute(songs.folder, "-o", tmp_path / "out.csv")
    impute(songs.folder, "-o", tmp_path / "auto.csv", "--algorithm", "auto")
    impute(songs.folder, "-o", tmp_path / "slc.csv", "--algorithm", "slcforest")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "auto.csv").read_bytes()
    assert (tmp_path / "out.csv").read_bytes() != (tmp_path / "slc.csv").read_bytes()


@both
def test_the_result_is_that_of_python(songs, tmp_path, algorithm):
    arguments = ("-o", tmp_path / "out.csv", "--suggestions", tmp_path / "list.csv", "--model", tmp_path / "m.sylvan")
    impute(songs.folder, *arguments, "-a", algorithm)
    table, model = fitted(songs.folder / "songs.csv", algorithm)
    added = suggested(model)
    assert len(added) > 0
    expected = sylvan.apply_suggestions(table.Y, added)
    out = read_as_text(tmp_path / "out.csv")
    np.testing.assert_array_equal(out[LABELS].astype(int).to_numpy(), expected.to_numpy())
    found = changes(read_as_text(songs.folder / "songs.csv"), out)
    assert {(songs.frame["id"][row], name) for row, name, _, _ in found} == set(zip(added["row"], added["label"]))
    assert {(before, after) for _, _, before, after in found} == {("0", "1")}
    again = sylvan.load(tmp_path / "m.sylvan")
    np.testing.assert_array_equal(again.predict_proba(table.X), model.predict_proba(table.X))
    listed = pd.read_csv(tmp_path / "list.csv", dtype={"id": str})
    assert listed.columns.tolist() == ["id", "label", "probability", "written", "decision", "reasons", "similar"]
    expected = model.explain_cells(rows=listed.rename(columns={"id": "row"}), top=3, similar=3)
    words = [[str(reason) for reason in table.schema.in_words(reasons)] for reasons in expected.top(3)]
    assert listed["reasons"].tolist() == ["; ".join(line) for line in words]
    assert listed["similar"].fillna("").tolist() == expected.similar_texts()
    best = model.suggest_labels(top=len(added) + 100)
    keys = set(zip(best["row"], best["label"])) | set(zip(added["row"], added["label"]))
    assert set(zip(listed["id"], listed["label"])) <= keys
    assert (listed["written"] == 0).sum() == min(100, len(model.suggest_labels(min_proba=0)) - len(added))


def test_reasons_that_fail_cost_the_reasons_only(songs, tmp_path, monkeypatch):
    def fail(self, *_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(sylvan.DeepForestClassifier, "explain_cells", fail)
    names = ("out.csv", "list.csv", "page.html", "m.sylvan")
    options = zip(("-o", "--suggestions", "--report", "--model"), (tmp_path / name for name in names))
    found = impute(songs.folder, *(word for pair in options for word in pair))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    warning = "Reasons could not be given (MemoryError: no room); all else is written."
    assert found.stderr.count(warning) == 1
    assert warning in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert pd.read_csv(tmp_path / "list.csv").columns.tolist() == ["id", "label", "probability", "written", "decision"]
    assert (read_as_text(tmp_path / "out.csv")[LABELS] == "1").to_numpy().sum() > songs.frame[LABELS].to_numpy().sum()


def test_impute_in_a_process(songs, tmp_path):
    arguments = ("impute", "songs.csv", "-l", "tag_*", "-o", tmp_path / "out.csv", *TINY)
    found = done(start(songs.folder, *arguments))
    assert "labels suggested beside" in found.stdout
    assert "The best suggestions" in found.stdout
    assert f"Completed table: {tmp_path / 'out.csv'}" in found.stderr
    first = (tmp_path / "out.csv").read_bytes()
    done(call(songs.folder, *arguments, "--force"))
    assert (tmp_path / "out.csv").read_bytes() == first  # same seed, same output


@both
@pytest.mark.parametrize("limits", [[], ["--max-per-label", "1"]])
def test_suggestions_are_sorted_and_marked(songs, tmp_path, limits, algorithm):
    outputs = ("-o", tmp_path / "out.csv", "--suggestions", tmp_path / "list.csv")
    impute(songs.folder, *outputs, *limits, "-a", algorithm)
    listed = pd.read_csv(tmp_path / "list.csv", dtype={"id": str})
    assert (listed["probability"].diff().dropna() <= 0).all()
    assert not listed.duplicated(["id", "label"]).any()
    found = changes(read_as_text(songs.folder / "songs.csv"), read_as_text(tmp_path / "out.csv"))
    marked = listed[listed["written"] == 1]
    assert set(zip(marked["id"], marked["label"])) == {(songs.frame["id"][row], name) for row, name, _, _ in found}
    observed = songs.frame.set_index("id")
    assert all(observed.loc[row, label] == 0 for row, label in zip(listed["id"], listed["label"]))
    _, model = fitted(songs.folder / "songs.csv", algorithm)
    proba = {(row, label): p for row, label, p, _ in model.suggest_labels(min_proba=0).itertuples(index=False)}
    for row, label, p in zip(listed["id"], listed["label"], listed["probability"]):
        assert p == pytest.approx(proba[row, label], abs=5e-5)


@both
@pytest.mark.parametrize("limits", [{"min_proba": 0.7}, {"max_per_label": 2}, {"min_proba": 0.4, "max_per_label": 3}])
def test_limits(songs, tmp_path, limits, algorithm):
    options = [part for name, value in limits.items() for part in (f"--{name.replace('_', '-')}", value)]
    found = impute(songs.folder, "-o", tmp_path / "out.csv", "--json", "-a", algorithm, *options)
    _, model = fitted(songs.folder / "songs.csv", algorithm)
    least = limits.get("min_proba")
    expected = suggested(model) if least is None else model.suggest_labels(min_proba=least)
    expected = expected.groupby("label", sort=False).head(limits.get("max_per_label", len(expected)))
    done_ = changes(read_as_text(songs.folder / "songs.csv"), read_as_text(tmp_path / "out.csv"))
    assert {(songs.frame["id"][row], name) for row, name, _, _ in done_} == set(zip(expected["row"], expected["label"]))
    assert json.loads(found.stdout)["by_label"] == expected["label"].value_counts().to_dict()


@pytest.mark.parametrize(
    ("algorithm", "advice"),
    [("auto", "--min-proba suggests less probable ones."), ("slcforest", "--frequency top-rate suggests more.")],
)
def test_nothing_is_added_if_nothing_may_be(songs, tmp_path, algorithm, advice):
    found = impute(songs.folder, "-o", tmp_path / "out.csv", "--max-per-label", "0", "-a", algorithm)
    assert f"No label is probable enough to be suggested; {advice}" in found.stderr
    assert changes(read_as_text(songs.folder / "songs.csv"), read_as_text(tmp_path / "out.csv")) == []


def test_json_is_all_that_is_printed(songs, tmp_path):
    names = {name: str(tmp_path / name) for name in ("out.csv", "list.csv", "m.sylvan", "page.html")}
    found = impute(
        songs.folder, "-o", names["out.csv"], "--suggestions", names["list.csv"], "--model", names["m.sylvan"],
        "--report", names["page.html"], "--check", "--json",
    )  # fmt: skip
    facts = json.loads(found.stdout)
    assert "NaN" not in found.stdout
    table, model = fitted(songs.folder / "songs.csv")
    added = suggested(model)
    assert facts["suggested"] == len(added)
    assert facts["recorded"] == int(songs.frame[LABELS].sum().sum())
    assert facts["by_label"] == added["label"].value_counts().to_dict()
    assert facts["frequency"] == pytest.approx(dict(zip(LABELS, model.label_frequency_)))
    assert [facts[name] for name in ("completed", "suggestions", "model", "report")] == list(names.values())
    expected = model.check_recovery(table.X, table.Y, random_state=0).reset_index()
    assert [line["label"] for line in facts["check"]] == [*LABELS, "all labels"]
    assert [line["recovered"] for line in facts["check"]] == expected["recovered"].tolist()
    assert "songs.csv" in Path(names["page.html"]).read_text()
    assert sorted(map(str, contents(tmp_path))) == sorted(names)


def test_quiet(songs, tmp_path):
    found = impute(songs.folder, "-o", tmp_path / "out.csv", "--quiet", "--check")
    assert found.stdout == ""
    assert all(line.startswith("Warning: ") for line in found.stderr.splitlines())


def test_the_check_is_told_in_words(songs, tmp_path):
    found = impute(songs.folder, "-o", tmp_path / "out.csv", "--check")
    table, model = fitted(songs.folder / "songs.csv")
    total = model.check_recovery(table.X, table.Y, random_state=0).iloc[-1]
    text = f"Check: {int(total['recovered'])} of {int(total['hidden'])} recorded labels that were hidden"
    assert text in found.stdout


def test_only_unknown_cells_are_filled_if_there_are_any(songs, tmp_path):
    frame = songs.frame.assign(tag_loud=songs.frame["tag_loud"].astype(object))
    frame.loc[frame["tag_loud"].eq(0) & (frame.index % 2 == 0), "tag_loud"] = "?"
    frame.to_csv(tmp_path / "songs.csv", index=False)
    impute(tmp_path, "-o", "out.csv", "--min-proba", "0")
    found = changes(read_as_text(tmp_path / "songs.csv"), read_as_text(tmp_path / "out.csv"))
    assert {name for _, name, _, _ in found} == {"tag_loud"}
    assert {before for _, _, before, _ in found} == {"?"}
    assert len(found) == (frame["tag_loud"] == "?").sum()  # all of them, since the least probability is 0
    frame.replace("?", "").to_csv(tmp_path / "songs.csv", index=False)
    impute(tmp_path, "-o", "zero.csv", "--min-proba", "0", "--blank", "zero")
    out = read_as_text(tmp_path / "zero.csv")
    assert (out[LABELS] == "1").all(axis=None)


@pytest.mark.parametrize(("one", "zero"), [("yes", "no"), ("TRUE", "FALSE"), ("1.0", "0.0"), ("Y", "N")])
def test_the_words_of_the_column_are_used(songs, tmp_path, one, zero):
    words = songs.frame.assign(**{name: songs.frame[name].map({1: one, 0: zero}) for name in LABELS})
    words.to_csv(tmp_path / "songs.csv", index=False)
    impute(tmp_path, "-o", "out.csv")
    found = changes(read_as_text(tmp_path / "songs.csv"), read_as_text(tmp_path / "out.csv"))
    assert {(before, after) for _, _, before, after in found} == {(zero, one)}


def test_lists_are_completed(songs, tmp_path):
    lists = ["|".join(name for name in LABELS if row[name]) for row in songs.frame.to_dict("records")]
    songs.frame.drop(columns=LABELS).assign(tags=lists).to_csv(tmp_path / "songs.csv", index=False)
    arguments = ("impute", "songs.csv", "-l", "tags", "--label-separator", "|", "-o", "out.csv", "--min-proba", "0.5")
    done(call(tmp_path, *arguments, "--suggestions", "list.csv", *TINY))
    old, new = read_as_text(tmp_path / "songs.csv"), read_as_text(tmp_path / "out.csv")
    listed = read_as_text(tmp_path / "list.csv")
    added = listed[listed["written"] == "1"].groupby("id")["label"].agg(set).to_dict()
    assert added
    for name, before, after in zip(old["id"], old["tags"], new["tags"]):
        assert after.startswith(before)
        parts = [part for part in after.split("|") if part]
        assert set(parts) == {part for part in before.split("|") if part} | added.get(name, set())
        assert len(parts) == len(set(parts))
    assert changes(old.drop(columns="tags"), new.drop(columns="tags")) == []


def test_a_second_file_is_completed_in_its_own_order(songs, tmp_path):
    songs.frame.drop(columns=LABELS).to_csv(tmp_path / "x.csv", index=False)
    labels = songs.frame[["id", *LABELS]].assign(remark="keep, me").sample(frac=1, random_state=0)
    labels.to_csv(tmp_path / "y.csv", index=False)
    options = ("--label-file", "y.csv", "-l", "tag_*", "-o", "out.csv", "--suggestions", "list.csv")
    done(call(tmp_path, "impute", "x.csv", *options, *TINY))
    found = changes(read_as_text(tmp_path / "y.csv"), read_as_text(tmp_path / "out.csv"))
    _, model = fitted(songs.folder / "songs.csv")
    added = suggested(model)
    ids = labels["id"].tolist()
    assert {(ids[row], name) for row, name, _, _ in found} == set(zip(added["row"], added["label"]))


def test_other_formats(songs, tmp_path):
    impute(songs.folder, "-o", tmp_path / "out.csv")
    expected = pd.read_csv(tmp_path / "out.csv", dtype={"id": str})
    songs.frame.to_parquet(tmp_path / "songs.parquet")
    done(call(tmp_path, "impute", "songs.parquet", "-l", "tag_*", "-o", "out.parquet", *TINY))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out.parquet"), expected)
    done(call(tmp_path, "impute", "songs.parquet", "-l", "tag_*", "-o", "two.csv", *TINY))
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "two.csv", dtype={"id": str}), expected)
    songs.frame.to_csv(tmp_path / "songs.csv.gz", index=False)
    done(call(tmp_path, "impute", "songs.csv.gz", "-l", "tag_*", "-o", "out.tsv.gz", *TINY))
    found = pd.read_csv(tmp_path / "out.tsv.gz", dtype={"id": str}, sep="\t")
    pd.testing.assert_frame_equal(found, expected)


def test_arff_with_the_labels_of_mulan(songs, tmp_path):
    lines = ["@relation songs", *(f"@attribute {name} numeric" for name in ("tempo", "energy", "depth", "length"))]
    lines += ["@attribute mode {minor,major}", *(f"@attribute {name} {{0,1}}" for name in LABELS), "@data"]
    rows = songs.frame.drop(columns="id").astype(object).where(songs.frame.drop(columns="id").notna(), "?")
    lines += [",".join(map(str, row)) for row in rows.itertuples(index=False)]
    (tmp_path / "songs.arff").write_text("\n".join(lines))
    names = "".join(f'<label name="{name}"/>' for name in LABELS)
    (tmp_path / "songs.xml").write_text(f"<labels>{names}</labels>")
    done(call(tmp_path, "impute", "songs.arff", "-o", "out.csv", *TINY))
    impute(songs.folder, "-o", tmp_path / "expected.csv")
    expected = pd.read_csv(tmp_path / "expected.csv").drop(columns="id")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out.csv"), expected)


@pytest.mark.parametrize("option", ["-o", "--suggestions", "--report", "--model"])
def test_what_is_read_is_not_replaced(songs, tmp_path, option):
    songs.frame.to_csv(tmp_path / "songs.csv", index=False)
    before = (tmp_path / "songs.csv").read_bytes()
    outputs = ["-o", "out.csv"] if option != "-o" else []
    found = call(tmp_path, "impute", "songs.csv", "--labels", "tag_*", *outputs, option, "songs.csv", "--force")
    assert "is read by this command" in error_of(found)
    assert (tmp_path / "songs.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["songs.csv"]


def test_brackets_in_names_are_not_markup(songs, tmp_path):
    songs.frame.rename(columns={"tag_loud": "tag_[red]loud[/]"}).to_csv(tmp_path / "songs.csv", index=False)
    found = impute(tmp_path, "-o", "out.csv")
    assert "tag_[red]loud[/]" in found.stdout


def test_formulas_in_names_and_ids(songs, tmp_path):
    """The user's own table stays as it is, what is new is safe; both can be changed."""
    frame = songs.frame.assign(id=[f"=cmd({at})" for at in range(len(songs.frame))])
    frame.rename(columns={"tag_loud": "@tag_loud"}).to_csv(tmp_path / "songs.csv", index=False)

    def run(*options):
        arguments = ("songs.csv", "-l", "*tag_*", "-o", "out.csv", "--suggestions", "s.csv", "--force", *TINY, *options)
        done(call(tmp_path, "impute", *arguments))
        completed, listed = read_as_text(tmp_path / "out.csv"), read_as_text(tmp_path / "s.csv")
        assert completed["tempo"].str.startswith("-").any()  # numbers are no formulas
        return completed["id"][0], list(completed)[-1], listed["id"][0][:2], set(listed["label"])

    assert run()[:3] == ("=cmd(0)", "@tag_loud", "'=")
    assert "'@tag_loud" in run()[3]
    assert run("--spreadsheet-safe")[:3] == ("'=cmd(0)", "'@tag_loud", "'=")
    assert run("--as-is")[:3] == ("=cmd(0)", "@tag_loud", "=c")
    assert "@tag_loud" in run("--as-is")[3]


def test_formulas_in_predictions(songs, tmp_path):
    songs.new.assign(id="=1+1").to_csv(tmp_path / "new.csv", index=False)
    for options, expected in (((), "'=1+1,"), (("--as-is",), "=1+1,")):
        assert (
            done(call(tmp_path, "predict", songs.path, "new.csv", *options)).stdout.splitlines()[1].startswith(expected)
        )
        done(call(tmp_path, "predict", songs.path, "new.csv", "-o", "out.csv", "--force", *options))
        assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith(expected)


def test_doubts_are_warnings(songs, tmp_path, monkeypatch):
    module = pytest.importorskip("sylvan.labels.gaps")
    monkeypatch.setattr(module, "doubt_missing_at_random", lambda model: ["Rows 1 to 9 have no label."])
    found = impute(songs.folder, "-o", tmp_path / "out.csv", "--json")
    assert "Warning: Rows 1 to 9 have no label." in found.stderr.splitlines()
    assert json.loads(found.stdout)["warnings"] == ["Rows 1 to 9 have no label."]


NOTES = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=5)


@given(
    st.lists(NOTES, min_size=12, max_size=12),
    st.integers(0, 5),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from([("1", "0"), ("yes", "no"), ("True", "False")]),
    st.sampled_from([None, "", "?"]),
)
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_table_changes_by_allowed_labels_only(notes, seed, delimiter, words, unknown):
    """Cells that nobody asked about are the same text afterwards; no 1 becomes a 0."""
    one, zero = words
    frame = make_songs(12, seed=seed)
    lines = [["note", *frame.columns]]
    for note, row in zip(notes, frame.astype(object).where(frame.notna(), "").to_numpy().tolist()):
        row[-3:] = [one if bit else zero for bit in row[-3:]]
        lines.append([note.strip(), *map(str, row)])
    lines[1][-3:], lines[2][-3:] = [one] * 3, [zero] * 3
    if unknown is not None:
        lines[2][-1] = lines[3][-2] = unknown
    with tempfile.TemporaryDirectory() as folder:
        with open(Path(folder, "in.csv"), "w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=delimiter).writerows(lines)
        limits = ("--min-proba", "0.3", "--drop", "note", "-q")
        done(call(folder, "impute", "in.csv", "-l", "tag_*", "-o", "out.csv", *limits, *TINY))
        with contextlib.closing(open(Path(folder, "out.csv"), newline="", encoding="utf-8")) as file:
            found = list(csv.reader(file, delimiter=delimiter))
    assert len(found) == len(lines)
    assert found[0] == lines[0]
    for before, after in zip(lines, found):
        assert after[:-3] == before[:-3]
        for a, b in zip(before[-3:], after[-3:]):
            assert a == b or (b == one and a == (zero if unknown is None else unknown))


def test_what_zeros_mean(songs, tmp_path):
    """A few empty cells are no reason to trust zeros; --zeros absent is."""
    frame = songs.frame.astype({"tag_loud": object})
    frame.loc[frame.index[frame["tag_loud"].eq(0)][:2], "tag_loud"] = ""
    frame.to_csv(tmp_path / "songs.csv", index=False)
    found = impute(tmp_path, "-o", "all.csv", "--min-proba", "0")
    assert (read_as_text(tmp_path / "all.csv")[LABELS] == "1").all(axis=None)
    few = f"Warning: 2 of {frame[LABELS].size:,} label cells are unknown (empty). They are so few that zeros are taken"
    assert few in found.stderr
    assert "--zeros 'absent' says that zeros are known to be absent." in found.stderr
    found = impute(tmp_path, "-o", "two.csv", "--min-proba", "0", "--zeros", "absent")
    assert len(changes(read_as_text(tmp_path / "songs.csv"), read_as_text(tmp_path / "two.csv"))) == 2
    assert "2 label cells are empty: labels are suggested only there" in found.stderr
    assert "are so few" not in found.stderr


def test_a_word_for_labels_known_to_be_absent(songs, tmp_path):
    frame = songs.frame.astype({"tag_loud": object})
    looked = frame.index[frame["tag_loud"].eq(0)][::2]
    frame.loc[looked, "tag_loud"] = "looked"
    frame.to_csv(tmp_path / "songs.csv", index=False)
    found = impute(tmp_path, "-o", "out.csv", "--min-proba", "0", "--absent", "Looked", "--model", "m.sylvan")
    assert f"{len(looked)} label cells are known to be absent: no label is suggested there." in found.stderr
    out = read_as_text(tmp_path / "out.csv")
    assert (out.loc[looked, "tag_loud"] == "looked").all()
    assert (out[LABELS].drop(index=looked) == "1").all(axis=None)
    about = sylvan.io.read_about(tmp_path / "m.sylvan")
    assert about["table"]["labels"]["own_words"] == {"looked": -1}
    done(call(tmp_path, "evaluate", "m.sylvan", "songs.csv"))


def test_what_is_held_back_is_said(tmp_path):
    """Decisions that say no to many of the best: the usual list is cut short, and how to have a longer one is said."""
    n = 200
    random = np.random.default_rng(0)
    x = random.normal(size=n)
    tag = (x > 0) & (random.random(n) < 0.5)
    pd.DataFrame(
        {"id": [f"r{at}" for at in range(n)], "x": x, "y": random.normal(size=n), "tag": tag.astype(int)}
    ).to_csv(tmp_path / "a.csv", index=False)
    listing = ("-l", "tag", "-o", "b.csv", "--suggestions", "s.csv", "--min-proba", "0.3")
    done(call(tmp_path, "impute", "a.csv", *listing, *TINY))
    listed = pd.read_csv(tmp_path / "s.csv").head(30)
    listed["decision"] = ["confirmed", "rejected", "confirmed"] * 10
    listed.to_csv(tmp_path / "d.csv", index=False)
    found = done(call(tmp_path, "impute", "a.csv", "-l", "tag", "--decisions", "d.csv", "-o", "c.csv", *TINY))
    said = " ".join(found.stderr.split())
    assert "more probably present than not, but a list with them is not expected to be right to 80%" in said
    assert "--min-proba 0.5 writes them" in said
