"""Links between labels: their regressions against a general minimiser, what must not matter, and what they bring."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

import naive_links as naive
from strategies import examples
from sylvan.cascade.augment import Interactions, LabelLinks, MeasureAwareReuse, OutputSpace, TreeEmbedding, Union
from sylvan.cascade.augment.readout import Readout, fit_readouts
from sylvan.cascade.contracts import LayerView, parts_of

CLEAR = 1e-3  # log-losses that differ by less are not told apart


class One:
    """A kind of forest; nothing is asked of it."""


class Other(One):
    pass


def view_of(said, labels, weight=None, unknown=None, kinds=None, seed=0):
    forests = [One() for _ in said] if kinds is None else [kind() for kind in kinds]
    used = None if weight is None else weight > 0
    labels = np.asarray(labels, bool)
    return LayerView(
        forests, lambda slot: None, said, labels, seed, used, sample_weight=weight, unknown=unknown
    )  # fmt: skip


def fitted(said, labels, **options):
    links = LabelLinks()
    return links, links.fit_refine(view_of(said, labels, **options), None)


def ask(links, said):
    return links.refine(said, None, LayerView([], lambda slot: None, said))


def made_up(n=150, n_labels=3, n_forests=2, seed=0, strength=2.0):
    """Forests that know a little, and labels that depend on each other beyond that."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 1))
    labels = expit(strength * hidden + 0.7 * rng.normal(size=(n, n_labels))) > rng.random((n, n_labels))
    logits = 0.8 * hidden + rng.normal(size=(n, n_labels)) + 0.3 * rng.normal(size=(n_forests, n, n_labels))
    return expit(logits), labels


# ------------------------------------------------------------------------------------------------ the regressions


def problem(seed):
    rng = np.random.default_rng(seed)
    n, d, q = int(rng.integers(20, 120)), int(rng.integers(1, 7)), int(rng.integers(1, 4))
    signals = rng.normal(size=(n, d)) * rng.choice([0.3, 1, 3], d) + rng.normal(size=d)
    own = rng.normal(size=(n, q))
    labels = (expit(own + 0.5 + signals[:, :1] * rng.normal()) > rng.random((n, q))).astype(float)
    known = np.repeat(rng.random(n)[:, None] * rng.choice([1, 3]), q, axis=1)
    known[rng.random(known.shape) < rng.choice([0, 0.3])] = 0.0
    fold = 1 + np.arange(n) % int(rng.integers(2, 6))
    fold[rng.random(n) < 0.1] = 0
    by_fold = [signals + (rng.random() < 0.5) * rng.normal(size=(n, 1)) * 0.2 for _ in range(fold.max())]
    return [signals, *by_fold], own, labels, known, fold


@pytest.mark.parametrize("seed", range(8))
def test_readouts_are_those_of_a_general_minimiser(seed):
    signals, own, labels, known, fold = problem(seed)
    readouts, penalty = fit_readouts(signals, own, labels, known, fold)
    assert len(readouts) == 1 + fold.max()
    for j in range(labels.shape[1]):
        best, losses, found = naive.choose(signals, own, labels, known, fold, j)
        near = sorted(losses.values())
        if near[1] - near[0] > CLEAR:
            assert penalty[j] == best
        assert losses[penalty[j]] <= near[0] + CLEAR
        for number, readout in enumerate(readouts):
            if np.isinf(penalty[j]):
                assert_array_equal(readout.weight[:, j], 0.0)
                assert readout.bias[j] == 0.0
            elif penalty[j] == best:
                assert_allclose(readout.center, found[number]["center"], atol=1e-12)
                assert_allclose(readout.weight[:, j], found[number]["weight"], atol=1e-3)
                assert_allclose(readout.bias[j], found[number]["bias"], atol=1e-3)


def test_penalties_differ_in_these_tests():
    chosen = [penalty for seed in range(8) for penalty in fit_readouts(*problem(seed))[1]]
    assert np.isinf(chosen).sum() >= 2
    assert len(set(chosen)) >= 4


def test_signals_that_say_the_same_share_the_weight():
    signals, own, labels, known, fold = problem(0)
    alone, penalty = fit_readouts([s[:, :2] for s in signals], own, labels, known, fold)
    twice, other = fit_readouts([s[:, [0, 1, 0, 1]] / np.sqrt(2) for s in signals], own, labels, known, fold)
    assert np.isfinite(penalty).any()
    assert_array_equal(penalty, other)
    assert_allclose(twice[0].weight[:2], twice[0].weight[2:], atol=1e-9)
    assert_allclose(np.sqrt(2) * twice[0].weight[:2], alone[0].weight, atol=1e-3)


def test_more_signals_than_directions_that_are_kept():
    rng = np.random.default_rng(0)
    signals, own = rng.normal(size=(300, 200)), np.zeros((300, 1))
    labels = (signals[:, :1] > 0).astype(float)
    readouts, _ = fit_readouts([signals] * 3, own, labels, np.ones((300, 1)), 1 + np.arange(300) % 2)
    assert np.linalg.matrix_rank(readouts[0].weight) == 1
    assert np.isfinite(readouts[0].weight).all()
    assert readouts[0].weight[0] > 0


def test_what_a_readout_says():
    rng = np.random.default_rng(0)
    readout = Readout(rng.normal(size=4), rng.normal(size=2), rng.normal(size=(4, 2)), rng.normal(size=2))
    signals, own = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    said = readout.ask(signals, own)
    assert_allclose(said, expit(own + readout.bias + (signals - readout.center) @ readout.weight), rtol=1e-12)
    assert_array_equal(np.vstack([readout.ask(signals[i : i + 1], own[i : i + 1]) for i in range(30)]), said)
    (typical,) = readout.ask(readout.center[None], readout.center_own[None])
    assert_allclose(readout.typical, typical, rtol=1e-12)


def test_readouts_say_the_same_from_wherever_they_are_told():
    rng = np.random.default_rng(0)
    readout = Readout(rng.normal(size=4), rng.normal(size=2), rng.normal(size=(4, 2)), rng.normal(size=2))
    signals, own = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    typical, typical_own = rng.normal(size=4), rng.normal(size=2)
    other = readout.told_from(typical, typical_own)
    assert_allclose(other.ask(signals, own), readout.ask(signals, own), rtol=1e-12)
    assert_allclose(other.typical, readout.ask(typical[None], typical_own[None])[0], rtol=1e-12)


# ------------------------------------------------------------------------------------------------ the correction


@pytest.mark.parametrize("kinds", [[One, One], [One, Other, One], [Other, One, One, Other]])
def test_corrections_by_hand(kinds):
    """Folds as documented: rows in random order are dealt out in turn."""
    said, labels = made_up(n_forests=len(kinds))
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, 150) * 0.5
    unknown = rng.random(labels.shape) < 0.2
    links, refined = fitted(said, labels, weight=weight, unknown=unknown, kinds=kinds, seed=7)
    slots = [[at for at, kind in enumerate(kinds) if kind is one] for one in dict.fromkeys(kinds)]
    assert links.kinds_ == slots
    used, fold = np.flatnonzero(weight > 0), np.zeros(150, int)
    for place, row in enumerate(np.random.RandomState(7).permutation(used)):
        fold[row] = 1 + place % 5
    assert_array_equal(links._others.fold, fold)
    known = np.where(unknown, 0.0, weight[:, None]) / weight[weight > 0].mean()  # their unit does not matter
    assert_allclose(links.share_, [naive.share(labels[:, j], known[:, j]) for j in range(3)], rtol=1e-12)
    none = [[]] * 150
    signals = naive.signals_of(said, slots, none)
    own = naive.signals_of(said, [range(len(kinds))], none)
    linked = 0
    for j in range(3):
        best, losses, found = naive.choose([signals] * 6, own, labels.astype(float), known, fold, j)
        assert losses[links.penalty_[j]] <= losses[best] + CLEAR
        if links.penalty_[j] == best < np.inf:
            linked += 1
            for number, readout in enumerate([links.readout_, *links._others.readouts]):
                assert_allclose(readout.weight[:, j], found[number]["weight"], atol=1e-3)
    assert linked >= 2
    new = made_up(20, n_forests=len(kinds), seed=5)[0]
    expected = naive.corrected(new, slots, none[:20], links.readout_, links.penalty_, links.share_)
    assert_allclose(ask(links, new), expected, atol=1e-12)
    for number, readout in enumerate([links.readout_, *links._others.readouts]):
        rows = fold == number
        expected = naive.corrected(said[:, rows], slots, none, readout, links.penalty_, links.share_)
        assert_allclose(refined[:, rows], expected, atol=1e-12)
    mean = said[:, used].mean(axis=1, keepdims=True)  # the typical row is the one of the mean answers
    for readout in (links.readout_, *links._others.readouts):
        assert_allclose(readout.center, naive.signals_of(mean, slots, [[]])[0], atol=1e-12)
        assert_allclose(readout.center_own, naive.signals_of(mean, [range(len(kinds))], [[]])[0], atol=1e-12)
    sums = [[sum(links.readout_.weight[k * 3 + i, j] for k in range(len(slots))) for j in range(3)] for i in range(3)]
    assert_allclose(links.links_, sums * links.share_)


def test_labels_without_links_are_left_alone():
    rng = np.random.default_rng(3)
    said = np.tile(rng.random((1, 400, 3)), (2, 1, 1))
    labels = rng.random((400, 3)) < said[0]  # forests that are right, and labels that are independent
    links, refined = fitted(said, labels)
    alone = np.isinf(links.penalty_)
    assert alone.any()
    assert_array_equal(refined[..., alone], said[..., alone])
    assert_array_equal(links.links_[:, alone], 0.0)


# ------------------------------------------------------------------------------------------------ what must not matter


CASES = {
    "n": st.integers(12, 60), "n_labels": st.integers(1, 4), "n_forests": st.integers(1, 3),
    "seed": st.integers(0, 10**6),
}  # fmt: skip


@given(**CASES)
@examples(25)
def test_answers_are_probabilities_and_a_row_alone_has_the_same_bits(n, n_labels, n_forests, seed):
    said, labels = made_up(n, n_labels, n_forests, seed)
    rng = np.random.default_rng(seed)
    said[rng.random(said.shape) < 0.2] = rng.choice([0.0, 1.0])  # forests may be sure
    links, refined = fitted(said, labels, seed=seed)
    for answers in (refined, ask(links, said), ask(links, np.zeros_like(said)), ask(links, np.ones_like(said))):
        assert answers.shape == said.shape
        assert ((answers >= 0) & (answers <= 1)).all()
    batch = ask(links, said)
    alone = [ask(links, said[:, i : i + 1]) for i in range(n)]
    assert_array_equal(np.concatenate(alone, axis=1), batch)
    again = links.refine(said, None, view_of(said, labels)._replace(rows=np.arange(n)))
    assert_array_equal(again, refined)
    some = rng.permutation(n)[: n // 2]  # rows in any order, as reasons ask for them
    part = links.refine(said[:, some], None, LayerView([], lambda slot: None, said[:, some], rows=some))
    assert_array_equal(part, refined[:, some])


@given(**CASES)
@examples(25)
def test_the_order_of_labels_does_not_matter(n, n_labels, n_forests, seed):
    said, labels = made_up(n, n_labels, n_forests, seed)
    order = np.random.default_rng(seed).permutation(n_labels)
    links, refined = fitted(said, labels)
    turned, other = fitted(said[..., order], labels[:, order])
    assert_array_equal(turned.penalty_, links.penalty_[order])
    assert_allclose(other, refined[..., order], atol=1e-6)
    assert_allclose(turned.links_, links.links_[np.ix_(order, order)], atol=1e-6)


@given(**CASES)
@examples(15)
def test_the_order_of_forests_of_a_kind_does_not_matter(n, n_labels, n_forests, seed):
    said, labels = made_up(n, n_labels, n_forests, seed)
    links, refined = fitted(said, labels)
    turned, other = fitted(said[::-1], labels)
    assert_array_equal(turned.penalty_, links.penalty_)
    assert_allclose(other[::-1], refined, atol=1e-6)


@given(**CASES)
@examples(25)
def test_rows_of_weight_zero_and_unknown_cells_have_no_say(n, n_labels, n_forests, seed):
    said, labels = made_up(n, n_labels, n_forests, seed)
    rng = np.random.default_rng(seed)
    weight = np.where(np.arange(n) < 8, 1.0, rng.integers(0, 3, n))
    unknown = rng.random(labels.shape) < 0.3
    unknown[:8] = False
    links, refined = fitted(said, labels, weight=weight, unknown=unknown)
    changed, flipped = said.copy(), labels ^ unknown
    flipped[weight == 0] ^= True
    changed[:, weight == 0] = rng.random(changed[:, weight == 0].shape)
    other, again = fitted(changed, flipped, weight=weight, unknown=unknown)
    assert_array_equal(other.penalty_, links.penalty_)
    assert_array_equal(other.share_, links.share_)
    assert_array_equal(again[:, weight > 0], refined[:, weight > 0])
    assert_array_equal(ask(other, said), ask(links, said))
    assert_array_equal(again[:, weight == 0], ask(links, changed)[:, weight == 0])  # they are judged as new rows


def test_unknown_cells_and_weights_do_matter():
    said, labels = made_up()
    links, _ = fitted(said, labels)
    unknown = np.zeros(labels.shape, bool)
    unknown[:70, 0] = True
    for other in (fitted(said, labels, unknown=unknown)[0], fitted(said, labels, weight=1.0 + np.arange(150) % 2)[0]):
        assert (ask(other, said) != ask(links, said)).any()


@pytest.mark.parametrize("value", [False, True])
@given(**CASES)
@examples(15)
def test_a_label_of_one_class_stays_what_the_forests_say(value, n, n_labels, n_forests, seed):
    said, labels = made_up(n, n_labels, n_forests, seed)
    labels[:, 0] = value
    links, refined = fitted(said, labels)
    assert links.share_[0] == 0
    assert_array_equal(refined[..., 0], said[..., 0])
    assert np.isfinite(links.readout_.weight).all()
    assert ((refined >= 0) & (refined <= 1)).all()


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_few_rows(n):
    said, labels = made_up(n)
    links, refined = fitted(said, labels)
    assert np.isfinite(refined).all()
    assert links._others.fold.max() == min(n, 5)


# ------------------------------------------------------------------------------------------------ handing back


class NewRows:
    """One cell of each of so many new rows; there are no rules, whose columns anything could go to."""

    rows = None

    def __init__(self, n):
        self.cell_row = np.arange(n)


@given(**CASES, constant=st.booleans())
@examples(25)
def test_what_is_handed_back_sums_to_what_came_in(n, n_labels, n_forests, seed, constant):
    """Answers of forests, what they have of later layers, and the base: nothing is lost, also of typical rows."""
    said, labels = made_up(n, n_labels, n_forests, seed)
    if constant:  # all rows are typical ones, whose signals do not move
        said[:] = said[:, :1]
    links, _ = fitted(said, labels)
    answers = ask(links, said)
    rng = np.random.default_rng(seed)
    asked, relevance = (
        {slot: rng.normal(size=(n, n_labels)) for slot in range(n_forests) if slot == 0 or rng.random() < 0.7}
        for _ in range(2)
    )

    def total(answers):
        of_answers = sum((asked[slot] * answers[slot]).sum(axis=1) for slot in asked)
        return of_answers + sum(values.sum(axis=1) for values in relevance.values())

    came = total(answers)
    base = links.hand_back(NewRows(n), said, asked, relevance)
    assert_allclose(total(said) + base, came, atol=1e-10)


# ------------------------------------------------------------------------------------------------ honesty and gain


def mean_loss(labels, said):
    p = np.clip(said.mean(axis=0), 1e-6, 1 - 1e-6)
    return -np.where(labels, np.log(p), np.log1p(-p)).mean(axis=0)


def test_links_help_where_labels_depend_on_each_other():
    """Weak forests see a little of each label; the second is the first but for a tenth of the rows."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)

        def draw(n):
            first = rng.random(n) < 0.4  # noqa: B023
            labels = np.column_stack([first, first ^ (rng.random(n) < 0.1), rng.random(n) < 0.3])  # noqa: B023
            evidence = np.where(labels, 1.2, -1.2) + 1.5 * rng.normal(size=labels.shape)  # noqa: B023
            prior = np.log(np.array([0.4, 0.42, 0.3]) / np.array([0.6, 0.58, 0.7]))
            return expit(prior + evidence * 2 * 1.2 / 1.5**2)[None], labels  # what evidence says by Bayes' rule

        links, refined = fitted(*(train := draw(600)))
        said, labels = draw(2000)
        gain = mean_loss(labels, said) - mean_loss(labels, ask(links, said))
        assert gain[:2].min() > 0.04
        assert gain[2] > -0.006
        assert links.links_[0, 1] > 0.3
        assert links.links_[1, 0] > 0.3
        gains.append([gain, mean_loss(train[1], train[0]) - mean_loss(train[1], refined)])
    on_new_rows, on_training_rows = np.mean(gains, axis=0)
    assert_allclose(on_training_rows, on_new_rows, atol=0.025)  # they are judged without themselves


def test_links_do_no_harm_where_labels_are_independent():
    rng = np.random.default_rng(0)
    chosen, harm = [], []
    for _ in range(10):
        said, new = rng.beta(1, 2, (1, 300, 4)), rng.beta(1, 2, (1, 1000, 4))
        links, _ = fitted(said, rng.random((300, 4)) < said[0])
        labels = rng.random((1000, 4)) < new[0]
        chosen.extend(links.penalty_)
        harm.append((mean_loss(labels, ask(links, new)) - mean_loss(labels, new)).mean())
    assert np.isinf(chosen).mean() > 0.6
    assert np.mean(harm) < 0.002


def test_training_rows_are_judged_without_themselves():
    """Two rows of a fold swap their labels: nothing is said of them that was not said before."""
    said, labels = made_up(200)
    links, refined = fitted(said, labels)
    seen = 0
    for number, readout in enumerate(links._others.readouts, start=1):
        rows = np.flatnonzero(links._others.fold == number)
        pair = rows[[np.flatnonzero(labels[rows, 0])[0], np.flatnonzero(~labels[rows, 0])[0]]]
        changed = labels.copy()
        changed[pair, 0] = labels[pair[::-1], 0]
        other, again = fitted(said, changed)
        if other.penalty_[0] == links.penalty_[0] < np.inf:
            assert_array_equal(again[:, pair], refined[:, pair])
            assert_array_equal(other._others.readouts[number - 1].weight, readout.weight)
            assert (other.readout_.weight[:, 0] != links.readout_.weight[:, 0]).any()
            seen += 1
    assert seen >= 2


# ------------------------------------------------------------------------------------------------ parameters and parts


@pytest.mark.parametrize("n_folds", [1, 0, 2.5, "5", None])
def test_numbers_of_folds_that_are_none(n_folds):
    said, labels = made_up(30)
    with pytest.raises((ValueError, TypeError), match="n_folds must be an integer of at least 2"):
        LabelLinks(n_folds=n_folds).fit_refine(view_of(said, labels), None)


def test_augmenters_that_are_none():
    with pytest.raises(TypeError, match=r"augment is the class Interactions: write Interactions\(\)"):
        LabelLinks(Interactions).check_parameters()
    for augment in (3, LabelLinks(), MeasureAwareReuse()):
        with pytest.raises(TypeError, match="augment must be None or an augmenter that makes features"):
            LabelLinks(augment).check_parameters()
    with pytest.raises(ValueError, match=r"write LabelLinks\(augment=Union\(\[...\]\)\)"):
        Union([LabelLinks(), OutputSpace()]).check_parameters()
    with pytest.raises(TypeError, match="augment must be None or an augmenter"):
        MeasureAwareReuse(augment=LabelLinks()).check_parameters()


def test_its_parts():
    said, labels = made_up(40)
    links, refined = fitted(said, labels)
    assert links.parts == []
    assert [type(part) for part in parts_of(links)] == [OutputSpace]
    assert_array_equal(links.fit_transform(view_of(refined, labels)), refined)  # features are what is corrected
    assert links.column_names(0, ["a", "b"]) == ["a", "b"]
    inner = Union([TreeEmbedding(2), OutputSpace()])
    assert list(parts_of(LabelLinks(inner))) == inner.parts
    alone = LabelLinks(OutputSpace(in_sample=True))
    alone.fit_refine(view_of(said, labels), None)
    assert not alone.without_features().augment_.in_sample
    assert alone.augment_.in_sample
    assert links.nbytes > sum(part.nbytes for part in links.readout_)
    copy = pickle.loads(pickle.dumps(links))
    assert_array_equal(ask(copy, said), ask(links, said))
