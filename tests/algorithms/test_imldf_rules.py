"""The rules of iMLDF: their table, what they say in words, for which rows they hold, and what they refer to."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import naive_regions as naive
from algorithms.rule_data import (
    FEATURES,
    LABELS,
    RF,
    TABLE,
    TABLE_NEW,
    X_NEW,
    Y_OBSERVED,
    Words,
    X,
    conditions,
    fitted,
    miner_of,
    read_all,
    referred,
    small,
)
from sylvan import DeepForestClassifier, mldf, rf_et

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*have no out-of-bag vote:UserWarning"),
    pytest.mark.filterwarnings("ignore:No label was imputed:UserWarning"),
]

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


# ------------------------------------------------------------------------------------------------ rules about a label


def test_rules_about_a_label_add_rows_to_those_before():
    model = small(n_interactions=12, max_layers=1).fit(TABLE, Y_OBSERVED)
    miner, label = miner_of(model.layers_[0]), 1
    y, inside = np.asarray(Y_OBSERVED)[:, 1], miner.rules_.ask(X[:, miner.rules_.columns].astype(float))[0] > 0
    table = model.rules_about(label, k=4)
    assert list(table.columns) == ["rule", "stability", "support", "share", "all", "new"]
    seen: list[int] = []
    for name, line in table.iterrows():
        new = [min([r.sum(), *((r & ~inside[:, s]).sum() for s in seen)]) for r in inside.T]
        worth = [-1.0 if k in seen else abs(y[r].mean() - y.mean()) * n for k, (r, n) in enumerate(zip(inside.T, new))]
        best = int(name.split(".")[1]) - 1
        assert worth[best] == pytest.approx(max(worth))
        assert (line["support"], line["new"]) == (inside[:, best].sum(), new[best])
        assert_allclose([line["share"], line["all"]], [y[inside[:, best]].mean(), y.mean()])
        seen.append(best)
    assert len(model.rules_about(label, k=100)) == 12


def test_labels_that_are_not_there():
    model = small(max_layers=1)
    with pytest.raises(NotFittedError):
        model.rules_about("one")
    with pytest.raises(ValueError, match=r"There is no label 'nothing'; labels are called"):
        model.fit(TABLE, Y_OBSERVED).rules_about("nothing")
    with pytest.raises(AttributeError, match="have rules"):
        rf_et(5).rules_about("one")
