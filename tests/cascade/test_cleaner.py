"""Tables as they come: a cascade makes numbers of their columns, in the fit and for new rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import sylvan
from sylvan.exceptions import TableError
from sylvan.tables import Cleaner

RNG = np.random.default_rng(0)
N = 120
SOIL = RNG.choice(["mud", "sand", "rock"], N)
TAKEN = pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 700, N), unit="D")
DEPTH = RNG.uniform(0, 9, N).round(2)
X = pd.DataFrame(
    {
        "depth": [f"{each} m".replace(".", ",") for each in DEPTH], "soil": pd.Categorical(SOIL),
        "taken": TAKEN, "deep": pd.array(DEPTH > 5, dtype="boolean"),
        "count": pd.array(RNG.integers(0, 9, N), dtype="Int64"),
    },
    index=[f"s{at}" for at in range(N)],
)  # fmt: skip
Y = pd.DataFrame(
    {"a": np.where(SOIL == "mud", "yes", "no"), "b": np.where(TAKEN.month < 6, "yes", "no")}, index=X.index
)


def small(**options):
    return sylvan.auto(10, max_layers=2, random_state=0, **options)


@pytest.fixture(scope="module")
def model():
    return small().fit(X, Y)


def test_columns_become_features(model):
    names = model.feature_names_in_.tolist()
    parts = ["days", "year", "month", "day of year", "weekday"]
    assert names == ["depth", "soil", *(f"taken ({part})" for part in parts), "deep", "count"]
    assert model.cleaner_.feature_names_in_.tolist() == list(X)
    best = pd.Series(model.feature_importances_, names).sort_values()
    assert {"soil", "taken (month)"} <= set(best.index[-4:])
    assert "depth: numbers with decimal commas; numbers in m" in model.cleaner_.notes_


def test_it_is_the_fit_to_the_cleaned_table(model):
    numbers = Cleaner().fit_transform(X)
    plain = small().fit(numbers, Y)
    assert not hasattr(plain, "cleaner_")
    np.testing.assert_array_equal(model.predict_proba(X[:30]), plain.predict_proba(numbers[:30]))
    np.testing.assert_array_equal(model.oos_proba_, plain.oos_proba_)
    np.testing.assert_array_equal(model.predict_proba(X[:30]), model.predict_proba(numbers[:30].to_numpy()))


def test_new_rows_are_read_in_the_same_way(model):
    new = X.iloc[:5].copy()
    new["soil"] = ["lava", "mud", None, "mud", "sand"]
    assert np.isfinite(model.predict_proba(new)).all()
    with pytest.raises(TableError, match="lacks columns that the model was fitted with: 'soil'"):
        model.predict(X.drop(columns="soil"))
    with pytest.raises(TableError, match="Column 'depth' holds numbers, but 'deep' in row s0"):
        model.predict(X.assign(depth="deep"))


def test_it_can_be_switched_off():
    with pytest.raises(ValueError, match=r"not numeric: \['depth', 'soil', 'taken'\]. Make numbers of them first"):
        small(cleaner=None).fit(X, Y)
    with pytest.raises(ValueError, match="cleaner must be one of 'auto', None"):
        small(cleaner="no").fit(X, Y)
    model = small(cleaner=Cleaner(categorical=["count"])).fit(X[["count"]], Y)
    assert len(model.cleaner_.categories["count"]) == X["count"].nunique()


def test_questions_reach_the_user():
    with pytest.raises(TableError, match="Column 'd' has numbers with 'g' and 'mg'"):
        small().fit(pd.DataFrame({"d": ["5 mg", "3 g"] * 60}, X.index), Y)


def test_a_model_file_keeps_the_cleaner(model, tmp_path):
    path = model.save(tmp_path / "m.sylvan")
    again = sylvan.load(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.cleaner_.to_json() == model.cleaner_.to_json()


def test_suggestions_reasons_and_checks_work(model):
    found = model.suggest_labels(top=5, reasons=2)
    assert found["row"].isin(X.index).all()
    told = [reason for line in model.explain_cells(X[:9].reset_index(drop=True)).top(3) for reason in line]
    assert {reason.feature for reason in told} <= set(model.feature_names_in_)
    assert {reason.value for reason in told if reason.feature == "soil"} <= set(SOIL)  # in words
    assert model.check_recovery(X, Y, random_state=0)["hidden"].iloc[-1] > 0


def test_pipelines_and_clones(model):
    pipeline = make_pipeline(Cleaner(), small())
    pipeline.fit(X, Y)
    np.testing.assert_array_equal(pipeline.predict_proba(X), model.predict_proba(X))
    with pytest.raises(NotFittedError):
        clone(pipeline[0]).transform(X)
    assert clone(model).cleaner == "auto"


def test_tables_of_other_libraries(model):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pandas(X.assign(soil=SOIL))
    np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(X))
