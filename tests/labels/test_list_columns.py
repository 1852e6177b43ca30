"""Columns of text that list labels, and tables in words of other languages, in Python."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from sylvan import apply_suggestions
from sylvan.labels.table import read_targets

LISTS = pd.Series(["a; b", "b", "", "c;a", "a"] * 3, index=range(10, 25))


@pytest.mark.parametrize("form", [lambda y: y, lambda y: y.to_frame("tags")])
def test_a_column_of_lists_is_a_table_of_labels(form):
    with pytest.warns(DataConversionWarning, match="'a; b' are read as lists of labels, with ';' between them"):
        targets = read_targets(form(LISTS))
    assert targets.form.label_names == ["a", "b", "c"]
    assert targets.recorded[:5].astype(int).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1], [1, 0, 0]]
    assert targets.index.equals(LISTS.index)


def test_classes_with_commas_stay_classes():
    targets = read_targets(pd.Series(["Austin, TX", "Boston, MA"] * 5))
    assert targets.form.has_two_classes


@pytest.mark.parametrize(("one", "zero"), [("ja", "nein"), ("oui", "non"), ("present", "absent"), ("+", "-")])
def test_suggestions_are_written_in_the_words_of_the_table(one, zero):
    Y = pd.DataFrame({"a": [zero, one, zero], "b": [zero, zero, zero]})
    suggested = pd.DataFrame({"row": [0, 2], "label": ["a", "b"]})
    done = apply_suggestions(Y, suggested)
    np.testing.assert_array_equal(done.to_numpy(), [[one, zero], [one, zero], [zero, one]])
    empty = apply_suggestions(Y[["b"]], suggested[1:])
    assert empty["b"].tolist() == [zero, zero, one]
