"""Length control on literal histories."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from strategies import examples
from sylvan.cascade.contracts import LayerRecord
from sylvan.cascade.length import BestLayer, FixedLength, ImputationLimit, Patience, ScoreDrop

NAN = float("nan")


def history(*scores, greater_is_better=True, active=1):
    """Return a history of these scores."""
    return [LayerRecord(t, score, greater_is_better, 0, active, 0.1) for t, score in enumerate(scores, start=1)]


def grown(control, scores, greater_is_better=True):
    """Grow as a cascade does: return how many layers were grown and how many are kept."""
    records = history(*scores, greater_is_better=greater_is_better)
    for n in range(1, len(records) + 1):
        if control.should_stop(records[:n]):
            break
    return n, control.n_layers(records[:n])


# Scores


@pytest.mark.parametrize(
    ("score", "greater_is_better", "quality"),
    [(0.3, True, 0.3), (0.3, False, -0.3), (NAN, True, -float("inf")), (NAN, False, -float("inf"))],
)
def test_quality(score, greater_is_better, quality):
    assert history(score, greater_is_better=greater_is_better)[0].quality == quality


# Until the score drops


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ([0.8], (1, 1)),
        ([0.8, 0.9], (2, 2)),
        ([0.8, 0.7], (2, 1)),
        ([0.8, 0.85, 0.84, 0.99], (3, 2)),
        ([0.8, 0.8, 0.8], (3, 3)),  # a tie is no drop
        ([0.8, 0.8, 0.79, 0.9], (3, 2)),
        ([0.5, NAN, 0.9], (2, 1)),  # a score that is not defined is worse than any
        ([NAN, 0.1, 0.2], (1, 1)),  # nothing to compare with
    ],
)
def test_score_drop(scores, found):
    assert grown(ScoreDrop(), scores) == found


def test_score_drop_compares_with_the_layer_before():
    # A slow decline within the tolerance goes on.
    assert grown(ScoreDrop(tol=0.1), [0.9, 0.8125, 0.75, 0.6875, 0.5, 0.9]) == (5, 4)
    assert grown(ScoreDrop(tol=0.125), [0.75, 0.625, 0.5]) == (3, 3)  # by exactly tol
    assert grown(ScoreDrop(tol=0.125), [0.75, 0.6249, 0.5]) == (2, 1)


def test_score_drop_is_the_first_of_several():
    assert ScoreDrop().n_layers(history(0.8, 0.7, 0.9, 0.6)) == 1


# Patience


@pytest.mark.parametrize(
    ("n", "scores", "found"),
    [
        (2, [0.8, 0.85, 0.84, 0.85, 0.99], (4, 2)),
        (2, [0.8, 0.7, 0.9, 0.8, 0.8, 1.0], (5, 3)),
        (1, [0.8, 0.8, 0.9], (2, 1)),  # a tie is no gain
        (1, [0.8, 0.9, 0.95], (3, 3)),
        (3, [0.8, 0.7, 0.7, 0.7, 0.9], (4, 1)),
        (3, [0.8, 0.7, 0.7, 0.9], (4, 4)),
        (2, [NAN, 0.1, NAN, NAN, 0.2], (4, 2)),
        (2, [NAN, NAN, NAN, 0.2], (3, 1)),
        (2, [0.8], (1, 1)),
    ],
)
def test_patience(n, scores, found):
    assert grown(Patience(n), scores) == found


def test_patience_is_2_by_default():
    assert grown(Patience(), [0.8, 0.7, 0.75, 0.9]) == (3, 1)


def test_patience_wants_a_gain_above_tol():
    assert grown(Patience(2, tol=0.125), [0.5, 0.625, 0.625, 0.9]) == (3, 1)
    # The gain is over the best layer, not over the one before: small steps add up.
    assert grown(Patience(2, tol=0.125), [0.5, 0.5625, 0.6875, 0.75]) == (4, 3)


# The best layer


@pytest.mark.parametrize(
    ("first", "scores", "kept"),
    [
        (1, [0.9, 0.85, 0.87, 0.87], 1),
        (2, [0.9, 0.85, 0.87, 0.87], 3),
        (3, [0.9, 0.85, 0.86, 0.86], 3),
        (1, [0.8, 0.9, 0.9], 2),  # of equally good ones the shallowest
        (2, [0.5, 0.9, 0.9, 0.9], 2),
        (1, [0.5, 0.6, 0.7], 3),
        (4, [0.5, 0.9, 0.7], 3),  # fewer layers than asked for: the last
        (2, [0.7], 1),
        (1, [NAN, 0.1, NAN], 2),
        (1, [0.1, NAN], 1),
        (1, [NAN, NAN], 1),
        (2, [0.9, NAN, NAN, 0.3], 4),
        (2, [0.9, NAN, NAN], 2),
    ],
)
def test_best_layer(first, scores, kept):
    assert grown(BestLayer(first), scores) == (len(scores), kept)


def test_best_layer_may_be_the_first_by_default():
    assert BestLayer().first == 1
    assert BestLayer().n_layers(history(0.9, 0.8)) == 1


# Imputation


def test_imputation_limit():
    control = ImputationLimit()
    active = [3, 1, 1, 0]
    records = [LayerRecord(t, 0.5, True, 9, left, 0.1) for t, left in enumerate(active, start=1)]
    assert [control.should_stop(records[:n]) for n in range(5)] == [False, False, False, False, True]
    assert [control.n_layers(records[:n]) for n in range(1, 5)] == [1, 2, 3, 4]


def test_imputation_limit_does_not_look_at_scores():
    assert not ImputationLimit().should_stop(history(0.9, 0.1, NAN))
    assert ImputationLimit().should_stop(history(0.9, active=0))


# A fixed number


@pytest.mark.parametrize(("n", "found"), [(1, (1, 1)), (2, (2, 2)), (4, (4, 4)), (9, (4, 4)), (None, (4, 4))])
def test_fixed_length(n, found):
    assert grown(FixedLength(n), [0.9, 0.1, NAN, 0.2]) == found
    assert FixedLength(n).should_stop([]) is False


# All of them

CONTROLS = [
    ScoreDrop(),
    ScoreDrop(tol=0.1),
    Patience(),
    Patience(1, tol=0.1),
    BestLayer(),
    BestLayer(first=2),
    BestLayer(first=5),
    ImputationLimit(),
    FixedLength(),
    FixedLength(2),
]
every_control = pytest.mark.parametrize("control", CONTROLS, ids=repr)

scores_of_layers = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.55, 0.75, 1.0, NAN]), min_size=1, max_size=7)


@every_control
@examples(40)
@given(scores=scores_of_layers, greater_is_better=st.booleans(), active=st.integers(0, 2))
def test_number_of_layers_is_that_of_a_layer(control, scores, greater_is_better, active):
    records = history(*scores, greater_is_better=greater_is_better, active=active)
    n_layers = control.n_layers(records)
    assert 1 <= n_layers <= len(records)
    assert isinstance(control.should_stop(records), bool)
    assert control.n_layers(tuple(records)) == n_layers
    assert clone(control).n_layers(records) == n_layers


@every_control
@examples(40)
@given(scores=scores_of_layers)
def test_losses_are_scores_upside_down(control, scores):
    assert grown(control, [-score for score in scores], greater_is_better=False) == grown(control, scores)


@pytest.mark.parametrize(
    ("control", "found"),
    [(ScoreDrop(), (3, 2)), (Patience(1), (3, 2)), (BestLayer(), (4, 4)), (BestLayer(first=3), (4, 4))],
)
def test_smaller_is_better(control, found):
    assert grown(control, [0.3, 0.2, 0.25, 0.1], greater_is_better=False) == found


@examples(60)
@given(scores=scores_of_layers, first=st.integers(1, 8))
def test_best_layer_never_stops_and_maximises(scores, first):
    control, records = BestLayer(first), history(*scores)
    assert not any(control.should_stop(records[:n]) for n in range(len(records) + 1))
    eligible = [record for record in records if record.layer >= first] or records[-1:]
    best = max(record.quality for record in eligible)
    assert control.n_layers(records) == min(record.layer for record in eligible if record.quality == best)


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (ScoreDrop(tol=-0.1), "tol must be a number of at least 0"),
        (ScoreDrop(tol=NAN), "tol must be a number"),
        (Patience(tol=-1), "tol must be a number of at least 0"),
        (Patience(0), "n must be an integer of at least 1"),
        (Patience(1.5), "n must be an integer of at least 1"),
        (BestLayer(0), "first must be an integer of at least 1"),
    ],
)
def test_bad_parameters(control, message):
    with pytest.raises(ValueError, match=message):
        grown(control, [0.5, 0.6, 0.5])
