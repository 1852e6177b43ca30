import gzip

import numpy as np
import pandas as pd
import pytest

from sylvan.datasets import read_csv

SONGS = "id:title,tempo,label:happy,loud,label:calm\nA,120,1,0.5,0\nNA,60,0,,1\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="songs.csv"):
        path = tmp_path / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("name", ["songs.csv", "songs.csv.gz"])
def test_labels_identifiers_and_features(write, name):
    songs = read_csv(write(SONGS, name))
    np.testing.assert_array_equal(songs.data, [[120, 0.5], [60, np.nan]])
    np.testing.assert_array_equal(songs.target, [[1, 0], [0, 1]])
    assert songs.target.dtype == np.int64
    assert songs.feature_names == ["tempo", "loud"]
    assert songs.target_names == ["happy", "calm"]
    assert songs.ids["title"].tolist() == ["A", "NA"]  # NA is a name here, not a missing value
    assert songs.name == "songs"


@pytest.mark.parametrize("labels", [["y", "x"], lambda name: name in {"x", "y"}])
def test_labels_keep_the_order_of_the_file(write, labels):
    bunch = read_csv(write("x,a,y\n1,5,0\n0,6,1\n"), labels)
    assert bunch.target_names == ["x", "y"]
    np.testing.assert_array_equal(bunch.target, [[1, 0], [0, 1]])


def test_one_class_column(write):
    path = write("a,label:site\n1,NA\n2,cp\n3,NA\n")
    bunch = read_csv(path)
    assert bunch.target.tolist() == ["NA", "cp", "NA"]
    assert bunch.target_names == ["site"]
    numbers = read_csv(write("a,kind\n1,2\n2,1\n"), "kind")
    assert numbers.target.tolist() == [2, 1]
    assert np.issubdtype(numbers.target.dtype, np.integer)


def test_a_full_name_goes_before_a_prefix(write):
    bunch = read_csv(write("label,label2,a\n1,5,7\n0,6,8\n"), "label")
    assert bunch.target_names == ["label"]
    assert bunch.feature_names == ["label2", "a"]


def test_true_false_and_unknown_labels(write):
    bunch = read_csv(write("a,label:x,label:y\n1,TRUE,1\n2,FALSE,\n"))
    np.testing.assert_array_equal(bunch.target, [[1, 1], [0, np.nan]])


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan"])
def test_missing_features(write, mark):
    bunch = read_csv(write(f"a,b,label:x,label:y\n{mark},1,1,0\n2,1,0,1\n"))
    np.testing.assert_array_equal(bunch.data, [[np.nan, 1], [2, 1]])


def test_text_columns_are_refused_by_name(write):
    path = write("age,sex,town,label:x,label:y\n1,m,Ulm,1,0\n2,f,Jena,0,1\n")
    with pytest.raises(ValueError, match=r"not numeric: 'sex', 'town'.*drop=.*nominal="):
        read_csv(path)
    with pytest.raises(ValueError, match="not numeric: 'town'"):
        read_csv(path, nominal="sex", drop=[])
    bunch = read_csv(path, nominal=["sex"], drop="town")
    assert bunch.feature_names == ["age", "sex"]
    np.testing.assert_array_equal(bunch.data, [[1, 1], [2, 0]])
    assert bunch.categories == {"sex": ["f", "m"]}
    assert list(read_csv(path, nominal=True).categories) == ["sex", "town"]


def test_missing_nominal_cell_is_nan(write):
    bunch = read_csv(write("sex,label:x,label:y\nm,1,0\n,0,1\n"), nominal=True)
    np.testing.assert_array_equal(bunch.data, [[0], [np.nan]])


def test_labels_can_be_dropped(write):
    bunch = read_csv(write("a,label:x,label:y,label:z\n1,1,0,0\n"), drop=["label:y"])
    assert bunch.target_names == ["x", "z"]
    assert bunch.feature_names == ["a"]


def test_as_frame_and_return_X_y(write):
    path = write(SONGS)
    songs = read_csv(path, as_frame=True)
    assert list(songs.frame.columns) == ["tempo", "loud", "happy", "calm"]
    pd.testing.assert_frame_equal(songs.frame[["happy", "calm"]], songs.target)
    X, Y = read_csv(path, return_X_y=True)
    np.testing.assert_array_equal(songs.data.to_numpy(), X)
    np.testing.assert_array_equal(songs.target.to_numpy(), Y)
    y = read_csv(write("a,label:site\n1,cp\n"), as_frame=True).target
    assert isinstance(y, pd.Series)
    assert y.name == "site"


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a,b\n1,2\n", {}, "No column was chosen by labels='label:'; the columns are 'a', 'b'"),
        ("a,b\n1,2\n", {"labels": ["c"]}, r"labels has names that are not columns: \['c'\]"),
        ("a,b\n1,2\n", {"labels": "a", "drop": ["c"]}, r"drop has names that are not columns: \['c'\]"),
        ("a,b\n1,2\n", {"labels": "a", "drop": "c"}, "drop has names that are not columns: \\['c'\\]"),
        ("a,b\n1,2\n", {"labels": "a", "drop": "c_"}, "No column was chosen by drop='c_'"),
        ("id,a,b\n1,1,2\n", {"labels": "a", "ids": "ids"}, "ids has names that are not columns: \\['ids'\\]"),
        ("happy,b\n1,2\n", {"labels": "ha"}, "labels has names that are not columns: \\['ha'\\]"),
        ("a,b\n1,2\n", {"labels": "a", "nominal": ["c"]}, r"not feature columns: \['c'\]"),
        ("a,label:x\n1,p\n2,\n", {}, "'label:x' is empty in 1 row"),
        ("a,label:x,label:y\n1,1,2\n", {}, "Label 'y' has the value '2'"),
        ("a,label:x,label:y\n1,1,high\n", {}, "Label 'y' has the value 'high'"),
        ("a,label:x\n1,2,3\n4,5,6\n", {}, "same number of cells"),
        ("a,label:x\n1,2\n4,5,6\n", {}, "same number of cells"),
    ],
)
def test_bad_input(write, text, arguments, message):
    with pytest.raises(ValueError, match=message):
        read_csv(write(text), **arguments)
