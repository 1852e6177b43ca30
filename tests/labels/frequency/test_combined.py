"""c from shapes and tops of rankings, and whether anything is missing: against a plain twin, and on made-up labels."""

import numpy as np
import pytest
from hypothesis import given

import naive_combined as naive
import sylvan.labels.frequency.combined as module
from labels.frequency.test_binormal import beside, cases, simulated
from strategies import examples
from sylvan import auto
from sylvan.labels.frequency import BinormalFrequency, CombinedFrequency, TopRate


def found_in(case, **settings):
    return CombinedFrequency(**settings).estimate(None, case.Y, proba=case.P)


def hard(c, n=1500, n_labels=5, seed=0):
    """Return labels that no row is sure of, P(present) is drawn from a wide distribution; shares c are recorded."""
    rng = np.random.default_rng(seed)
    P = rng.beta(0.6, 1.4, size=(n, n_labels))
    present = rng.random(P.shape) < P
    return type(simulated([0.5]))(present & (rng.random(P.shape) < c), P * c)


@examples(12)
@given(cases(max_rows=60, max_labels=3))
def test_equals_its_twin(case):
    found = found_in(case)
    expected, nothing = naive.combined_frequency(*case.lists())
    for j, triple in enumerate(expected):
        ours = (found.value[j], found.low[j], found.high[j])
        np.testing.assert_allclose(ours, [np.nan] * 3 if triple is None else triple, rtol=1e-6)
    assert ("nothing is missing" in found.reason) == (nothing > 0.5 and any(expected))


@examples(30)
@given(cases())
def test_the_top_is_that_of_pooled_rates(case):
    known = ~np.isnan(case.P)
    if not known.any():
        return
    expected = TopRate().estimate(None, case.Y[known], proba=case.P[known]).value
    if np.isfinite(expected).all():
        assert module.top_rate(case.Y, case.P) == pytest.approx(expected[0])


def test_of_many_cells_some_rows_will_do(monkeypatch):
    case = simulated([0.5] * 5, n=4000)
    whole = found_in(case)
    monkeypatch.setattr(module, "_MOST_CELLS", 5000)
    some = found_in(case)
    np.testing.assert_array_equal(some.value, found_in(case).value)
    np.testing.assert_allclose(some.value, whole.value, rtol=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_hard_labels_that_are_complete_are_called_so(seed):
    case = hard(1.0, seed=seed)
    ours = found_in(case)
    shapes = BinormalFrequency().estimate(None, case.Y, proba=case.P)
    assert np.abs(1 - ours.value).mean() <= np.abs(1 - shapes.value).mean() + 1e-9
    assert (ours.high > 0.999).all()


@pytest.mark.parametrize("c", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("make", [hard, lambda c, seed: simulated([c] * 5, seed=seed)])
def test_labels_of_which_some_are_missing_are_not(make, c):
    for seed in range(3):
        case = make(c, seed=seed)
        found = found_in(case)
        assert "nothing is missing" not in found.reason
        assert np.median(np.abs(np.log(found.value / c))) < 0.25


def test_intervals_hold_c():
    """Simulated by the model: 90 % intervals of labels that share c, or are complete, hold it at least so often."""
    hits = []
    for seed in range(30):
        c = np.random.default_rng(seed).choice([0.3, 0.5, 0.7, 0.9, 1.0])
        found = found_in(simulated([c] * 4, separation=2.0, n=800, seed=seed))
        hits.append((found.low <= c) & (c <= found.high + 1e-9))
    assert np.mean(hits) > 0.85


def test_labels_that_differ_are_not_all_complete():
    case = beside(simulated([1.0, 1.0], n=2000), simulated([0.4, 0.4], n=2000, seed=1))
    found = found_in(case)
    assert "nothing is missing" not in found.reason
    np.testing.assert_allclose(found.value, [1, 1, 0.4, 0.4], atol=0.08)


def test_what_is_known_goes_before():
    case = hard(1.0)
    for within in (0.5, (0.4, 0.8), {0: 0.6}):
        ours = found_in(case, within=within, trust=0.7)
        shapes = BinormalFrequency(within=within).estimate(None, case.Y, proba=case.P)
        np.testing.assert_array_equal(ours.value, shapes.value)
        assert ours.reason == shapes.reason
    np.testing.assert_array_equal(found_in(case, within=(0, 1)).value, found_in(case).value)


def test_any_common_scale_of_probabilities_will_do():
    case = simulated([0.5, 0.7, 0.9])
    for change in (np.sqrt, lambda p: p**3, lambda p: 0.2 + p / 3):
        np.testing.assert_allclose(found_in(case).value, found_in(case._replace(P=change(case.P))).value)


def test_cells_that_are_known_to_be_absent_say_nothing():
    case = simulated([0.5, 0.6])
    P = case.P.copy()
    P[~case.Y[:, 0], 0] = np.nan  # all that is left of the first label is recorded
    assert found_in(case._replace(P=P)).value[0] == pytest.approx(1)
    nobody = found_in(case._replace(P=np.full(P.shape, np.nan)))
    assert np.isnan(nobody.value).all()
    assert nobody.reason == "no label has a recorded positive"


def test_auto_says_that_nothing_seems_to_be_missing(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    Y = (X[:, :3] + 0.3 * rng.normal(size=(600, 3)) > 0.5).astype(int)
    model = auto(20, random_state=0).fit(X, Y)
    assert "nothing is missing" in str(model.summary())
    assert len(model.suggest_labels()) < 0.01 * Y.size
    model.save(tmp_path / "m.sylvan")
