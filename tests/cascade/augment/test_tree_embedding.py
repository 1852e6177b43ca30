"""Tree embeddings against Eq. 3 written out node by node and dense principal components."""

import pickle
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

import naive_embedding as naive
from sylvan.cascade.augment import tree_embedding as module
from sylvan.cascade.augment.tree_embedding import TreeEmbedding
from sylvan.cascade.contracts import LayerView
from sylvan.datasets import load_digit_attributes
from sylvan.forests import CompletelyRandomForest, ExtraTrees, KFold, RandomForest

WEIGHTINGS = ("bounded", "paper", "none")
SHARES = (0.95, 0.80)
N_TRAIN, N_NEW = 200, 90


@pytest.fixture(scope="module")
def data():
    X, Y = load_digit_attributes(return_X_y=True)
    return X[: N_TRAIN + N_NEW], Y[: N_TRAIN + N_NEW]


@pytest.fixture(scope="module")
def forests(data):
    X, Y = data
    settings = {"bootstrap": True, "max_samples": 0.5, "min_samples_leaf": 5, "random_state": 3}
    return [kind(12, **settings).fit(X[:N_TRAIN], Y[:N_TRAIN]) for kind in (RandomForest, ExtraTrees)]


def view_of(forests, X, random_state=0):
    return LayerView(forests, lambda slot: X, np.empty((len(forests), X.shape[0], 0)), None, random_state)


def fitted(forests, X, *args, **kwargs):
    embedding = TreeEmbedding(*args, **kwargs)
    return embedding, embedding.fit_transform(view_of(forests, X))


@pytest.fixture(scope="module")
def train(data):
    return data[0][:N_TRAIN]


@pytest.fixture(scope="module")
def new(data):
    return data[0][N_TRAIN:]


def paths_of(forest, weighting="bounded", share=0.95):
    return module._read_paths(forest.trees_, weighting, share)


def assert_same_up_to_signs(ours, theirs, atol):
    signs = np.sign((ours * theirs).sum(axis=0))
    assert_allclose(ours, theirs * signs, atol=atol * np.abs(theirs).max())


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_products_equal_those_of_the_vectors(forests, train, new, weighting):
    for forest, share in zip(forests, SHARES):
        one, other = (naive.vectors(forest, X, weighting, share) for X in (new, train))
        paths = paths_of(forest, weighting, share)
        leaves = module._leaves_of(forest, new), module._leaves_of(forest, train)
        assert_allclose(module.gram(paths, *leaves) * paths.unit, one @ other.T, atol=1e-6 * one.max() ** 2)
        variance, squares = module._total_variance(paths, leaves[1])
        assert_allclose(variance, ((other - other.mean(axis=0)) ** 2).sum(), rtol=1e-6)
        assert_allclose(squares, (other**2).sum(), rtol=1e-6)


def test_known_weights():
    """The two forms at s = 1, 5 and 100."""
    assert_allclose(module._WEIGHTS["bounded"](np.array([1.0, 5.0, 100.0])), [1.0, 0.383, 0.178], atol=5e-4)
    assert_allclose(module._WEIGHTS["paper"](np.array([1.0, 5.0, 100.0])), [1.443, 0.558, 0.217], atol=5e-4)


def test_sizes_below_one_count_as_one(data):
    """Fractional weights make them; the logarithms would turn the weights' sign or make them endless."""
    X, Y = data
    forest = RandomForest(3, bootstrap=False, min_samples_leaf=5, random_state=0).fit(X, Y, np.full(len(X), 0.05))
    assert forest.trees_.size.min() < 0.3
    for weighting, most in (("bounded", 1.0), ("paper", 1 / np.log(2))):
        paths = paths_of(forest, weighting)
        assert_allclose((paths.weight * paths.unit).max(), most**2, rtol=1e-6)


def test_no_large_node_is_kept(forests):
    for forest, usual in zip(forests, SHARES):
        trees = forest.trees_
        just_below = (float(trees.size[1]) - 0.5) / float(trees.size[0])  # rounds up to the size of the root's child
        for share in (usual, just_below):
            weight = paths_of(forest, share=share).weight
            for start, stop in zip(trees.node_start[:-1], trees.node_start[1:]):
                limit = ceil(share * float(trees.size[start]))
                assert_array_equal(weight[start:stop] > 0, trees.size[start:stop] <= limit)
            assert (weight > 0).any()
            assert (weight == 0).any()
        assert weight[1] > 0


def test_sums_of_vectors(forests, train):
    """Every row passes a kept node, and rows in the same leaves have the same vector and scores."""
    twice = np.vstack([train, train[:5]])
    for forest in forests:
        A = naive.vectors(forest, twice)
        assert (A.sum(axis=1) > 0).all()
        assert_array_equal(A[:5].sum(axis=1), A[N_TRAIN:].sum(axis=1))
        assert (np.diag(module.gram(paths_of(forest), *[module._leaves_of(forest, twice)] * 2)) > 0).all()
    for block in fitted(forests, twice)[1]:
        assert_array_equal(block[:5], block[N_TRAIN:])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_scores_equal_principal_components(forests, train, new, weighting):
    embedding, blocks = fitted(forests, train, 6, weighting=weighting)
    for slot, (forest, share) in enumerate(zip(forests, SHARES)):
        A, B = (naive.vectors(forest, X, weighting, share) for X in (train, new))
        dense = naive.Components(A)
        assert blocks[slot].shape == (N_TRAIN, 6)
        assert blocks[slot].dtype == np.float32
        assert (np.diff(dense.singular[:7]) < -1e-3).all()  # vectors are determined
        assert_same_up_to_signs(blocks[slot], dense.scores(A)[:, :6], atol=1e-4)
        signs = np.sign((blocks[slot] * dense.scores(A)[:, :6]).sum(axis=0))
        ours = embedding.transform(view_of(forests, new))[slot]
        assert_allclose(ours, dense.scores(B)[:, :6] * signs, atol=1e-4 * np.abs(ours).max())
        assert_allclose(embedding.explained_variance_ratio_[slot], dense.singular[:6] ** 2 / dense.variance, rtol=1e-4)
        top = blocks[slot][np.abs(blocks[slot]).argmax(axis=0), range(6)]
        assert (top > 0).all()


def test_all_components_keep_all_distances(forests, train):
    """With all components the scores have the products of the centred vectors."""
    embedding, (block, _) = fitted(forests, train, None)
    A = naive.vectors(forests[0], train)
    A -= A.mean(axis=0)
    assert_allclose(block @ block.T, A @ A.T, atol=1e-4 * (A @ A.T).max())
    assert block.shape[1] == np.linalg.matrix_rank(A, tol=1e-3)
    assert_allclose(embedding.explained_variance_ratio_[0].sum(), 1, atol=1e-5)


@pytest.mark.parametrize("share", [0.3, 0.8, 0.99])
def test_share_of_variance_chooses_as_scikit_learn(forests, train, share):
    embedding, blocks = fitted(forests, train, share)
    for slot, (forest, node_share) in enumerate(zip(forests, SHARES)):
        pca = PCA(n_components=share, svd_solver="full").fit(naive.vectors(forest, train, share=node_share))
        assert blocks[slot].shape[1] == embedding.n_components_[slot] == pca.n_components_
        ratios = embedding.explained_variance_ratio_[slot]
        assert ratios.sum() > share >= ratios[:-1].sum()


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_training_rows_as_new_rows(forests, train, solver):
    embedding, blocks = fitted(forests, train, solver=solver)
    for again, block in zip(embedding.transform(view_of(forests, train)), blocks):
        assert_array_equal(again, block)


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_a_row_alone_as_among_others(forests, train, new, solver):
    embedding, _ = fitted(forests, train, solver=solver)
    together = embedding.transform(view_of(forests, np.vstack([train, new])))
    for rows in (slice(0, 1), slice(7, 40)):
        for few, all_ in zip(embedding.transform(view_of(forests, new[rows])), together):
            assert_array_equal(few, all_[N_TRAIN:][rows])


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_both_ways_to_scores_are_the_same(forests, train, new, solver, monkeypatch):
    embedding, _ = fitted(forests, train, None, solver=solver)
    for slot, forest in enumerate(forests):
        case = paths_of(forest, share=SHARES[slot]), module._leaves_of(forest, new), embedding._slots[slot]
        by_tree = module._scores_by_tree(*case)
        assert_array_equal(module._scores_by_row(*case), by_tree)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_PRODUCTS_AT_ONCE", 7 * N_TRAIN)  # several blocks of rows
            assert_array_equal(module._scores_by_row(*case), by_tree)


def test_the_quicker_way_is_taken(forests, train, new, monkeypatch):
    embedding, _ = fitted(forests, train)
    taken = []
    for name in ("_scores_by_row", "_scores_by_tree"):
        monkeypatch.setattr(module, name, lambda *case, name=name: taken.append(name))
    for X in (new[:1], np.repeat(new, 30, axis=0)):
        embedding.transform(view_of(forests[:1] * 2, X))
    assert taken == ["_scores_by_row"] * 2 + ["_scores_by_tree"] * 2


def test_random_vectors_find_the_components(forests, train, new):
    """With enough iterations the randomised solver agrees with the exact one."""
    exact, blocks = fitted(forests, train, 8)
    random, approximate = fitted(forests, train, 8, solver="randomized", n_iter=30, n_oversamples=40)
    for slot in range(2):
        assert_allclose(
            random.explained_variance_ratio_[slot], exact.explained_variance_ratio_[slot], rtol=1e-3, atol=1e-5
        )
        assert_same_up_to_signs(approximate[slot], blocks[slot], atol=5e-3)
    for one, other in zip(random.transform(view_of(forests, new)), exact.transform(view_of(forests, new))):
        assert_same_up_to_signs(one, other, atol=5e-3)


def test_random_vectors_span_the_leading_space(forests, train):
    """With few iterations too: nearly as much variance as is possible, and orthonormal directions."""
    exact, _ = fitted(forests, train, 10)
    random, (block, _) = fitted(forests, train, 10, solver="randomized")
    assert random.explained_variance_ratio_[0].sum() > 0.99 * exact.explained_variance_ratio_[0].sum()
    A = naive.vectors(forests[0], train)
    slot = random._slots[0]
    directions = (A - A.mean(axis=0)).T @ (slot.dual * slot.scale / paths_of(forests[0]).unit)
    assert_allclose(directions.T @ directions, np.eye(10), atol=1e-4)
    assert_allclose(block, (A - A.mean(axis=0)) @ directions, atol=1e-4)


def gram_case(n_trees, **settings):
    """Return a forest's paths, the leaves of 600 rows, and the centred products of these rows."""
    X, Y = (part[:600] for part in load_digit_attributes(return_X_y=True))
    forest = RandomForest(n_trees, random_state=0, **settings).fit(X, Y)
    paths, leaves = paths_of(forest), module._leaves_of(forest, X)
    products = module.gram(paths, leaves, leaves) * paths.unit
    return paths, leaves, products - products.mean(axis=0) - products.mean(axis=1)[:, None] + products.mean()


def test_few_components_are_found_as_exactly_without_all_others(monkeypatch):
    paths, leaves, matrix = gram_case(30, min_samples_leaf=5)
    with monkeypatch.context() as patch:
        patch.setattr(module, "eigh", None)  # is not asked
        values, vectors = module._gram_spectrum(paths, leaves, 18)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:18], rtol=1e-5)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-5 * values[0])
    assert_allclose(vectors.T @ vectors, np.eye(18), atol=1e-5)
    assert_array_equal(module._gram_spectrum(paths, leaves, 18)[1], vectors)


def test_components_that_are_hard_to_find_are_found_among_all():
    """One tree makes groups of rows that differ by nothing else, so that many components are alike."""
    paths, leaves, matrix = gram_case(1, min_samples_leaf=20)
    assert module._krylov_spectrum(matrix.astype(np.float32), 18) is None
    values, vectors = module._gram_spectrum(paths, leaves, 18)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:18], atol=1e-5 * values[0])
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-5 * values[0])


def test_solver_follows_the_number_of_rows(forests, train, monkeypatch):
    taken = []
    for name in ("_gram_spectrum", "_random_spectrum"):
        home = module if name == "_gram_spectrum" else TreeEmbedding
        original = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *a, n=name, f=original: taken.append(n) or f(*a))
    for limit in (N_TRAIN, N_TRAIN - 1):
        fitted(forests[:1], train, 4, max_gram_rows=limit)
    assert taken == ["_gram_spectrum", "_random_spectrum"]


def test_limits_of_components(forests, train):
    def widths(*args, **kwargs):
        return fitted(forests[:1], train, *args, **kwargs)[0].n_components_[0]

    assert widths(0.999) > 64
    assert widths(0.999, solver="randomized") == 64
    assert widths(None, solver="randomized") == 64
    assert widths(70, solver="randomized") == 70
    assert widths(0.999, solver="randomized", max_components=70) == 70
    assert widths(20, max_components=7) == widths(None, max_components=7) == 7
    assert widths(0.1, solver="randomized") < 64
    assert widths(10_000) == widths(None) < N_TRAIN


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_same_seed_same_bits(forests, train, solver):
    first = fitted(forests, train, solver=solver)[1]
    with threadpool_limits(1):
        second = fitted(forests, train, solver=solver)[1]
    for one, other in zip(first, second):
        assert_array_equal(one, other)


def test_random_state_and_slot_draw_the_vectors(forests, train):
    embedding = TreeEmbedding(5, solver="randomized", n_iter=0, max_node_share=0.9)
    twice = [forests[0], forests[0]]
    one, other = embedding.fit_transform(view_of(twice, train, 1))
    third, _ = embedding.fit_transform(view_of(twice, train, 2))
    assert (one != other).any()
    assert (one != third).any()


def test_shares_of_nodes(data, forests, train):
    """Random cuts have a limit of their own; numbers are for all slots or for each."""
    X, Y = data
    random = CompletelyRandomForest(5, min_samples_leaf=5, random_state=0).fit(X[:N_TRAIN], Y[:N_TRAIN])
    three = [*forests, random]

    def shares(value, of=three):
        return [slot.share for slot in fitted(of, train, 3, max_node_share=value)[0]._slots]

    assert shares("auto") == [0.95, 0.80, 0.80]
    assert shares(0.5) == [0.5, 0.5, 0.5]
    assert shares([0.1, 0.2, 1]) == [0.1, 0.2, 1.0]
    assert shares("auto", [SimpleForest(forests[1])]) == [0.95]
    with pytest.raises(ValueError, match="has 2 numbers, but the layer has 3 forests"):
        shares([0.9, 0.8])


class SimpleForest:
    """A forest that does not say how it cuts."""

    def __init__(self, forest):
        self.trees_, self.n_trees, self.apply = forest.trees_, forest.n_trees, forest.apply


def test_single_leaves_have_no_columns(data, train, new):
    X, Y = data
    stump = RandomForest(4, min_samples_leaf=150, random_state=0).fit(X[:N_TRAIN], Y[:N_TRAIN])
    grown = RandomForest(4, min_samples_leaf=5, random_state=0).fit(X[:N_TRAIN], Y[:N_TRAIN])
    embedding, blocks = fitted([stump, grown], train)
    assert blocks[0].shape == (N_TRAIN, 0)
    assert blocks[1].shape[1] > 1
    assert embedding.transform(view_of([stump, grown], new))[0].shape == (N_NEW, 0)
    assert embedding.column_names(0, ["a"]) == []
    assert embedding.explained_variance_ratio_[0].size == 0


@pytest.mark.parametrize("solver", ["gram", "randomized"])
def test_all_nodes_left_out(forests, train, solver):
    embedding, blocks = fitted(forests, train, solver=solver, max_node_share=1e-9)  # keeps nodes of one draw: none
    assert embedding.n_components_ == [0, 0]
    assert [block.shape for block in blocks] == [(N_TRAIN, 0)] * 2


@pytest.mark.parametrize("solver", ["gram", "randomized"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_a_handful_of_rows(forests, new, solver, n):
    for n_components in (0.8, None, 2):
        embedding, blocks = fitted(forests, new[:n], n_components, solver=solver)
        assert all(block.shape[1] <= n - 1 for block in blocks)
        assert all(np.isfinite(block).all() for block in blocks)
        assert [block.shape[0] for block in embedding.transform(view_of(forests, new))] == [N_NEW] * 2
    for forest, share, block in zip(forests, SHARES, fitted(forests, new[:n], None, solver=solver)[1]):
        A = naive.vectors(forest, new[:n], share=share)
        A -= A.mean(axis=0)
        assert_allclose(block @ block.T, A @ A.T, atol=1e-4)


def test_rows_that_are_all_the_same(forests, train):
    assert fitted(forests, np.repeat(train[:1], 9, axis=0))[0].n_components_ == [0, 0]


def test_sparse_input_and_blocks_of_rows(forests, train, monkeypatch):
    _, dense = fitted(forests, train)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 64)
    for one, other in zip(fitted(forests, sparse.csr_array(train))[1], dense):
        assert_array_equal(one, other)


def test_many_leaves_are_stored_in_four_bytes(forests, train):
    trees = forests[0].trees_
    wide = SimpleNamespace(
        n_trees=trees.n_trees, n_leaves=trees.n_leaves + 2**16, node_start=trees.node_start, child=trees.child
    )
    leaves = module._leaves_of(SimpleNamespace(trees_=wide, apply=forests[0].apply), train)
    assert leaves.dtype == np.uint32
    usual = module._leaves_of(forests[0], train)
    assert usual.dtype == np.uint16
    assert_array_equal(leaves, usual)


def test_names_memory_and_copies(forests, train, new):
    embedding, _ = fitted(forests, train, 4)
    assert embedding.column_names(1, ["a", "b"]) == ["component0", "component1", "component2", "component3"]
    assert embedding.nbytes == 2 * (N_TRAIN * (2 * 12 + 4 * 4) + 4 * 16)
    again = pickle.loads(pickle.dumps(embedding))
    for one, other in zip(again.transform(view_of(forests, new)), embedding.transform(view_of(forests, new))):
        assert_array_equal(one, other)
    fresh = clone(embedding)
    for use in (
        lambda: fresh.transform(view_of(forests, new)),
        lambda: fresh.nbytes,
        lambda: fresh.column_names(0, []),
    ):
        with pytest.raises(NotFittedError):
            use()


def test_other_forests_are_refused(data, train):
    X, Y = data
    other = RandomForestClassifier(3).fit(X[:N_TRAIN], Y[:N_TRAIN])
    with pytest.raises(TypeError, match=r"forests of sylvan\.forests.*RandomForestClassifier"):
        fitted([other], train)
    folds = RandomForest(3, out_of_sample=KFold(2), random_state=0).fit(X[:N_TRAIN], Y[:N_TRAIN])
    with pytest.raises(ValueError, match=r"OutOfBag\(\) instead of KFold"):
        fitted([folds], train)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 0),
        ("n_components", 1.0),
        ("n_components", -0.5),
        ("n_components", True),
        ("n_components", "all"),
        ("weighting", "code"),
        ("max_node_share", "all"),
        ("max_node_share", 0.0),
        ("max_node_share", 1.5),
        ("max_node_share", None),
        ("max_node_share", [0.5, "a"]),
        ("solver", "full"),
        ("max_gram_rows", -1),
        ("max_components", 0),
        ("n_iter", -1),
        ("n_oversamples", 2.5),
    ],
)
def test_bad_parameters(forests, train, name, value):
    with pytest.raises(ValueError, match=name):
        fitted(forests, train, **{name: value})
