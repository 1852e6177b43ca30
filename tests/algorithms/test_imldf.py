"""iMLDF: layers of rules. Its cascade against one written out by hand, what is kept, and all combinations."""

import pickle
import re
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

import naive_regions as naive
from algorithms.rule_data import (
    ET,
    LABELS,
    RF,
    TABLE,
    TABLE_NEW,
    X_NEW,
    Y_NEW,
    Y_OBSERVED,
    X,
    Y,
    assert_same,
    conditions,
    fitted,
    miner_of,
    published,
    read_all,
    referred,
    small,
)
from cascade.naive_cascade import MAX_SEED, auroc
from strategies import examples
from sylvan import DeepForestClassifier, imldf
from sylvan.cascade.augment import Interactions, LabelLinks, MeasureAwareReuse, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.contracts import LayerView
from sylvan.cascade.length import FixedLength, Patience
from sylvan.datasets import hide_positives
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest, from_sklearn
from sylvan.labels.impute import FluidLabelAddition, StrictLabelComplement
from sylvan.measures import micro_auroc

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

# ------------------------------------------------------------------------------------------------ the twin


class NaiveIMLDF:
    """The cascade by hand: every forest of a layer sees the one block of the layer before and X.

    Mining is the library's; what rules make of rows is that of `naive_regions`.
    """

    def __init__(self, forests, augment, n_layers, cumulative=False):
        self.forests, self.augment, self.n_layers, self.cumulative = forests, augment, n_layers, cumulative

    def fit(self, X, Y, random_state):
        layer_seeds = np.random.RandomState(random_state).randint(MAX_SEED, size=self.n_layers)
        self.layers, self.scores, blocks = [], [], []
        for seed in layer_seeds:
            seeds = np.random.RandomState(seed).randint(MAX_SEED, size=(4, len(self.forests)))
            Z = np.hstack([*blocks, X])
            models = [clone(f).set_params(random_state=int(s)).fit(Z, Y) for f, s in zip(self.forests, seeds[0])]
            self.oos = sum(model.oos_proba_ for model in models) / len(models)
            self.scores.append(auroc(Y, self.oos))
            augment = clone(self.augment)
            augment.fit_transform(self.view(models, Z, Y, int(seeds[3][0])))
            layer = models, conditions(augment.rules_), Z, Y
            self.layers.append(layer)
            block = self.block(layer, Z)
            blocks = [*blocks, block] if self.cumulative else [block]
        return self

    def view(self, models, Z, Y, seed):
        return LayerView(
            models,
            lambda slot: Z,
            np.array([model.oos_proba_ for model in models]),
            Y.astype(bool),
            seed,
            columns=lambda columns: Z[:, columns],
            columns_of=lambda slot: np.arange(Z.shape[1]),
            encoded=lambda forest: forest.encode(Z),
        )

    def block(self, layer, Z):
        _, rules, learnt, Y = layer
        return np.array(naive.columns(rules, Z, learnt, Y, [True] * len(Y)), np.float32)

    def staged(self, X):
        blocks, stages = [], []
        for layer in self.layers:
            Z = np.hstack([*blocks, X])
            stages.append(sum(model.predict_proba(Z) for model in layer[0]) / len(layer[0]))
            blocks = [*blocks, self.block(layer, Z)] if self.cumulative else [self.block(layer, Z)]
        return stages


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"crossover": True},
        {"cumulative": True, "crossover": True},
        {"miner": "prevalence", "threshold_rule": "median"},
        {"threshold_rule": "tighten", "path_rule": "tightest", "feature_subset": "importance"},
    ],
)
def test_it_is_what_is_written_out_by_hand(options):
    model = small(**options, keep_forests=True).fit(X, Y_OBSERVED)
    twin = NaiveIMLDF(model.forests, model.augment, 3, model.cumulative).fit(X, Y_OBSERVED, 0)
    for layer, (_, rules, _, _) in zip(model.layers_, twin.layers):
        assert conditions(miner_of(layer).rules_) == rules
        assert rules
    assert_allclose(model.history_["score"], twin.scores, rtol=0, atol=1e-12)
    assert_allclose(model.oos_proba_, twin.oos, rtol=0, atol=1e-12)
    assert_allclose(list(model.staged_predict_proba(X_NEW)), twin.staged(X_NEW), rtol=0, atol=1e-12)
    for layer in model.layers_[1:]:  # rules of later layers are about rules, too
        assert miner_of(layer).rules_.column.min() < sum(layer.widths)


def test_the_settings():
    model = imldf()
    assert [type(forest) for forest in model.forests] == [RandomForest, ExtraTrees, RandomForest, ExtraTrees]
    assert [forest.min_samples_leaf for forest in model.forests] == [1, 1, 3, 3]
    for forest in model.forests:
        assert (forest.n_trees, forest.bootstrap, forest.max_depth) == (100, True, None)
        assert isinstance(forest.out_of_sample, OutOfBag)
    assert isinstance(model.augment, LabelLinks)
    assert model.augment.n_folds == 5
    augment = model.augment.augment
    assert isinstance(augment, Interactions)
    assert (augment.n_trees, augment.depth, augment.branches) == (20, 5, 2)
    assert (augment.n_bootstraps, augment.min_stability) == (10, 0.5)
    assert (augment.path_rule, augment.emit, augment.score) == ("first", "leaves", "distance")
    assert (augment.n_interactions, augment.threshold_rule, augment.labels) == (60, "median", "none")  # ours
    assert (model.max_layers, model.length.n, model.scoring, model.score_folds) == (1, 2, "micro_auroc", None)
    assert isinstance(model.length, Patience)
    assert not model.crossover
    assert not model.cumulative
    assert model.impute is None
    assert [type(forest) for forest in imldf(forest_kinds="rf", n_forests=3).forests] == [RandomForest] * 3
    for leaf, expected in ((4, [4] * 5), ([1, 5, 9], [1, 1, 5, 5, 9]), ((2,), [2] * 5)):
        forests = imldf(min_samples_leaf=leaf, n_forests=5).forests
        assert [forest.min_samples_leaf for forest in forests] == expected
    changed = imldf(n_interactions=7, keep_forests=True).augment.augment
    assert (changed.n_interactions, changed.keep_forests) == (7, True)
    with pytest.raises(ValueError, match="belong to the augmenter"):
        imldf(augment=Interactions(3), keep_forests=True)
    with pytest.raises(ValueError, match="forest_kinds must be one of 'both', 'rf', got 'et'"):
        imldf(forest_kinds="et")


def test_the_best_layer_is_kept():
    model = small(length=Patience(2), max_layers=6).fit(X, Y_OBSERVED)
    assert model.history_["score"].idxmax() == model.n_layers_ - 1
    assert len(model.layers_) == model.n_layers_
    assert set(model.interactions_["layer"]) == set(range(1, model.n_layers_ + 1))


# ------------------------------------------------------------------------------------------------ planted rules


def planted(n=600, seed=0):
    """A label is there where two of eight features are large; a tenth of the rows are wrong."""
    rng = np.random.default_rng(seed)
    rows = rng.random((n, 8))
    label = (rows[:, 1] > 0.5) & (rows[:, 2] > 0.5)
    label ^= rng.random(n) < 0.05
    return rows, np.column_stack([label, ~label]).astype(int)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("miner", ["intersection_trees", "prevalence"])
@pytest.mark.parametrize("threshold_rule", ["relax", "median"])
def test_a_planted_rule_is_found(miner, threshold_rule, seed):
    rows, labels = planted(seed=seed)
    augment = Interactions(10, miner=miner, threshold_rule=threshold_rule)
    options = {"length": FixedLength(), "score_folds": None, "random_state": 0}
    model = imldf(30, n_forests=2, max_layers=2, augment=augment, **options)
    model.fit(rows, labels)
    layer = model.interactions_[model.interactions_["layer"] == 1]
    first = layer.iloc[0]
    assert re.fullmatch(r"x1 > \S+ and x2 > \S+", first["rule"])
    assert first["stability"] == layer["stability"].max() >= 0.9
    assert first["0"] > labels[:, 0].mean()
    if threshold_rule == "median":
        assert_allclose(model.layers_[0].augment.rules_.threshold[:2], 0.5, atol=0.05)
        assert first["0"] > 0.8
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[1:3].min() > 1.5 * np.delete(importances, [1, 2]).max()
    new, truth = planted(seed=9)
    assert auroc(truth, model.predict_proba(new)) > 0.9


# ------------------------------------------------------------------------------------------------ what is kept


@dataclass(frozen=True)
class InnerTrees:
    """Forests whose number of trees matters in inner layers only."""

    n_trees: int

    def __call__(self, number):
        return [RandomForest(8 if number == 3 else self.n_trees, out_of_sample=OutOfBag())] * 2


def test_inner_forests_are_not_kept():
    model = fitted()
    assert [len(layer.forests) for layer in model.layers_] == [0, 0, 2]
    assert [len(layer.judges) for layer in model.layers_] == [0, 0, 2]
    assert all(layer.augment is not None for layer in model.layers_)
    kept = fitted(keep_forests=True)
    assert [len(layer.forests) for layer in kept.layers_] == [2, 2, 2]
    assert_same(kept, model, TABLE_NEW)
    assert_array_equal(kept.feature_importances_, model.feature_importances_)
    *_, last = kept.staged_predict_proba(TABLE_NEW)
    assert_array_equal(last, model.predict_proba(TABLE_NEW))
    forests = sum(forest.nbytes for forest in model.layers_[-1].forests)
    assert forests < model.model_size_ < forests + 3 * 5000
    assert kept.model_size_ > 2 * model.model_size_


@pytest.mark.parametrize(
    "options",
    [
        {"n_interactions": 20, "threshold_rule": "median"},
        {"score": "none", "threshold_rule": "median", "miner": "prevalence"},
        {"labels": "none", "score": "importance"},
        {"labels": "svd", "max_components": 3},
        {"crossfit": 3, "crossover": True},
        {"cumulative": True},
    ],
)
def test_columns_that_no_layer_reads_are_not_missed(options):
    """A cascade without forests makes only those columns that later rules ask for; the others make all."""
    model, kept = (small(max_layers=4, keep_forests=keep, **options).fit(X, Y_OBSERVED) for keep in (False, True))
    assert_same(model, kept)
    rows = X_NEW.copy()
    rows[::2, 0], rows[1::3, 2] = np.nan, np.nan
    assert_same(model, kept, rows)


def test_the_size_does_not_grow_with_inner_trees():
    sizes = {}
    for keep in (False, True):
        for n_trees in (5, 100):
            model = small(forests=InnerTrees(n_trees), keep_forests=keep, n_bootstraps=2).fit(X, Y_OBSERVED)
            sizes[keep, n_trees] = len(pickle.dumps(model))
    assert abs(sizes[False, 100] / sizes[False, 5] - 1) < 0.1
    assert sizes[True, 100] > 5 * sizes[False, 100]


def test_stages_need_forests():
    with pytest.raises(ValueError, match=r"needs the forests of every layer.*keep_forests=True"):
        fitted().staged_predict_proba(TABLE_NEW)
    one = small(max_layers=1).fit(X, Y_OBSERVED)
    (proba,) = one.staged_predict_proba(X_NEW)
    assert_array_equal(proba, one.predict_proba(X_NEW))


@pytest.mark.parametrize("options", [{}, {"labels": "svd"}, {"score": "importance", "cumulative": True}])
def test_a_row_alone_is_a_row_among_others(options, monkeypatch):
    model = fitted(**options)
    proba, features, told = (ask(TABLE_NEW) for ask in (model.predict_proba, model.transform, model.explain))
    for i in range(0, len(X_NEW), 9):
        row = TABLE_NEW.iloc[i : i + 1]
        assert_array_equal(model.predict_proba(row)[0], proba[i])
        assert_array_equal(model.transform(row)[0], features[i])
        alone = told[told["row"] == f"new {i}"].reset_index(drop=True)
        pd.testing.assert_frame_equal(model.explain(row), alone)
    monkeypatch.setattr("sylvan.cascade.layer._BLOCK_NUMBERS", 40)  # six rows at a time
    assert_array_equal(model.predict_proba(TABLE_NEW), proba)
    pd.testing.assert_frame_equal(model.explain(TABLE_NEW), told)


def test_jobs_and_seeds():
    model = small().fit(X, Y_OBSERVED)
    for n_jobs in (1, 2):
        assert_same(small(n_jobs=n_jobs).fit(X, Y_OBSERVED), model)
    assert_same(small(random_state=np.random.RandomState(0)).fit(X, Y_OBSERVED), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)
    assert_same(clone(model).fit(X, Y_OBSERVED), model)
    other = small(random_state=1).fit(X, Y_OBSERVED)
    assert (other.predict_proba(X_NEW) != model.predict_proba(X_NEW)).any()
    assert list(other.interactions_["rule"]) != list(model.interactions_["rule"])


class Stopped(Exception):
    pass


def test_a_fit_that_was_stopped_ends_with_the_same_model(tmp_path):
    expected = small().fit(X, Y_OBSERVED)

    def stop(event):
        if event.record.layer == layer:
            raise Stopped

    for layer in (1, 2, 3):
        folder = tmp_path / str(layer)
        with pytest.raises(Stopped):
            small(callbacks=[stop]).fit(X, Y_OBSERVED, checkpoint_dir=folder)
        assert_same(small().fit(X, Y_OBSERVED, checkpoint_dir=folder), expected)
        for other in ({"threshold_rule": "median"}, {"n_interactions": 7}, {"keep_forests": True}):
            with pytest.raises(ValueError, match="other data, other parameters or another version"):
                small(**other).fit(X, Y_OBSERVED, checkpoint_dir=folder)


# ------------------------------------------------------------------------------------------------ combinations


def check(model, rows=X_NEW, n_labels=4):
    """What holds for every fitted cascade with rules."""
    proba = model.predict_proba(rows)
    assert ((proba >= 0) & (proba <= 1)).all()
    features = model.transform(rows)
    assert np.isfinite(features).all()
    assert features.shape[1] == len(model.get_feature_names_out())
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1) or not importances.any()
    assert (importances >= 0).all()
    table = model.interactions_
    assert table.index.is_unique
    assert table.shape[1] == 6 + n_labels
    sums = table.iloc[:, 6:].sum(axis=1)
    assert (np.isclose(sums, 1) | (sums == 0)).all()
    told = model.explain(rows)
    assert set(told["interaction"]) <= set(table.index)
    assert (told["score"] >= 0).all()
    for name in table.index[-2:]:
        assert model.expand_interaction(name).startswith(f"{name}: ")
    np.testing.assert_array_equal(model.predict_proba(rows[:1])[0], proba[0])


@pytest.mark.parametrize("cumulative", [False, True])
def test_importances_by_hand(cumulative):
    """What a rule's columns are worth goes to the features of all rules, each counting the same."""
    model = small(cumulative=cumulative).fit(X, Y_OBSERVED)
    blocks = []  # what the features have of each layer's block
    for layer in model.layers_[:-1]:
        rules = conditions(miner_of(layer).rules_)
        width = sum(layer.widths)
        share = np.zeros(6)
        for rule in rules:
            for column, *_ in rule:
                part = 1 / len(rule) / len(rules)
                if column >= width:
                    share[column - width] += part
                else:
                    share += part * blocks[column // 30 if cumulative else -1]
        blocks.append(share)
    total = np.zeros(6)
    for forest in model.layers_[-1].forests:
        importance = forest.feature_importances_
        total += importance[-6:] / 2
        for number, block in enumerate(blocks if cumulative else blocks[-1:]):
            total += importance[30 * number : 30 * (number + 1)].sum() * block / 2
        assert importance[:-6].sum() > 0.2
    assert_allclose(model.feature_importances_, total / total.sum(), atol=1e-12)


class Listener(OutputSpace):
    """An augmenter that remembers what it was shown, in all its clones."""

    shown: list = []  # noqa: RUF012

    def fit_transform(self, view):
        self.shown.append(view)
        return super().fit_transform(view)


def test_what_an_augmenter_is_shown():
    Listener.shown.clear()
    weight = np.arange(140) % 4 + 0.5 * (np.arange(140) % 2)
    model = DeepForestClassifier([RF, ET], augment=Listener(), crossover=True, max_layers=3, random_state=0)
    model.fit(X, Y_OBSERVED, sample_weight=weight)
    second = Listener.shown[1]
    assert_array_equal(second.sample_weight / second.sample_weight.max(), weight / weight.max())
    assert_array_equal(second.used, weight > 0)
    assert_array_equal(second.labels[weight > 0], Y_OBSERVED[weight > 0])
    first = Listener.shown[0].probas
    whole = np.hstack([*first, X])
    assert_array_equal(second.columns(np.array([0, 5, 9, 13])), whole[:, [0, 5, 9, 13]])
    for slot, columns in enumerate(([4, 5, 6, 7], [0, 1, 2, 3])):  # with crossover, the other forest's block
        assert_array_equal(second.columns_of(slot), [*columns, *range(8, 14)])
        assert_array_equal(second.input_of(slot), whole[:, second.columns_of(slot)])
    assert second.encoded(RF).shape == (140, 14)
    assert Listener.shown[0].random_state != second.random_state


def test_imputers():
    rows, labels = planted(300)
    hidden = hide_positives(labels, 0.4, random_state=0)
    new, truth = planted(seed=5)
    for impute in (StrictLabelComplement(threshold=0.3), FluidLabelAddition()):
        model = small(impute=impute).fit(rows, hidden)
        check(model, new, 2)
        added = np.asarray(model.imputed_labels_) > hidden
        assert added.sum() > 10
        chance = labels[hidden == 0].mean()
        assert labels[added].mean() > chance + 0.2
        listed = model.suggest_labels(top=20)
        assert labels[listed["row"], listed["label"].astype(int)].mean() > chance + 0.2
        assert auroc(truth, model.predict_proba(new)) > 0.85
        assert model.complete(rows, hidden).shape == labels.shape
    # Rules of layer 2 count the labels that its forests learnt.
    second = model.interactions_[model.interactions_["layer"] == 2].index
    told = model.explain(rows)
    stages = [np.asarray(given) for given in (hidden, model.imputed_labels_)]
    for k, name in enumerate(second):
        inside = told.loc[told["interaction"] == name, "row"]
        low, high = (given[inside].sum(axis=0) for given in stages)
        counts = model.layers_[1].augment.label_counts_[k]
        assert (low <= counts).all()
        assert (counts <= high).all() or not isinstance(model.impute, StrictLabelComplement)
    assert (model.layers_[1].augment.label_rates_ > model.layers_[0].augment.label_rates_).any()


@pytest.mark.parametrize("crossover", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_rules_beside_probabilities(crossover, first):
    parts = [published(5), OutputSpace()]
    augment = Union(parts if first == 0 else parts[::-1])
    model = small(augment=augment, crossover=crossover, max_layers=2).fit(X, Y_OBSERVED)
    check(model)
    assert all(layer.forests for layer in model.layers_)
    assert model.layers_[1].widths == [4, 4, 25]
    assert model.layers_[1].visible == ([[1, 2], [0, 2]] if crossover else [[0, 1, 2]] * 2)
    features = model.transform(X_NEW)
    said = [forest.predict_proba(X_NEW) for forest in model.layers_[0].forests]
    assert_array_equal(features[:, :8], np.hstack(said))
    rules = next(part for part in model.layers_[0].augment.parts_ if isinstance(part, Interactions))
    expected = naive.columns(conditions(rules.rules_), X_NEW, X, Y_OBSERVED, [True] * 140)
    assert_allclose(features[:, 8:33], expected, rtol=1e-5, atol=1e-6)
    names = model.get_feature_names_out()
    assert list(names[:8]) == [f"layer1_forest{slot}_{label}" for slot in (0, 1) for label in range(4)]
    assert list(names[8:14]) == [f"layer1_rule{k}_score" for k in range(1, 6)] + ["layer1_rule1_share_0"]
    for slot, forest in enumerate(model.layers_[1].forests):
        seen = [0, 1] if not crossover else [1 - slot]
        columns = np.hstack([*[said[block] for block in seen], features[:, 8:33], X_NEW])
        assert_array_equal(forest.predict_proba(columns), features[:, 33 + 4 * slot : 37 + 4 * slot])
    *_, last = model.staged_predict_proba(X_NEW)
    assert_array_equal(last, model.predict_proba(X_NEW))


def test_two_kinds_of_rules():
    parts = [published(4), published(3, miner="prevalence", labels="none")]
    model = small(augment=Union(parts), max_layers=3)
    model.fit(TABLE, pd.DataFrame(Y_OBSERVED, columns=LABELS))
    assert list(model.interactions_.index) == [f"{layer}.{k}" for layer in (1, 2, 3) for k in range(1, 8)]
    assert [len(layer.forests) for layer in model.layers_] == [0, 0, 2]
    assert model.layers_[1].widths == [0, 0, 4 * 5, 3]
    check(model, TABLE_NEW)
    read_all(model, TABLE_NEW.iloc[:25])
    numbers = {int(name.split(".")[1]) for rule in model.interactions_["rule"] for name in referred(rule)}
    assert numbers & {1, 2, 3, 4}
    assert numbers & {5, 6, 7}
    first, second = model.layers_[0].augment.parts_
    given = [*conditions(first.rules_), *conditions(second.rules_)]
    told = model.explain(TABLE_NEW)
    for k, rule in enumerate(given, start=1):
        rows = [f"new {i}" for i, row in enumerate(X_NEW) if naive.holds(rule, row)]
        assert list(told.loc[told["interaction"] == f"1.{k}", "row"]) == rows


def test_rules_beside_embeddings():
    augment = Union([TreeEmbedding(2), published(4)])
    model = small(augment=augment, max_layers=2).fit(X, Y_OBSERVED)
    check(model)
    assert "score of 1." in " ".join(model.interactions_["rule"]) or "1." in " ".join(model.interactions_["rule"])


def test_rules_and_reuse():
    augment = MeasureAwareReuse("ranking_loss", augment=published(5))
    model = small(augment=augment, scoring="ranking_loss").fit(TABLE, pd.DataFrame(Y_OBSERVED, columns=LABELS))
    check(model, TABLE_NEW)
    assert len(model.thresholds_) == 3
    assert model.thresholds_[0] == 0
    assert max(model.thresholds_) > 0
    assert all(layer.forests for layer in model.layers_)  # whose word may be taken again
    read_all(model, TABLE_NEW.iloc[:15])
    plain = small(5, 2, scoring="ranking_loss").fit(TABLE, pd.DataFrame(Y_OBSERVED, columns=LABELS))
    assert list(plain.interactions_["rule"][:5]) == list(model.interactions_["rule"][:5])
    assert (plain.predict_proba(TABLE_NEW) != model.predict_proba(TABLE_NEW)).any()
    with pytest.raises(ValueError, match=r"MeasureAwareReuse refines .* cannot work with separate_forests=True"):
        small(augment=augment, separate_forests=True).fit(X, Y_OBSERVED)


@pytest.mark.parametrize(
    "options", [{}, {"crossover": True, "cumulative": True}, {"impute": StrictLabelComplement(threshold=0.3)}]
)
def test_separate_forests(options):
    model = small(separate_forests=True, **options).fit(X, Y_OBSERVED)
    check(model)
    plain = small(**options).fit(X, Y_OBSERVED)
    assert (model.predict_proba(X_NEW) != plain.predict_proba(X_NEW)).any()
    assert list(model.interactions_["rule"][:6]) == list(plain.interactions_["rule"][:6])
    *_, last = model.staged_predict_proba(X_NEW)
    assert_array_equal(last, model.predict_proba(X_NEW))


def test_cumulative_rules():
    model = small(cumulative=True, max_layers=3).fit(X, Y_OBSERVED)
    check(model)
    assert model.layers_[2].widths == [0, 0, 30, 0, 0, 30]
    assert model.transform(X_NEW).shape[1] == 60 + 8
    names = model.get_feature_names_out()
    assert names[0] == "layer1_rule1_score"
    assert names[30] == "layer2_rule1_score"


def test_other_forests():
    folds = RandomForest(5, out_of_sample=KFold(3))
    grouped = small(forests=[folds, CompletelyRandomForest(5, out_of_sample=KFold(3))], max_layers=2)
    check(grouped.fit(X, Y_OBSERVED, groups=np.arange(140) // 4))
    check(small(forests=[RF, CompletelyRandomForest(8, bootstrap=True, out_of_sample=OutOfBag())]).fit(X, Y_OBSERVED))
    for forests in ([from_sklearn(KNeighborsClassifier())], [RF, from_sklearn(KNeighborsClassifier())]):
        with pytest.raises(TypeError, match=r"Interactions needs fitted forests of sylvan.forests.*got FoldModels"):
            small(forests=forests).fit(X, Y_OBSERVED)


@pytest.mark.parametrize("crossover", [False, True])
def test_more_and_fewer_forests(crossover):
    model = small(forests=lambda number: [RF, ET, RF][: [2, 3, 2][number - 1]], crossover=crossover)
    check(model.fit(X, Y_OBSERVED))
    assert [len(layer.visible) for layer in model.layers_] == [2, 3, 2]
    assert model.layers_[1].visible == ([[1, 2], [0, 2], [0, 1, 2]] if crossover else [[0, 1, 2]] * 3)


def test_classes():
    y = np.array(["ash", "elm", "oak"])[Y[:, 0] + Y[:, 1]]
    model = small().fit(X, y)
    check(model, n_labels=3)
    assert list(model.interactions_.columns[6:]) == ["ash", "elm", "oak"]
    support = model.interactions_["support"].to_numpy()
    counts = model.interactions_[["ash", "elm", "oak"]].mul(support, axis=0)
    assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert (model.predict(X_NEW) == np.array(["ash", "elm", "oak"])[Y_NEW[:, 0] + Y_NEW[:, 1]]).mean() > 0.6
    two = small().fit(X, np.array(["no", "yes"])[Y[:, 0]])
    check(two, n_labels=1)
    assert list(two.interactions_.columns[6:]) == ["yes"]
    assert two.interactions_["says"].str.fullmatch(r"(yes \d+% \(all: \d+%\))?").all()


def test_unknown_labels():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    model = small(impute=FluidLabelAddition()).fit(X, labels)
    check(model)
    assert micro_auroc(Y_NEW, model.predict_proba(X_NEW)) > 0.8
    imputed = np.asarray(model.imputed_labels_)
    assert (imputed[~np.isnan(labels)] == labels[~np.isnan(labels)]).all()


def test_weights():
    weight = np.ones(140)
    weight[100:] = 0
    models = []
    for shift in (0, 50):  # other features and labels in rows that do not count
        rows, labels = X.copy(), Y_OBSERVED.copy()
        rows[100:] += shift
        labels[100:] = (labels[100:] + (shift > 0)) % 2
        models.append(small(crossfit=3, labels="svd").fit(rows, labels, sample_weight=weight))
    assert_same_rules(*models)
    assert models[0].interactions_["support"].max() <= 100
    check(models[0])
    everything = small(crossfit=3, labels="svd").fit(X, Y_OBSERVED)
    assert (everything.predict_proba(X_NEW) != models[0].predict_proba(X_NEW)).any()
    heavy = small().fit(X, Y_OBSERVED, sample_weight=np.where(Y_OBSERVED[:, 0], 10.0, 1.0))
    assert heavy.predict_proba(X_NEW)[:, 0].mean() > everything.predict_proba(X_NEW)[:, 0].mean() + 0.05


def assert_same_rules(one, other):
    pd.testing.assert_frame_equal(one.interactions_, other.interactions_)
    pd.testing.assert_frame_equal(one.explain(X_NEW), other.explain(X_NEW))
    assert_array_equal(one.predict_proba(X_NEW), other.predict_proba(X_NEW))


def test_sparse_rows():
    rows, new = np.where(X > 0, X, 0), np.where(X_NEW > 0, X_NEW, 0)
    dense, model = small().fit(rows, Y_OBSERVED), small().fit(sparse.csr_array(rows), Y_OBSERVED)
    assert_array_equal(model.predict_proba(sparse.csr_array(new)), dense.predict_proba(new))
    pd.testing.assert_frame_equal(model.interactions_, dense.interactions_)
    pd.testing.assert_frame_equal(model.explain(sparse.csr_array(new)), dense.explain(new))


def test_the_representation_of_training_rows():
    model = small(crossfit=3, max_layers=2)
    features = model.fit_transform(X, Y_OBSERVED)
    again = model.transform(X)
    assert features.shape == again.shape == (140, 6 * 5 + 2 * 4)
    assert_array_equal(features[:, :6], again[:, :6])  # scores know nothing of labels
    assert (features[:, 6:30] != again[:, 6:30]).any()
    assert_allclose(features[:, 30:].reshape(140, 2, 4).mean(axis=1), model.oos_proba_, atol=1e-15)
    table = small(max_layers=2).set_output(transform="pandas").fit_transform(TABLE, Y_OBSERVED)
    assert list(table.index) == list(TABLE.index)
    assert list(table.columns[:7]) == [f"layer1_rule{k}_score" for k in range(1, 7)] + ["layer1_rule1_share_0"]


def test_layers_without_rules():
    """One feature has no interactions: all layers see X alone, and say so once."""
    with pytest.warns(UserWarning, match="No interaction was found") as caught:
        model = small().fit(X[:, :1], Y_OBSERVED)
    assert sum("No interaction" in str(warning.message) for warning in caught) == 1
    check(model, X_NEW[:, :1])
    assert model.interactions_.empty
    assert model.explain(X_NEW[:, :1]).empty
    assert model.feature_importances_ == pytest.approx(1)


@pytest.mark.parametrize("value", [0, 1])
def test_nothing_to_learn(value):
    with pytest.warns(UserWarning, match="No interaction was found"):
        model = small().fit(X, np.full_like(Y, value))
    check(model)
    assert (model.predict_proba(X_NEW) == value).all()


# ------------------------------------------------------------------------------------------------ any settings


SETTINGS = st.fixed_dictionaries(
    {
        "n_interactions": st.integers(1, 12),
        "miner": st.sampled_from(["intersection_trees", "prevalence"]),
        "n_trees": st.sampled_from([1, 5, 20]),
        "depth": st.integers(2, 5),
        "branches": st.integers(1, 3),
        "emit": st.sampled_from(["leaves", "all"]),
        "path_rule": st.sampled_from(["first", "tightest"]),
        "threshold_rule": st.sampled_from(["relax", "tighten", "median"]),
        "max_depth": st.sampled_from([None, 1, 2, 6]),
        "min_order": st.integers(1, 3),
        "min_support": st.sampled_from([1, 5, 20]),
        "n_bootstraps": st.integers(0, 3),
        "min_stability": st.sampled_from([0.0, 0.5, 1.0]),
        "forest": st.sampled_from([None, RandomForest(3), ExtraTrees(2, max_depth=3)]),
        "feature_subset": st.sampled_from(["none", "importance"]),
        "score": st.sampled_from(["distance", "importance", "none"]),
        "scale": st.sampled_from(["std", "none"]),
        "labels": st.sampled_from(["full", "svd", "none"]),
        "max_components": st.sampled_from([1, 3, 30]),
        "crossfit": st.sampled_from([None, 2, 5]),
        "keep_forests": st.booleans(),
    }
).filter(lambda settings: (settings["score"], settings["labels"]) != ("none", "none"))


@given(SETTINGS, st.booleans(), st.booleans(), st.integers(0, 10**6))
@examples(15)
def test_any_settings_keep_the_promises(settings, crossover, cumulative, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(12, 60)), int(rng.integers(1, 6))
    rows = rng.integers(0, 4, (n, d)) if rng.random() < 0.3 else rng.normal(size=(n, d))
    rows = np.where(rng.random((n, d)) < rng.choice([0, 0.2]), np.nan, rows)
    labels = (rng.random((n, int(rng.integers(1, 4)))) < rng.choice([0.1, 0.5])).astype(int)
    weight = None if rng.random() < 0.5 else rng.integers(0, 3, n) + (np.arange(n) < 6)
    model = DeepForestClassifier(
        [RandomForest(4, out_of_sample=OutOfBag()), ExtraTrees(4, bootstrap=True, out_of_sample=OutOfBag())],
        augment=Interactions(**settings),
        crossover=crossover,
        cumulative=cumulative,
        max_layers=3,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model.fit(rows, labels, sample_weight=weight)
        check(model, rows, labels.shape[1])
    table, used = model.interactions_, np.ones(n, bool) if weight is None else weight > 0
    assert (table.groupby("layer").size() <= settings["n_interactions"]).all()
    assert (table["support"] >= settings["min_support"]).all()
    assert (table["order"] >= settings["min_order"]).all()
    told = model.explain(rows)
    if settings["crossfit"] is not None:  # later layers are told other distributions of training rows than of new ones
        table, told = table[table["layer"] == 1], told[told["layer"] == 1]
    counts = told.loc[used[told["row"].astype(int)], "interaction"].value_counts()
    assert_array_equal(counts.reindex(table.index, fill_value=0), table["support"])
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(rows), model.predict_proba(rows))
    pd.testing.assert_frame_equal(copy.explain(rows), model.explain(rows))
