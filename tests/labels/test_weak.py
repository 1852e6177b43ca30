"""What zeros mean beside unknown cells, and cells that are marked as known to be absent."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sylvan import auto, rf_et
from sylvan.exceptions import FewUnknownWarning
from sylvan.labels.weak import read_weak_labels

FORMS = (np.array, pd.DataFrame, sparse.csr_array, lambda Y: Y.tolist(), lambda Y: Y.astype(object))


def blank(n_unknown, n=20, n_labels=6, n_recorded=20):
    """Return labels of 100 cells that are not recorded, of which the first are unknown."""
    Y = np.zeros(n * n_labels)
    Y[:n_recorded] = 1
    Y[n_recorded : n_recorded + n_unknown] = np.nan
    return Y.reshape(n, n_labels)


@pytest.mark.parametrize(("n_unknown", "absent"), [(0, False), (1, False), (4, False), (5, True), (60, True)])
def test_few_blanks_do_not_say_what_zeros_mean(n_unknown, absent):
    """5 % of the cells that are not recorded are enough."""
    Y = blank(n_unknown)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        weak = read_weak_labels(Y)
    np.testing.assert_array_equal(weak.candidates, np.isnan(Y) if absent else Y != 1)
    assert [str(each.message) for each in given] == (
        [
            f"{n_unknown} of 120 label cells are unknown (empty). They are so few that zeros are taken for 'not "
            "recorded', and so are they; zeros='absent' says that zeros are known to be absent."
        ]
        if 0 < n_unknown < 5
        else []
    )


@pytest.mark.parametrize("zeros", ["absent", "unrecorded"])
@pytest.mark.parametrize("n_unknown", [1, 60])
@pytest.mark.filterwarnings("error")
def test_who_says_what_zeros_mean_is_not_warned(zeros, n_unknown):
    Y = blank(n_unknown)
    weak = read_weak_labels(Y, zeros=zeros)
    np.testing.assert_array_equal(weak.candidates, np.isnan(Y) if zeros == "absent" else Y != 1)
    assert weak.leaves_out == (zeros == "absent")


def test_one_warning_for_a_fit_and_a_note_in_its_summary():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), (rng.random((40, 4)) < 0.4).astype(float)
    Y[7, 2] = np.nan
    with pytest.warns(FewUnknownWarning, match="1 of 160 label cells are unknown") as given:
        model = auto(30, max_layers=2, random_state=0).fit(X, Y)
    assert len(given) == 1
    assert given[0].filename == __file__
    note = "1 cell is unknown. They count as not recorded, as zeros do (zeros='absent' says that zeros do not)."
    assert note in model.summary().notes
    same = auto(30, max_layers=2, zeros="unrecorded", random_state=0).fit(X, np.nan_to_num(Y))
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


# ------------------------------------------------------------------------------------------------ known to be absent

MARKED = np.array([[1, -1, 0], [0, 1, -1], [0, 0, np.nan]])


@pytest.mark.parametrize("make", FORMS)
def test_marked_cells_are_no_candidates(make):
    weak = read_weak_labels(make(MARKED), absent_label=-1)
    np.testing.assert_array_equal(weak.recorded, MARKED == 1)
    np.testing.assert_array_equal(weak.targets.absent, MARKED == -1)
    np.testing.assert_array_equal(weak.candidates, (MARKED == 0) | np.isnan(MARKED))
    assert not weak.leaves_out
    strict = read_weak_labels(make(MARKED), absent_label=-1, zeros="absent")
    np.testing.assert_array_equal(strict.candidates, np.isnan(MARKED))
    with pytest.raises(ValueError, match="Y must hold 0 and 1 only, but column 1 has -1"):
        read_weak_labels(make(MARKED))


def test_a_word_may_mark_absent_cells():
    Y = pd.DataFrame({"a": ["yes", "no", "looked: no"], "b": ["no", "looked: no", "yes"]})
    weak = read_weak_labels(Y, absent_label="looked: no")
    np.testing.assert_array_equal(weak.candidates, [[False, True], [True, False], [False, False]])


def test_a_table_of_present_absent_and_unknown_has_no_zeros_to_doubt():
    """All candidates are unknown cells then, which forests can leave out."""
    weak = read_weak_labels(np.where(MARKED == 0, np.nan, MARKED)[:, 1:], absent_label=-1)
    assert weak.leaves_out
    assert not read_weak_labels(MARKED, absent_label=-1).leaves_out


def test_positives_alone_teach_nothing_of_what_is_absent():
    """A label without an absent cell would be present everywhere if unknown cells were left out."""
    Y = np.array([[1, 0], [np.nan, 1], [np.nan, np.nan], [1, 0]])
    assert read_weak_labels(Y[:, 1:]).leaves_out
    assert not read_weak_labels(Y).leaves_out


@pytest.mark.parametrize("mark", [0, 1, np.nan, 1.0, "yes", [2], 9])
def test_marks_that_cannot_be(mark):
    with pytest.raises(ValueError, match="absent_label must be one value other than 0, 1, NaN and unknown_label"):
        read_weak_labels(MARKED, unknown_label=9, absent_label=mark)


def test_classes_have_no_absent_cells():
    with pytest.raises(ValueError, match="absent_label=-1 marks cells of a table of labels, but y holds classes"):
        read_weak_labels(np.array([1, 0, -1, 1]), absent_label=-1)


@pytest.mark.parametrize("recipe", [auto, rf_et])
def test_cells_known_to_be_absent_are_never_suggested(recipe):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    Y = (X + rng.normal(size=X.shape) > 0).astype(int)
    Y[(rng.random(Y.shape) < 0.5) & (Y == 0)] = -1
    Y[0, 0] = 1
    model = recipe(5, absent_label=-1, random_state=0).fit(X, Y)
    cells = model.suggest_labels(top=1000)
    assert len(cells) == (Y == 0).sum()
    assert (Y[cells["row"].astype(int), cells["label"].astype(int)] == 0).all()
    note = f"{(Y == -1).sum()} cells are known to be absent. All others may be positive."
    assert note in model.summary().notes
    assert not model.labels_.trusts_zeros
    same = recipe(5, zeros="unrecorded", random_state=0).fit(X, np.maximum(Y, 0))
    if recipe is rf_et:  # forests learn 0 there, as they do of other zeros
        np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    assert ((model.complete(X, Y) == 1)[Y == -1] == 0).all()
    assert model.check_recovery(X, Y, random_state=0)["candidates"].iloc[-1] < (Y == 0).sum() + 30


def test_a_single_zero_does_not_make_a_label_known():
    """Positives and blanks alone are no knowledge of what is absent, and a slip of the pen does not change that."""
    Y = np.where(np.arange(400)[:, None] < 100, 1.0, np.nan).repeat(2, axis=1)
    Y[300:, 0] = 0.0
    Y[399, 1] = 0.0
    assert not read_weak_labels(Y).leaves_out
    Y[390:, 1] = 0.0
    assert read_weak_labels(Y).leaves_out
