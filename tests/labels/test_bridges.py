"""Lists of labels to tables and back, and results to cleanlab and back."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MultiLabelBinarizer

import sylvan
from strategies import examples
from sylvan.forests import OutOfBag, RandomForest
from sylvan.labels import bridges
from sylvan.labels.bridges import from_cleanlab, labels_from_lists, lists_from_labels, to_cleanlab

NAMES = st.sampled_from(["cat", "dog", "eel", "a b", "Ä"])
ROWS = st.lists(st.one_of(st.lists(NAMES, max_size=4), st.sets(NAMES), st.lists(NAMES).map(tuple)), max_size=8)


def naive_table(rows, labels):
    """Return the table cell by cell."""
    return [[np.nan if row is None else float(label in row) for label in labels] for row in rows]


# Lists to tables


@given(ROWS)
@examples(100)
def test_equals_multi_label_binarizer(rows):
    binarizer = MultiLabelBinarizer()
    peer = binarizer.fit_transform(rows) if rows else np.empty((0, 0), int)
    table = labels_from_lists(rows)
    assert list(table.columns) == list(getattr(binarizer, "classes_", []))
    np.testing.assert_array_equal(table.to_numpy(), peer.reshape(table.shape))
    assert table.to_numpy().dtype.kind == "i" or not table.size


@given(st.lists(st.one_of(st.none(), st.lists(NAMES, max_size=4)), min_size=1, max_size=8), st.permutations(range(5)))
@examples(100)
def test_equals_the_naive_table_and_comes_back(rows, order):
    labels = [["cat", "dog", "eel", "a b", "Ä"][k] for k in order]
    table = labels_from_lists(rows, labels=labels)
    assert list(table.columns) == labels
    np.testing.assert_array_equal(table.to_numpy(float), naive_table(rows, labels))
    back = lists_from_labels(table)
    wanted = [None if row is None else [label for label in labels if label in row] for row in rows]
    assert back.tolist() == wanted


def test_rows_of_all_kinds():
    rows = [["a"], ("b", "a"), {"b"}, frozenset(), np.array(["c"]), pd.Series(["a", "c"]), pd.Index(["b"])]
    table = labels_from_lists(rows)
    assert table.to_numpy().tolist() == naive_table([set(row) for row in rows], "abc")


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_rows_are_unknown(missing):
    table = labels_from_lists(pd.Series([["a"], missing, []], dtype=object))
    np.testing.assert_array_equal(table.to_numpy(), [[1.0], [np.nan], [0.0]])


def test_strings_are_cut():
    tags = pd.Series(["rain; wind", "", None, "snow;", ";rain;rain"], index=list("abcde"))
    table = labels_from_lists(tags)
    assert list(table.columns) == ["rain", "snow", "wind"]
    assert list(table.index) == list("abcde")
    expected = [[1, 0, 1], [0, 0, 0], [np.nan] * 3, [0, 1, 0], [1, 0, 0]]
    np.testing.assert_array_equal(table.to_numpy(), expected)
    assert list(labels_from_lists(["a|b", "b"], separator="|").columns) == ["a", "b"]
    assert list(labels_from_lists(["a;b", "b"], separator=None).columns) == ["a;b", "b"]
    with pytest.raises(ValueError, match="separator must be"):
        labels_from_lists(["a"], separator="")


def test_names_of_rows():
    assert list(labels_from_lists([["a"], []], index=["x", "y"]).index) == ["x", "y"]
    assert list(labels_from_lists(pd.Series([["a"]], index=[7]), index=["x"]).index) == ["x"]
    assert list(labels_from_lists(iter([["a"], []])).index) == [0, 1]
    with pytest.raises(ValueError, match="index has 1 names for 2 rows"):
        labels_from_lists([["a"], []], index=["x"])


def test_labels_that_are_no_strings():
    assert list(labels_from_lists([[10, 9], [2]]).columns) == [2, 9, 10]
    pairs = labels_from_lists([[("a", 1)], [("b", 2), ("a", 1)]])
    assert list(pairs.columns) == [("a", 1), ("b", 2)]
    assert pairs.to_numpy().tolist() == [[1, 0], [1, 1]]
    assert list(labels_from_lists([["a", 1], ["b"]]).columns) == ["a", 1, "b"]  # cannot be sorted


def test_label_names_are_checked():
    with pytest.raises(
        ValueError, match=r"Row 'y' has the label 'dgo', which `labels` does not list; did you mean 'do"
    ):
        labels_from_lists([["cat"], ["cat", "dgo"]], labels=["cat", "dog"], index=["x", "y"])
    with pytest.raises(ValueError, match=r"does not list\.$"):
        labels_from_lists([["zzz"]], labels=["cat"])
    with pytest.raises(ValueError, match="'a' twice"):
        labels_from_lists([["a"]], labels=["a", "b", "a"])
    with pytest.raises(TypeError, match=r"write \['cat'\]"):
        labels_from_lists([["cat"]], labels="cat")
    with pytest.raises(ValueError, match="Row 1 lists a missing label"):
        labels_from_lists([["a"], ["a", None]])
    with pytest.raises(TypeError, match="must be names"):
        labels_from_lists([[["a"]]])


@pytest.mark.parametrize("rows", [[["a"], 5], [{"a": 1}], [b"a"], [np.array([["a"]])]])
def test_rows_that_are_no_lists(rows):
    with pytest.raises(TypeError, match=r"Row number \d is"):
        labels_from_lists(rows)


@pytest.mark.parametrize("table", [pd.DataFrame({"a": [1]}), np.eye(2), sparse.eye_array(2), {"a": ["x"]}, "a;b"])
def test_what_is_no_list_of_rows(table):
    with pytest.raises(TypeError, match="lists must have a list of labels"):
        labels_from_lists(table)


def test_estimators_understand_unknown_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    rows = [[name for name, x in zip("ab", line) if x > 0] for line in X]
    rows[3] = None
    Y = labels_from_lists(rows, labels=["a", "b"])
    model = sylvan.slcforest(5, max_layers=2, zeros="absent", random_state=0).fit(X, Y)
    assert set(model.suggest_labels(top=50)["row"]) == {3}  # only its cells may be missing


# Tables to lists


def test_tables_of_all_kinds():
    values = np.array([[1, 0, 1], [0, 0, 0]])
    wanted = [[0, 2], []]
    for Y in (values, values.astype(bool), values.astype(float), values.astype(object), sparse.csr_array(values)):
        assert lists_from_labels(Y).tolist() == wanted
    for dtype in ("Int8", "boolean", "float32", bool):
        frame = pd.DataFrame(values, index=["x", "y"], columns=list("abc")).astype(dtype)
        back = lists_from_labels(frame)
        assert back.tolist() == [["a", "c"], []]
        assert list(back.index) == ["x", "y"]


def test_names_for_arrays():
    back = lists_from_labels(np.eye(2), labels=["a", "b"], index=["x", "y"])
    assert back.to_dict() == {"x": ["a"], "y": ["b"]}
    with pytest.raises(ValueError, match="1 names for the 2 columns"):
        lists_from_labels(np.eye(2), labels=["a"])
    with pytest.raises(ValueError, match="index has 3 names for 2 rows"):
        lists_from_labels(np.eye(2), index=range(3))
    with pytest.raises(ValueError, match=r"must have shape"):
        lists_from_labels([1, 0])


def test_unknown_cells_are_not_listed():
    frame = pd.DataFrame({"a": pd.array([1, None, None], dtype="Int64"), "b": pd.array([None, 0, None], "Int64")})
    assert lists_from_labels(frame).tolist() == [["a"], [], None]


def test_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"column 'b' has 0.25 in row 1.*proba > 0.5"):
        lists_from_labels(pd.DataFrame({"a": [1, 0], "b": [0, 0.25]}, index=["x", "y"]))


def test_no_labels_at_all():
    assert labels_from_lists([[], []]).shape == (2, 0)
    assert lists_from_labels(pd.DataFrame(index=["x", "y"])).tolist() == [[], []]


# cleanlab


def digits(n=300, as_frame=True):
    X, Y = sylvan.datasets.load_digit_attributes(return_X_y=True, as_frame=as_frame)
    return X[:n], Y[:n]


@pytest.fixture(scope="module")
def fitted():
    X, Y = digits()
    X.index = Y.index = [f"row{i}" for i in range(len(X))]
    given_labels = sylvan.datasets.hide_positives(Y, 0.2, random_state=0)
    model = sylvan.slcforest(30, max_layers=2, threshold=0.6, random_state=0).fit(X, given_labels)
    assert (model.imputed_labels_.sum() > given_labels.sum()).any()  # what was given is not what the model completed
    return model, Y, given_labels


def test_given_labels_and_probabilities(fitted):
    model, _, Y = fitted
    found = to_cleanlab(model)
    assert found["labels"] == [np.flatnonzero(row).tolist() for row in Y.to_numpy()]
    assert all(type(number) is int for row in found["labels"] for number in row)
    np.testing.assert_array_equal(found["pred_probs"], model.oos_proba_)
    again = to_cleanlab(model, Y)
    assert again["labels"] == found["labels"]
    array = to_cleanlab(model, Y.to_numpy())
    assert array["labels"] == found["labels"]


@pytest.mark.filterwarnings("ignore")
def test_cleanlab_finds_what_was_hidden(fitted):
    module = pytest.importorskip("cleanlab.multilabel_classification.filter")
    model, truth, Y = fitted
    rows = module.find_label_issues(**to_cleanlab(model))
    assert rows.shape == (len(Y),)
    mask = module.find_multilabel_issues_per_class(**to_cleanlab(model))
    found = from_cleanlab(mask, model)
    assert len(found) == (mask & (Y == 0).to_numpy()).sum() > 20
    assert found["probability"].is_monotonic_decreasing
    assert set(found["row"]) <= set(Y.index)
    filled = sylvan.apply_suggestions(Y, found)
    assert ((filled - Y) * truth).sum().sum() / len(found) > 0.9  # hidden positives, nearly all
    ranked = module.find_multilabel_issues_per_class(**to_cleanlab(model), return_indices_ranked_by="self_confidence")
    pd.testing.assert_frame_equal(from_cleanlab(ranked, model), found)
    pd.testing.assert_frame_equal(from_cleanlab(ranked[0], model, Y), found)


def test_suggestions_from_issues(fitted):
    model, _, Y = fitted
    mask = np.zeros(Y.shape, bool)
    zeros, ones = np.argwhere(Y.to_numpy() == 0)[[3, 8]], np.argwhere(Y.to_numpy() == 1)[:2]
    mask[tuple(np.concatenate([zeros, ones]).T)] = True
    found = from_cleanlab(mask, model)
    cells = {(Y.index[row], Y.columns[label], model.oos_proba_[row, label]) for row, label in zeros}
    assert set(found.itertuples(index=False, name=None)) == cells
    bare = from_cleanlab(mask, model, Y.to_numpy())
    assert set(bare["row"]) == set(zeros[:, 0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes):
    rng = np.random.default_rng(0)
    code = rng.integers(0, n_classes, 90)
    X = rng.normal(size=(90, 3)) + 4 * code[:, None]
    wrong = code.copy()
    wrong[:4] = (code[:4] + 1) % n_classes
    classes = np.array(["x", "y", "z"])
    model = sylvan.rf_et(20, random_state=0).fit(X, classes[wrong])
    found = to_cleanlab(model)
    np.testing.assert_array_equal(found["labels"], wrong)
    assert found["pred_probs"].shape == (90, n_classes)
    np.testing.assert_allclose(found["pred_probs"].sum(axis=1), 1.0)
    np.testing.assert_array_equal(to_cleanlab(model, classes[code])["labels"], code)
    cleanlab_filter = pytest.importorskip("cleanlab.filter")
    issues = cleanlab_filter.find_label_issues(**found)
    assert issues[:4].sum() >= 3
    assert issues[4:].sum() <= 1
    with pytest.raises(ValueError, match="multi-label"):
        from_cleanlab(issues, model)
    with pytest.raises(
        ValueError, match=r"the class .*'xx'.* in row 0, which the model does not know; did you mean 'x'"
    ):
        to_cleanlab(model, np.where(np.arange(90) == 0, "xx", "y"))
    with pytest.raises(ValueError, match="3 rows, but the model was fitted on 90"):
        to_cleanlab(model, ["x"] * 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["labels", "one label", "two labels", "two classes", "three classes"])
def test_calibrated_models_give_what_they_say_of_recorded_labels(kind):
    """Confident learning wants the probability of a label as it was given, not that it is truly there."""
    X, Y = digits(120, as_frame=False)
    labels = {
        "labels": Y,
        "one label": Y[:, :1],
        "two labels": Y[:, :2],
        "two classes": np.array(["x", "y"])[Y[:, 0]],
        "three classes": np.array(["x", "y", "z"])[Y[:, 0] + Y[:, 1]],
    }[kind]
    model = sylvan.auto(30, max_layers=2, frequency=0.5, random_state=0).fit(X, labels)
    plain = clone(model).set_params(calibrate=None, decision_threshold=0.5).fit(X, labels)
    found = to_cleanlab(model)
    np.testing.assert_allclose(found["pred_probs"], plain.oos_proba_, atol=1e-6)
    assert found["pred_probs"].shape == model.oos_proba_.shape
    assert not np.allclose(found["pred_probs"], model.oos_proba_)


def test_single_forests_need_the_labels():
    X, Y = digits(100, as_frame=False)
    forest = RandomForest(10, out_of_sample=OutOfBag(), random_state=0).fit(X, Y)
    assert to_cleanlab(forest, Y)["labels"] == [np.flatnonzero(row).tolist() for row in Y]
    with pytest.raises(ValueError, match="does not remember its labels"):
        to_cleanlab(forest)
    with pytest.raises(ValueError, match="no out-of-sample probabilities"):
        to_cleanlab(RandomForest(5).fit(X, Y), Y)
    with pytest.raises(NotFittedError):
        to_cleanlab(RandomForest(5), Y)


def test_unknown_cells_count_as_zero():
    X, Y = digits(100, as_frame=False)
    Y = Y.astype(float)
    Y[2] = np.nan
    model = sylvan.rf_et(10, random_state=0).fit(X, Y)
    assert to_cleanlab(model)["labels"][2] == []
    assert to_cleanlab(model, Y)["labels"] == to_cleanlab(model)["labels"]


def test_labels_that_do_not_fit(fitted):
    model, _, Y = fitted
    with pytest.raises(ValueError, match="but the model was fitted on labels of"):
        to_cleanlab(model, Y[:-1])
    with pytest.raises(ValueError, match="are not those of the fit"):
        to_cleanlab(model, Y[Y.columns[::-1]])
    with pytest.raises(ValueError, match="which rows are wrong, not which labels"):
        from_cleanlab(np.zeros(len(Y), bool), model)


def test_cleanlab_is_not_imported():
    tree = ast.parse(Path(bridges.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert imports
    assert not any("cleanlab" in ast.unparse(node).split("import")[0] for node in imports)
    assert not any("cleanlab" in name.name for node in imports if isinstance(node, ast.Import) for name in node.names)
