"""Measure-aware reuse against the formulas in exact fractions, and its promises about single rows."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import naive_mldf as naive
from strategies import examples
from sylvan import measures
from sylvan.cascade.augment import OutputSpace, Union
from sylvan.cascade.augment.reuse import MeasureAwareReuse, confidence, log_confidence
from sylvan.cascade.contracts import LayerView, parts_of
from sylvan.labels.state import mean_of

BY_ROW, BY_LABEL, SIX = naive.BY_ROW, naive.BY_LABEL, naive.SIX
NEAR = 1e-9  # logarithms that differ by less are not told apart


def view_of(probas, labels=None, used=None):
    return LayerView(list(range(len(probas))), lambda slot: None, probas, labels, 0, used)


def fitted(measure, probas, before, labels, used=None, **options):
    reuse = MeasureAwareReuse(measure, **options)
    return reuse, reuse.fit_refine(view_of(probas, np.asarray(labels, bool), used), before)


def random_layers(n=60, n_labels=5, n_forests=2, seed=0):
    """Labels and two layers' probabilities, of which neither is the better one everywhere."""
    rng = np.random.default_rng(seed)
    labels = rng.random((n, n_labels)) < 0.4
    labels[0], labels[1] = True, False
    near = np.where(labels, 0.6, 0.3)
    before, now = (np.clip(near + rng.normal(0, 0.3, (n_forests, n, n_labels)), 0, 1) for _ in range(2))
    return labels, before, now


# ------------------------------------------------------------------------------------------------ confidence


@pytest.mark.parametrize(
    ("measure", "expected"),
    [("ranking_loss", 0.6108), ("average_precision", 0.6108), ("coverage", 0.3262), ("one_error", 0.9)],
)
def test_confidence_of_a_row(measure, expected):
    for row in ([0.9, 0.6, 0.4, 0.3], [0.4, 0.9, 0.3, 0.6]):
        assert_allclose(confidence(measure, [row]), [expected], rtol=1e-14)
        assert_allclose(log_confidence(measure, [row]), [np.log(expected)], rtol=1e-14)


@pytest.mark.parametrize(("measure", "expected"), [("hamming_loss", 0.70), ("macro_auroc", 0.6108)])
def test_confidence_of_a_column(measure, expected):
    column = np.array([0.4, 0.9, 0.3, 0.6])
    assert_allclose(confidence(measure, np.column_stack([column, column])), [expected] * 2, rtol=1e-14)


@pytest.mark.parametrize("n_labels", [1, 2, 4, 9, 100])
def test_certain_rows(n_labels):
    certain = np.tril(np.ones((n_labels + 1, n_labels)), -1)
    certain = np.random.default_rng(0).permuted(certain, axis=1)
    for measure in ("ranking_loss", "average_precision"):
        assert_array_equal(log_confidence(measure, certain), 0.0)
    for measure in BY_LABEL:
        assert_array_equal(log_confidence(measure, certain.T), 0.0)
    assert_allclose(confidence("coverage", certain), 1 - np.arange(n_labels + 1) / n_labels, rtol=1e-14)
    assert log_confidence("coverage", certain)[0] == 0.0
    assert log_confidence("coverage", certain)[-1] == -np.inf
    assert_array_equal(confidence("one_error", certain), certain.max(axis=1))


PROBABILITIES = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 1e-300, 1 - 2**-53]),
    st.floats(0, 1),
    st.integers(0, 20).map(lambda k: k / 20),
)


@pytest.mark.parametrize("measure", SIX)
@given(P=hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=PROBABILITIES))
@examples(60)
def test_confidence_is_that_of_the_formula(measure, P):
    expected = naive.confidence(measure, P)
    assert_allclose(log_confidence(measure, P), [naive.log_of(alpha) for alpha in expected], rtol=1e-12, atol=1e-12)
    assert_allclose(confidence(measure, P), [float(alpha) for alpha in expected], rtol=1e-12)


@pytest.mark.parametrize("measure", ["macro_auroc", "ranking_loss"])
def test_confidence_below_any_number(measure):
    P = np.random.default_rng(0).integers(7, 10, (1300, 1)) / 16
    P = P if measure == "macro_auroc" else P.T
    expected = [naive.log_of(alpha) for alpha in naive.confidence(measure, P)]
    assert max(expected) < -750
    assert_allclose(log_confidence(measure, P), expected, rtol=1e-12)
    assert_array_equal(confidence(measure, P), 0.0)


@pytest.mark.parametrize("n_labels", [1, 3, 8, 9, 17, 130, 1000])
@pytest.mark.parametrize("measure", BY_ROW)
def test_a_row_has_the_same_bits_alone(measure, n_labels):
    rng = np.random.default_rng(n_labels)
    P = rng.random((130, n_labels)) ** rng.integers(1, 6)
    P[rng.random(P.shape) < 0.1] = 0.0
    P[:20][rng.random((20, n_labels)) < 0.3] = 1.0
    batch = log_confidence(measure, P)
    for other in (np.asfortranarray(P), np.repeat(P, 2, axis=1)[:, ::2], P.tolist()):
        assert_array_equal(log_confidence(measure, other), batch)
    for size in (1, 2, 7, 64):
        parts = [log_confidence(measure, P[first : first + size]) for first in range(0, len(P), size)]
        assert_array_equal(np.concatenate(parts), batch)
    shuffled = rng.permuted(P, axis=1)
    assert_array_equal(log_confidence(measure, shuffled), batch)


@pytest.mark.parametrize("measure", SIX)
def test_rows_are_worked_on_in_blocks(measure, monkeypatch):
    P = np.random.default_rng(0).random((50, 7))
    expected = log_confidence(measure, P)
    monkeypatch.setattr("sylvan.cascade.augment.reuse._CELLS_AT_ONCE", 20)
    assert_array_equal(log_confidence(measure, P), expected)


def test_probabilities_a_rounding_error_above_one():
    P = np.array([[1.0 + 2**-52, 0.3], [-(2**-60), 0.3]])
    for measure in SIX:
        assert_array_equal(log_confidence(measure, P), log_confidence(measure, np.clip(P, 0, 1)))


# ------------------------------------------------------------------------------------------------ threshold and reuse


@st.composite
def layers(draw):
    shape = draw(st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 5)))
    elements = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 0.75]), st.integers(0, 20).map(lambda k: k / 20))
    before, now = (draw(hnp.arrays(float, shape, elements=elements)) for _ in range(2))
    labels = draw(hnp.arrays(bool, shape[1:]))
    used = draw(st.one_of(st.none(), hnp.arrays(bool, shape[1:2])))
    if used is not None:
        used[draw(st.integers(0, shape[1] - 1))] = True
    return now, before, labels, used


@pytest.mark.parametrize("measure", SIX)
@given(case=layers())
@examples(40)
def test_threshold_and_reuse_are_those_written_out_by_hand(measure, case):
    now, before, labels, used = case
    rows = slice(None) if used is None else used
    theta = naive.threshold(measure, labels[rows].astype(int), now[:, rows], before[:, rows])
    reuse, refined = fitted(measure, now, before, labels, used)
    assert_allclose(reuse.log_threshold_, naive.log_of(theta), rtol=1e-12, atol=1e-12)
    assert_allclose(reuse.threshold_, float(theta), rtol=1e-12)

    by_row = measure in BY_ROW
    alpha = naive.confidence(measure, mean_of(now) if by_row else mean_of(now)[rows])
    which = np.array([a < theta for a in alpha])
    near = np.array([a > 0 and theta > 0 and abs(naive.log_of(a / theta)) < NEAR for a in alpha])
    expected = np.array(naive.reuse(measure, now, before, which))
    clear = np.s_[:, ~near] if by_row else np.s_[:, :, ~near]
    assert_array_equal(refined[clear], expected[clear])
    at_hand = which[rows] if by_row else which
    if not near.any():
        assert_allclose(reuse.reuse_share_, at_hand.mean(), rtol=1e-12)
        assert reuse.reused_ is None if by_row else (reuse.reused_ == which).all()

    again = reuse.refine(now, before)
    assert_array_equal(again, refined)


@pytest.mark.parametrize("measure", SIX)
def test_there_is_something_to_reuse_in_these_tests(measure):
    labels, before, now = random_layers()
    reuse, refined = fitted(measure, now, before, labels)
    assert 0 < reuse.reuse_share_ < 1
    assert not np.array_equal(refined, now)
    assert not np.array_equal(refined, before)
    assert refined.min() >= 0
    assert refined.max() <= 1
    assert reuse.log_threshold_ <= log_confidence(measure, mean_of(now)).max()


@pytest.mark.parametrize("before", ["nothing", "the same", "worse"])
@pytest.mark.parametrize("measure", SIX)
def test_the_first_layer_and_a_layer_that_lost_nothing_stay_as_they_are(measure, before):
    labels, _, _ = random_layers()
    now = np.array([np.where(labels, 0.6, 0.1), np.where(labels, 0.7, 0.2)])
    earlier = {"nothing": None, "the same": now, "worse": 1 - now}[before]
    reuse, refined = fitted(measure, now, earlier, labels)
    assert refined is now
    assert reuse.threshold_ == 0.0
    assert reuse.log_threshold_ == -np.inf
    assert reuse.reuse_share_ == 0.0
    assert reuse.reused_ is None if measure in BY_ROW else not reuse.reused_.any()
    new, old = 1 - now[:, :3], None if earlier is None else earlier[:, :3]
    assert_array_equal(reuse.refine(new, old), new)


@pytest.mark.parametrize("measure", ["one_error", "coverage", "ranking_loss", "average_precision"])
@pytest.mark.parametrize("n", [1, 3, 7, 10])
def test_equally_sure_rows_are_not_below_their_own_mean(measure, n):
    labels = np.tile([True, False, False], (n, 1))
    before = np.tile([0.9, 0.2, 0.1], (1, n, 1))
    now = np.tile([0.3, 0.7, 0.1], (1, n, 1))
    reuse, refined = fitted(measure, now, before, labels)
    assert reuse.log_threshold_ == log_confidence(measure, now[0])[0]
    assert_array_equal(refined, now)


def test_the_order_of_positives_does_not_make_average_precision_worse():
    """Precisions 1, 2/3, 3/4 have the same mean in any order, but their sums are rounded."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(12) % 3 > 0, (300, 1))
    before = rng.random(labels.shape)
    swapped = before.copy()
    positives = np.flatnonzero(labels[0])
    swapped[:, positives] = rng.permuted(before[:, positives], axis=1)
    values = [measures.average_precision.vector(labels, scores) for scores in (before, swapped)]
    assert (values[0] > values[1]).any()  # by rounding alone
    reuse, _ = fitted("average_precision", swapped[None], before[None], labels)
    assert reuse.threshold_ == 0.0


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_label_of_one_class_has_no_say(value):
    labels, before, now = random_layers()
    reuse, _ = fitted("macro_auroc", now, before, labels)
    constant = np.full((2, len(labels), 1), 0.5)
    wide = [np.concatenate([probas, constant], axis=2) for probas in (now, before)]
    more, refined = fitted("macro_auroc", *wide, np.column_stack([labels, np.full(len(labels), value)]))
    assert more.log_threshold_ == reuse.log_threshold_
    assert_array_equal(more.reused_[:-1], reuse.reused_)
    assert refined.shape == wide[0].shape
    alone, kept = fitted("macro_auroc", constant, constant / 2, np.full((len(labels), 1), value))
    assert alone.threshold_ == 0.0
    assert_array_equal(kept, constant)


def test_thresholds_below_any_number_are_compared():
    n = 4000
    labels = np.zeros((n, 2), bool)
    labels[: n // 2] = True
    right = np.where(labels, 0.6, 0.4)
    now = np.stack([right[:, 0], 1.0 - np.clip(right[:, 1], 0.45, 0.55)], axis=1)  # the second label has turned round
    now[:, 0] = np.where(labels[:, 0], 0.55, 0.5)
    reuse, refined = fitted("macro_auc", now[None], right[None], labels)
    alpha = log_confidence("macro_auc", now)
    assert reuse.threshold_ == 0.0
    assert reuse.log_threshold_ == alpha[1]
    assert alpha[0] < alpha[1] < -800
    assert_array_equal(reuse.reused_, [True, False])
    assert_array_equal(refined[0], np.stack([right[:, 0], now[:, 1]], axis=1))
    assert_array_equal(reuse.refine(now[None], right[None]), refined)


@pytest.mark.parametrize("measure", SIX)
def test_rows_of_weight_zero_have_no_say(measure):
    labels, before, now = random_layers()
    used = np.arange(len(labels)) % 3 > 0
    reuse, refined = fitted(measure, now, before, labels, used)
    alone, expected = fitted(measure, now[:, used], before[:, used], labels[used])
    assert reuse.log_threshold_ == alone.log_threshold_
    assert reuse.reuse_share_ == alone.reuse_share_
    assert_array_equal(refined[:, used], expected)
    assert_array_equal(refined, alone.refine(now, before))  # and are treated like new rows
    everyone, _ = fitted(measure, now, before, labels)
    assert everyone.log_threshold_ != alone.log_threshold_


@pytest.mark.parametrize("measure", SIX)
@pytest.mark.parametrize("reuse_mode", ["train", "batch"])
def test_rows_of_weight_zero_have_no_say_in_batch_mode_either(measure, reuse_mode):
    labels, before, now = random_layers()
    used = np.arange(len(labels)) % 3 > 0
    now[:, ~used] = 0.5
    _, refined = fitted(measure, now, before, labels, used, reuse_mode=reuse_mode)
    _, expected = fitted(measure, now[:, used], before[:, used], labels[used])
    assert_array_equal(refined[:, used], expected)


# ------------------------------------------------------------------------------------------------ new rows


@pytest.mark.parametrize("n_labels", [2, 5, 40])
@pytest.mark.parametrize("measure", SIX)
def test_a_new_row_alone_is_treated_as_among_others(measure, n_labels):
    labels, before, now = random_layers(90, n_labels, 3)
    reuse, _ = fitted(measure, now[:, :50], before[:, :50], labels[:50])
    new, old = now[:, 50:], before[:, 50:]
    for threshold in np.sort(log_confidence(measure, mean_of(new)))[1:40:5]:  # a bit more or less would be seen
        for reuse.log_threshold_ in (threshold, np.nextafter(threshold, 1)):
            batch = reuse.refine(new, old)
            alone = [reuse.refine(new[:, i : i + 1], old[:, i : i + 1]) for i in range(new.shape[1])]
            assert_array_equal(np.concatenate(alone, axis=1), batch)
            assert not np.array_equal(batch, new) or measure in BY_LABEL


@pytest.mark.parametrize("measure", BY_LABEL)
def test_modes_of_measures_by_label(measure):
    labels, before, now = random_layers(n_labels=6)
    train, refined = fitted(measure, now, before, labels)
    batch, same = fitted(measure, now, before, labels, reuse_mode="batch")
    assert_array_equal(refined, same)
    assert batch.log_threshold_ == train.log_threshold_
    unsure, sure = np.full_like(now, 0.5), np.round(now)
    for new, which in ((unsure, np.ones(6, bool)), (sure, np.zeros(6, bool))):
        assert_array_equal(batch.refine(new, before), np.where(which, before, new))
        assert_array_equal(train.refine(new, before), np.where(train.reused_, before, new))


@pytest.mark.parametrize("measure", BY_ROW)
def test_modes_do_not_matter_to_measures_by_row(measure):
    labels, before, now = random_layers()
    train, _ = fitted(measure, now, before, labels)
    batch, _ = fitted(measure, now, before, labels, reuse_mode="batch")
    assert_array_equal(batch.refine(now[:, :20], before[:, :20]), train.refine(now[:, :20], before[:, :20]))


def test_thresholds_may_be_reached():
    """A row whose confidence equals the threshold speaks for itself."""
    labels = np.array([[True, False], [True, False]])
    before, now = np.array([[[0.9, 0.1], [0.9, 0.1]]]), np.array([[[0.25, 0.5], [0.8, 0.0]]])
    reuse, _ = fitted("one_error", now, before, labels)
    assert reuse.threshold_ == 0.5
    new = np.array([[[0.5, 0.1], [0.5 - 2**-54, 0.1]]])
    assert_array_equal(reuse.refine(new, before), [[new[0, 0], before[0, 1]]])


# ------------------------------------------------------------------------------------------------ features


class Recorder(OutputSpace):
    """Twice the probabilities, and what it was shown."""

    nbytes = 12

    def fit_transform(self, view):
        self.labels_ = view.labels
        return self.transform(view)

    def transform(self, view):
        self.seen_ = view.probas
        return [2 * proba for proba in view.probas]

    def column_names(self, slot, labels):
        return [f"{label} in {slot}" for label in labels]


class Shared(OutputSpace):
    """One block for all forests."""

    n_shared = 1

    def fit_transform(self, view):
        return self.transform(view)

    def transform(self, view):
        return [*(np.empty((proba.shape[0], 0)) for proba in view.probas), mean_of(view.probas).sum(axis=1)[:, None]]

    def column_names(self, slot, labels):
        return [] if slot < 2 else ["sum"]


def test_the_features_are_the_probabilities():
    labels, before, now = random_layers()
    reuse, refined = fitted("one_error", now, before, labels)
    assert reuse.nbytes == 0
    blocks = reuse.fit_transform(view_of(refined, labels))
    assert_array_equal(blocks, refined)
    assert_array_equal(reuse.transform(view_of(now[:, :3])), now[:, :3])
    assert reuse.column_names(1, ["a", "b"]) == ["a", "b"]
    assert reuse.nbytes == 0


def test_the_inner_augmenter_makes_the_features():
    labels, before, now = random_layers()
    inner = Recorder()
    reuse, refined = fitted("one_error", now, before, labels, augment=inner)
    assert_array_equal(reuse.fit_transform(view_of(refined, labels)), 2 * refined)
    assert_array_equal(reuse.augment_.seen_, refined)
    assert reuse.augment_.labels_ is labels
    assert not hasattr(inner, "seen_")
    assert_array_equal(reuse.transform(view_of(now)), 2 * now)
    assert reuse.column_names(1, ["a", "b"]) == ["a in 1", "b in 1"]
    assert reuse.nbytes == 12


def test_what_the_inner_augmenter_makes_for_all_forests():
    labels, before, now = random_layers()
    reuse, refined = fitted("one_error", now, before, labels, augment=Union([Recorder(), Shared()]))
    assert list(parts_of(reuse)) == reuse.augment.parts
    blocks = reuse.fit_transform(view_of(refined, labels))
    assert [block.shape[1] for block in blocks] == [5, 5, 1]
    assert [type(part) for part in parts_of(reuse)] == [Recorder, Shared]
    assert [reuse.column_names(block, ["a"]) for block in range(3)] == [["a in 0"], ["a in 1"], ["sum"]]


def test_it_is_no_part_of_other_augmenters():
    _, _, now = random_layers()
    with pytest.raises(NotFittedError, match="not a part of another augmenter"):
        MeasureAwareReuse().fit_transform(view_of(now))
    with pytest.raises(NotFittedError, match="fit_refine"):
        MeasureAwareReuse().refine(now, now)
    with pytest.raises(ValueError, match=r"write MeasureAwareReuse\(augment=Union"):
        Union([MeasureAwareReuse()]).fit_transform(view_of(now))


# ------------------------------------------------------------------------------------------------ parameters


def test_measures_by_name_and_as_such():
    labels, before, now = random_layers()
    for name in SIX:
        expected = fitted(name, now, before, labels)[0]
        assert fitted(getattr(measures, name), now, before, labels)[0].log_threshold_ == expected.log_threshold_
        copied = clone(MeasureAwareReuse(getattr(measures, name)))
        copied.fit_refine(view_of(now, labels), before)
        assert copied.log_threshold_ == expected.log_threshold_
    by_alias, by_name = (fitted(name, now, before, labels)[0] for name in ("macro_auc", "macro_auroc"))
    assert by_alias.log_threshold_ == by_name.log_threshold_
    assert fitted(measures.hamming_loss, now, before, labels)[0].reused_ is not None
    assert MeasureAwareReuse().measure == "hamming_loss"


@pytest.mark.parametrize("measure", ["micro_auroc", "accuracy", measures.macro_f1, None, 3, []])
@pytest.mark.parametrize("first", [True, False])
def test_other_measures_are_refused(measure, first):
    labels, before, now = random_layers()
    with pytest.raises(ValueError, match=r"hamming_loss.*one_error.*coverage.*ranking_loss.*average_.*macro_auroc"):
        fitted(measure, now, None if first else before, labels)
    with pytest.raises(ValueError, match="macro_auroc"):
        confidence(measure, now[0])


def test_other_modes_are_refused():
    labels, before, now = random_layers()
    with pytest.raises(ValueError, match=r"reuse_mode must be one of 'train', 'batch', got 'test'\."):
        fitted("one_error", now, before, labels, reuse_mode="test")


def test_layers_of_another_number_of_forests_are_refused():
    labels, before, now = random_layers(n_forests=3)
    with pytest.raises(ValueError, match="has 2 forests and the one before it 3"):
        fitted("one_error", now[:2], before, labels)


def test_clones_and_pickles():
    labels, before, now = random_layers()
    reuse, refined = fitted("macro_auc", now, before, labels, augment=Recorder(), reuse_mode="batch")
    reuse.fit_transform(view_of(refined, labels))
    assert reuse.get_params(deep=False).keys() == {"measure", "augment", "reuse_mode"}
    copied = clone(reuse)
    assert not hasattr(copied, "threshold_")
    assert copied.reuse_mode == "batch"
    assert isinstance(copied.augment, Recorder)
    again = pickle.loads(pickle.dumps(reuse))
    assert_array_equal(again.refine(now, before), refined)
    assert again.column_names(0, ["a"]) == ["a in 0"]
    assert reuse.set_params(augment__in_sample=True).augment.in_sample


def test_the_twin_is_right_about_the_published_example():
    row = [Fraction(9, 10), Fraction(6, 10), Fraction(4, 10), Fraction(3, 10)]
    assert naive.right_order(row) == Fraction(6108, 10000)
    assert naive.last_positive(row) == Fraction(3262, 10000)
    assert naive.mean_of_the_larger(row) == Fraction(7, 10)
    assert naive.greatest(row) == Fraction(9, 10)
