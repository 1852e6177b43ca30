"""The matrix of rules: against what rules say of training rows."""

import numpy as np
import pandas as pd
import pytest

from drawn import X, Y, check_drawn, row_names
from sylvan.plotting import InteractionMatrixDisplay


def test_matrix_of_rules(models):
    model = models.rules
    display = check_drawn(InteractionMatrixDisplay.from_estimator(model, max_rules=10))
    table = model.interactions_.sort_values("stability", ascending=False, kind="stable").head(10)
    assert list(display.differences.index) == list(table.index)
    assert display.rules == table["rule"].tolist()
    assert list(display.differences.columns) == list(Y.columns)
    first = [name for name in table.index if name.startswith("1.")]
    assert first
    told = model.explain(X)
    for name in first:  # rules about features hold for the training rows as they are
        rows = told.loc[told["interaction"] == name, "row"]
        naive = Y.loc[rows].mean() - Y.mean()
        assert display.differences.loc[name].tolist() == pytest.approx(naive.tolist())
    assert np.asarray(display.image_.get_array()) == pytest.approx(100 * display.differences.to_numpy())
    low, high = display.image_.get_clim()
    assert -low == high == pytest.approx(100 * np.abs(display.differences.to_numpy()).max())
    assert row_names(display.ax_)[0].startswith(f"{table.index[0]}  {table['rule'].iloc[0][:20]}")
    assert "percentage points" in display.colorbar_.ax.get_ylabel()


def test_rules_of_one_layer(models):
    display = InteractionMatrixDisplay.from_estimator(models.rules, layer=2)
    assert {name.split(".")[0] for name in display.differences.index} == {"2"}
    assert InteractionMatrixDisplay.from_estimator(models.rules, 1).differences.shape == (1, 8)
    with pytest.raises(ValueError, match="Layer 9 has no rules"):
        InteractionMatrixDisplay.from_estimator(models.rules, layer=9)


def test_matrix_of_many_labels():
    values = np.zeros((2, 60))
    values[0, 5:45] = 0.1
    values[1, 50] = -0.5
    table = pd.DataFrame(values, index=["1.1", "1.2"], columns=[f"label {j}" for j in range(60)])
    display = check_drawn(InteractionMatrixDisplay(table, ["a" * 300, "b"]))
    shown = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert shown == [f"label {j}" for j in [*range(5, 44), 50]]
    assert display.image_.get_array().shape == (2, 40)
    assert display.ax_.get_xlabel().startswith("40 of 60 labels")
    assert len(row_names(display.ax_)[0]) == len("1.1  ") + 60
    assert row_names(display.plot(rule_width=0, colorbar=False).ax_) == ["1.1", "1.2"]
    assert display.colorbar_ is None
    with pytest.raises(ValueError, match="as many rules"):
        InteractionMatrixDisplay(table, ["a"])


def test_models_without_rules(models):
    with pytest.raises(AttributeError, match=r"no interactions_.*imldf"):
        InteractionMatrixDisplay.from_estimator(models.slc)
