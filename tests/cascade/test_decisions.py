"""Decisions in a fit: records and decisions are never mixed, whatever the algorithm and the form of Y."""

import copy
import pickle
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

import sylvan
from cascade.naive_cascade import make_weak_labels
from model_files import forged, parts_of
from sylvan import ALGORITHMS, auto, rf_et
from sylvan.exceptions import DecisionError, DecisionWarning, ModelFileError
from sylvan.labels.frequency import OutOfBagPercentile
from sylvan.labels.impute import KeepLabels
from sylvan.labels.suggestions import ALL

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*were drawn by every tree:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Numbers are few: threads of BLAS would only wait for each other."""
    with threadpoolctl.threadpool_limits(1):
        yield


X, Y_TRUE, Y = make_weak_labels()
SMALL = {"n_trees": 5, "max_layers": 2, "random_state": 0}
MORE = {
    "auto": {"n_trees": 30},
    "lcforest": {"n_folds": 2},
    "gcforest": {"n_folds": 2},
    "mldf": {"n_folds": 2, "n_forests": 1, "n_trees_step": 0},
    "imldf": {"n_forests": 2, "n_interactions": 3},
    "slcforest": {"threshold": 0.3},
    "cafe_slc": {"threshold": 0.3},
}


def make(name, **options):
    return getattr(sylvan, name)(**SMALL | MORE.get(name, {}) | options)


def look(cells, truth=Y_TRUE):
    """Cells with what is true of them: every tenth cannot be told."""
    right = truth[cells["row"].astype(int), cells["label"].astype(int)] == 1
    return cells.assign(decision=np.where(np.arange(len(cells)) % 10 == 9, "unsure", np.where(right, "yes", "no")))


@cache
def case(name):
    """A fit, an audit of it with reviews of its best suggestions, and the same fit with these decisions."""
    before = make(name).fit(X, Y)
    plan = look(before.labels_.plan_audit(30, random_state=0))
    best = before.suggest_labels(top=40)[["row", "label"]]
    reviewed = best[~best.set_index(["row", "label"]).index.isin(plan.set_index(["row", "label"]).index)]
    decisions = [plan, look(reviewed)]
    after = make(name).fit(X, Y, decisions=decisions)
    marks = after.labels_.state.decided
    return SimpleNamespace(
        name=name, before=before, after=after, decisions=decisions, confirmed=marks > 0, rejected=marks < 0
    )


@pytest.fixture(params=ALGORITHMS)
def fitted(request):
    return case(request.param)


def at(cells):
    return cells["row"].astype(int), cells["label"].astype(int)


# --------------------------------------------------------------------------------------- records are not decisions


def test_the_cases_can_tell(fitted):
    assert fitted.confirmed.sum() >= 10
    assert fitted.rejected.sum() >= 10
    assert_array_equal(fitted.confirmed & (Y_TRUE == 0), False)
    assert_array_equal(fitted.rejected & (Y_TRUE == 1), False)
    uncorrected, missing = fitted.after.labels_.uncorrected, fitted.after.labels_.missing
    undecided = (fitted.after.labels_.state.decided == 0) & (Y == 0)
    assert np.abs(uncorrected - missing)[undecided].max() > 0.02


def test_the_label_frequency_is_that_of_the_records(fitted):
    before, after = fitted.before, fitted.after
    assert_array_equal(after.labels_.recorded, Y == 1)
    assert_array_equal(after.labels_.counts.n_recorded, Y.sum(axis=0))
    assert_array_equal(after.labels_.counts.n_candidates, (Y == 0).sum(axis=0))
    if before.label_frequency_ is None:
        assert after.label_frequency_ is None
    elif not getattr(before.impute, "reestimates", False):
        assert_array_equal(after.label_frequency_, before.label_frequency_)
        assert_array_equal(after.label_bound_, before.label_bound_)
    else:  # an estimate of each layer: that of the first one, which knows nothing of decisions
        one = [make(fitted.name, max_layers=1).fit(X, Y, decisions=said) for said in (None, fitted.decisions)]
        assert_array_equal(one[0].label_frequency_, one[1].label_frequency_)
        assert_array_equal(one[0].label_bound_, one[1].label_bound_)


def test_an_estimate_on_the_way_is_that_of_the_records():
    decisions = case("rf_et").decisions
    models = [rf_et(5, impute=KeepLabels(OutOfBagPercentile()), random_state=0) for _ in range(2)]
    found = [model.fit(X, Y, decisions=said).label_frequency_ for model, said in zip(models, (None, decisions))]
    assert_array_equal(*found)


def test_what_layers_learn(fitted, monkeypatch):
    """Layer 1 learns the records; others learn confirmed cells too, if the algorithm imputes; nobody a rejected one."""
    learnt = []
    imputer = make(fitted.name).impute or KeepLabels()
    step = type(imputer).step

    def watch(self, state, probas):
        if len(state.current) == len(Y):  # not those who judge a part of the rows
            learnt.append(state.current)
        return step(self, state, probas)

    monkeypatch.setattr(type(imputer), "step", watch)
    make(fitted.name).fit(X, Y, decisions=fitted.decisions)
    imputes = getattr(imputer, "imputes", True)
    assert_array_equal(learnt[0], Y == 1)
    for labels in learnt[1:]:
        assert not (labels & fitted.rejected).any()
        assert labels[fitted.confirmed].all() if imputes else (labels == (Y == 1)).all()
    assert len(learnt) == 2 or not imputes


# --------------------------------------------------------------------------------- rejected, confirmed, undecided cells

LISTS = [
    {}, {"top": 10_000}, {"top": 3}, {"min_proba": 0.0}, {"min_proba": 0.0, "max_per_label": 5}, {"max_per_label": 50},
    {"precision": 0.9}, {"precision": 0.01}, {"precision": 0.5, "confidence": 0.5},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::sylvan.exceptions.DecisionWarning")
@pytest.mark.parametrize("limits", LISTS, ids=str)
def test_rejected_cells_are_in_no_list(fitted, limits):
    cells = fitted.after.suggest_labels(**limits)
    assert not fitted.rejected[at(cells)].any()
    assert not (Y == 1)[at(cells)].any()
    if "precision" in limits:
        assert_array_equal(cells["confirmed"], fitted.confirmed[at(cells)])
    else:
        assert not fitted.confirmed[at(cells)].any()
    if limits in ({"top": 10_000}, {"min_proba": 0.0}):
        assert len(cells) == ((Y == 0) & ~fitted.rejected & ~fitted.confirmed).sum()


def test_tables_are_completed_as_decided(fitted):
    labels = fitted.after.labels_
    assert not (labels.state.imputed & (fitted.rejected | fitted.confirmed)).any()
    assert not (labels.suggested & (fitted.rejected | fitted.confirmed)).any()
    for completed in (labels.completed, fitted.after.imputed_labels_):
        assert completed[fitted.confirmed].all()
        assert not completed[fitted.rejected].any()
        assert completed[Y == 1].all()
    plain = fitted.after.complete(X, Y)  # a predictor knows no row by itself
    told = fitted.after.complete(X, Y, decisions=fitted.decisions)
    assert told[fitted.confirmed].all()
    assert not told[fitted.rejected].any()
    undecided = ~(fitted.confirmed | fitted.rejected)
    assert_array_equal(told[undecided], plain[undecided])
    assert labels.missing[fitted.confirmed].min() == 1
    assert labels.missing[fitted.rejected].max() == 0


def test_plans_leave_out_what_is_decided(fitted):
    audit = fitted.after.labels_.audit()
    for cells in (fitted.after.labels_.plan_audit(60, random_state=1), audit.next_cells(60)):
        assert not (fitted.rejected | fitted.confirmed | (Y == 1))[at(cells)].any()
        assert len(cells) == 60


def test_the_summary_says_what_was_decided(fitted):
    summary = fitted.after.summary()
    d = fitted.after.labels_.decisions
    counts = [(d.decision == value).sum() for value in (1, -1, 0)]
    text = f"{len(d)} cells are decided: {counts[0]} confirmed, {counts[1]} rejected, {counts[2]} unsure."
    assert sum(note.startswith(text) for note in summary.notes) == 1
    assert_array_equal(summary.labels["confirmed"], fitted.confirmed.sum(axis=0))
    assert (summary.labels["expected"] >= summary.labels["recorded"] + summary.labels["confirmed"]).all()
    assert "Audited: the number of positives still missing" in summary.notes[-1]
    assert not any("decided" in note for note in fitted.before.summary().notes)


def test_decisions_that_are_not_fitted_are_counted_the_same():
    same = case("auto")  # it learns from records alone
    found = same.before.labels_.audit(same.decisions).n_missing()
    pd.testing.assert_frame_equal(found, same.after.labels_.audit().n_missing())
    assert_array_equal(same.before.labels_.missing, same.after.labels_.uncorrected)
    assert_array_equal(same.before.predict_proba(X), same.after.predict_proba(X))


def test_the_rank_of_undecided_cells_gets_better():
    same = case("auto")
    undecided = (Y == 0) & ~same.rejected & ~same.confirmed
    truth = Y_TRUE[undecided] == 1
    before, after = (
        np.abs(model.labels_.missing[undecided].sum() - truth.sum()) for model in (same.before, same.after)
    )
    assert after < before + 5


# ------------------------------------------------------------------------------------------ weights, folds, checkpoints


@pytest.mark.parametrize("name", ["auto", "slcforest", "lcforest", "rf_et"])
def test_rows_of_weight_0_keep_their_decisions(name):
    same = case(name)
    weights = np.ones(len(X))
    weights[::3] = 0
    model = make(name).fit(X, Y, sample_weight=weights, decisions=same.decisions)
    without = make(name).fit(X, Y, sample_weight=weights)
    idle = weights == 0
    assert same.rejected[idle].any()
    assert same.confirmed[idle].any()
    for limits in LISTS[:5]:
        assert not (same.rejected | same.confirmed)[at(model.suggest_labels(**limits))].any()
    assert model.labels_.completed[same.confirmed].all()
    assert not model.labels_.completed[same.rejected].any()
    assert not (model.labels_.state.imputed[idle]).any()
    if without.label_frequency_ is not None:
        assert_array_equal(model.label_frequency_, without.label_frequency_)
    found = model.labels_.audit().n_missing()
    assert_array_equal(found["confirmed"].iloc[:-1], same.confirmed[~idle].sum(axis=0))
    assert (found["low"] >= found["confirmed"] - 1e-9).all()
    assert (found["high"] <= (Y[~idle] == 0).sum()).all()
    assert not idle[at(model.labels_.plan_audit(20, random_state=0))[0]].any()


@pytest.mark.parametrize("name", ["auto", "cafe_slc"])
def test_score_folds(name):
    same = case(name)
    model = make(name, score_folds=2).fit(X, Y, decisions=same.decisions)
    without = make(name, score_folds=2).fit(X, Y)
    assert_array_equal(model.label_frequency_, without.label_frequency_)
    assert not (same.rejected | same.confirmed)[at(model.suggest_labels(top=10_000))].any()
    assert model.labels_.completed[same.confirmed].all()


@pytest.mark.parametrize("name", ["auto", "slcforest"])
def test_checkpoints(name, tmp_path):
    same = case(name)
    make(name).fit(X, Y, checkpoint_dir=tmp_path / "a", decisions=same.decisions)
    for file in (tmp_path / "a").glob("*_0002.pickle"):
        file.unlink()
    again = make(name).fit(X, Y, checkpoint_dir=tmp_path / "a", decisions=same.decisions)
    assert_array_equal(again.predict_proba(X), same.after.predict_proba(X))
    assert_array_equal(again.labels_.missing, same.after.labels_.missing)
    assert str(again.summary()) == str(same.after.summary())
    for others in (None, same.decisions[:1], look(same.decisions[0], 1 - Y_TRUE)):
        with pytest.raises(ValueError, match="holds a fit of other data, other parameters"):
            make(name).fit(X, Y, checkpoint_dir=tmp_path / "a", decisions=others)


# --------------------------------------------------------------------------------------------------- stored, copied


@pytest.mark.parametrize("name", ["auto", "slcforest", "rf_et"])
@pytest.mark.parametrize("way", ["file", "pickle", "deepcopy"])
def test_copies_know_what_was_decided(name, way, tmp_path):
    same = case(name)
    if way == "file":
        again = sylvan.load(same.after.save(tmp_path / "model.sylvan", findings=True))
    else:
        again = copy.deepcopy(same.after) if way == "deepcopy" else pickle.loads(pickle.dumps(same.after))
    assert str(again.summary()) == str(same.after.summary())
    for limits in LISTS[:4]:
        pd.testing.assert_frame_equal(again.suggest_labels(**limits), same.after.suggest_labels(**limits))
    mine, theirs = again.labels_.audit(), same.after.labels_.audit()
    pd.testing.assert_frame_equal(mine.n_missing(), theirs.n_missing())
    plan = again.labels_.plan_audit(20, random_state=3)
    pd.testing.assert_frame_equal(plan, same.after.labels_.plan_audit(20, random_state=3))
    more = [*same.decisions, look(plan)]
    pd.testing.assert_frame_equal(again.labels_.audit(more).n_missing(), same.after.labels_.audit(more).n_missing())
    assert_array_equal(again.complete(X, Y), same.after.complete(X, Y))


@pytest.mark.parametrize("name", ["auto", "slcforest"])
def test_a_predictor_without_findings_completes_the_same(name, tmp_path):
    same = case(name)
    path = same.after.save(tmp_path / "model.sylvan")
    again = sylvan.load(path)
    assert_array_equal(again.complete(X, Y), same.after.complete(X, Y))
    told = again.complete(X, Y, decisions=same.decisions)
    assert_array_equal(told, same.after.complete(X, Y, decisions=same.decisions))
    classes = {node.get("class") for node in parts_of(path.read_bytes())[0]["nodes"]}
    assert not {"Decisions", "LabelState", "Findings"} & classes


def test_a_clone_and_a_second_fit_know_nothing_of_decisions():
    same = case("slcforest")
    for model in (clone(same.after), copy.deepcopy(same.after)):
        model.fit(X, Y)
        assert model.labels_.decisions is None
        assert model.decider_.recalibration is None
        assert_array_equal(model.labels_.missing, same.before.labels_.missing)
        assert str(model.summary()) == str(same.before.summary())


def array_of(document, arrays, owner, field):
    """The array of a field of the one object of a class in a model file."""
    (node,) = (node for node in document["nodes"] if node.get("class") == owner)
    place = document["nodes"][dict(node["state"])[field]["node"]]
    return arrays, int(str(place["array"]).removesuffix(".npy").rpartition("/")[2])


FORGED = {
    "row out of range": ("Decisions", "row", lambda row: row + len(X)),
    "label out of range": ("Decisions", "label", lambda label: label + 4),
    "negative row": ("Decisions", "row", lambda row: row - 1000),
    "one cell twice": ("Decisions", "row", lambda row: np.where(np.arange(len(row)) == 1, row[0], row)),
    "other decisions": ("Decisions", "decision", lambda said: -said),
    "chance 0": ("Decisions", "chance", lambda chance: chance * 0),
    "no size": ("Decisions", "size", lambda size: size * 0),
    "ranks backwards": ("Decisions", "last", lambda last: last * 0),
    "other marks": ("LabelState", "decided", lambda decided: -decided),
    "wild slope": ("Recalibration", "covariance", lambda covariance: covariance * np.nan),
    "improbable": ("Findings", "uncorrected", lambda proba: proba + 2),
}


@pytest.mark.parametrize("lie", FORGED)
def test_files_that_lie_are_refused(lie, tmp_path):
    owner, field, change = FORGED[lie]
    path = case("rf_et").after.save(tmp_path / "model.sylvan", findings=True)
    if owner == "Recalibration":
        path = case("auto").after.save(tmp_path / "model.sylvan", findings=True)
    document, arrays = parts_of(path.read_bytes())
    path.write_bytes(forged(document["nodes"], arrays, document["about"]))
    sylvan.load(path)
    arrays, number = array_of(document, arrays, owner, field)
    arrays[number] = change(arrays[number].copy()).astype(arrays[number].dtype)
    path.write_bytes(forged(document["nodes"], arrays, document["about"]))
    with pytest.raises(ModelFileError):
        sylvan.load(path)


def test_files_whose_audits_are_none_are_refused(tmp_path):
    path = case("rf_et").after.save(tmp_path / "model.sylvan", findings=True)
    document, arrays = parts_of(path.read_bytes())
    (node,) = (node for node in document["nodes"] if node.get("class") == "Decisions")
    names = document["nodes"][dict(node["state"])["audit"]["node"]]["items"]
    names[next(number for number, name in enumerate(names) if name)] = "evil"
    path.write_bytes(forged(document["nodes"], arrays, document["about"]))
    with pytest.raises(ModelFileError, match="Audits have other names"):
        sylvan.load(path)


# ------------------------------------------------------------------------------------------------- other methods


@pytest.mark.parametrize("name", ["auto", "slcforest"])
def test_a_check_of_recovery_asks_of_undecided_cells(name):
    same = case(name)
    found = same.after.check_recovery(X, Y, random_state=0, decisions=same.decisions)
    n_decided = (same.confirmed | same.rejected).sum(axis=0)
    assert_array_equal(found["candidates"].iloc[:-1], (Y == 0).sum(axis=0) - n_decided + found["hidden"].iloc[:-1])
    least = same.after.check_recovery(X, Y, random_state=0, decisions=same.decisions, min_proba=0.0)
    assert_array_equal(least["imputed"], least["candidates"])
    assert least.loc[ALL, "recovered"] == least.loc[ALL, "hidden"] == found.loc[ALL, "hidden"]
    without = same.after.check_recovery(X, Y, random_state=0)
    assert_array_equal(without["hidden"], found["hidden"])
    with pytest.raises(DecisionError, match="does not have"):
        same.after.check_recovery(X, Y, decisions=pd.DataFrame({"row": [-1], "label": [0], "decision": ["yes"]}))


@pytest.mark.filterwarnings("ignore::sylvan.exceptions.DecisionWarning")
@pytest.mark.parametrize("form", [np.array, pd.DataFrame, sparse.csr_array], ids=lambda form: form.__name__)
def test_certified_lists_are_applied(form):
    model = case("auto").after
    cells = model.suggest_labels(precision=0.5)
    assert len(cells) > 5
    done = model.apply_suggestions(form(Y), cells)
    done = done.toarray() if sparse.issparse(done) else np.asarray(done)
    expected = Y.copy()
    expected[at(cells)] = 1
    assert_array_equal(done, expected)


def test_precision_is_used_alone():
    with pytest.raises(ValueError, match="precision says how long the list is"):
        case("auto").after.suggest_labels(top=3, precision=0.8)


def test_an_audit_of_another_fit_counts_but_cannot_certify():
    same = case("auto")
    mine = same.before.labels_.plan_audit(60, random_state=0)
    assert same.before.labels_.audit(look(mine)).certify(0.1).certified
    other = make("auto", random_state=1).fit(X, Y, decisions=look(mine))
    with pytest.warns(DecisionWarning, match="drawn from another ranking"):
        cells = other.suggest_labels(precision=0.1)
    assert set(cells["promise"]) == {"expected"}
    assert other.labels_.audit().is_audited
    assert "Audited: the number of positives still missing" in other.summary().notes[-1]


# ----------------------------------------------------------------------------------------------------- forms of Y

NAMES = ["ash", "beech", "elm", "oak"]
INDEXES = {
    "text": [f"plot {at}" for at in range(len(X))],
    "text that looks like numbers": [f"{at:04d}" for at in range(len(X))],
    "other numbers": range(1000, 1000 - len(X), -1),
    "days": pd.date_range("2024-01-01", periods=len(X)),
    "times": pd.date_range("2024-01-01 00:00", periods=len(X), freq="7h", tz="UTC"),
    "two levels": pd.MultiIndex.from_product([["north", "south"], range(len(X) // 2)]),
    "formulas": [f"=A{at}" for at in range(len(X))],
    "twice the same": ["a", "b"] * (len(X) // 2),
}
LABELS = {
    "text": NAMES,
    "numbers": [3, 2, 1, 0],
    "numbers as text": ["3", "2", "1", "0"],
    "tuples": pd.Index([("tree", name) for name in NAMES], tupleize_cols=False),
    "two levels": pd.MultiIndex.from_tuples([("tree", name) for name in NAMES]),
    "words for nothing": ["NA", "None", "nan", "null"],
}


def nan_cells(labels):
    return np.where((labels == 0) & (np.random.default_rng(0).random(labels.shape) < 0.6), np.nan, labels)


FORMS = {f"rows: {name}": pd.DataFrame(Y, index=index, columns=NAMES) for name, index in INDEXES.items()}
FORMS |= {f"labels: {name}": pd.DataFrame(Y, columns=names) for name, names in LABELS.items()}
FORMS |= {
    "array": Y,
    "floats": Y.astype(float),
    "list": Y.tolist(),
    "csr": sparse.csr_matrix(Y),
    "csc": sparse.csc_array(Y),
    "names by row": [[name for name, bit in zip(NAMES, row) if bit] for row in Y],
    "series of names": pd.Series([[name for name, bit in zip(NAMES, row) if bit] for row in Y], index=INDEXES["text"]),
    "unknown cells": nan_cells(Y),
    "unknown cells, named": pd.DataFrame(nan_cells(Y), index=INDEXES["text"], columns=NAMES),
    "words": pd.DataFrame(np.where(Y == 1, "yes", "no"), columns=NAMES),
    "truth values": pd.DataFrame(Y == 1, columns=NAMES),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_plan_that_was_filled_in_comes_back(form, tmp_path):
    """A plan goes to a file and back; the cells that people saw are those that are decided."""
    labels = FORMS[form]
    X_here = pd.DataFrame(X, index=labels.index) if isinstance(labels, (pd.DataFrame, pd.Series)) else X
    model = rf_et(5, random_state=0).fit(X_here, labels)
    found = model.labels_
    plan = found.plan_audit(25, random_state=0)
    cells = np.array([[list(found.rows).index(row) for row in plan["row"]],
                      [found.label_names.index(label) for label in plan["label"]]])  # fmt: skip
    assert found.state.candidates[tuple(cells)].all()
    right = Y_TRUE[tuple(cells)] == 1
    plan["decision"] = np.where(right, "Confirmed", "rejected ")
    plan.to_csv(tmp_path / "plan.csv", index=False)
    expected = np.zeros(Y.shape, int)
    expected[tuple(cells)] = np.where(right, 1, -1)
    for decisions in (plan, [plan[:5], plan[5:]]):
        assert_array_equal(found.audit(decisions).decisions.marks(Y.shape), expected)
    again = rf_et(5, random_state=0).fit(X_here, labels, decisions=tmp_path / "plan.csv")
    assert_array_equal(again.labels_.state.decided, expected)
    np.testing.assert_allclose(again.labels_.decisions.chance, found.audit(plan).decisions.chance)
    completed = np.asarray(again.labels_.completed)
    assert completed[expected > 0].all()
    assert not completed[expected < 0].any()
    told = model.complete(X_here, labels, decisions=tmp_path / "plan.csv")
    told = told.toarray() if sparse.issparse(told) else np.asarray(told)
    if form != "words":
        assert told[expected > 0].astype(int).all()
        assert not told[expected < 0].astype(int).any()
    again.apply_suggestions(labels, again.suggest_labels(top=3))


def test_new_rows_are_completed_as_decided():
    table = pd.DataFrame(Y, index=INDEXES["text"], columns=NAMES)
    model = make("slcforest").fit(X, table)
    blank = np.zeros((4, 4), int)
    said = pd.DataFrame({"row": [0, 1, 3], "label": ["ash", "oak", "elm"], "decision": ["yes", "no", "?"]})
    plain, told = model.complete(X[:4], blank), model.complete(X[:4], blank, decisions=said)
    expected = plain.copy()
    expected[0, 0], expected[1, 3] = 1, 0
    assert_array_equal(told, expected)  # labels are called as in the fit, rows by number
    frame = pd.DataFrame(blank, index=list("pqrs"), columns=NAMES)
    told = model.complete(pd.DataFrame(X[:4], index=list("pqrs")), frame, decisions=said.assign(row=["p", "q", "s"]))
    assert_array_equal(told, expected)
    with pytest.raises(DecisionError, match="1 row that the table does not have: 'plot 9'"):
        model.complete(X[:4], blank, decisions=said.assign(row=[0, 1, "plot 9"]))


def test_only_open_cells_can_be_decided_if_zeros_are_trusted():
    labels = nan_cells(Y)
    row, label = np.argwhere(labels == 0)[0]
    said = pd.DataFrame({"row": [row], "label": [label], "decision": ["yes"]})
    with pytest.raises(DecisionError, match="that the table says are absent"):
        rf_et(5, random_state=0).fit(X, labels, decisions=said)
    model = rf_et(5, random_state=0, zeros="unrecorded").fit(X, labels, decisions=said)
    assert model.labels_.completed[row, label] == 1


@pytest.mark.filterwarnings("ignore::sylvan.exceptions.DecisionWarning")
@pytest.mark.parametrize("name", ["auto", "slcforest", "flaforest", "lcforest", "gcforest"])
def test_the_rules_hold_where_zeros_are_absent(name):
    labels = nan_cells(Y)
    before = make(name).fit(X, labels)
    said = look(before.labels_.plan_audit(40, random_state=0))
    after = make(name).fit(X, labels, decisions=said)
    marks = after.labels_.state.decided
    for limits in LISTS:
        assert not (marks < 0)[at(after.suggest_labels(**limits))].any()
    for completed in (after.labels_.completed, after.complete(X, labels, decisions=said)):
        assert completed[marks > 0].all()
        assert not completed[marks < 0].any()
        assert not completed[labels == 0].any()
    if before.label_frequency_ is not None and not getattr(before.impute, "reestimates", False):
        assert_array_equal(after.label_frequency_, before.label_frequency_)
    check_numbers(after.labels_.audit(), np.isnan(labels))


def check_numbers(audit, may_miss):
    table = audit.n_missing()
    marks = audit.decisions.marks(may_miss.shape)
    confirmed = np.append((marks > 0).sum(axis=0), (marks > 0).sum())
    possible = (may_miss & (marks >= 0)).sum(axis=0)
    assert_array_equal(table["confirmed"], confirmed)
    assert (table["low"] >= confirmed - 1e-9).all()
    assert (table["low"] <= table["missing"] + 1e-9).all()
    assert (table["missing"] <= table["high"] + 1e-9).all()
    assert (table["high"] <= np.append(possible, possible.sum()) + 1e-9).all()


# ---------------------------------------------------------------------------------------------- what is refused

ONE = pd.DataFrame({"row": [np.argwhere(Y[:, 0] == 0)[0, 0]], "label": [0], "decision": ["yes"]})
WRONG = {
    "an unknown row": (ONE.assign(row=len(X)), "1 row that the table does not have"),
    "an unknown label": (ONE.assign(label="ahs"), "1 label that the table does not have"),
    "an odd word": (ONE.assign(decision="maybe"), "'maybe'"),
    "a recorded cell": (ONE.assign(row=np.argmax(Y[:, 0])), "recorded already"),
    "an audit that is none": (
        ONE.assign(how="audited", chance=0.5, stratum="ranks 1 to 9, 9 cells", audit="mine"),
        "'mine' does not name an audit",
    ),
    "a file that is not there": ("nothing.csv", "No such file"),
    "no decisions": ([], "empty list"),
    "something else": (7, "must be a DataFrame"),
}


@pytest.mark.parametrize(("decisions", "words"), WRONG.values(), ids=WRONG)
def test_bad_decisions_end_a_fit_before_it_begins(decisions, words, monkeypatch):
    def grow(*args, **options):
        raise AssertionError("a forest was grown")

    monkeypatch.setattr("sylvan.cascade.estimator.grow", grow)
    model = auto(**SMALL)
    for ask in (lambda: model.fit(X, Y, decisions=decisions), lambda: model.check_recovery(X, Y, decisions=decisions)):
        with pytest.raises((DecisionError, TypeError), match=words):
            ask()
    assert not hasattr(model, "layers_")


@pytest.mark.parametrize("y", [Y[:, 0] + 2 * Y[:, 1], Y[:, 0], np.where(Y[:, 0], "b", "a")])
def test_classes_cannot_be_decided(y):
    with pytest.raises(ValueError, match="a y of classes has none"):
        rf_et(5, random_state=0).fit(X, y, decisions=ONE)
    model = rf_et(5, random_state=0, zeros="absent").fit(X, y)
    with pytest.raises(ValueError, match="nothing to audit"):
        model.labels_.audit()
    with pytest.raises(ValueError, match=r"there is nothing to audit|complete\(\) needs"):
        model.complete(X, y, decisions=ONE)


# --------------------------------------------------------------------------------------------------- odd reviewers


def decided(words, n=12, **columns):
    cells = np.argwhere(Y == 0)[:n]
    return pd.DataFrame({"row": cells[:, 0], "label": cells[:, 1], "decision": words} | columns)


@pytest.mark.parametrize("name", ["auto", "slcforest"])
@pytest.mark.parametrize("words", ["confirmed", "rejected", "unsure", ""])
def test_reviewers_who_always_say_the_same(name, words):
    model = make(name).fit(X, Y, decisions=decided(words))
    summary = model.summary()
    if words:
        assert "12 cells are decided" in str(summary)
        assert f"12 {words}" in str(summary)
    assert ((model.labels_.missing >= 0) & (model.labels_.missing <= 1)).all()
    assert_array_equal(model.label_frequency_, case(name).before.label_frequency_)
    assert model.labels_.completed.sum() >= Y.sum() + 12 * (words == "confirmed")
    assert "none is audited" in summary.notes[-1]
    if words in ("", "unsure") and name == "auto":
        assert_array_equal(model.labels_.missing, case(name).before.labels_.missing)


def test_every_cell_decided():
    cells = np.argwhere(Y == 0)
    words = np.where(Y_TRUE[Y == 0] == 1, "yes", "no")
    model = make("auto").fit(
        X, Y, decisions=pd.DataFrame({"row": cells[:, 0], "label": cells[:, 1], "decision": words})
    )
    assert_array_equal(model.labels_.completed, Y_TRUE)
    assert model.suggest_labels(top=100).empty
    with pytest.raises(ValueError, match="no cell left to look at"):
        model.labels_.plan_audit(5)
    found = model.labels_.audit().n_missing()
    truth = np.append((Y_TRUE - Y).sum(axis=0), (Y_TRUE - Y).sum())
    for name in ("missing", "low", "high", "confirmed"):
        np.testing.assert_allclose(found[name], truth, atol=1e-6)
    assert "No positive is expected to be missing" in str(model.summary())


def test_people_who_agree_are_counted_in_the_summary():
    words = [["yes"] * 12, ["yes"] * 9 + ["no"] * 3, ["?"] * 12]
    people = [decided(word, who=who) for word, who in zip(words, ("Ann", "Bob", "Eve"))]
    model = make("auto").fit(X, Y, decisions=people)
    text = (
        "12 cells are decided: 9 confirmed, 0 rejected, 3 unsure. Several people decided 12 of them, and agreed on 9."
    )
    assert text in model.summary().notes
