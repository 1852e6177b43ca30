"""Out-of-sample probabilities: no row is judged by a tree that has seen it."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import sylvan
from forests.naive_trees import assert_same_forest, make_classes, make_labels
from sylvan import DeepForestClassifier
from sylvan.forests import BinnedMatrix, CompletelyRandomForest, ExtraTrees, KFold, OutOfBag, RandomForest

ALL = [RandomForest, ExtraTrees, CompletelyRandomForest]
TARGETS = {
    "labels": lambda n: make_labels(n, 5, 3),
    "many labels": lambda n: make_labels(n, 5, 40),
    "classes": lambda n: make_classes(n, 5, 3),
    "binary": lambda n: make_classes(n, 5, 2),
}


def fold_of_rows(forest, k):
    """Return the fold that held out each row, from the rows its trees have drawn."""
    drawn = forest.bag_counts().reshape(k, -1, forest.oos_proba_.shape[0]).any(axis=1)
    assert (drawn.sum(axis=0) == k - 1).all()
    return drawn.argmin(axis=0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("max_samples", [None, 0.5, 10])
def test_out_of_bag_is_the_mean_of_the_trees_that_did_not_draw_the_row(kind, target, max_samples):
    X, y = TARGETS[target](80)
    X[::7, 3] = np.nan
    settings = {"bootstrap": True, "max_samples": max_samples, "out_of_sample": OutOfBag(), "random_state": 0}
    forest = kind(30, **settings).fit(X, y)
    bags, proba = forest.bag_counts(), forest.tree_proba(X)
    assert bags.shape == (30, 80)
    assert (bags.sum(axis=1) == {None: 80, 0.5: 40, 10: 10}[max_samples]).all()
    for i in range(80):
        np.testing.assert_allclose(forest.oos_proba_[i], proba[bags[:, i] == 0, i].mean(axis=0), atol=1e-7)


@pytest.mark.parametrize("weights", ["some zero", "all positive"])
@pytest.mark.parametrize("kind", ALL)
def test_out_of_bag_with_weights(kind, weights):
    """Rows of weight 0 are seen by no tree and judged by all."""
    X, Y = make_labels(80, 5, 3)
    weights = np.random.default_rng(0).integers(0 if weights == "some zero" else 1, 4, 80)
    forest = kind(40, bootstrap=True, out_of_sample=OutOfBag(), random_state=0).fit(X, Y, sample_weight=weights)
    bags, proba = forest.bag_counts(), forest.tree_proba(X)
    expected = [proba[bags[:, i] == 0, i].mean(axis=0) for i in range(80)]
    np.testing.assert_allclose(forest.oos_proba_, expected, atol=1e-7)
    np.testing.assert_allclose(forest.oos_proba_[weights == 0], forest.predict_proba(X)[weights == 0], atol=1e-7)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_judge_the_rows_they_held_out(kind, target, bootstrap, weighted):
    X, y = TARGETS[target](81)
    weights = np.random.default_rng(0).integers(1, 4, 81) if weighted else None
    forest = kind(12, bootstrap=bootstrap, out_of_sample=KFold(3), random_state=0).fit(X, y, sample_weight=weights)
    assert forest.trees_.n_trees == 36
    fold, proba = fold_of_rows(forest, 3), forest.tree_proba(X).reshape(3, 12, 81, -1).mean(axis=1)
    assert set(np.bincount(fold)) <= {26, 27, 28}
    expected = [proba[fold[i], i] for i in range(81)]
    np.testing.assert_allclose(forest.oos_proba_, expected, atol=1e-7)
    np.testing.assert_allclose(forest.predict_proba(X), proba.mean(axis=0), atol=1e-7)


@pytest.mark.parametrize("kind", ALL)
def test_folds_with_rows_of_weight_zero(kind):
    """They are held out by one fold like all others, and drawn by none."""
    X, Y = make_labels(80, 5, 3)
    weights = np.random.default_rng(0).integers(0, 3, 80)
    forest = kind(5, out_of_sample=KFold(4), random_state=0).fit(X, Y, sample_weight=weights)
    assert not forest.bag_counts()[:, weights == 0].any()
    by_fold = forest.tree_proba(X).reshape(4, 5, 80, 3).mean(axis=1)
    distance = np.abs(by_fold - forest.oos_proba_).max(axis=2).min(axis=0)
    np.testing.assert_allclose(distance, 0, atol=1e-7)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("row", [0, 17, 59])
def test_own_label_does_not_matter_with_folds(kind, row):
    X, Y = make_labels(60, 5, 3)
    other = Y.copy()
    other[row] = 1 - other[row]
    one, two = (kind(6, out_of_sample=KFold(3), random_state=0).fit(X, target) for target in (Y, other))
    np.testing.assert_array_equal(one.oos_proba_[row], two.oos_proba_[row])
    assert not np.array_equal(one.predict_proba(X)[row], two.predict_proba(X)[row])


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("row", [0, 17, 59])
def test_own_label_does_not_matter_out_of_bag(kind, row):
    X, Y = make_labels(60, 5, 3)
    other = Y.copy()
    other[row] = 1 - other[row]
    settings = {"bootstrap": True, "out_of_sample": OutOfBag(), "random_state": 0}
    one, two = (kind(30, **settings).fit(X, target) for target in (Y, other))
    np.testing.assert_array_equal(one.oos_proba_[row], two.oos_proba_[row])


@pytest.mark.parametrize("scheme", [OutOfBag(), KFold(3)])
def test_noise_is_not_learnt(scheme):
    """In-sample probabilities of random labels look perfect; out of sample they are worth nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    forest = RandomForest(50, out_of_sample=scheme, random_state=0).fit(X, y)
    assert roc_auc_score(y, forest.predict_proba(X)[:, 1]) > 0.95
    assert 0.4 < roc_auc_score(y, forest.oos_proba_[:, 1]) < 0.6


@pytest.mark.parametrize("scheme", [OutOfBag(), KFold(5)])
def test_out_of_sample_scores_are_honest(scheme):
    X, Y = make_labels(1200, 6, 3)
    forest = RandomForest(60, out_of_sample=scheme, random_state=0).fit(X[:400], Y[:400])
    honest = roc_auc_score(Y[400:], forest.predict_proba(X[400:]))
    assert roc_auc_score(Y[:400], forest.oos_proba_) == pytest.approx(honest, abs=0.04)


def test_folds_keep_the_shares_of_classes():
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = np.repeat([0, 1, 2], [60, 21, 9])
    fold = fold_of_rows(ExtraTrees(1, out_of_sample=KFold(3), random_state=0).fit(X, y), 3)
    np.testing.assert_array_equal([np.bincount(fold[y == c]) for c in range(3)], [[20] * 3, [7] * 3, [3] * 3])
    binary = fold_of_rows(ExtraTrees(1, out_of_sample=KFold(3), random_state=0).fit(X, y > 0), 3)
    np.testing.assert_array_equal(np.bincount(binary[y > 0]), [10] * 3)


GROUPS = {
    "pairs": np.arange(90) // 2,
    "pairs in both orders": np.arange(90) % 45,
    "names": np.array([f"patient {(7 * i) % 30}" for i in range(90)]),
    "single rows": 1000 - np.arange(90),
    "different sizes": np.minimum(np.arange(90) // 2, 40),
}


def classes_of(groups, shares):
    """Give each group one class, so many groups of each."""
    number = np.unique(groups, return_inverse=True)[1]
    n_groups = number.max() + 1
    sizes = np.diff(np.r_[0, np.rint(np.cumsum(shares) * n_groups)]).astype(int)
    return np.random.default_rng(1).permutation(np.repeat(np.arange(len(shares)), sizes))[number]


@pytest.mark.parametrize("shares", [(0.7, 0.3), (0.5, 0.3, 0.2)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("groups", GROUPS)
def test_folds_keep_groups_together_and_the_shares_of_their_classes(groups, shares):
    X, groups = np.random.default_rng(0).normal(size=(90, 3)), GROUPS[groups]
    y = classes_of(groups, shares)
    fold = fold_of_rows(ExtraTrees(1, out_of_sample=KFold(3), random_state=0).fit(X, y, groups=groups), 3)
    number = np.unique(groups, return_inverse=True)[1]
    assert all(len(set(fold[number == group])) == 1 for group in range(number.max() + 1))
    size = np.bincount(number)
    for c in range(len(shares)):
        dealt = np.bincount(fold[y == c], minlength=3)
        assert np.ptp(dealt) <= size[0] if (size == size[0]).all() else (dealt > 0).all()


def test_groups_of_single_rows_are_no_groups():
    X, y = make_classes(90, 5, 2)
    one, two = (ExtraTrees(2, out_of_sample=KFold(3), random_state=0).fit(X, y, groups=g) for g in (None, range(90)))
    assert_same_forest(one, two)


def test_names_of_groups_do_not_matter():
    X, y = make_classes(90, 5, 2)
    groups = GROUPS["pairs"]
    y = y[2 * groups]
    forest = ExtraTrees(2, out_of_sample=KFold(3), random_state=0)
    one = clone(forest).fit(X, y, groups=groups)
    assert_same_forest(one, clone(forest).fit(X, y, groups=[f"{g:03}" for g in groups]))
    assert_same_forest(one, clone(forest).fit(X, y, groups=10.0 * groups - 7.5))


def test_folds_of_groups_are_shuffled_and_depend_on_the_seed():
    X, groups = np.random.default_rng(0).normal(size=(90, 3)), GROUPS["pairs"]
    y = classes_of(groups, (0.5, 0.5))
    folds = [
        fold_of_rows(ExtraTrees(1, out_of_sample=KFold(3), random_state=s).fit(X, y, groups=groups), 3) for s in (0, 1)
    ]
    assert not np.array_equal(*folds)
    assert len(set(folds[0][:20])) == 3


@pytest.mark.parametrize("case", ["few groups of a class", "mixed classes", "several labels"])
def test_other_groups_stay_together_too(case):
    """Where groups cannot be dealt class by class: fewer of a class than folds, several classes, no classes."""
    X, groups = np.random.default_rng(0).normal(size=(90, 3)), GROUPS["pairs"]
    y = {
        "few groups of a class": (groups >= 43).astype(int),
        "mixed classes": np.random.default_rng(0).integers(0, 2, 90),
        "several labels": np.random.default_rng(0).integers(0, 2, (90, 2)),
    }[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest = ExtraTrees(1, out_of_sample=KFold(3), random_state=0).fit(X, y, groups=groups)
    fold = fold_of_rows(forest, 3)
    np.testing.assert_array_equal(fold[::2], fold[1::2])
    assert np.bincount(fold).min() >= 20


@pytest.mark.parametrize("scheme", [KFold(3, stratify=False), KFold(10)])
def test_folds_at_random(scheme):
    """Asked for, or because a class has fewer rows than there are folds."""
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = np.repeat([0, 1, 2], [60, 21, 9])
    expected = pytest.warns(UserWarning, match="fewer rows than the 10 folds") if scheme.stratify else nullcontext()
    with expected:
        forest = ExtraTrees(1, out_of_sample=scheme, random_state=0).fit(X, y)
    fold = fold_of_rows(forest, scheme.n_splits)
    assert set(np.bincount(fold)) == {90 // scheme.n_splits}
    assert np.ptp([np.bincount(fold[y == c], minlength=scheme.n_splits) for c in range(3)], axis=1).max() > 1


def test_folds_are_shuffled_and_depend_on_the_seed():
    X, Y = make_labels(60)
    folds = [fold_of_rows(ExtraTrees(1, out_of_sample=KFold(3), random_state=s).fit(X, Y), 3) for s in (0, 1)]
    assert not np.array_equal(*folds)
    assert len(set(folds[0][:20])) == 3


def test_as_many_folds_as_rows():
    X, Y = make_labels(12)
    forest = ExtraTrees(2, out_of_sample=KFold(12), random_state=0).fit(X, Y)
    assert forest.trees_.n_trees == 24
    assert sorted(fold_of_rows(forest, 12)) == list(range(12))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("binned", [False, True])
@pytest.mark.parametrize("max_bins", [4, 255])
def test_rows_that_every_tree_drew_get_the_mean_of_all_trees(target, binned, max_bins):
    X, y = TARGETS[target](60)
    X[::5, 2] = np.nan
    forest = RandomForest(2, max_bins=max_bins, out_of_sample=OutOfBag(), random_state=0)
    with pytest.warns(UserWarning, match=r"\d+ of 60 rows were drawn by every tree .* Grow more trees") as caught:
        forest.fit(BinnedMatrix.from_array(X, max_bins) if binned else X, y)
    assert len(caught) == 1
    silent = (forest.bag_counts() > 0).all(axis=0)
    assert f"{silent.sum()} of 60" in str(caught[0].message)
    assert np.isfinite(forest.oos_proba_).all()
    np.testing.assert_allclose(forest.oos_proba_[silent], forest.predict_proba(X)[silent], atol=1e-7)


def test_warning_points_at_the_users_line():
    X, Y = make_labels(30)
    with pytest.warns(UserWarning, match="no out-of-bag vote") as caught:
        RandomForest(1, out_of_sample=OutOfBag(), random_state=0).fit(X, Y)
    assert caught[0].filename == __file__


def test_enough_trees_do_not_warn():
    X, Y = make_labels(50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RandomForest(60, out_of_sample=OutOfBag(), random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", ALL)
def test_none_leaves_no_probabilities_behind(kind):
    X, Y = make_labels(50)
    forest = kind(3, out_of_sample=KFold(2), random_state=0).fit(X, Y)
    assert forest.oos_proba_.shape == (50, 3)
    forest.set_params(out_of_sample=None).fit(X, Y)
    assert not hasattr(forest, "oos_proba_")


def test_out_of_bag_does_not_change_the_trees():
    X, Y = make_labels(100)
    with_votes = RandomForest(30, out_of_sample=OutOfBag(), random_state=0).fit(X, Y)
    without = RandomForest(30, random_state=0).fit(X, Y)
    del with_votes.oos_proba_
    assert_same_forest(with_votes, without)


def test_bag_counts_without_draws():
    X, Y = make_labels(50)
    np.testing.assert_array_equal(ExtraTrees(3, random_state=0).fit(X, Y).bag_counts(), np.ones((3, 50)))


def test_schemes_are_parameters():
    forest = RandomForest(out_of_sample=KFold(3))
    assert forest.get_params()["out_of_sample__n_splits"] == 3
    forest.set_params(out_of_sample__n_splits=4)
    copy = clone(forest)
    assert copy.out_of_sample is not forest.out_of_sample
    assert copy.out_of_sample.n_splits == 4


def test_a_cascades_file_says_nothing_of_single_training_rows(tmp_path):
    """Weights of rows, and which were held out together, are not needed to predict; a forest alone keeps them."""
    X, Y, weights = np.arange(80.0).reshape(40, 2), (np.arange(40) % 4 < 2)[:, None], np.linspace(0.1, 1.0, 40)
    forest = RandomForest(5, out_of_sample=KFold(3), random_state=0)
    model = DeepForestClassifier([forest], max_layers=1, random_state=0).fit(X, Y, sample_weight=weights)
    inner = model.layers_[0].forests[0]
    path = model.save(tmp_path / "predictor.sylvan")
    again = sylvan.load(path).layers_[0].forests[0]
    with pytest.raises(AttributeError, match="stored without its training rows"):
        again.held_rows()
    with pytest.raises(AttributeError, match="stored without its training rows"):
        again.bag_counts()
    assert again.n_forests == 3
    whole = sylvan.load(model.save(tmp_path / "both.sylvan", findings=True)).layers_[0].forests[0]
    np.testing.assert_array_equal(whole.bag_counts(), inner.bag_counts())
    assert path.stat().st_size < (tmp_path / "both.sylvan").stat().st_size
    forest.fit(X, Y, sample_weight=weights).save(tmp_path / "forest.sylvan")
    np.testing.assert_array_equal(sylvan.load(tmp_path / "forest.sylvan").bag_counts(), forest.bag_counts())
