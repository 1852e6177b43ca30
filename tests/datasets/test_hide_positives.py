import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from sylvan.datasets import hide_positives

LABELS = hnp.arrays(
    st.sampled_from([np.int64, np.int8, np.float64, np.bool_]),
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12),
    elements=st.sampled_from([0, 1]),
)
RATES = st.floats(0, 1)
SEEDS = st.integers(0, 2**31)


@given(LABELS, RATES, SEEDS)
def test_hides_exactly_the_rate_of_each_label(Y, rate, seed):
    before = Y.copy()
    hidden = hide_positives(Y, rate, random_state=seed)
    np.testing.assert_array_equal(Y, before)
    assert hidden.dtype == Y.dtype
    assert np.all(hidden <= Y)
    positives = Y.sum(axis=0, dtype=int)
    expected = [int(rate * count) for count in positives]
    np.testing.assert_array_equal(positives - hidden.sum(axis=0, dtype=int), expected)


@given(LABELS, RATES, SEEDS, st.sampled_from(["csr", "csc", "coo", "lil", "dok"]))
def test_every_container_gets_the_same_mask(Y, rate, seed, format_):
    expected = hide_positives(Y, rate, random_state=seed)
    frame = pd.DataFrame(Y, columns=[f"label {j}" for j in range(Y.shape[1])], index=range(5, 5 + len(Y)))
    in_frame = hide_positives(frame, rate, random_state=seed)
    pd.testing.assert_frame_equal(in_frame, pd.DataFrame(expected, columns=frame.columns, index=frame.index))
    matrix = sparse.csr_array(Y).asformat(format_)
    in_sparse = hide_positives(matrix, rate, random_state=seed)
    assert type(in_sparse) is type(matrix)
    assert in_sparse.dtype == matrix.dtype
    assert in_sparse.nnz == in_sparse.count_nonzero()
    np.testing.assert_array_equal(in_sparse.toarray(), expected)
    np.testing.assert_array_equal(matrix.toarray(), Y)


@given(LABELS, st.tuples(RATES, RATES), SEEDS)
@settings(max_examples=50)
def test_masks_of_one_seed_are_nested(Y, rates, seed):
    low, high = (hide_positives(Y, rate, random_state=seed) for rate in sorted(rates))
    assert np.all(high <= low)


def test_rate_of_a_label_has_no_effect_on_the_others():
    Y = np.ones((20, 3), dtype=int)
    one = hide_positives(Y, [0.5, 0.5, 0.5], random_state=0)
    other = hide_positives(Y, [0.1, 0.5, 0.9], random_state=0)
    np.testing.assert_array_equal(other.sum(axis=0), [18, 10, 2])
    np.testing.assert_array_equal(one[:, 1], other[:, 1])


def test_seed_decides():
    Y = np.ones((100, 2), dtype=int)
    assert np.array_equal(hide_positives(Y, 0.5, 1), hide_positives(Y, 0.5, 1))
    assert not np.array_equal(hide_positives(Y, 0.5, 1), hide_positives(Y, 0.5, 2))
    assert not np.array_equal(hide_positives(Y, 0.5), hide_positives(Y, 0.5))


def test_every_positive_is_as_likely():
    Y = np.array([[1], [0], [1], [1], [1]])
    rng = np.random.RandomState(0)
    kept = sum(hide_positives(Y, 0.5, rng) for _ in range(2000)).ravel()
    assert kept[1] == 0
    np.testing.assert_allclose(kept[[0, 2, 3, 4]], 1000, atol=120)  # over five standard deviations


def test_ends_of_the_rate():
    Y = np.array([[1, 0], [1, 1]])
    np.testing.assert_array_equal(hide_positives(Y, 0), Y)
    np.testing.assert_array_equal(hide_positives(Y, 1), np.zeros_like(Y))


def test_lists_and_duplicated_column_names():
    assert hide_positives([[1, 0], [0, 1]], 1).tolist() == [[0, 0], [0, 0]]
    frame = pd.DataFrame([[1, 1], [1, 0]], columns=["a", "a"])
    assert hide_positives(frame, [0, 1]).to_numpy().tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Sparse[int]", "uint8", "bool", "object"])
def test_frame_dtypes_are_kept(dtype):
    frame = pd.DataFrame({"a": [1, 0, 1], "b": [0.0, 1.0, 1.0]}).astype({"a": dtype})
    hidden = hide_positives(frame, [1, 0.5], random_state=0)
    assert list(hidden.dtypes) == list(frame.dtypes)
    assert hidden["a"].sum() == 0
    assert hidden["b"].sum() == 1
    assert frame["a"].sum() == 2


def test_stored_zeros_and_duplicates_of_sparse_input():
    stored_zero = sparse.csr_array((np.array([1, 0, 1]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    hidden = hide_positives(stored_zero, 0.5, random_state=0)
    assert hidden.nnz == 1
    assert stored_zero.nnz == 3
    twice = sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(2, 2))
    with pytest.raises(ValueError, match="column 1 has the value 2"):
        hide_positives(twice, 0.5)


def test_old_sparse_matrices_stay_matrices():
    assert isinstance(hide_positives(sparse.csr_matrix(np.eye(3)), 0.5), sparse.csr_matrix)


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.array([[0, 1], [1, 2]]), r"column 1 has the value 2\b"),
        (np.array([[0, np.nan]]), "column 1 has the value nan"),
        (np.array([["0", "1"]]), "column 0 has the value '0'"),
        (pd.DataFrame({"happy": [0, 1], "calm": [-1, 1]}), "column 'calm' has the value -1"),
        (pd.DataFrame({"happy": pd.array([0, None], dtype="Int64")}), "column 'happy' has the value"),
        (sparse.csr_array(np.array([[0, 3], [1, 0]])), "column 1 has the value 3"),
        (np.array([0, 1]), r"two dimensions.*\(2,\)"),
    ],
)
def test_bad_labels(Y, message):
    with pytest.raises(ValueError, match=message):
        hide_positives(Y, 0.5)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (-0.1, "between 0 and 1"),
        (1.5, "between 0 and 1"),
        (float("nan"), "between 0 and 1"),
        ([0.5, 1.1], "between 0 and 1"),
        ([0.5, 0.5, 0.5], "2 labels"),
        ([[0.5, 0.5]], "2 labels"),
        ("half", "must be a number"),
        (None, "between 0 and 1|must be a number"),
    ],
)
@pytest.mark.parametrize("container", [np.array, pd.DataFrame, sparse.csr_array])
def test_bad_rates(rate, message, container):
    with pytest.raises(ValueError, match=message):
        hide_positives(container([[0, 1], [1, 1]]), rate)
