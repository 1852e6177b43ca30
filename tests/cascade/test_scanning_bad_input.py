"""What users get wrong when they scan."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from cascade.scanning_cases import (
    LABELS,
    X_NEW,
    Recorder,
    X,
    Y,
    small,
)
from sylvan.cascade.scanning import MultiGrainedScanning
from sylvan.forests import KFold, OutOfBag, RandomForest


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        ((8, 8), {"windows": [9]}, "A window of 9 x 9 is larger than the image: 8 x 8"),
        ((8, 8), {"windows": [2, (3, 9)]}, "A window of 3 x 9 is larger than the image: 8 x 8"),
        ((8, 8), {"windows": [(9, 3)]}, "A window of 9 x 3 is larger"),
        (64, {"windows": [65]}, "A window of 65 is larger than the sequence: 64"),
        (None, {"windows": [65]}, "A window of 65 is larger than the sequence: 64"),
        (64, {"windows": [(2, 2)]}, "larger than the sequence"),
        ((1, 64), {"windows": [2]}, "A window of 2 x 2 is larger than the image: 1 x 64"),
        ((8, 4), {"windows": [5], "pairs": True}, "A window of 5 x 5 is larger than the image: 8 x 4"),
        ((8, 8), {"windows": []}, r"windows must be 'auto' or a list of sizes, such as \[3, 5\], got \[\]"),
        ((8, 8), {"windows": ()}, "windows must be 'auto' or a list of sizes"),
        ((8, 8), {"windows": 3}, "windows must be 'auto' or a list of sizes"),
        ((8, 8), {"windows": "all"}, "windows must be 'auto' or a list of sizes"),
        ((8, 8), {"windows": [0]}, "windows must be an integer of at least 1, got 0"),
        ((8, 8), {"windows": [-2]}, "windows must be an integer of at least 1, got -2"),
        ((8, 8), {"windows": [(2, 0)]}, "windows must be an integer of at least 1, got 0"),
        ((8, 8), {"windows": [2.0]}, "windows must be an integer, or two for height and width, got 2.0"),
        ((8, 8), {"windows": [True]}, "windows must be an integer of at least 1, got True"),
        ((8, 8), {"windows": ["2"]}, "windows must be an integer, or two for height and width, got '2'"),
        ((8, 8), {"windows": [(2, 3, 1)]}, "windows must be an integer, or two for height and width"),
        ((8, 8), {"windows": [None]}, "windows must be an integer, or two for height and width, got None"),
        *(
            ((8, 8), {name: value}, f"{name} must be an integer")
            for name in ("stride", "pooling")
            for value in (0, -1, 1.5, "2", True, (1,), (1, 2, 3), (0, 1), (1, 2.5))
        ),
        ((8, 8), {"stride": None}, "stride must be an integer"),
        *(
            ((8, 8), {"window_subsample": value}, r"window_subsample must be an integer of at least 1 or a float in")
            for value in (0, -1, 0.0, 1.5, "all", True)
        ),
        ((8, 9), {}, r"X has 64 columns, but shape=\(8, 9\) means 8 \* 9 = 72"),
        ((8, 8, 2), {}, r"X has 64 columns, but shape=\(8, 8, 2\) means 8 \* 8 \* 2 = 128"),
        (63, {}, "X has 64 columns, but shape=63 means"),
        ((8, 8), {"pairs": True}, r"X has 64 columns, but shape=\(8, 8\) means 2 \* 8 \* 8 = 128"),
        (64, {"pairs": True}, r"X has 64 columns, but shape=64 means 2 \* 64 = 128"),
        ((8, 8, 1, 1), {}, "shape must be a length"),
        ((8, 0), {}, "shape must be an integer of at least 1, got 0"),
        ((-8, -8), {}, "shape must be an integer of at least 1"),
        ((8.0, 8.0), {}, "shape must be an integer of at least 1"),
        ("8x8", {}, "shape must be an integer of at least 1"),
        (True, {}, "shape must be an integer of at least 1, got True"),
        ((8, 8), {"n_trees": 0}, "n_trees must be an integer of at least 1"),
        ((8, 8), {"n_trees": 2.5}, "n_trees must be an integer of at least 1"),
        ((8, 8), {"min_samples_leaf": 0}, "min_samples_leaf must be"),
        ((8, 8), {"n_jobs": 0}, "n_jobs must be None or an integer other than 0"),
        ((8, 8), {"forests": []}, "forests must be None or a list of at least one forest"),
        ((8, 8), {"forests": RandomForest(3, out_of_sample=KFold(3))}, "forests must be None or a list"),
        ((8, 8), {"forests": "rf"}, "forests must be None or a list"),
        ((8, 8), {"forests": [RandomForest(3)]}, r"forests\[0\] needs out_of_sample=KFold\(k\): all windows of a"),
        (
            (8, 8),
            {"forests": [RandomForest(3, out_of_sample=KFold(3)), RandomForest(3, out_of_sample=OutOfBag())]},
            r"forests\[1\] needs out_of_sample=KFold\(k\)",
        ),
    ],
)
def test_wrong_settings(shape, settings, message):
    with pytest.raises(ValueError, match=message):
        small(shape, **settings).fit(X, Y)


@pytest.mark.parametrize("forest", [RandomForest, LogisticRegression(), "rf", None])
def test_what_is_no_forest(forest):
    with pytest.raises(TypeError, match=r"forests\[1\] must be a plain forest of sylvan.forests"):
        small(forests=[RandomForest(3, out_of_sample=KFold(3)), forest]).fit(X, Y)


@pytest.mark.parametrize("windows", [None, 2.5, {2, 3}, {}])
def test_windows_that_are_no_list(windows):
    with pytest.raises(ValueError, match="windows must be 'auto' or a list of sizes"):
        small(windows=windows).fit(X, Y)


@pytest.mark.parametrize("shape", [(), []])
def test_a_shape_without_sides(shape):
    with pytest.raises(ValueError, match="shape must be a length"):
        small(shape).fit(X, Y)


def test_sequences_of_pairs_need_an_even_number_of_columns():
    with pytest.raises(ValueError, match="two sequences of equal length, but X has 63 columns"):
        small(None, pairs=True).fit(X[:, :63], Y)


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_labels_are_needed(method):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        getattr(small(), method)(X, None)


@pytest.mark.parametrize(
    ("y", "fit_params", "message"),
    [
        (Y[:-1], {}, "inconsistent numbers of samples"),
        (np.where(LABELS == 1, np.nan, 0), {}, "Y must hold 0 and 1 only, but column 0 has nan"),
        (2 * LABELS, {}, "Y must hold 0 and 1 only"),
        (Y, {"sample_weight": np.ones(3)}, "sample_weight.shape"),
        (Y, {"sample_weight": np.zeros(len(Y))}, "All sample weights are zero"),
        (Y, {"sample_weight": -np.ones(len(Y))}, "Negative values in data passed to `sample_weight`"),
        (Y, {"groups": np.arange(3)}, "groups must have one entry for each of the 45 rows"),
        (Y, {"groups": np.arange(45) // 30}, r"KFold\(3\) needs at least 3 groups, got 2"),
    ],
)
def test_wrong_labels_weights_and_groups(y, fit_params, message):
    with pytest.raises(ValueError, match=message):
        small().fit(X, y, **fit_params)


def test_too_few_samples():
    with pytest.raises(ValueError, match=r"KFold\(3\) needs at least 3 rows, got n_samples=2"):
        small().fit(X[:2], Y[:2])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_pixels(value):
    rows = X.copy()
    rows[3, 17] = value
    with pytest.raises(ValueError, match="infinity or a value too large for its dtype in column 17"):
        small().fit(rows, Y)
    with pytest.raises(ValueError, match="infinity or a value too large for its dtype in column 17"):
        small().fit(X, Y).transform(rows)


def test_new_samples_of_another_size():
    with pytest.raises(ValueError, match="X has 63 features, but MultiGrainedScanning is expecting 64"):
        small().fit(X, Y).transform(X_NEW[:, :63])


def unfitted(scan):
    """Whether all that needs a fit says so."""
    for ask in (
        lambda: scan.transform(X_NEW),
        lambda: scan.get_feature_names_out(),
        lambda: scan.trace_importances(np.ones(660)),
        lambda: scan.n_features_out_,
        lambda: scan.layer_columns_,
        lambda: scan.nbytes,
    ):
        with pytest.raises(NotFittedError):
            ask()
    return True


def test_before_the_fit():
    assert unfitted(small())


@pytest.mark.parametrize("settings", [{"windows": [9]}, {"forests": []}, {"stride": 0}, {"shape": 63}], ids=str)
def test_a_fit_that_was_refused_leaves_nothing(settings):
    scan = small().fit(X, Y).set_params(**settings)
    with pytest.raises(ValueError, match=r"window|forests|stride|shape"):
        scan.fit(X, Y)
    assert unfitted(scan)


class Failing(Recorder):
    """Does not live to see the second size."""

    def fit(self, X, y, sample_weight=None, groups=None):
        if X.shape[1] > 4:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight, groups)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"window_subsample": 0}, ValueError),
        ({"forests": [RandomForest(3, max_features=0, out_of_sample=KFold(3))]}, ValueError),
        ({"forests": [Failing(out_of_sample=KFold(3))]}, KeyboardInterrupt),
    ],
    ids=["window_subsample", "max_features", "interrupted"],
)
def test_a_fit_that_broke_off_leaves_nothing(settings, error):
    scan = small(**settings)
    with pytest.raises(error):
        scan.fit(X, Y)
    assert unfitted(scan)


def test_forests_with_different_folds():
    forests = [RandomForest(3, out_of_sample=KFold(2)), RandomForest(3, out_of_sample=KFold(3))]
    with pytest.raises(ValueError, match="same folds"):
        MultiGrainedScanning(forests=forests).fit(np.arange(60.0).reshape(12, 5), np.arange(12) % 2)
