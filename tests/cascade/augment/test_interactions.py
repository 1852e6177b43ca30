"""What rules make of rows: scores, label distributions, components; and who has a say in them."""

from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier

import naive_regions as naive
from cascade.naive_cascade import make_weak_labels
from strategies import examples
from sylvan.cascade.augment import Interactions
from sylvan.cascade.augment.mining import Itemsets, Mined, bootstrap_paths, join_paths, mine, read_paths
from sylvan.cascade.augment.rules import Rules
from sylvan.cascade.contracts import LayerView
from sylvan.cascade.layer import pick_columns
from sylvan.forests import ExtraTrees, KFold, OutOfBag, RandomForest, from_sklearn

pytestmark = pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning")

X, _, Y = make_weak_labels()
X_NEW = make_weak_labels(seed=1)[0][:40]
RULES = [
    [(0, True, 0.0), (1, True, -0.5)],
    [(1, False, 0.3), (2, True, -0.2), (4, False, 1.0)],
    [(3, True, -0.4), (3, False, 0.9)],
    [(0, False, 0.0), (5, True, 0.1)],
]


def view_of(rows=X, labels=Y, used=None, forests=(None,), seed=0, **more):
    """A layer's view of training rows, whose forests see all columns."""
    n = rows.shape[0]
    return LayerView(
        list(forests),
        lambda slot: rows,
        np.zeros((len(forests), n, labels.shape[1])),
        np.asarray(labels, bool),
        seed,
        used,
        columns=lambda columns: pick_columns([], rows, columns),
        columns_of=lambda slot: np.arange(rows.shape[1]),
        encoded=lambda forest: forest.encode(rows, used),
        sample_weight=None if used is None else used.astype(float),
        **more,
    )


def new_view(rows):
    """A view of new rows; no forest was kept."""
    return LayerView([], lambda slot: rows, None, columns=lambda columns: pick_columns([], rows, columns))


def fixed(rules=RULES, rows=X, targets=Y, used=None, importance=None, seed=0, **settings):
    """Interactions that find given rules, whatever the forests say; and the features of the training rows."""
    width = max(map(len, rules))
    items, thresholds = np.full((len(rules), width), -1), np.full((len(rules), width), np.nan)
    for k, rule in enumerate(rules):
        for place, (column, greater, threshold) in enumerate(sorted(rule)):
            items[k, place], thresholds[k, place] = 2 * column + greater, threshold
    mined = Mined(Itemsets(items, thresholds), np.ones(len(rules)), np.ones(len(rules)), {"attempts": []})
    importance = np.ones(rows.shape[1]) if importance is None else importance
    augment = Interactions(n_bootstraps=0, **{"labels": "full"} | settings)
    none, block = augment.learn(view_of(rows, targets, used), mined, importance, np.random.RandomState(seed))
    assert none.shape == (rows.shape[0], 0)
    return augment, block


def block_of(augment, rows):
    return augment.transform(new_view(rows))[-1]


def everyone(rows):
    return [True] * len(rows)


# ------------------------------------------------------------------------------------------------ features


@pytest.mark.parametrize("scale", ["std", "none"])
def test_features_are_those_of_the_formulas(scale):
    augment, block = fixed(scale=scale)
    settings = {"X": X, "Y": Y, "used": everyone(X), "scale": scale == "std"}
    assert block.dtype == np.float32
    assert block.shape == (140, 4 * (1 + 4))
    assert_allclose(block, naive.columns(RULES, X, **settings), rtol=1e-6)
    assert_allclose(block_of(augment, X_NEW), naive.columns(RULES, X_NEW, **settings), rtol=1e-6)
    assert 0.05 < (block[:, :4] > 0).mean() < 0.95


def test_scores_add_up_plain_distances():
    _, block = fixed(
        [[(0, True, 1.0), (1, False, 5.0)]], np.array([[3.0, 1.0], [3.0, 6.0], [1.0, 1.0]]), Y[:3], scale="none"
    )
    assert_array_equal(block[:, 0], [2 + 4, 0, 0])


def test_distances_are_in_units_of_a_standard_deviation():
    for scale in ("std", "none"):
        one, two = (fixed(rows=X * unit, rules=_times(unit), scale=scale)[1] for unit in (1.0, 8.0))
        if scale == "std":
            assert_array_equal(one, two)
        else:
            assert_array_equal(8 * one[:, :4], two[:, :4])


def _times(unit):
    return [[(column, greater, unit * threshold) for column, greater, threshold in rule] for rule in RULES]


def test_a_column_that_does_not_vary_counts_as_it_is():
    rows = np.column_stack([np.full(140, 5.0), X[:, 0]])
    augment, block = fixed([[(0, True, 3.0), (1, True, -9.0)]], rows)
    assert_allclose(augment.rules_.worth, [1.0, 1 / X[:, 0].std()])
    assert np.isfinite(block).all()


def test_label_distribution_of_the_paper():
    """Rows (1, 0), (0, 1), (1, 1) in the region: each label has two of four."""
    rows, labels = np.array([[1.0], [2.0], [3.0], [-1.0]]), np.array([[1, 0], [0, 1], [1, 1], [1, 0]])
    augment, block = fixed([[(0, True, 0.0)]], rows, labels)
    assert_array_equal(augment.distribution_, [[0.5, 0.5]])
    assert_array_equal(augment.label_counts_, [[2, 2]])
    assert_array_equal(block[:, 1:], [[0.5, 0.5]] * 3 + [[0, 0]])
    assert_array_equal(augment.label_rates_, [0.75, 0.5])


def test_a_region_without_labels():
    labels = Y * (X[:, :1] <= 0)
    augment, block = fixed(targets=labels)
    assert_array_equal(augment.distribution_[0], np.zeros(4))
    assert not block[:, 4:8].any()
    assert_allclose(augment.distribution_.sum(axis=1), [0, 1, 1, 1])
    assert np.isfinite(block).all()


@pytest.mark.parametrize("labels", ["full", "none", "svd"])
@pytest.mark.parametrize("scale", ["std", "none"])
def test_the_score_of_hidf(labels, scale):
    importance = np.array([0.3, 0.05, 0.2, 0.1, 0.0, 0.35])
    augment, block = fixed(importance=importance, score="importance", labels=labels, scale=scale)
    settings = {"scale": scale == "std", "importance": importance, "labels": False}
    expected = naive.columns(RULES, X, X, Y, everyone(X), **settings)
    assert_allclose(block[:, :4], expected, rtol=1e-5, atol=1e-7)
    new = naive.columns(RULES, X_NEW, X, Y, everyone(X), **settings)
    assert_allclose(block_of(augment, X_NEW)[:, :4], new, rtol=1e-5, atol=1e-7)
    inside = [[naive.holds(rule, row) for rule in RULES] for row in X]
    assert (block[:, :4] > 0)[~np.array(inside)].any()  # outside regions too
    augment, _ = fixed(RULES[3:], importance=importance, score="importance", labels=labels, scale="none")
    assert_array_equal(augment.rules_.worth, [0.3, 0.35])


def test_importances_are_the_mean_of_the_forests():
    augment = Interactions(4, n_bootstraps=0, score="importance", scale="none", labels="full")
    blocks = augment.fit_transform(view_of(forests=forests()))
    assert [block.shape[1] for block in blocks] == [0, 0, 20]
    importance = np.mean([forest.feature_importances_ for forest in forests()], axis=0)
    assert_allclose(augment.rules_.worth, importance[augment.rules_.column])


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        ({}, 4 * 5),
        ({"labels": "none"}, 4),
        ({"score": "none"}, 16),
        ({"score": "importance", "labels": "none"}, 4),
        ({"labels": "svd"}, 4 + 4),
        ({"labels": "svd", "max_components": 2}, 4 + 2),
        ({"labels": "svd", "score": "none", "max_components": 1}, 1),
        ({"crossfit": 3}, 4 * 5),
        ({"crossfit": 3, "labels": "none"}, 4),
    ],
)
def test_columns_and_their_names(settings, width):
    augment, block = fixed(**settings)
    names = augment.column_names(1, list("stuv"))
    assert block.shape == (140, width)
    assert block_of(augment, X_NEW).shape == (40, width)
    assert len(names) == len(set(names)) == width
    assert augment.column_names(0, list("stuv")) == []
    plain = fixed()[1]
    for at, name in enumerate(names):
        rule, score = augment.rule_of(at), augment.is_score(at)
        assert score == name.endswith("_score")
        assert (rule is None) == name.startswith("rules_component")
        assert augment.is_indicator(at) == (rule is not None and not score and "crossfit" not in settings)
        if rule is not None:
            assert name.startswith(f"rule{rule + 1}_")
        if augment.is_indicator(at):
            label = "stuv".index(name[-1])
            assert_array_equal(block[:, at], plain[:, 4 + 4 * rule + label])
            assert set(np.unique(block[:, at])) <= {0, np.float32(augment.distribution_[rule, label])}


def test_it_knows_its_support():
    augment, _ = fixed()
    assert_array_equal(augment.support_, [naive.support(rule, X) for rule in RULES])
    assert_array_equal(augment.label_rates_, Y.mean(axis=0))
    for k, rule in enumerate(RULES):
        rows = [i for i in range(140) if naive.holds(rule, X[i])]
        assert_array_equal(augment.label_counts_[k], Y[rows].sum(axis=0))
        assert_allclose(augment.distribution_[k], naive.distribution(rule, X, Y, range(140)))


@given(st.integers(0, 2**32), st.sampled_from(["std", "none"]), st.sampled_from([1, 2, 5]))
@examples(40)
def test_random_rules_equal_the_twin(seed, scale, n_labels):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-4, 5, (30, 4)) / 2
    rows[rng.random(rows.shape) < 0.1] = np.nan
    labels = (rng.random((30, n_labels)) < 0.4).astype(int)
    used = rng.random(30) < 0.7
    used[0] = True
    rules = []
    for _ in range(3):
        conditions = rng.choice(8, rng.integers(1, 4), replace=False)
        rules.append([(int(c // 2), bool(c % 2), float(rng.integers(-3, 4))) for c in sorted(conditions)])
    augment, block = fixed(rules, rows, labels, used, scale=scale)
    expected = naive.columns(rules, rows, rows, labels, used, scale=scale == "std")
    assert_allclose(block, expected, rtol=1e-5, atol=1e-6)
    assert_array_equal(augment.support_, [naive.support(rule, rows, used) for rule in rules])
    sums = augment.distribution_.sum(axis=1)
    assert_allclose(sums, augment.label_counts_.any(axis=1))


# ------------------------------------------------------------------------------------------------ components


@pytest.mark.parametrize("n", [1, 2, 4, 30])
def test_components_are_those_of_all_label_columns(n):
    full, columns = fixed(score="none")
    svd, block = fixed(score="none", labels="svd", max_components=n)
    pca = PCA(min(n, 4), svd_solver="full").fit(columns.astype(float))
    for rows, all_columns in ((block, columns), (block_of(svd, X_NEW), block_of(full, X_NEW))):
        expected = pca.transform(all_columns)
        sign = np.sign((rows * expected).sum(axis=0))
        assert_allclose(rows, expected * sign, atol=1e-6)
    assert block.std(axis=0).min() > 0.01


def test_components_that_say_nothing_are_left_out():
    twice = [RULES[0], RULES[0], RULES[1]]
    _, block = fixed(twice, score="none", labels="svd")
    assert block.shape[1] == 2
    _, nothing = fixed([[(0, True, 99.0)]], labels="svd")
    assert nothing.shape[1] == 1  # the score, which is 0


# ------------------------------------------------------------------------------------------------ crossfit


def test_crossfitted_distributions_are_those_of_the_other_folds():
    augment, block = fixed(crossfit=4, score="none")
    flat = block.reshape(140, 4, 4)
    inside = np.array([[naive.holds(rule, row) for rule in RULES] for row in X])
    assert not flat[~inside].any()
    for k in range(4):
        rows = np.flatnonzero(inside[:, k])
        folds = [tuple(line) for line in np.unique(flat[rows, k].round(6), axis=0)]
        assert 2 <= len(folds) <= 4
        assert_allclose(flat[rows, k].sum(axis=1), 1, rtol=1e-5)
        # Each is the distribution of some rows, those of three folds: weighted, they make up that of all.
        assert np.abs(np.mean(folds, axis=0) - augment.distribution_[k]).max() < 0.05
    assert_array_equal(block_of(augment, X), fixed(score="none")[1])  # new rows get that of all rows


def test_a_row_does_not_know_its_own_labels_with_crossfit():
    for row in (3, 17, 60):
        targets = Y.copy()
        targets[row] = 1 - targets[row]
        assert any(naive.holds(rule, X[row]) for rule in RULES)
        (_, one), (_, two) = (fixed(targets=given, crossfit=5) for given in (Y, targets))
        assert_array_equal(one[row], two[row])
        assert (one != two).any(axis=1).sum() > 10  # others do know them
        (_, one), (_, two) = (fixed(targets=given) for given in (Y, targets))
        assert (one[row] != two[row]).any()


def test_folds_are_drawn():
    one, two = (fixed(crossfit=3, seed=seed)[1] for seed in (0, 1))
    assert_array_equal(one, fixed(crossfit=3, seed=0)[1])
    assert (one != two).any()


def test_components_of_crossfitted_columns():
    """They are the crossfitted columns in the directions of the label columns of all rows."""
    full, columns = fixed(score="none")
    _, crossfitted = fixed(score="none", crossfit=4)
    svd, block = fixed(score="none", labels="svd", crossfit=4)
    pca = PCA(4, svd_solver="full").fit(columns.astype(float))
    expected = pca.transform(crossfitted)
    assert_allclose(block, expected * np.sign((block * expected).sum(axis=0)), atol=1e-6)
    assert_allclose(block_of(svd, X_NEW), block_of(fixed(score="none", labels="svd")[0], X_NEW), atol=1e-7)
    assert full.distribution_.shape == (4, 4)


def test_more_folds_than_rows():
    _, block = fixed([[(0, True, -9.0)]], X[:4], Y[:4], crossfit=50, score="none")
    for row in range(4):
        others = [i for i in range(4) if i != row]
        assert_allclose(block[row], naive.distribution([(0, True, -9.0)], X, Y, others), rtol=1e-6)


# ------------------------------------------------------------------------------------------------ who has a say


@pytest.mark.parametrize("settings", [{}, {"labels": "svd"}, {"crossfit": 3}, {"score": "importance"}])
def test_rows_of_weight_zero_have_no_say(settings):
    used = np.arange(140) < 100
    rows, targets = X.copy(), Y.copy()
    rows[100:] = 7 * rows[100:] + 3
    targets[100:] = 1 - targets[100:]
    one, block = fixed(used=used, **settings)
    two, other = fixed(rows=rows, targets=targets, used=used, **settings)
    alone, alone_block = fixed(rows=X[:100], targets=Y[:100], **settings)
    for model in (two, alone):
        for name in ("support_", "label_counts_", "distribution_", "label_rates_"):
            assert_array_equal(getattr(model, name), getattr(one, name))
        assert_array_equal(model.rules_.worth, one.rules_.worth)
        assert_array_equal(block_of(model, X_NEW), block_of(one, X_NEW))
    assert_array_equal(other[:100], block[:100])
    if "crossfit" not in settings:
        assert_array_equal(alone_block, block[:100])
    assert_array_equal(other[100:], block_of(one, rows)[100:])  # they are asked as new rows are
    assert (block_of(fixed(**settings)[0], X_NEW) != block_of(one, X_NEW)).any()


def test_missing_values_are_outside():
    rows = X.copy()
    rows[::3, 0], rows[1::3, 2] = np.nan, np.nan
    augment, block = fixed(rows=rows)
    inside = block[:, :4] > 0
    assert not inside[::3, [0, 3]].any()
    assert not inside[1::3, 1].any()
    assert inside[1::3, 0].any()
    assert inside[2::3, 1].any()
    assert np.isfinite(block).all()
    assert_allclose(block, naive.columns(RULES, rows, rows, Y, everyone(X)), rtol=1e-6)
    assert not block_of(augment, np.full((2, 6), np.nan)).any()


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_columns(form):
    rows, new = np.where(X > 0, X, 0), np.where(X_NEW > 0, X_NEW, 0)
    dense, block = fixed(rows=rows)
    augment, other = fixed(rows=form(rows))
    assert_array_equal(other, block)
    assert_array_equal(block_of(augment, form(new)), block_of(dense, new))


@pytest.mark.parametrize("settings", [{}, {"labels": "svd"}, {"score": "importance"}])
def test_a_row_has_the_same_bits_alone(settings):
    augment, _ = fixed(**settings)
    batch = block_of(augment, X_NEW)
    for i in range(40):
        assert_array_equal(block_of(augment, X_NEW[i : i + 1])[0], batch[i])


# ------------------------------------------------------------------------------------------------ mined rules


@cache
def forests():
    kinds = [RandomForest(12, out_of_sample=OutOfBag()), ExtraTrees(12, bootstrap=True, out_of_sample=OutOfBag())]
    return [forest.set_params(random_state=0).fit(X, Y) for forest in kinds]


def mined(seed=0, rows=X, targets=Y, used=None, fitted=None, **settings):
    published = {"threshold_rule": "relax", "labels": "full"}
    augment = Interactions(**{"n_interactions": 8, "n_bootstraps": 4} | published | settings)
    return augment, augment.fit_transform(view_of(rows, targets, used, fitted or forests(), seed))[-1]


def as_lists(rules):
    """The conditions of each rule as (column, greater, threshold)."""
    out = []
    for first, last in zip(rules.start[:-1], rules.start[1:]):
        where = range(first, last)
        out.append([(int(rules.column[c]), bool(rules.greater[c]), float(rules.threshold[c])) for c in where])
    return out


def keys(augment):
    return [tuple(sorted((column, greater) for column, greater, _ in rule)) for rule in as_lists(augment.rules_)]


@pytest.mark.parametrize("miner", ["intersection_trees", "prevalence"])
@pytest.mark.parametrize("threshold_rule", ["relax", "tighten", "median"])
def test_features_of_mined_rules(miner, threshold_rule):
    augment, block = mined(miner=miner, threshold_rule=threshold_rule, min_support=1)
    rules = as_lists(augment.rules_)
    assert len(rules) > 0
    assert len(set(keys(augment))) == len(rules)
    assert_allclose(block, naive.columns(rules, X, X, Y, everyone(X)), rtol=1e-5, atol=1e-6)
    assert set(np.unique(augment.stability_ * 4)) <= set(range(5))
    assert (np.diff(augment.stability_) <= 0).all()


def test_relaxed_regions_are_the_largest():
    """The same forests give the same conditions, with thresholds that more or fewer rows pass."""
    found = {
        rule: dict(zip(keys(augment), as_lists(augment.rules_)))
        for rule in ("relax", "median", "tighten")
        for augment, _ in [mined(threshold_rule=rule, n_interactions=100, min_support=1, miner="prevalence")]
    }
    for narrow, wide in (("tighten", "relax"), ("tighten", "median"), ("median", "relax")):
        common = found[narrow].keys() & found[wide].keys()
        assert len(common) > 2
        for key in common:
            for (_, greater, t), (_, _, other) in zip(sorted(found[narrow][key]), sorted(found[wide][key])):
                assert t >= other if greater else t <= other
        assert any(sorted(found[narrow][key]) != sorted(found[wide][key]) for key in common)


@pytest.mark.parametrize("min_support", [1, 10, 20, 50])
def test_regions_have_enough_rows(min_support):
    augment, _ = mined(min_support=min_support, threshold_rule="median", n_interactions=200)
    assert (augment.support_ >= min_support).all()
    assert augment.support_.min() < min_support + 10  # it makes a difference


def test_just_enough_rows():
    settings = {"threshold_rule": "median", "miner": "prevalence", "n_interactions": 200}
    everything, _ = mined(min_support=1, **settings)
    for least in np.unique(everything.support_)[1:4]:
        augment, _ = mined(min_support=int(least), **settings)
        assert augment.support_.min() == least
        assert len(augment.rules_) == (everything.support_ >= least).sum()


def test_only_rows_that_count_support_a_rule():
    used = np.arange(140) < 50
    augment, _ = mined(used=used, min_support=20, threshold_rule="median", n_interactions=200)
    assert len(augment.rules_) > 0
    assert augment.support_.min() >= 20
    assert_array_equal(augment.support_, [naive.support(rule, X, used) for rule in as_lists(augment.rules_)])


def test_bootstraps_draw_rows_that_count():
    used = np.arange(140) % 2 == 0
    fitted = [clone(forest).fit(X, Y, sample_weight=used.astype(float)) for forest in forests()]
    rows, labels = X.copy(), Y.copy()
    rows[~used], labels[~used] = 9 * rows[~used][::-1], 1 - labels[~used]
    (one, _), (two, _) = (mined(0, *data, used, fitted) for data in ((X, Y), (rows, labels)))
    assert as_lists(one.rules_) == as_lists(two.rules_)
    assert_array_equal(one.stability_, two.stability_)


class Listening(RandomForest):
    """A forest that remembers the weights it was given."""

    given_weights: ClassVar = []

    def fit(self, X, y, sample_weight=None, groups=None):
        self.given_weights.append(sample_weight.copy())
        return super().fit(X, y, sample_weight, groups)


@pytest.mark.parametrize("feature_subset", ["none", "importance"])
def test_bootstraps_draw_rows_with_replacement_and_keep_their_weights(feature_subset):
    used = np.arange(140) % 5 > 0
    weight = np.where(used, 0.5 + np.arange(140), 0.0)
    Listening.given_weights.clear()
    augment = Interactions(n_bootstraps=6, forest=Listening(2, max_depth=2), feature_subset=feature_subset)
    augment.fit_transform(view_of(used=used, forests=forests())._replace(sample_weight=weight))
    given_weights = Listening.given_weights
    counts = np.array(given_weights)[:, used] / weight[used]
    assert len(counts) == (6 if feature_subset == "none" else 6 * 2)  # one for each tree
    assert not np.array(given_weights)[:, ~used].any()
    assert_allclose(counts, counts.round())
    assert_array_equal(counts.sum(axis=1), used.sum())
    assert len(np.unique(counts, axis=0)) == 6
    assert 0.55 < (counts > 0).mean() < 0.72  # 1 - 1/e of the rows


def test_the_seed_decides():
    (one, block), (two, again), (three, _) = (mined(seed) for seed in (0, 0, 1))
    assert as_lists(one.rules_) == as_lists(two.rules_)
    assert_array_equal(block, again)
    assert as_lists(one.rules_) != as_lists(three.rules_)


def test_without_bootstraps_rules_are_ranked_by_prevalence():
    augment, _ = mined(n_bootstraps=0, miner="prevalence")
    assert np.isnan(augment.stability_).all()
    assert len(augment.rules_) == 8


@pytest.mark.parametrize("feature_subset", ["none", "importance"])
def test_columns_that_only_some_forests_see(feature_subset):
    """Rules speak of columns of the whole input, whichever of them a forest sees."""
    seen = [np.array([0, 1, 2, 5]), np.array([1, 3, 4, 5])]
    fitted = [clone(forest).fit(X[:, columns], Y) for forest, columns in zip(forests(), seen)]
    view = view_of(forests=fitted)._replace(columns_of=seen.__getitem__)
    augment = Interactions(20, n_bootstraps=2, min_support=1, feature_subset=feature_subset, score="importance")
    augment.fit_transform(view)
    assert augment.n_columns_ == 6
    together = [{column for column, *_ in rule} for rule in as_lists(augment.rules_)]
    assert all(columns <= {0, 1, 2, 5} or columns <= {1, 3, 4, 5} for columns in together)
    assert any(0 in columns for columns in together)
    assert any(3 in columns for columns in together)
    importance = np.zeros(6)
    for forest, columns in zip(fitted, seen):
        importance[columns] += forest.feature_importances_ / 2
    for column, threshold, worth in zip(augment.rules_.column, augment.rules_.threshold, augment.rules_.worth):
        assert X[:, column].min() <= threshold <= X[:, column].max()
        assert worth == pytest.approx(importance[column] / X[:, column].std())


def test_settings_reach_the_miner():
    settings = {
        "n_interactions": 7,
        "miner": "intersection_trees",
        "n_trees": 11,
        "depth": 3,
        "branches": 4,
        "emit": "all",
        "threshold_rule": "median",
        "min_order": 1,
        "min_stability": 0.25,
    }
    reading = {"max_depth": 4, "path_rule": "tightest"}
    template = RandomForest(5, max_depth=3)
    augment, _ = mined(**settings, **reading, n_bootstraps=3, forest=template)
    random = np.random.RandomState(0)
    seed = int(random.randint(np.iinfo(np.int32).max))
    bootstraps = bootstrap_paths(view_of(forests=forests()), template, 3, None, random, **reading)
    paths = join_paths([read_paths(forest.trees_, **reading) for forest in forests()])

    def usable(itemsets):
        rules = Rules.of(itemsets)
        return rules.count(X[:, rules.columns]) >= 10

    expected = mine(paths, bootstraps, **settings, usable=usable, seed=seed)
    assert augment.mining_report_ == expected.report
    assert_array_equal(augment.stability_, expected.stability)
    assert_array_equal(augment.rules_.column, Rules.of(expected.itemsets).column)


def test_trees_may_see_important_columns_only():
    rng = np.random.default_rng(0)
    rows = rng.random((200, 60))
    labels = np.column_stack([(rows[:, 7] > 0.5) & (rows[:, 31] > 0.5), rows[:, 7] > 0.5]).astype(int)
    fitted = [RandomForest(20, max_features=None, random_state=0).fit(rows, labels)]
    for subset in ("none", "importance"):
        augment, _ = mined(
            0, rows, labels, None, fitted, feature_subset=subset, n_bootstraps=6, threshold_rule="median"
        )
        assert keys(augment)[0] == ((7, True), (31, True))
        assert augment.stability_[0] == 1.0


def test_a_forest_of_ones_own():
    few, many = (mined(forest=RandomForest(n, max_depth=d), n_bootstraps=6)[0] for n, d in ((1, 1), (40, 6)))
    assert few.stability_.max(initial=0) < 0.5  # no two conditions on paths of one node
    assert many.stability_.max() > 0.5


@pytest.mark.parametrize("n_interactions", [1, 5])
def test_no_more_rules_than_asked_for(n_interactions):
    augment, block = mined(n_interactions=n_interactions)
    assert len(augment.rules_) == n_interactions
    assert block.shape[1] == n_interactions * 5


def test_order_and_depth():
    triples, _ = mined(min_order=3, n_interactions=5)
    assert triples.rules_.order.min() >= 3
    shallow, _ = mined(max_depth=1, min_order=1, n_interactions=5)
    assert shallow.rules_.order.max() == 1
    both, _ = mined(path_rule="tightest", n_interactions=60, n_bootstraps=0, min_support=1)
    assert any(len({column for column, _ in key}) < len(key) for key in keys(both))
    first, _ = mined(path_rule="first", n_interactions=60, n_bootstraps=0, min_support=1)
    assert not any(len({column for column, _ in key}) < len(key) for key in keys(first))


def test_the_memory_that_is_reported():
    augment, _ = fixed()
    counted = [augment.label_counts_, augment.stability_, augment.support_, augment.overlap_]
    assert augment.nbytes == augment.rules_.nbytes + sum(part.nbytes for part in counted)


def test_shares_of_columns():
    augment, _ = fixed()
    expected = np.zeros(6)
    for rule in RULES:
        for column, *_ in rule:
            expected[column] += 1 / len(rule) / 4
    assert_allclose(augment.column_shares_, expected)
    assert augment.column_shares_.sum() == pytest.approx(1)


# ------------------------------------------------------------------------------------------------ no rules, bad input


@pytest.mark.parametrize("settings", [{}, {"labels": "svd"}, {"labels": "none"}, {"score": "none"}, {"crossfit": 3}])
def test_nothing_is_found(settings):
    with pytest.warns(UserWarning, match="No interaction was found") as caught:
        augment, block = mined(min_support=141, **settings)
    assert len(caught) == 1
    assert block.shape == (140, 0)
    assert block_of(augment, X_NEW).shape == (40, 0)
    assert augment.column_names(2, list("stuv")) == []
    assert augment.distribution_.shape == (0, 4)
    assert not augment.column_shares_.any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_interactions": 0}, "n_interactions must be an integer of at least 1, got 0"),
        ({"n_interactions": 2.5}, "n_interactions must be an integer of at least 1, got 2.5"),
        ({"n_trees": 0}, "n_trees must be an integer of at least 1"),
        ({"depth": 1}, "depth must be an integer of at least 2"),
        ({"branches": 0}, "branches must be an integer of at least 1"),
        ({"min_order": 0}, "min_order must be an integer of at least 1"),
        ({"min_support": 0}, "min_support must be an integer of at least 1"),
        ({"n_bootstraps": -1}, "n_bootstraps must be an integer of at least 0"),
        ({"max_components": 0}, "max_components must be an integer of at least 1"),
        ({"max_depth": 0}, "max_depth must be an integer of at least 1"),
        ({"crossfit": 1}, "crossfit must be an integer of at least 2"),
        ({"min_stability": 1.5}, "min_stability must be a number"),
        ({"miner": "apriori"}, "miner must be one of"),
        ({"emit": "roots"}, "emit must be one of"),
        ({"path_rule": "last"}, "path_rule must be one of"),
        ({"threshold_rule": "mean"}, "threshold_rule must be one of"),
        ({"feature_subset": "all"}, "feature_subset must be one of"),
        ({"score": "gini"}, "score must be one of"),
        ({"scale": "iqr"}, "scale must be one of"),
        ({"labels": "pca"}, "labels must be one of"),
        ({"score": "none", "labels": "none"}, "leave no features"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        mined(**settings)


def test_forests_without_trees():
    other = from_sklearn(RandomForestClassifier(5), n_splits=2).fit(X, Y)
    with pytest.raises(TypeError, match=r"Interactions needs fitted forests of sylvan.forests.*got FoldModels"):
        mined(fitted=[forests()[0], other])


def test_forests_of_folds():
    fitted = [RandomForest(6, out_of_sample=KFold(3), random_state=0).fit(X, Y)]
    augment, block = mined(fitted=fitted)
    assert_allclose(block, naive.columns(as_lists(augment.rules_), X, X, Y, everyone(X)), rtol=1e-5, atol=1e-6)


def test_what_users_see_of_it():
    augment = Interactions(5, miner="prevalence")
    assert repr(augment) == "Interactions(miner='prevalence', n_interactions=5)"
    plain = Interactions()
    assert (plain.n_interactions, plain.threshold_rule, plain.labels, plain.score) == (10, "median", "none", "distance")
    assert clone(augment).get_params() == augment.get_params()
    assert augment.n_shared == 1
    assert not augment.needs_forests
    assert Interactions(keep_forests=True).needs_forests
