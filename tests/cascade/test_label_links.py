"""Cascades whose answers are corrected by links between labels: who may be in them, what they tell, what files hold."""

import copy
import pickle
import warnings
import zipfile
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

import naive_links as naive
import naive_regions
import sylvan
from algorithms.rule_data import conditions
from sylvan import DeepForestClassifier, imldf, mldf, rf_et
from sylvan.cascade.augment import Interactions, LabelLinks, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.contracts import parts_of
from sylvan.cascade.layer import RulesOnly
from sylvan.cascade.length import FixedLength
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.forests import (
    CompletelyRandomForest,
    ExtraTrees,
    KFold,
    OutOfBag,
    RandomForest,
    WeightedForest,
    from_sklearn,
)
from sylvan.labels.impute import FluidLabelAddition, StrictLabelComplement
from sylvan.measures import micro_auroc

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]
OOB = {"bootstrap": True, "out_of_sample": OutOfBag()}
RF, ET = RandomForest(8, min_samples_leaf=2, **OOB), ExtraTrees(8, min_samples_leaf=2, **OOB)
RULES = Interactions(4, n_bootstraps=2)
BOTH = Union([RULES, OutputSpace()])


def made_up(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)).round(2)
    X[:, 6] = X[:, 6] > 0
    logits = np.column_stack([X[:, 0] + X[:, 1], X[:, 0] + X[:, 1], X[:, 2] - 0.5])
    Y = (expit(3 * logits) > rng.random((n, 3))).astype(int)
    return X, Y


X, Y = made_up()
X_NEW, Y_NEW = made_up(1, 60)
NAMES = ["ash", "beech", "elm"]
TABLE, LABELS = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)]), pd.DataFrame(Y, columns=NAMES)
CLASSES = np.array(NAMES)[Y[:, 0] + Y[:, 2]]
UNKNOWN = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
WITH_GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)


def linked(augment=None, forests=(RF, ET), **options):
    defaults = {"length": FixedLength(), "max_layers": 2, "random_state": 0}
    return DeepForestClassifier(list(forests), augment=LabelLinks(augment), **(defaults | options))


@cache
def fitted(augment="rules"):
    """A model for tests that only look at it."""
    return linked({"rules": RULES, "both": BOTH, "none": None}[augment]).fit(TABLE, LABELS)


def assert_same(one, other, rows=X_NEW):
    assert_array_equal(one.predict_proba(rows), other.predict_proba(rows))
    assert_array_equal(one.transform(rows), other.transform(rows))
    pd.testing.assert_frame_equal(one.label_links_, other.label_links_)
    if hasattr(one, "interactions_"):
        pd.testing.assert_frame_equal(one.interactions_, other.interactions_)
        pd.testing.assert_frame_equal(one.explain(rows), other.explain(rows))


# ------------------------------------------------------------------------------------------------ by hand


@pytest.mark.parametrize("augment", [None, RULES, Interactions(5, miner="prevalence", n_bootstraps=0)], ids=repr)
@pytest.mark.parametrize("forests", [(RF, ET), (RF, ET, RF)])
def test_answers_are_what_is_written_out_by_hand(augment, forests):
    model = linked(augment, forests, max_layers=1).fit(X, Y)
    (layer,) = model.layers_
    links, said = layer.refiner, np.array([forest.predict_proba(X_NEW) for forest in layer.forests])
    kinds = [[0], [1]] if len(forests) == 2 else [[0, 2], [1]]
    rules = [] if augment is None else conditions(links.augment_.rules_)
    assert len(rules) == (0 if augment is None else augment.n_interactions)
    hold = [[naive_regions.holds(rule, row) for rule in rules] for row in X_NEW]
    assert_allclose(links.share_, [naive.share(label, np.ones(len(X))) for label in Y.T], rtol=1e-12)
    expected = naive.corrected(said, kinds, hold, links.readout_, links.penalty_, links.share_)
    assert_allclose(model.predict_proba(X_NEW), expected.mean(axis=0), atol=1e-12)
    assert np.isfinite(links.penalty_).any()
    assert (np.abs(expected - said).max(axis=(0, 1)) > 0.01).any()


def test_training_rows_are_judged_by_rules_that_have_not_seen_them():
    model = linked(RULES, max_layers=1).fit(X, Y)
    (layer,) = model.layers_
    links, others = layer.refiner, layer.refiner._others
    assert_array_equal(np.bincount(others.fold), [0, 24, 24, 24, 24, 24])
    assert len(others.readouts) == len(others.parts) == 5
    said = np.array([np.array(forest) for forest in out_of_bag(layer, X)])
    for number, (readout, part) in enumerate(zip(others.readouts, others.parts), start=1):
        rows = others.fold == number
        rules = conditions(part.rules_)
        hold = [[naive_regions.holds(rule, row) for rule in rules] for row in X[rows]]
        expected = naive.corrected(said[:, rows], [[0], [1]], hold, readout, links.penalty_, links.share_)
        assert_allclose(model.oos_proba_[rows], expected.mean(axis=0), atol=1e-12)
        assert part.n_rows_ == 96
        assert_allclose(part.label_rates_, Y[~rows].mean(axis=0))
        counts = [sum(Y[i, 0] for i in np.flatnonzero(~rows) if naive_regions.holds(rule, X[i])) for rule in rules]
        assert_array_equal(part.label_counts_[:, 0], counts)
    assert len({tuple(map(tuple, conditions(part.rules_))) for part in others.parts}) > 1


def test_the_base_is_what_the_typical_row_gets():
    """One that has the mean answer of each forest, and each rule to the share of rows for which it holds."""
    model = linked(RULES, max_layers=1).fit(X, Y)
    links = model.layers_[0].refiner
    rates = [np.mean([naive_regions.holds(rule, row) for row in X]) for rule in conditions(links.augment_.rules_)]
    assert_allclose(links.readout_.center[6:], rates, atol=1e-12)
    mean = np.array([np.array(said) for said in out_of_bag(model.layers_[0], X)]).mean(axis=1)
    assert_allclose(links.readout_.center[:6], [naive.logit(p) for p in mean.ravel()], atol=1e-12)


def out_of_bag(layer, rows):
    for forest in layer.forests:
        votes = forest.bag_counts() == 0
        votes[:, ~votes.any(axis=0)] = True
        yield (forest.tree_proba(rows) * votes[:, :, None]).sum(axis=0) / votes.sum(axis=0)[:, None]


def test_later_layers_see_what_was_corrected():
    model = linked().fit(X, Y)
    first, second = model.layers_
    said = np.array([forest.predict_proba(X_NEW) for forest in first.forests])
    seen = naive.corrected(
        said, [[0], [1]], [[]] * len(X_NEW), first.refiner.readout_, first.refiner.penalty_, first.refiner.share_
    )
    blocks = model.transform(X_NEW)[:, :6]
    assert_allclose(blocks, np.hstack(list(seen)), atol=1e-12)
    assert second.widths == [3, 3]
    *_, last = model.staged_predict_proba(X_NEW)
    assert_array_equal(last, model.predict_proba(X_NEW))


# ------------------------------------------------------------------------------------------------ honesty and gain


@pytest.mark.parametrize("augment", [None, Interactions(20, n_bootstraps=2)], ids=["labels", "rules"])
def test_noise_is_not_praised(augment):
    """What is said of training rows is out of sample: with labels that are noise, it tells nothing."""
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, noise = rng.normal(size=(200, 10)), (rng.random((200, 4)) < 0.5).astype(int)
        forests = [RandomForest(30, **OOB), ExtraTrees(30, **OOB)]
        model = linked(augment, forests, max_layers=1, random_state=seed).fit(rows, noise)
        found.append(micro_auroc(noise, model.oos_proba_))
        assert model.history_["score"].iloc[0] == pytest.approx(found[-1])
    assert max(found) < 0.56
    assert np.mean(found) < 0.53


def test_links_lower_the_log_loss_of_digits():
    """Attributes of digits follow from each other; forests say each apart."""
    pixels, labels = load_digit_attributes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pixels))  # people wrote one after the other
    train, test = order[:500], order[500:]
    losses = {}
    for name, augment in (("links", LabelLinks()), ("forests", OutputSpace())):
        model = DeepForestClassifier([RandomForest(20, **OOB)] * 2, augment=augment, max_layers=1, random_state=0)
        p = np.clip(model.fit(pixels[train], labels[train]).predict_proba(pixels[test]), 1e-4, 1 - 1e-4)
        losses[name] = -np.where(labels[test], np.log(p), np.log1p(-p)).mean()
        oos = np.clip(model.oos_proba_, 1e-4, 1 - 1e-4)
        on_training_rows = -np.where(labels[train], np.log(oos), np.log1p(-oos)).mean()
        assert 0.95 < on_training_rows / losses[name] < 1.5  # with fewer trees, and fewer rows for links
    assert losses["links"] < 0.7 * losses["forests"]


# ------------------------------------------------------------------------------------------------ combinations


THREE_KINDS = [RandomForest(6, **OOB), CompletelyRandomForest(6, **OOB), ExtraTrees(6, **OOB)]
SCAN = MultiGrainedScanning((3, 4), windows=[2], n_trees=3)
FOLDS = [kind(4, out_of_sample=KFold(3)) for kind in (RandomForest, ExtraTrees)]
COMBINATIONS = {
    "imldf": (imldf(8, n_interactions=5, random_state=0), {}),
    "imldf, two layers": (imldf(8, n_interactions=5, max_layers=2, length=FixedLength(), random_state=0), {}),
    "without rules": (linked(), {}),
    "rules beside probabilities": (linked(BOTH), {}),
    "two kinds of rules": (linked(Union([OutputSpace(), RULES, Interactions(3, miner="prevalence")])), {}),
    "embeddings": (linked(Union([TreeEmbedding(3), RULES])), {}),
    "in sample": (linked(Union([OutputSpace(in_sample=True), RULES])), {}),
    "rules with labels": (linked(Interactions(4, n_bootstraps=2, labels="full", crossfit=3)), {}),
    "components": (linked(Interactions(4, n_bootstraps=2, labels="svd", score="importance", crossfit=3)), {}),
    "one forest": (linked(RULES, [RF]), {}),
    "three of one kind": (linked(RULES, [RF] * 3), {}),
    "three kinds": (linked(RULES, THREE_KINDS), {}),
    "folds": (linked(RULES, FOLDS), {"groups": np.arange(120) // 4}),
    "score folds": (linked(RULES, score_folds=3), {}),
    "imputed": (linked(RULES, impute=StrictLabelComplement(threshold=0.3)), {}),
    "crossover": (linked(RULES, crossover=True), {}),
    "cumulative": (linked(RULES, cumulative=True, max_layers=3), {}),
    "averaged": (linked(BOTH, average_layers=True), {}),
    "scanning": (linked(RULES, scanning=SCAN), {}),
    "scanning in turn": (
        linked(RULES, scanning=MultiGrainedScanning((3, 4), windows=[2, (3, 1)], n_trees=3, grain_cycle=True)), {}
    ),
    "weights": (linked(RULES), {"sample_weight": np.arange(120) % 4}),
    "unknown labels": (linked(RULES), {"y": UNKNOWN}),
    "unknown labels, imputed": (linked(RULES, impute=FluidLabelAddition()), {"y": UNKNOWN}),
    "missing values": (linked(RULES), {"X": WITH_GAPS}),
    "sparse": (linked(RULES), {"X": sparse.csr_array(np.where(np.abs(X) < 1, 0, X))}),
    "classes": (linked(RULES), {"y": CLASSES}),
    "two classes": (linked(BOTH), {"y": np.where(Y[:, 0], "yes", "no")}),
    "one label": (linked(RULES), {"y": Y[:, :1]}),
    "a label that all have": (linked(RULES), {"y": np.column_stack([Y, np.ones(120, int)])}),
    "a label that nobody has": (linked(), {"y": np.zeros_like(Y)}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", COMBINATIONS)
def test_combinations(name, tmp_path):
    model, given = COMBINATIONS[name]
    given = {"X": X, "y": Y} | given
    model = clone(model).fit(**given)
    new = sparse.csr_array(np.where(np.abs(X_NEW) < 1, 0, X_NEW)) if sparse.issparse(given["X"]) else X_NEW
    said = model.predict_proba(new)
    for proba in (said, model.oos_proba_):
        assert ((proba >= 0) & (proba <= 1)).all()
    assert_array_equal(model.predict_proba(new[:1])[0], said[0])
    if said.shape[1:] and model.decider_.form.has_many_classes:
        assert_allclose(said.sum(axis=1), 1)
    asked = model.explain_cells(new, np.arange(20))
    raw = np.mean(model._ask(new), axis=0)
    assert_allclose(asked.output.reshape(20, -1), raw[:20], atol=1e-12)
    own = model.explain_cells()
    assert_array_equal(own.output.reshape(model.labels_.proba.shape), model.labels_.proba)
    for found in (asked, own):
        added = found.base + found.contribution.sum(axis=1) + found.rest
        assert np.abs(added - found.output).max() < 1e-9
    for findings in (False, True):
        again = sylvan.load(model.save(tmp_path / "model.sylvan", findings=findings))
        assert_same(again, model, new)
    assert_array_equal(again.explain_cells().contribution, own.contribution)


def test_there_are_links_in_these_combinations():
    chosen = []
    for name in ("imldf, two layers", "rules beside probabilities", "three kinds", "sparse", "crossover"):
        model, given = COMBINATIONS[name]
        model = clone(model).fit(**({"X": X, "y": Y} | given))
        chosen += [np.isfinite(layer.refiner.penalty_).any() for layer in model.layers_]
        assert any(layer.refiner.weights_of(miner).any() for layer in model.layers_ for miner in rules_of(layer))
    assert np.mean(chosen) > 0.7


def rules_of(layer):
    return [part for part in parts_of(layer.refiner) if isinstance(part, Interactions)]


def test_weighted_forests():
    forests = [WeightedForest(RandomForest(8, **OOB), lam=0.01)] * 2
    model = linked(None, forests).fit(X, Y[:, 0])
    assert np.isfinite(model.predict_proba(X_NEW)).all()
    found = model.explain_cells(X_NEW)
    assert np.abs(found.base + found.contribution.sum(axis=1) - found.output).max() < 1e-9


def test_weighted_forests_with_rules():
    model = linked(RULES, [WeightedForest(RandomForest(8, **OOB), lam=0.01)] * 2).fit(X, Y[:, 0])
    assert np.isfinite(model.predict_proba(X_NEW)).all()


def test_other_estimators():
    forests = [RF, from_sklearn(KNeighborsClassifier())]
    model = linked(None, forests).fit(X, Y)
    assert ((model.predict_proba(X_NEW) >= 0) & (model.predict_proba(X_NEW) <= 1)).all()
    with pytest.raises(TypeError, match=r"Interactions needs fitted forests of sylvan.forests.*got FoldModels"):
        linked(RULES, forests).fit(X, Y)
    with pytest.raises(TypeError, match="Reasons need forests of sylvan"):
        model.explain_cells(rows=1)


def test_separate_forests_are_refused():
    with pytest.raises(ValueError, match="LabelLinks refines what one set of forests says"):
        linked(separate_forests=True).fit(X, Y)


@pytest.mark.parametrize("augment", [None, RULES])
def test_one_row(augment):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = linked(augment).fit(X, Y, sample_weight=np.arange(120) == 7)
    assert_array_equal(model.predict_proba(X_NEW), np.tile(Y[7], (60, 1)))


@pytest.mark.parametrize("n_known", [1, 2])
def test_few_rows_of_known_labels(n_known):
    few = np.full((30, 2), np.nan)
    few[:n_known] = [[0, 0]] if n_known == 1 else np.eye(2)
    for seed in range(20):
        model = linked(None, [RF], max_layers=1, random_state=seed).fit(X[:30], few)
        assert np.isfinite(model.predict_proba(X_NEW)).all()


def test_the_unit_of_weights_does_not_matter():
    forests = [DeepForestClassifier([RF, ET], max_layers=1, random_state=0), linked(None, max_layers=1)]
    for model in forests:
        said = [clone(model).fit(X, Y, sample_weight=np.full(120, unit)).predict_proba(X_NEW) for unit in (1.0, 64.0)]
        assert_allclose(said[1], said[0], atol=1e-9, err_msg=repr(model.augment))


@pytest.mark.parametrize("augment", [None, RULES])
def test_rows_of_weight_zero_have_no_say(augment):
    weight = np.where(np.arange(120) < 90, 1.0, 0.0)
    others, turned = X.copy(), Y.copy()
    others[90:] += 50
    turned[90:] = 1 - turned[90:]
    one, other = (linked(augment).fit(*data, sample_weight=weight) for data in ((X, Y), (others, turned)))
    assert_same(one, other)
    assert_array_equal(one.oos_proba_[:90], other.oos_proba_[:90])


def test_unknown_labels_have_no_say():
    one = linked(max_layers=1).fit(X, UNKNOWN)
    links = one.layers_[0].refiner
    known = ~np.isnan(UNKNOWN)
    rarer = [min((UNKNOWN[known[:, j], j] == value).sum() for value in (0, 1)) for j in range(3)]
    assert_allclose(links.share_, [n / (n + 50) for n in rarer])


# ------------------------------------------------------------------------------------------------ seeds, copies, stops


@pytest.mark.parametrize("augment", [None, BOTH])
def test_jobs_and_seeds(augment):
    model = linked(augment).fit(X, Y)
    for n_jobs in (1, 2):
        assert_same(linked(augment, n_jobs=n_jobs).fit(X, Y), model)
    for again in (pickle.loads(pickle.dumps(model)), clone(model).fit(X, Y)):
        assert_same(again, model)
        assert_array_equal(again.oos_proba_, model.oos_proba_)
    assert (linked(augment, random_state=1).fit(X, Y).predict_proba(X_NEW) != model.predict_proba(X_NEW)).any()
    assert clone(model).augment.get_params(deep=False).keys() == {"augment", "n_folds"}
    assert (linked(augment).set_params(augment__n_folds=3).fit(X, Y).oos_proba_ != model.oos_proba_).any()


@pytest.mark.parametrize("augment", [None, RULES])
def test_a_fit_that_was_stopped_ends_with_the_same_model(augment, tmp_path):
    expected = linked(augment).fit(X, Y)
    linked(augment, callbacks=[lambda event: event.record.layer == 1]).fit(X, Y, checkpoint_dir=tmp_path / "fit")
    resumed = linked(augment).fit(X, Y, checkpoint_dir=tmp_path / "fit")
    assert_same(resumed, expected)
    assert_array_equal(resumed.oos_proba_, expected.oos_proba_)
    with pytest.raises(ValueError, match="other data, other parameters or another version"):
        linked(augment).set_params(augment__n_folds=3).fit(X, Y, checkpoint_dir=tmp_path / "fit")


def test_blocks_of_rows(monkeypatch):
    model = fitted("both")
    expected = model.predict_proba(TABLE)
    monkeypatch.setattr("sylvan.cascade.layer._BLOCK_NUMBERS", 80)
    assert_array_equal(model.predict_proba(TABLE), expected)


# ------------------------------------------------------------------------------------------------ tables


@pytest.mark.parametrize("augment", ["none", "rules", "both"])
def test_the_table_of_links(augment):
    model = fitted(augment)
    table = model.label_links_
    assert list(table.index) == list(table.columns) == NAMES
    links = model.layers_[-1].refiner
    assert_array_equal(table, links.links_)
    for j, name in enumerate(NAMES):
        assert (table[name] != 0).any() == np.isfinite(links.penalty_[j])
    own = {"none": 0, "rules": 4, "both": 4}[augment]
    assert links.readout_.weight.shape == (6 + own, 3)
    assert_allclose((links.readout_.weight[:3] + links.readout_.weight[3:6]) * links.share_, table)


def test_links_by_asking():
    """A label's log-odds rise by the weight, if those of another label rise by one in all forests."""
    links = linked(max_layers=1).fit(TABLE, LABELS).layers_[0].refiner
    assert np.isfinite(links.penalty_).any()
    base, table = np.full((1, 3), 0.4), links.links_ / links.share_
    for i in range(3):
        raised = base.copy()
        raised[0, i] = expit(naive.logit(0.4) + 1)
        asked = []
        for said in (base, raised):
            signals = naive.signals_of(np.array([said] * 2), [[0], [1]], [[]])
            z = links.readout_.ask(signals, np.log(said / (1 - said)))
            asked.append(np.log(z / (1 - z))[0])
        rise = asked[1] - asked[0]
        assert_allclose(rise, table[i] + np.eye(3)[i], atol=1e-9)


@pytest.mark.parametrize("augment", ["rules", "both"])
def test_what_rules_add(augment):
    model = fitted(augment)
    table = model.interactions_
    assert list(table.columns) == ["layer", "rule", "order", "stability", "support", "says", "adds", *NAMES]
    assert list(table["layer"]) == [1] * 4 + [2] * 4
    for number, layer in enumerate(model.layers_, start=1):
        (miner,) = rules_of(layer)
        weights = layer.refiner.readout_.weight[6:] * layer.refiner.share_
        assert_array_equal(layer.refiner.weights_of(miner), weights)
        for text, line in zip(table.loc[table["layer"] == number, "adds"], weights):
            j = np.abs(line).argmax()
            assert text == (f"{NAMES[j]} {line[j]:+.2f}" if line[j] else "")
    assert (table["adds"] != "").any()


def test_what_two_kinds_of_rules_add():
    others = Interactions(3, miner="prevalence", n_bootstraps=0)
    model = linked(Union([RULES, OutputSpace(), others])).fit(TABLE, LABELS)
    for layer in model.layers_:
        one, other = rules_of(layer)
        weights = layer.refiner.readout_.weight[6:] * layer.refiner.share_
        assert_array_equal(np.vstack([layer.refiner.weights_of(one), layer.refiner.weights_of(other)]), weights)
    assert len(model.interactions_) == 14
    assert isinstance(model.layers_[-1].augment, RulesOnly)


def test_rules_of_the_last_layer_are_kept_once():
    model = fitted("rules")
    last = model.layers_[-1]
    assert last.augment is last.refiner
    assert last.nbytes < sum(part.nbytes for part in [*last.forests, last.refiner]) + 1
    assert [type(part) for part in parts_of(linked().fit(X, Y).layers_[-1].refiner)] == [OutputSpace]


@pytest.mark.parametrize("make", [lambda: rf_et(3), lambda: mldf(n_trees=3, n_folds=2, max_layers=1),
                                  lambda: imldf(4, augment=RULES)])  # fmt: skip
def test_cascades_without_links(make):
    with pytest.raises(NotFittedError):
        make().label_links_  # noqa: B018
    model = make().fit(X, Y)
    assert not hasattr(model, "label_links_")
    with pytest.raises(AttributeError, match=r"augment=LabelLinks\(...\), as those of sylvan.imldf\(\), have links"):
        model.label_links_  # noqa: B018
    assert "adds" not in getattr(model, "interactions_", [])


def test_links_without_rules_have_no_interactions():
    assert not hasattr(fitted("none"), "interactions_")
    assert fitted("none").label_links_.shape == (3, 3)


# ------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("augment", [None, BOTH, RULES], ids=["none", "both", "rules"])
def test_a_file_says_nothing_of_training_rows_unless_asked(augment, tmp_path):
    model = linked(augment).fit(X, Y, sample_weight=np.arange(120) % 5)
    bare = sylvan.load(model.save(tmp_path / "bare.sylvan"))
    whole = sylvan.load(model.save(tmp_path / "whole.sylvan", findings=True))
    for one, mine in zip(bare.layers_, model.layers_):
        assert [len(part) for part in one.refiner._others] == [0, 0, 0]
        assert len(mine.refiner._others.fold) == 120  # the model itself keeps them
    for one, mine in zip(whole.layers_, model.layers_):
        assert_array_equal(one.refiner._others.fold, mine.refiner._others.fold)
        assert len(one.refiner._others.readouts) == 5
    with zipfile.ZipFile(tmp_path / "bare.sylvan") as archive:
        arrays = [np.load(archive.open(name)) for name in archive.namelist() if name.endswith(".npy")]
    assert not any(120 in array.shape for array in arrays)
    for again in (bare, whole):
        assert_same(again, model)
    assert (tmp_path / "bare.sylvan").stat().st_size < (tmp_path / "whole.sylvan").stat().st_size
    assert_array_equal(whole.explain_cells(rows=3).contribution, model.explain_cells(rows=3).contribution)
    assert_array_equal(whole.labels_.proba, model.labels_.proba)
    with pytest.raises(ValueError, match="does not have the rows of its fit"):
        bare.explain_cells(rows=3)
    again = sylvan.load(bare.save(tmp_path / "again.sylvan"))
    assert_same(again, model)


def changed(model, **fields):
    """A copy of the model with other attributes of the first layer's links."""
    bad = copy.copy(model)
    bad.layers_ = list(model.layers_)
    links = copy.copy(model.layers_[0].refiner)
    vars(links).update(fields)
    bad.layers_[0] = replace(model.layers_[0], refiner=links, augment=links)
    return bad


def test_tampered_links_are_refused():
    model = fitted("rules")
    links = model.layers_[0].refiner
    readout, others = links.readout_, links._others
    short = readout._replace(weight=readout.weight[1:], center=readout.center[1:])
    narrow = of_two_labels(readout)
    wrong = [
        {"share_": links.share_ + 1}, {"share_": links.share_[1:]}, {"share_": -links.share_},
        {"share_": np.full(3, np.nan)}, {"share_": 0.5},
        {"penalty_": links.penalty_[1:]}, {"penalty_": -links.penalty_}, {"penalty_": np.full(3, np.nan)},
        {"kinds_": [[0], [0]]}, {"kinds_": [[0, 1], []]}, {"kinds_": [[0, 1]]}, {"kinds_": [[0], [2]]}, {"kinds_": []},
        {"readout_": short}, {"readout_": narrow}, {"n_folds": 1}, {"augment": Interactions},
        {"_others": others._replace(parts=others.parts[:2])},
        {"_others": others._replace(parts=[OutputSpace()] * 5)},
        {"_others": others._replace(readouts=[short] * 5)},
        {"_others": others._replace(parts=[rf_et()] * 5)},
        {"augment_": OutputSpace()}, {"augment_": LabelLinks()}, {"augment_": rf_et()},
    ]  # fmt: skip
    model._check_stored()
    changed(model)._check_stored()
    for fields in wrong:
        with pytest.raises((ValueError, TypeError)):
            changed(model, **fields)._check_stored()
    for name in ("share_", "readout_", "kinds_", "_others"):
        bad = changed(model)
        delattr(bad.layers_[0].refiner, name)
        with pytest.raises(ValueError, match="missing"):
            bad._check_stored()


def of_two_labels(readout):
    """Return the part of a readout that is about the first two labels."""
    return readout._replace(
        weight=readout.weight[:, :2], bias=readout.bias[:2], center_own=readout.center_own[:2]
    )  # fmt: skip


def test_tampered_readouts_are_refused():
    links = fitted("rules").layers_[0].refiner
    readout, others = links.readout_, links._others
    readout._check_stored()
    others._check_stored()
    for fields in (
        {"weight": readout.weight * np.nan}, {"weight": readout.weight[1:]}, {"bias": readout.bias[1:]},
        {"center": readout.center + 1e12}, {"center_own": readout.center_own.astype(np.float32)},
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            readout._replace(**fields)._check_stored()
    for fields in ({"fold": others.fold + 1}, {"fold": others.fold - 2}, {"readouts": others.readouts[:2]}):
        with pytest.raises((ValueError, TypeError)):
            others._replace(**fields)._check_stored()


def test_folds_of_other_rows_are_refused():
    model = fitted("rules")
    others = model.layers_[0].refiner._others
    with pytest.raises(ValueError, match="Folds"):
        changed(model, _others=others._replace(fold=others.fold[:50]))._check_stored()


# ------------------------------------------------------------------------------------------------ weak labels


def test_weak_labels():
    rows, labels = made_up(3, 300)
    hidden = hide_positives(labels, 0.3, random_state=0)
    model = linked(RULES, impute=StrictLabelComplement(threshold=0.3)).fit(rows, hidden)
    listed = model.suggest_labels(top=20)
    chance = labels[hidden == 0].mean()
    assert labels[listed["row"], listed["label"].astype(int)].mean() > chance + 0.2
    assert micro_auroc(Y_NEW, model.predict_proba(X_NEW)) > 0.75


@pytest.mark.parametrize("augment", [LabelLinks(), LabelLinks(RULES)])
def test_rows_of_a_group_judge_no_other_of_it(augment):
    """Labels of chance, and six nearly equal rows in each group: who has seen one row knows the others."""
    rng = np.random.RandomState(0)
    groups = np.repeat(np.arange(40), 6)
    rows = rng.randn(40, 6)[groups] + 0.01 * rng.randn(240, 6)
    chance = (rng.rand(40, 4) < 0.4).astype(int)[groups]
    forests = [RandomForest(20, out_of_sample=KFold(5)), ExtraTrees(20, out_of_sample=KFold(5))]
    model = DeepForestClassifier(forests, augment=augment, max_layers=1, random_state=0).fit(
        rows, chance, groups=groups
    )
    fold = model.layers_[0].refiner._others.fold
    assert all(len(set(fold[groups == group])) == 1 for group in range(40))
    assert model.history_["score"].iloc[0] < 0.65
