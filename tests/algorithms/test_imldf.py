"""iMLDF: layers of rules. Its cascade against one written out by hand, its rules in words, and all combinations."""

import pickle
import re
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

import naive_regions as naive
from cascade.naive_cascade import MAX_SEED, auroc, make_weak_labels
from strategies import examples
from sylvan import DeepForestClassifier, imldf, mldf, rf_et
from sylvan.cascade.augment import Interactions, MeasureAwareReuse, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.contracts import LayerView, parts_of
from sylvan.cascade.length import FixedLength, Patience
from sylvan.datasets import hide_positives
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest, from_sklearn
from sylvan.labels.impute import FluidLabelAddition, StrictLabelComplement
from sylvan.measures import micro_auroc

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

X, Y, Y_OBSERVED = make_weak_labels()
X = X.round(1)
X_NEW, Y_NEW, _ = make_weak_labels(seed=1)
X_NEW = X_NEW.round(1)
FEATURES = ["age", "body mass", "c", "d", "e", "f"]
LABELS = ["ash", "beech", "elm", "oak"]
TABLE = pd.DataFrame(X, columns=FEATURES, index=[f"row {i}" for i in range(len(X))])
TABLE_NEW = pd.DataFrame(X_NEW, columns=FEATURES, index=[f"new {i}" for i in range(len(X_NEW))])
RF = RandomForest(8, out_of_sample=OutOfBag())
ET = ExtraTrees(8, bootstrap=True, out_of_sample=OutOfBag())


def published(n_interactions, n_bootstraps=2, **settings):
    """Interactions as in the paper, which has more kinds of columns than the default."""
    return Interactions(
        n_interactions, n_bootstraps=n_bootstraps, **{"threshold_rule": "relax", "labels": "full"} | settings
    )


def small(n_interactions=6, n_bootstraps=3, **options):
    """A cascade on rules; options of `Interactions` are those that it knows."""
    known = Interactions().get_params()
    settings = {name: options.pop(name) for name in list(options) if name in known}
    augment = published(n_interactions, n_bootstraps, **settings)
    defaults = {"augment": augment, "n_forests": 2, "length": FixedLength(), "max_layers": 3, "random_state": 0}
    return imldf(8, **{"score_folds": None} | defaults | options)


@cache
def fitted(**options):
    """A model for tests that only look at it."""
    return small(**options).fit(TABLE, pd.DataFrame(Y_OBSERVED, columns=LABELS))


def assert_same(one, other, rows=X_NEW):
    assert_array_equal(one.predict_proba(rows), other.predict_proba(rows))
    assert_array_equal(one.transform(rows), other.transform(rows))
    assert_array_equal(one.oos_proba_, other.oos_proba_)
    pd.testing.assert_frame_equal(one.interactions_, other.interactions_)
    pd.testing.assert_frame_equal(one.explain(rows), other.explain(rows))
    pd.testing.assert_frame_equal(one.mining_report_, other.mining_report_)


def miner_of(layer):
    (miner,) = parts_of(layer.augment)
    return miner


def conditions(rules):
    """The conditions of each rule as (column, greater, threshold)."""
    out = []
    for first, last in zip(rules.start[:-1], rules.start[1:]):
        where = range(first, last)
        out.append([(int(rules.column[c]), bool(rules.greater[c]), float(rules.threshold[c])) for c in where])
    return out


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
    for forest in model.forests:
        assert (forest.n_trees, forest.bootstrap, forest.max_depth) == (100, True, None)
        assert isinstance(forest.out_of_sample, OutOfBag)
    augment = model.augment
    assert (augment.n_trees, augment.depth, augment.branches) == (20, 5, 2)
    assert (augment.n_bootstraps, augment.min_stability) == (10, 0.5)
    assert (augment.path_rule, augment.emit, augment.score) == ("first", "leaves", "distance")
    assert (augment.n_interactions, augment.threshold_rule, augment.labels) == (10, "median", "none")  # ours
    assert (model.max_layers, model.length.n, model.scoring, model.score_folds) == (10, 2, "micro_auroc", 3)
    assert isinstance(model.length, Patience)
    assert not model.crossover
    assert not model.cumulative
    assert model.impute is None
    assert [type(forest) for forest in imldf(forest_kinds="rf", n_forests=3).forests] == [RandomForest] * 3
    changed = imldf(n_interactions=7, keep_forests=True).augment
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
    monkeypatch.setattr("sylvan.cascade.passing._BLOCK_NUMBERS", 40)  # six rows at a time
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
            with pytest.raises(ValueError, match="other data or other parameters"):
                small(**other).fit(X, Y_OBSERVED, checkpoint_dir=folder)


# ------------------------------------------------------------------------------------------------ the table of rules


def test_the_table():
    table = fitted().interactions_
    assert list(table.columns) == ["layer", "rule", "order", "stability", "support", "says", *LABELS]
    assert table.index.name == "interaction"
    assert list(table.index) == [f"{layer}.{k}" for layer in (1, 2, 3) for k in range(1, 7)]
    assert list(table["layer"]) == [1] * 6 + [2] * 6 + [3] * 6
    assert (table["order"] >= 2).all()
    assert table["support"].between(10, 140).all()
    assert_allclose(table[LABELS].sum(axis=1), 1)
    assert set(np.unique((table["stability"] * 3).round(9))) <= {0, 1, 2, 3}
    assert (table.groupby("layer")["stability"].diff().dropna() <= 0).all()


def test_what_rules_say():
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 30)
    labels = pd.DataFrame({"both": rows.all(axis=1), "one": rows.any(axis=1), "same": [1, 0, 0, 0] * 30}).astype(int)
    model = small(forests=[RF], n_interactions=20, max_layers=1).fit(rows, labels)
    says = dict(zip(model.interactions_["rule"], model.interactions_["says"]))
    assert says["x0 > 0.5 and x1 > 0.5"] == "both 100% (all: 25%), one 100% (all: 75%), same 0% (all: 25%)"
    assert says["x0 <= 0.5 and x1 <= 0.5"] == "one 0% (all: 75%), same 100% (all: 25%), both 0% (all: 25%)"
    inside = model.interactions_.set_index("rule").loc["x0 > 0.5 and x1 > 0.5"]
    assert inside["support"] == 30
    assert inside[["both", "one", "same"]].tolist() == [0.5, 0.5, 0.0]


def test_only_the_labels_that_differ_most_are_named():
    model = fitted()
    rates = Y_OBSERVED.mean(axis=0)
    for (name, line), counts in zip(model.interactions_.iterrows(), model.layers_[0].augment.label_counts_):
        shares = counts / line["support"]
        most = np.argsort(-np.abs(shares - rates), kind="stable")[:3]
        told = [f"{LABELS[j]} {shares[j]:.0%} (all: {rates[j]:.0%})" for j in most if shares[j] != rates[j]]
        assert line["says"] == ", ".join(told), name


def test_names_of_labels():
    strange = ["rule", "layer", "says", "interaction"]
    model = small(max_layers=2).fit(X, pd.DataFrame(Y_OBSERVED, columns=strange))
    expected = ["label rule", "label layer", "label says", "interaction"]
    assert list(model.interactions_.columns[6:]) == expected
    assert model.interactions_.columns.is_unique
    assert list(model.interactions_["layer"]) == [1] * 6 + [2] * 6
    assert_allclose(model.interactions_[expected].sum(axis=1), 1)
    assert re.match(r"(rule|layer|says|interaction) \d+% \(all: \d+%\)", model.interactions_["says"].iloc[0])
    assert list(model.explain(X_NEW).columns) == ["row", "interaction", "layer", "rule", "stability", "score", "says"]

    plain = small(max_layers=2).fit(X, Y_OBSERVED)
    assert list(plain.interactions_.columns[6:]) == ["0", "1", "2", "3"]
    numbered = small(max_layers=2).fit(X, pd.DataFrame(Y_OBSERVED, columns=[7, 8, 9, 10]))
    assert list(numbered.interactions_.columns[6:]) == ["7", "8", "9", "10"]
    assert_array_equal(plain.interactions_.iloc[:, 6:], numbered.interactions_.iloc[:, 6:])


def test_names_of_features():
    text = " ".join(fitted().interactions_["rule"])
    assert "body mass" in text
    assert not re.search(r"\bx\d", text)
    plain = small().fit(X, Y_OBSERVED).interactions_["rule"]
    renamed = [re.sub(r"\bx(\d)", lambda found: FEATURES[int(found[1])], rule) for rule in plain]
    assert renamed == list(fitted().interactions_["rule"])


def test_the_report_of_mining():
    report = fitted().mining_report_
    assert {"layer", "depth", "n_trees", "candidates", "usable", "stable"} <= set(report.columns)
    for layer, lines in report.groupby("layer"):
        assert list(zip(lines["depth"], lines["n_trees"]))[:4] == [(5, 20), (4, 20), (3, 20), (2, 20)][: len(lines)]
        assert (lines["usable"] <= lines["candidates"]).all()
        assert miner_of(fitted().layers_[layer - 1]).mining_report_["kept"] == 6
    exact = small(miner="prevalence", max_layers=2).fit(X, Y_OBSERVED).mining_report_
    assert set(exact["layer"]) == {1, 2}
    assert exact["n_trees"].isna().all()


# ------------------------------------------------------------------------------------------------ rules in words


class Words:
    """Reads rules as people do: asks whether a rule in words holds for a row of named features.

    `scores` has the score of each rule that holds, as `explain` tells it.
    """

    def __init__(self, rules, features, scores):
        self.rules, self.features, self.scores, self.used = rules, features, scores, set()

    def holds(self, name):
        return all(self.condition(text) for text in self.rules[name].split(" and "))

    def condition(self, text):
        for kind in ("does not hold", "holds"):
            if text.endswith(kind):
                self.used.add(kind)
                return self.holds(text.removesuffix(f" {kind}")) == (kind == "holds")
        both = re.fullmatch(r"(\S+) < (.+) <= (\S+)", text)
        if both:
            self.used.add("both")
            low, name, high = both.groups()
            return float(low) < self.value(name) <= float(high)
        name, sign, threshold = re.fullmatch(r"(.+) (>|<=) (\S+)", text).groups()
        return self.value(name) > float(threshold) if sign == ">" else self.value(name) <= float(threshold)

    def value(self, name):
        if name in self.features:
            return self.features[name]
        self.used.add("score")
        return float(np.float32(self.scores.get(name.removeprefix("score of "), 0.0)))  # as columns store it


def read_all(model, table):
    """Read all rules for all rows: they must hold where explain says so. Return which kinds of words were read."""
    told = model.explain(table)
    rules, used = model.interactions_["rule"], set()
    for name, row in table.iterrows():
        mine = told[told["row"] == name]
        words = Words(rules, row.to_dict(), dict(zip(mine["interaction"], mine["score"])))
        assert [rule for rule in rules.index if words.holds(rule)] == list(mine["interaction"]), name
        used |= words.used
    return used


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"score"}),
        (
            {"n_interactions": 20, "threshold_rule": "median", "path_rule": "tightest"},
            {"score", "holds", "does not hold"},
        ),
        ({"score": "none", "miner": "prevalence", "n_interactions": 20, "threshold_rule": "median"}, {"does not hold"}),
        ({"labels": "none", "n_interactions": 20, "threshold_rule": "median", "path_rule": "tightest"}, {"both"}),
        ({"cumulative": True, "max_layers": 4, "miner": "prevalence"}, {"score"}),
    ],
)
def test_words_are_true(options, expected):
    """On new rows, some with missing values; rules of later layers are read with those that they refer to."""
    table = TABLE_NEW.iloc[:30].copy()
    table.iloc[:8, 0], table.iloc[4:12, 2], table.iloc[9] = np.nan, np.nan, np.nan
    used = read_all(fitted(**options), table)
    assert expected <= used


def test_supports_are_true():
    model = fitted()
    told = model.explain(TABLE)
    counts = told["interaction"].value_counts()
    assert_array_equal(counts.reindex(model.interactions_.index, fill_value=0), model.interactions_["support"])
    for name, line in model.interactions_.iterrows():
        rows = TABLE.index.isin(told.loc[told["interaction"] == name, "row"])
        labels = Y_OBSERVED[rows].sum(axis=0)
        assert_allclose(line[LABELS].astype(float), labels / labels.sum())
    read_all(model, TABLE.iloc[:30])
    words = model.interactions_["rule"][:6]
    readers = [Words(words, row.to_dict(), {}) for _, row in TABLE.iterrows()]
    support = [sum(reader.holds(name) for reader in readers) for name in words.index]
    assert_array_equal(support, model.interactions_["support"][:6])


def test_words_about_years():
    """Integers of four digits and more, whose thresholds lie half way between them."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(2015, 2026, (300, 2)), rng.integers(100_000, 100_020, 300)]).astype(float)
    label = (rows[:, 0] > 2020) & (rows[:, 1] <= 2021)
    table = pd.DataFrame(rows, columns=["year", "until", "income"])
    model = small(10, threshold_rule="median", max_layers=2).fit(table, np.column_stack([label, ~label]).astype(int))
    assert "year > 2020.5 and until <= 2021.5" in set(model.interactions_["rule"])
    read_all(model, table.iloc[:60])


def test_scores_are_distances_from_the_border():
    model = fitted()
    rules = naive.with_worth(conditions(model.layers_[0].augment.rules_), X, [True] * 140, scale=True)
    told = model.explain(TABLE_NEW)
    told = told[told["layer"] == 1].set_index(["row", "interaction"])["score"]
    for i, row in enumerate(X_NEW):
        for k, rule in enumerate(rules, start=1):
            expected = naive.distance_score(rule, row)
            assert told.get((f"new {i}", f"1.{k}"), 0.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("labels", ["svd", "full"])
def test_columns_that_are_not_single_rules_go_by_their_names(labels):
    options = {"score": "none", "crossfit": 3, "threshold_rule": "median", "max_layers": 2}
    model = small(20, labels=labels, **options).fit(X, Y_OBSERVED)
    text = " ".join(model.interactions_["rule"])
    assert re.search(
        r"layer1_rules_component\d+ (>|<=) " if labels == "svd" else r"layer1_rule\d+_share_\d (>|<=) ", text
    )
    assert "hold" not in text


# ------------------------------------------------------------------------------------------------ explain


def test_what_explain_tells():
    model = fitted()
    told = model.explain(TABLE_NEW)
    assert list(told.columns) == ["row", "interaction", "layer", "rule", "stability", "score", "says"]
    assert list(told.index) == list(range(len(told)))
    assert list(dict.fromkeys(told["row"])) == [name for name in TABLE_NEW.index if name in set(told["row"])]
    rules = model.interactions_.loc[told["interaction"]]
    for name in ("layer", "rule", "stability", "says"):
        assert_array_equal(told[name], rules[name])
    places = told["interaction"].map({name: k for k, name in enumerate(model.interactions_.index)})
    for _, mine in told.groupby("row"):
        assert places[mine.index].is_monotonic_increasing


def test_forms_of_rows():
    model = small().fit(X, Y_OBSERVED)
    told = model.explain(X_NEW)
    assert told["row"].dtype.kind == "i"
    for form in (pd.DataFrame, sparse.csr_array, np.ndarray.tolist):
        pd.testing.assert_frame_equal(model.explain(form(X_NEW)), told)
    dates = pd.date_range("2024-01-01", periods=len(X_NEW))
    named = model.explain(pd.DataFrame(X_NEW, index=dates))
    assert_array_equal(named["row"], dates[told["row"]])
    shuffled = model.explain(pd.DataFrame(X_NEW, index=np.arange(len(X_NEW))[::-1]))
    assert_array_equal(shuffled["row"], len(X_NEW) - 1 - told["row"])


def test_rows_for_which_no_rule_holds():
    model = small().fit(X, Y_OBSERVED)
    nowhere = np.full((2, 6), np.nan)
    first = model.explain(nowhere)
    assert 1 not in set(first["layer"])  # rules of later layers may hold where others do not
    one = small(max_layers=1).fit(X, Y_OBSERVED)
    assert one.explain(nowhere).empty
    assert list(one.explain(nowhere).columns) == list(first.columns)
    mixed = one.explain(np.vstack([nowhere[:1], X_NEW[:1], nowhere[:1]]))
    assert set(mixed["row"]) == {1}


def test_rows_are_checked():
    with pytest.raises(ValueError, match="X has 5 features, but DeepForestClassifier is expecting 6"):
        small(max_layers=1).fit(X, Y_OBSERVED).explain(X_NEW[:, :5])
    with pytest.raises(ValueError, match="Feature names"):
        fitted().explain(TABLE_NEW[FEATURES[::-1]])


# ------------------------------------------------------------------------------------------------ expand


def referred(text):
    """The rules that a rule in words refers to, each once."""
    found = re.findall(r"score of (\d+\.\d+)|(\d+\.\d+) (?:holds|does not hold)", text)
    return list(dict.fromkeys(one or other for one, other in found))


@pytest.mark.parametrize("options", [{}, {"cumulative": True, "max_layers": 4, "miner": "prevalence"}])
def test_rules_are_spelt_out(options):
    model = fitted(**options)
    rules = model.interactions_["rule"]
    deepest = 0
    for name in rules.index:
        lines = model.expand_interaction(name).split("\n")
        assert lines[0] == f"{name}: {rules[name]}"
        names = [line.strip().split(": ")[0] for line in lines]
        assert len(set(names)) == len(names)
        wanted, reached = [name], set()
        while wanted:
            at = wanted.pop()
            reached.add(at)
            wanted += [other for other in referred(rules[at]) if other not in reached]
        assert set(names) == reached
        levels = [(len(line) - len(line.lstrip())) // 2 for line in lines]
        deepest = max(deepest, *levels)
        for at, (line, level) in enumerate(zip(lines, levels)):
            assert line == f"{'  ' * level}{names[at]}: {rules[names[at]]}"
            if at:  # it is below one that refers to it
                above = max(i for i in range(at) if levels[i] == level - 1)
                assert names[at] in referred(rules[names[above]])
    assert deepest >= 2


def test_how_far_rules_are_spelt_out():
    model = fitted()
    rules = model.interactions_["rule"]
    full = {name: model.expand_interaction(name).split("\n") for name in rules.index}
    name = max(full, key=lambda rule: len(full[rule]))
    assert model.expand_interaction(name, depth=0) == full[name][0]
    for depth in (1, 2, 3):
        expected = [line for line in full[name] if len(line) - len(line.lstrip()) <= 2 * depth]
        assert model.expand_interaction(name, depth=depth).split("\n") == expected
    assert len(model.expand_interaction(name, depth=1).split("\n")) == 1 + len(referred(rules[name]))


def test_rules_that_are_not_there():
    for name in ("9.9", "1.0", "1.7", "4.1", "1", "", 1.1, None):
        with pytest.raises(ValueError, match=r"There is no interaction .*see interactions_.index, e.g. '1.1'"):
            fitted().expand_interaction(name)
    for depth in (-1, 0.5, "2"):
        with pytest.raises(ValueError, match="depth must be an integer of at least 0"):
            fitted().expand_interaction("1.1", depth=depth)


# ------------------------------------------------------------------------------------------------ who has rules


@pytest.mark.parametrize("name", ["interactions_", "mining_report_", "explain", "expand_interaction"])
def test_cascades_without_rules(name):
    models = [rf_et(3), DeepForestClassifier([RF]), mldf(n_trees=3, n_folds=2, max_layers=1)]
    for model in [*models, *[clone(model).fit(X, Y_OBSERVED) for model in models]]:
        assert not hasattr(model, name)
        with pytest.raises(AttributeError) as caught:
            getattr(model, name)
        messages = f"{caught.value} {caught.value.__cause__}"
        assert "augment=Interactions(...)" in messages
        assert "imldf()" in messages


def test_rules_before_fit():
    model = small()
    for ask in (
        lambda: model.interactions_,
        lambda: model.mining_report_,
        lambda: model.explain(X),
        lambda: model.expand_interaction("1.1"),
    ):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            ask()


def test_thresholds():
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        mldf().thresholds_  # noqa: B018
    for model in (fitted(), rf_et(3).fit(X, Y_OBSERVED)):
        assert not hasattr(model, "thresholds_")
        with pytest.raises(AttributeError, match=r"augment=MeasureAwareReuse\(...\), as mldf\(\)"):
            model.thresholds_  # noqa: B018


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
