"""What users' methods, files and machines do to a run must not damage it."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky import get_reusable_executor

from sylvan.bench import make_protocol, read_results, run
from sylvan.bench.cell import run_cell
from sylvan.bench.store import Store

MODELS = '''
import os
import sys

import numpy as np
from sylvan.forests import RandomForest


class Exits(RandomForest):
    def fit(self, X, Y):
        sys.exit("enough")


class Surrogate(RandomForest):
    def fit(self, X, Y):
        raise ValueError("bad \\udc80 text")


class Dies(RandomForest):
    def fit(self, X, Y):
        os._exit(1)


class Careless(RandomForest):
    """Uses the global generator."""

    def predict_proba(self, X):
        return np.random.rand(len(X), self.n_labels_)


class Greedy(RandomForest):
    """Changes what it is given."""

    def fit(self, X, Y):
        super().fit(X, Y)
        X[:] = 0
        Y[:] = 1
        return self
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rude_models.py").write_text(MODELS, encoding="utf-8", errors="surrogatepass")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    get_reusable_executor().shutdown()  # workers of an earlier test do not know the folder
    yield tmp_path
    sys.modules.pop("rude_models", None)


def protocol_of(*methods, **entries):
    spec = {
        "task": "labels",
        "datasets": [{"name": "digit_attributes", "rows": 80}],
        "measures": ["micro_auroc"],
        "repeats": 2,
        "split": {"kind": "folds"},
        "methods": {name: {"use": f"rude_models:{name}", "options": {"n_trees": 3}} for name in methods},
    }
    spec["methods"]["rf_et"] = {"options": {"n_trees": 3}}
    return make_protocol(spec | entries)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_exit_and_text_that_is_none(folder, n_jobs):
    results = run(protocol_of("Exits", "Surrogate"), folder / "results.db", n_jobs=n_jobs)
    status = results.cells.groupby("method")["status"].unique().map(list).to_dict()
    assert status == {"Exits": ["failed"], "Surrogate": ["failed"], "rf_et": ["done"]}
    errors = results.cells.set_index("method")["error"]
    assert errors["Exits"].iloc[0].startswith("SystemExit: enough")
    assert errors["Surrogate"].iloc[0].startswith(r"ValueError: bad \udc80 text")


def test_a_process_that_dies_is_a_failed_cell(folder):
    results = run(protocol_of("Dies"), folder / "results.db", n_jobs=2)
    status = results.cells.groupby("method")["status"].unique().map(list).to_dict()
    assert status == {"Dies": ["failed"], "rf_et": ["done"]}
    assert results.cells.query("method == 'Dies'")["error"].str.contains("The process that ran it died").all()


def test_global_generators_are_seeded_and_set_back(folder):
    protocol = protocol_of("Careless")
    cell = next(cell for cell in protocol.cells() if cell.method == "Careless")
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.rand()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    one, two = run_cell(protocol, cell), run_cell(protocol, cell)
    assert one.scores == two.scores
    assert np.random.rand() == expected  # noqa: NPY002


def test_a_method_that_changes_its_data_harms_nobody(folder):
    alone = run(protocol_of(), folder / "alone.db").scores
    beside = run(protocol_of("Greedy"), folder / "beside.db").scores.query("method == 'rf_et'")
    assert beside["value"].tolist() == alone["value"].tolist()


def write_table(path, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    table["label:x"], table["label:y"] = (table["a"] > 0).astype(int), (table["b"] > 0).astype(int)
    table.to_csv(path, index=False)
    return table


def test_data_that_changes_is_noticed(folder):
    path = folder / "mine.csv"
    write_table(path)
    protocol = protocol_of(datasets=[{"name": "mine", "path": str(path)}])
    run(protocol, folder / "results.db")
    write_table(path, seed=1)
    with pytest.raises(ValueError, match=r"has results of another data set 'mine' than this"):
        run(protocol, folder / "results.db")
    fresh = run(protocol, folder / "fresh.db").scores["value"]
    assert fresh.tolist() != read_results(folder / "results.db").scores["value"].tolist()
    failed = run_cell(protocol, protocol.cells()[0], fingerprint="of another time")
    assert "has changed while the run was going on" in failed.error


def test_labels_without_a_value_are_refused(folder):
    path = folder / "mine.csv"
    table = write_table(path).astype({"label:y": float})
    table.loc[7, "label:y"] = np.nan
    table.to_csv(path, index=False)
    with pytest.raises(ValueError, match="no value for label 1 in row 7"):
        run(protocol_of(datasets=[{"name": "mine", "path": str(path)}]), folder / "results.db")


def test_one_level_has_one_form(folder):
    methods = {"rf_et": {"options": {"n_trees": "$trees"}}}
    levels = [make_protocol(protocol_spec(methods, [n])).factors["trees"] for n in (3, 3.0)]
    assert [type(level) for (level,) in levels] == [int, int]
    protocol = make_protocol(protocol_spec(methods, [3.0]))
    run(protocol, folder / "results.db")
    again = run(protocol.select(factors={"trees": [3, 4]}), folder / "results.db")
    assert sorted(again.scores["trees"].unique()) == [3, 4]
    assert protocol_of(factors={"ilr": [-0.0]}).factors["ilr"] == (0.0,)
    assert str(protocol_of(factors={"ilr": [-0.0]}).factors["ilr"][0]) == "0.0"


def protocol_spec(methods, trees):
    return {
        "datasets": [{"name": "digit_attributes", "rows": 80}],
        "measures": ["micro_auroc"],
        "repeats": 2,
        "split": {"kind": "folds"},
        "factors": {"trees": trees},
        "methods": methods,
    }


def test_one_run_at_a_time(folder):
    pytest.importorskip("fcntl")
    out = folder / "results.db"
    protocol = protocol_of()
    run(protocol, out)
    with Store(out) as store, store.only_writer(), pytest.raises(ValueError, match="Another run is writing to"):
        run(protocol, out)
    run(protocol, out)  # the lock ends with its holder


def test_a_reader_who_has_seen_enough(folder):
    run(protocol_of(), folder / "results.db")
    command = f'"{sys.executable}" -m sylvan.app.cli bench show "{folder / "results.db"}" --json | head -c 5'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == '{"dat'
    assert done.stderr == ""
