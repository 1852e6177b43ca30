import gzip
import socket
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from sylvan.datasets import list_datasets, load_dataset

ARFF = "@relation 'x: -C -2'\n@attribute a numeric\n@attribute p {0,1}\n@attribute q {0,1}\n@data\n5,1,0\n"
CSV = "id:who,a,sex,label:site\nme,1,f,cp\nyou,2,m,im\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("SYLVAN_DATA", str(folder))
    return folder


@pytest.fixture
def fetched(monkeypatch):
    """Stand in for the network: what it answers is set by the test, what it was asked is kept."""
    asked = []

    def answer_with(answer):
        def fetch_openml(**arguments):
            asked.append({**arguments, "timeout": socket.getdefaulttimeout()})
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
        return asked

    answer_with(AssertionError("the network was asked"))
    return answer_with


def test_built_in_set_needs_no_folder(fetched):
    assert load_dataset("digit_attributes").target.shape == (1797, 8)
    X, Y = load_dataset("digit_attributes", return_X_y=True, as_frame=True)
    assert isinstance(X, pd.DataFrame)
    assert isinstance(Y, pd.DataFrame)


@pytest.mark.parametrize("name", ["moods.arff", "moods.arff.gz"])
def test_arff_in_the_folder(folder, fetched, name):
    content = ARFF.encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    bunch = load_dataset("moods")
    assert bunch.target_names == ["p", "q"]
    assert bunch.name == "moods"
    X, Y = load_dataset("moods", return_X_y=True, as_frame=True)
    assert list(X.columns) == ["a"]
    assert list(Y.columns) == ["p", "q"]


@pytest.mark.parametrize("name", ["sites.csv", "sites.csv.gz"])
def test_csv_in_the_folder(folder, fetched, name):
    content = CSV.encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    bunch = load_dataset("sites")
    assert bunch.target.tolist() == ["cp", "im"]
    assert bunch.ids["who"].tolist() == ["me", "you"]
    np.testing.assert_array_equal(bunch.data, [[1, 0], [2, 1]])
    assert bunch.categories == {"sex": ["f", "m"]}


def test_data_home_comes_second(folder, fetched, tmp_path):
    home = tmp_path / "home"
    (home / "sylvan").mkdir(parents=True)
    (home / "sylvan" / "moods.arff").write_text(ARFF)
    assert load_dataset("moods", data_home=home).data.item() == 5
    (folder / "moods.arff").write_text(ARFF.replace("5,1,0", "6,1,0"))
    assert load_dataset("moods", data_home=home).data.item() == 6
    assert list_datasets(data_home=home) == ["digit_attributes", "moods"]


def test_list_has_data_sets_only(folder):
    (folder / "moods.arff").write_text(ARFF)
    (folder / "sites.csv").write_text(CSV)
    (folder / "MANIFEST.csv").write_text("name,file\nmoods,moods.arff\n")
    (folder / "broken.csv.gz").write_bytes(b"no gzip")
    (folder / "README.md").write_text("hello")
    (folder / "folder.arff").mkdir()
    assert list_datasets() == ["digit_attributes", "moods", "sites"]


@pytest.mark.parametrize("name", ["", ".", "..", "../moods", "a/b", "a\\b", "/etc/passwd", "C:moods", "a\0b"])
def test_names_cannot_leave_the_folder(folder, fetched, name):
    (folder.parent / "moods.arff").write_text(ARFF)
    with pytest.raises(ValueError, match="not the name of a data set"):
        load_dataset(name)


def test_unknown_name_says_where_it_was_looked_for(folder, fetched, tmp_path):
    (folder / "moods.arff").write_text(ARFF)
    fetched(ValueError("Dataset mods with version active not found."))
    with pytest.raises(ValueError, match="No data set 'mods' was found") as caught:
        load_dataset("mods", data_home=tmp_path / "home")
    message = str(caught.value)
    assert f"SYLVAN_DATA, {folder}: moods" in message
    assert f"{tmp_path / 'home' / 'sylvan'}: no such folder" in message
    assert "OpenML: Dataset mods with version active not found." in message
    assert "digit_attributes" in message
    assert "Did you mean 'moods'?" in message


def test_unset_variable_is_mentioned(fetched):
    fetched(ValueError("not found"))
    with pytest.raises(ValueError, match="SYLVAN_DATA: this environment variable names no folder"):
        load_dataset("xyz")


@pytest.mark.parametrize("error", [URLError("no route to host"), TimeoutError("timed out")])
def test_network_failure(fetched, error):
    fetched(error)
    with pytest.raises(ConnectionError, match=r"'yeast'(.|\n)*OpenML: could not be asked"):
        load_dataset("yeast")


def test_openml_is_asked_with_a_time_limit(fetched, tmp_path):
    asked = fetched(URLError("no"))
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(7.0)
    try:
        with pytest.raises(ConnectionError):
            load_dataset("yeast", data_home=tmp_path)
        assert socket.getdefaulttimeout() == 7.0
    finally:
        socket.setdefaulttimeout(before)
    (arguments,) = asked
    assert arguments["name"] == "yeast"
    assert arguments["data_home"] == tmp_path
    assert arguments["n_retries"] <= 3
    assert 7 < arguments["timeout"] <= 60


def test_openml_frames(fetched):
    data = pd.DataFrame(
        {
            "a": [1.5, np.nan],
            "n": pd.array([None, 2], dtype="Int64"),
            "kind": pd.Categorical(["v", None], categories=["w", "v"]),
        }
    )
    target = pd.DataFrame({"p": pd.Categorical(["TRUE", "FALSE"]), "q": pd.Categorical(["FALSE", "FALSE"])})
    fetched(Bunch(data=data, target=target, feature_names=["a", "n", "kind"], target_names=["p", "q"], DESCR="d"))
    bunch = load_dataset("moods")
    np.testing.assert_array_equal(bunch.data, [[1.5, np.nan, 1], [np.nan, 2, np.nan]])
    np.testing.assert_array_equal(bunch.target, [[1, 0], [0, 0]])
    assert bunch.target.dtype == np.int64
    assert bunch.categories == {"kind": ["w", "v"]}
    assert bunch.DESCR == "d"
    assert list(load_dataset("moods", as_frame=True).frame.columns) == ["a", "n", "kind", "p", "q"]


def test_openml_sparse(fetched):
    fetched(
        Bunch(
            data=sparse.csr_matrix([[0, 1], [2, 0]]),
            target=np.array([["TRUE", "FALSE"], ["FALSE", "TRUE"]], dtype=object),
            feature_names=["a", "b"],
            target_names=["p", "q"],
            categories={"a": ["x", "y", "z"], "p": ["FALSE", "TRUE"]},
        )
    )
    bunch = load_dataset("texts")
    assert sparse.issparse(bunch.data)
    assert bunch.data.dtype == np.float64
    np.testing.assert_array_equal(bunch.target, [[1, 0], [0, 1]])
    assert bunch.categories == {"a": ["x", "y", "z"]}


def test_openml_class_column(fetched):
    data = pd.DataFrame({"a": [1, 2]})
    target = pd.Series(pd.Categorical(["cp", "im"]), name="site")
    fetched(Bunch(data=data, target=target, feature_names=["a"], target_names=["site"], DESCR=""))
    assert load_dataset("sites").target.tolist() == ["cp", "im"]


@pytest.mark.parametrize(
    ("target", "names", "message"),
    [
        (None, None, "'odd' names no target"),
        (pd.DataFrame({"p": [0.5], "q": [1]}), ["p", "q"], "Label 'p' has the value '0.5'"),
    ],
)
def test_openml_sets_without_labels(fetched, target, names, message):
    data = pd.DataFrame({"a": [1]})
    fetched(Bunch(data=data, target=target, feature_names=["a"], target_names=names, DESCR=""))
    with pytest.raises(ValueError, match=message):
        load_dataset("odd")
