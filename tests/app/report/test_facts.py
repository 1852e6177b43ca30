"""What is read from a model, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as given_values
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from page_reader import read
from sylvan import slcforest
from sylvan.app.report import write_report
from sylvan.app.report.facts import Findings, Given, count_features
from sylvan.forests import RandomForest


def test_recovery_sums_what_the_last_line_says(recovery):
    total, again = recovery.loc["all labels"], Given(recovery=recovery).recovered
    assert (again["n_hidden"], again["n"]) == (total["hidden"], total["recovered"])
    assert again["chance"] == pytest.approx(total["expected_by_chance"])
    assert Given(recovery=recovery.iloc[:-1]).recovered["n_hidden"] == total["hidden"]


def test_measure_is_that_of_the_fit(digits, filled, rules):
    for model in (filled, rules):
        assert Findings(model).measure is model.measure_


def naive_counts(columns):
    """Count features of a list of columns the obvious way; NaN is missing."""
    kept = [[v for v in column if v == v] for column in columns]
    return (
        sum(len(own) < len(column) for own, column in zip(kept, columns)),
        sum(len(set(own)) <= 1 for own in kept),
        sum(len(column) - len(own) for own, column in zip(kept, columns)),
    )


VALUES = st.sampled_from([0.0, 1.0, -2.5, float("nan")])


@given_values(
    st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(VALUES, min_size=n, max_size=n), min_size=1, max_size=4))
)
def test_features_are_counted_as_the_obvious_way_counts_them(columns):
    X = np.array(columns).T
    incomplete, constant, missing = naive_counts(columns)
    for kind in (np.asarray, pd.DataFrame, sparse.csr_array):
        counts = count_features(kind(X))
        assert (counts["n_rows"], counts["n"]) == X.shape
        assert (counts["incomplete"], counts["constant"]) == (incomplete, constant)
        assert counts["missing_share"] == pytest.approx(missing / X.size)
        assert counts["numeric"] == len(columns)


def test_features_of_other_types_are_counted():
    frame = pd.DataFrame({"a": ["x", None], "b": [True, True], "c": pd.array([1, None], dtype="Int64")})
    counts = count_features(frame)
    assert (counts["numeric"], counts["incomplete"], counts["constant"]) == (2, 2, 3)


def test_what_cannot_be_reported_is_refused_before_anything_is_written(empty, tmp_path):
    path = tmp_path / "p.html"
    with pytest.raises(NotFittedError):
        write_report(slcforest(), path)
    with pytest.raises(TypeError, match="fitted DeepForestClassifier"):
        write_report(RandomForest(2, random_state=0).fit([[0.0], [1.0]], [0, 1]), path)
    with pytest.raises(ValueError, match=r"suggestions must be a DataFrame .* 'probability' is missing"):
        write_report(empty, path, suggestions=pd.DataFrame({"row": [1], "label": [2]}))
    with pytest.raises(ValueError, match=r"recovery must be a DataFrame .* 'hidden' is missing"):
        write_report(empty, path, recovery=pd.DataFrame())
    with pytest.raises(TypeError, match="scores must be a dict or a DataFrame"):
        write_report(empty, path, scores=0.5)
    assert not path.exists()
    page = read(write_report(empty, path, warnings="one text"))
    assert page.warnings == ["one text"]
