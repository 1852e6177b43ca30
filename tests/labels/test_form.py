"""`TargetForm`: results go back in the form in which targets came. And rows of X and Y that do not belong together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from strategies import examples
from sylvan._validation import check_same_order
from sylvan.labels.table import read_labels, read_targets


def forms():
    return {
        "labels": read_targets(np.array([[1, 0, 1], [0, 0, 1]])).form,
        "classes": read_targets(np.array(["a", "b", "c"])).form,
        "two": read_targets(np.array(["no", "yes", "no"])).form,
    }


@examples(50)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["labels", "classes", "two"]))
def test_probabilities_of_classes_sum_to_one_and_can_be_undone(seed, kind):
    form = forms()[kind]
    label_proba = np.random.default_rng(seed).random((2, 5, form.n_labels))
    proba = form.proba(label_proba)
    if form.has_labels:
        assert proba is label_proba
        return
    assert_allclose(proba.sum(axis=-1), 1.0)
    assert proba.shape[-1] == len(form.classes)
    if form.has_two_classes:
        assert_array_equal(form.label_proba(proba), label_proba)
    winner = form.classes[proba[0].argmax(axis=-1)]
    assert_array_equal(form.predict(label_proba[0]), winner)


def test_a_row_without_a_class_has_equal_probabilities():
    assert_allclose(forms()["classes"].proba(np.zeros((1, 3))), 1 / 3)


def test_what_columns_are_called():
    found = forms()
    assert [found[kind].noun for kind in found] == ["label", "class", "class"]
    assert [found[kind].label_names for kind in found] == [[0, 1, 2], ["a", "b", "c"], ["yes"]]


@pytest.mark.parametrize("words", [("yes", "no"), ("TRUE", "False"), (" y", "n "), ("1", "0"), (True, "no")])
def test_words_in_tables(words):
    table = pd.DataFrame([[words[0], words[1]], [words[1], None]], columns=["a", "b"])
    targets = read_targets(table)
    assert targets.recorded.tolist() == [[True, False], [False, False]]
    assert targets.unknown.tolist() == [[False, False], [False, True]]


def test_words_in_one_dimension_are_classes():
    assert read_targets(["yes", "no", "yes"]).form.has_two_classes
    assert read_labels(np.array([1, 0, np.nan])).recorded.ravel().tolist() == [True, False, False]
    with pytest.raises(ValueError, match="not classes"):
        read_labels(["cat", "dog"])


def frame(index):
    return pd.DataFrame({"x": np.arange(len(index))}, index=index)


@pytest.mark.parametrize("index", [["a", "b", "c"], ["a", "a", "b"]])
def test_rows_with_the_same_names_are_matched(index):
    check_same_order(frame(index), pd.Index(index))


def test_rows_without_a_common_name_are_matched_by_position():
    check_same_order(frame([0, 1, 2]), pd.Index(["a", "b", "c"]))
    check_same_order(np.zeros((3, 1)), pd.Index(["a", "b", "c"]))
    check_same_order(frame([0, 1, 2]), None)


@pytest.mark.parametrize(
    ("rows", "names", "message"),
    [
        (["a", "b", "c"], ["b", "a", "c"], "same rows in another order"),
        (["a", "b", "c"], ["b", "c", "d"], "share 2 of 3 row names; 'a' is in X only"),
        ([0, 1, 2], [1, 2, 3], "share 2 of 3 row names; 0 is in X only"),
        (["a", "a", "b"], ["a", "b", "b"], "the name 'a' occurs twice"),
        (["a", "b", "c"], ["a", "b", "b"], "the name 'b' occurs twice"),
    ],
)
def test_rows_that_do_not_belong_together(rows, names, message):
    with pytest.raises(ValueError, match=message):
        check_same_order(frame(rows), pd.Index(names))


@pytest.mark.parametrize(
    "rows",
    [[["1", "0"], ["0", "1"], ["1", "1"]], [["yes", "no"], ["no", "yes"], ["yes", "yes"]], [[1, 0], [0, 1], [1, 1]]],
)
def test_lists_of_words_for_one_and_zero_are_a_table(rows):
    assert read_targets(rows).recorded.tolist() == [[True, False], [False, True], [True, True]]


def test_lists_of_zeros_and_ones_in_a_series_could_be_either():
    with pytest.raises(ValueError, match=r"could be rows of a 0/1 table or lists of labels.*labels_from_lists"):
        read_targets(pd.Series([[0, 1, 0], [1, 0, 0]]))


def test_rows_of_which_nothing_is_known_among_lists():
    for first in (None, np.nan):
        targets = read_targets([first, ["a"], ["b"]])
        assert targets.form.label_names == ["a", "b"]
        assert targets.unknown.tolist() == [[True, True], [False, False], [False, False]]


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("classes", [list("ACGT"), ["1", "2", "3"], ["yes", "no", "maybe"]])
def test_one_column_of_classes_is_not_half_read_as_words(classes):
    targets = read_targets(pd.DataFrame({"c": classes * 2}))
    assert targets.form.classes.tolist() == sorted(classes)


@pytest.mark.parametrize("word", ["1", "yes", " TRUE"])
def test_a_word_for_one_cannot_mean_unknown(word):
    with pytest.raises(ValueError, match="unknown_label must be one value other than 1"):
        read_targets(pd.DataFrame({"x": ["no", "yes"]}), word)
