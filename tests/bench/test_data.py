"""What cells learn from and are tested on: shared by all methods, and a matter of the seed alone."""

import itertools

import numpy as np
import pytest
from iterstrat.ml_stratifiers import MultilabelStratifiedKFold
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold

from sylvan.bench import data as bench_data
from sylvan.bench import make_protocol
from sylvan.bench.data import data_facts, derive_seed, hide_labels, sample
from sylvan.datasets import load_dataset
from sylvan.forests import OutOfBag, RandomForest


def write_table(path, X, Y):
    """A CSV file; the first feature is the row number, so that rows can be told apart."""
    names = [f"f{j}" for j in range(X.shape[1])] + [f"label:{j}" for j in range(Y.shape[1])]
    lines = [",".join(names)] + [",".join(map(repr, [*x.tolist(), *y.tolist()])) for x, y in zip(X, Y)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.RandomState(0)
    X = np.column_stack([np.arange(60.0), rng.rand(60, 3)])
    Y = (rng.rand(60, 4) < [0.5, 0.3, 0.2, 0.05]).astype(int)
    path = tmp_path_factory.mktemp("data") / "table.csv"
    write_table(path, X, Y)
    return str(path), X, Y


def labels_protocol(path, **changes):
    spec = {
        "measures": ["micro_f1"],
        "seed": 5,
        "repeats": 3,
        "datasets": [{"name": "table", "path": path, **changes.pop("data", {})}],
        "split": {"kind": "folds"},
        "factors": {"ilr": [0.0, 0.3, 0.5, 0.7]},
        "methods": {"rf_et": {}, "gcforest": {}},
    }
    return make_protocol(spec | changes)


def samples(protocol):
    return {cell: sample(protocol, cell) for cell in protocol.cells()}


def rows_of(X):
    return np.asarray(X)[:, 0].astype(int)


@pytest.mark.parametrize("kind", ["folds", "stratified-folds", "holdout"])
def test_splits_are_disjoint_and_shared(table, kind):
    path, X, Y = table
    drawn = samples(labels_protocol(path, split={"kind": kind}))
    tested = {}
    for cell, part in drawn.items():
        train, test = rows_of(part.X), rows_of(part.X_test)
        assert sorted([*train, *test]) == list(range(60))
        np.testing.assert_array_equal(part.X, X[train])
        np.testing.assert_array_equal(part.Y_test, Y[test])  # the truth, whatever was hidden
        # The same rows for all methods and rates.
        np.testing.assert_array_equal(tested.setdefault(cell.repeat, test), test)
    if kind == "holdout":
        assert {len(test) for test in tested.values()} == {18}
        assert len({tuple(sorted(test)) for test in tested.values()}) == 3
    else:
        assert sorted(np.concatenate(list(tested.values()))) == list(range(60))


def test_splits_equal_those_of_the_packages(table):
    path, _, Y = table
    seed = derive_seed(5, "split", "table")
    for kind, splitter in (
        ("stratified-folds", MultilabelStratifiedKFold(3, shuffle=True, random_state=seed)),
        ("folds", KFold(3, shuffle=True, random_state=seed)),
    ):
        protocol = labels_protocol(path, split={"kind": kind})
        expected = [test for _, test in splitter.split(np.zeros(60), Y)]
        for cell, part in samples(protocol).items():
            np.testing.assert_array_equal(rows_of(part.X_test), expected[cell.repeat])


@pytest.mark.parametrize(("share", "n_test"), [(0.3, 18), (0.25, 15), (0.5, 30)])
def test_holdout_shares(table, share, n_test):
    protocol = labels_protocol(table[0], split={"kind": "holdout", "test_share": share})
    assert len(sample(protocol, protocol.cells()[0]).X_test) == n_test


def test_masks(table):
    path, _, Y = table
    protocol = labels_protocol(path)
    by_repeat = {}
    for cell, part in samples(protocol).items():
        truth = Y[rows_of(part.X)]
        ilr = dict(cell.factors)["ilr"]
        assert (truth >= part.Y).all()
        for label in range(4):
            positives = truth[:, label].sum()
            assert (truth - part.Y)[:, label].sum() == int(ilr * positives)
        known = by_repeat.setdefault((cell.repeat, ilr), part.Y)
        np.testing.assert_array_equal(known, part.Y)  # shared by the methods
    for repeat in range(3):
        masks = [by_repeat[repeat, ilr] for ilr in (0.0, 0.3, 0.5, 0.7)]
        assert all((more <= less).all() for less, more in itertools.pairwise(masks))  # nested


def test_a_share_that_is_missing_is_an_ilr(table):
    path, _, _ = table
    by_ilr = samples(labels_protocol(path))
    by_missing = samples(labels_protocol(path, factors={"missing": [0.0, 0.3, 0.5, 0.7]}))
    assert len(by_ilr) == len(by_missing)
    for one, other in zip(by_ilr.values(), by_missing.values()):
        for ours, theirs in zip(one, other):
            np.testing.assert_array_equal(ours, theirs)


def test_labels_missing_in_ways_of_their_own(table):
    path, _, Y = table
    known = {}
    for cell, part in samples(labels_protocol(path, factors={"missing": ["by label", "hard rows"]})).items():
        truth = Y[rows_of(part.X)]
        assert (truth >= part.Y).all()
        assert (truth > part.Y).any()
        np.testing.assert_array_equal(part.Y_test, Y[rows_of(part.X_test)])
        np.testing.assert_allclose(part.frequency * truth.sum(axis=0), part.Y.sum(axis=0))
        same = known.setdefault((cell.repeat, cell.factors), part.Y)
        np.testing.assert_array_equal(same, part.Y)  # shared by the methods
    assert len(known) == 6


def told(n=2000, n_labels=3, seed=0):
    """Rows of which some are easy to tell and others hard, and their labels."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, n_labels))
    return X, (X + rng.normal(size=X.shape) > 0).astype(int)


def test_a_share_of_its_own_for_each_label():
    X, Y = told(n_labels=40)
    observed = hide_labels(X, Y, "by label", 3)
    shares = 1 - observed.sum(axis=0) / Y.sum(axis=0)
    assert shares.min() < 0.1 < 0.6 < shares.max() < 0.7
    assert abs(shares.mean() - 0.35) < 0.1
    # Within a label, at random: what is hidden is as easy to tell as what is not.
    hidden = observed < Y
    np.testing.assert_allclose(X[hidden].mean(), X[observed == 1].mean(), atol=0.02)
    np.testing.assert_array_equal(hide_labels(X, Y, "by label", 3), observed)
    assert (hide_labels(X, Y, "by label", 4) != observed).any()


def test_rows_that_are_hard_to_tell_miss_more():
    X, Y = told()
    kept = X.copy(), Y.copy()
    observed = hide_labels(X, Y, "hard rows", 3)
    forest = RandomForest(100, min_samples_leaf=2, out_of_sample=OutOfBag(), random_state=3).fit(X, Y)
    assert (observed <= Y).all()
    for j in range(3):
        positives = np.flatnonzero(Y[:, j])
        hidden = 1 - observed[positives[np.argsort(forest.oos_proba_[positives, j])], j]  # the hardest first
        assert hidden.mean() == pytest.approx(0.5, abs=0.05)
        tenth = len(hidden) // 10
        assert hidden[:tenth].mean() == pytest.approx(0.77, abs=0.1)  # from 0.8 to 0.2, evenly
        assert hidden[-tenth:].mean() == pytest.approx(0.23, abs=0.1)
    np.testing.assert_array_equal(hide_labels(X, Y, "hard rows", 3), observed)
    assert (hide_labels(X, Y, "hard rows", 4) != observed).any()
    for ours, copied in zip((X, Y), kept):
        np.testing.assert_array_equal(ours, copied)


@pytest.mark.parametrize("missing", ["by label", "hard rows"])
def test_labels_that_are_odd_can_be_missing(missing):
    X, Y = told(200)
    one = hide_labels(X, Y[:, :1], missing, 0)
    assert one.shape == (200, 1)
    assert one.sum() < Y[:, 0].sum()
    odd = np.column_stack([np.zeros(200, int), np.ones(200, int), np.arange(200) == 7]).astype(int)
    found = hide_labels(sparse.csr_matrix(X), odd, missing, 0)
    assert (found <= odd).all()
    assert found[:, 0].sum() == 0
    assert 0 < found[:, 1].sum() <= 200


def test_the_frequency_of_a_label_without_positives(tmp_path):
    X, Y = told(60, 2)
    Y[:, 1] = 0
    write_table(tmp_path / "t.csv", X, Y)
    protocol = labels_protocol(str(tmp_path / "t.csv"), factors={"ilr": [0.5]})
    part = sample(protocol, protocol.cells()[0])
    assert part.frequency[0] == pytest.approx(0.5, abs=0.05)
    assert part.frequency[1] == 0


def test_seed_changes_folds_and_masks_and_nothing_else_does(table):
    path, _, _ = table
    protocol = labels_protocol(path)
    cell = protocol.cells()[-1]
    same = protocol.select(methods=["gcforest"], factors={"ilr": [0.7]})
    other = protocol.select(seed=6)
    for one, two in zip(sample(protocol, cell), sample(same, cell)):
        np.testing.assert_array_equal(one, two)
    assert (rows_of(sample(protocol, cell).X_test) != rows_of(sample(other, cell).X_test)).any()
    assert derive_seed(0, "mask", "a", 1) != derive_seed(0, "mask", "a", 2) != derive_seed(1, "mask", "a", 1)
    assert derive_seed(0, "a", "b") != derive_seed(0, "ab")
    assert all(0 <= derive_seed(0, n) < 2**31 for n in range(50))


def test_rows_features_and_rare_labels(table):
    path, X, Y = table
    few = labels_protocol(path, data={"rows": 40, "features": 2})
    cells = few.cells()
    part = sample(few, cells[0])
    rows = np.sort([*rows_of(part.X), *rows_of(part.X_test)])
    assert len(np.unique(rows)) == 40
    assert part.X.shape[1] == 2
    np.testing.assert_array_equal(part.X_test, X[rows_of(part.X_test), :2])
    assert (rows != np.arange(40)).any()  # drawn, not the first
    assert data_facts(few, "table")[:4] == ("table", 40, 2, 4)
    # Labels are dropped after rows are: what counts is what is there.
    Y_few = Y[rows]
    limit = int(np.sort(Y_few.sum(axis=0))[1])  # a label with just so many stays
    dropped = labels_protocol(path, data={"rows": 40, "min_positives": limit})
    part = sample(dropped, cells[0])
    np.testing.assert_array_equal(part.Y_test, Y[rows_of(part.X_test)][:, Y_few.sum(axis=0) >= limit])
    assert part.Y.shape[1] < 4
    with pytest.raises(ValueError, match="has no label with 61 positives or more"):
        data_facts(labels_protocol(path, data={"min_positives": 61}), "table")
    assert data_facts(labels_protocol(path, data={"rows": 1000}), "table").n_rows == 60


def test_facts_see_every_value(table, tmp_path):
    path, X, Y = table
    facts = data_facts(labels_protocol(path), "table")
    assert facts[:4] == ("table", 60, 4, 4)
    assert data_facts(labels_protocol(path, repeats=4, seed=8), "table") == facts
    for number, (at_x, at_y) in enumerate([(1.0, 0), (0.0, 1)]):
        other_X, other_Y = X.copy(), Y.copy()
        other_X[7, 2] += at_x
        other_Y[3, 1] ^= at_y
        write_table(tmp_path / f"{number}.csv", other_X, other_Y)
        other = data_facts(labels_protocol(str(tmp_path / f"{number}.csv")), "table")
        assert other.fingerprint != facts.fingerprint


def test_wrong_data(table, tmp_path):
    with pytest.raises(ValueError, match=r"The file .*none.csv' of data set 'table' was not found"):
        data_facts(labels_protocol(str(tmp_path / "none.csv")), "table")
    pairs = make_protocol(
        {"task": "pairs", "measures": ["accuracy"], "datasets": [{"name": "t", "path": table[0]}], "methods": {"x": {}}}
    )
    with pytest.raises(ValueError, match="Pairs are drawn from classes, but 't' has 4 labels"):
        data_facts(pairs, "t")


def test_sparse_tables_stay_sparse(monkeypatch):
    X, Y = sparse.random(30, 5, 0.3, format="coo", random_state=0), np.eye(30, 3, dtype=int)
    monkeypatch.setattr(bench_data, "load_dataset", lambda name, return_X_y: (X, sparse.csr_matrix(Y)))
    bench_data._load.cache_clear()
    protocol = make_protocol(
        {"measures": ["micro_f1"], "datasets": ["s"], "split": {"kind": "folds"}, "methods": {"rf_et": {}}}
    )
    part = sample(protocol, protocol.cells()[0])
    assert sparse.issparse(part.X)
    assert not sparse.issparse(part.Y)
    dense = np.vstack([part.X.toarray(), part.X_test.toarray()])
    np.testing.assert_allclose(np.sort(dense.sum(axis=1)), np.sort(np.ravel(X.sum(axis=1))))
    bench_data._load.cache_clear()


def test_the_built_in_set():
    protocol = make_protocol({"measures": ["micro_f1"], "methods": {"rf_et": {}}})
    X, Y = load_dataset("digit_attributes", return_X_y=True)
    part = sample(protocol, protocol.cells()[0])
    assert len(part.X) + len(part.X_test) == len(X)
    assert part.Y_test.sum() + part.Y.sum() == Y.sum()


def pairs_protocol(points, n_pairs, rows=100, seed=1):
    return make_protocol(
        {
            "task": "pairs",
            "seed": seed,
            "repeats": 2,
            "datasets": [{"name": "digits", "rows": rows}],
            "measures": ["accuracy"],
            "factors": {"points": points, "pairs": n_pairs},
            "methods": {"a": {}, "b": {}},
        }
    )


def marks(X):
    """A mark of each point of each pair (n, 2)."""
    return np.array([[hash(point.tobytes()) for point in pair] for pair in X])


@pytest.mark.parametrize("points", ["shared", "strict"])
def test_pairs(points):
    X, y = load_digits(return_X_y=True)
    classes = {hash(row.tobytes()): label for row, label in zip(X, y)}
    protocol = pairs_protocol([points], [60, 120])
    drawn = samples(protocol)
    for cell, part in drawn.items():
        n_pairs = dict(cell.factors)["pairs"]
        assert part.X.shape == (n_pairs, 2, 64)
        assert len(part.X_test) == 2 * n_pairs // 3
        train, test = marks(part.X), marks(part.X_test)
        for pairs, similarity in ((train, part.Y), (test, part.Y_test)):
            assert [classes[a] == classes[b] for a, b in pairs.tolist()] == (similarity == 1).tolist()
            assert set(similarity) == {-1, 1}
            assert (pairs[:, 0] != pairs[:, 1]).all()
        together = np.sort(np.concatenate([train, test]), axis=1)
        assert len(np.unique(together, axis=0)) == len(together)  # no pair twice, in either order
        if points == "strict":
            assert not set(train.ravel()) & set(test.ravel())
            assert part.Y.sum() == 0
            assert part.Y_test.sum() == 0
        else:
            assert set(train.ravel()) & set(test.ravel())
            assert part.Y.sum() + part.Y_test.sum() == 0  # half of all pairs
            assert abs(part.Y_test.mean()) < 0.4
    a, b = (
        next(part for cell, part in drawn.items() if cell.method == m and cell.repeat == 1) for m in protocol.methods
    )
    for one, two in zip(a, b):
        np.testing.assert_array_equal(one, two)  # shared by the methods
    assert len({part.X.tobytes() for part in drawn.values()}) == 4  # two repeats, two numbers


def test_few_pairs():
    """Where one kind has not enough pairs, the other fills up; where both have not, there are fewer."""
    protocol = pairs_protocol(["shared"], [300], rows=30)
    part = sample(protocol, protocol.cells()[0])
    assert len(part.X) + len(part.X_test) == 30 * 29 // 2  # all that there are, of 500 asked for
    assert len(part.X) == round(435 * 300 / 500)
    _, y = bench_data._data(protocol, "digits", None)
    n_similar = sum(y[i] == y[j] for i, j in itertools.combinations(range(30), 2))
    assert (part.Y == 1).sum() + (part.Y_test == 1).sum() == n_similar
    some = pairs_protocol(["shared"], [150], rows=30)
    part = sample(some, some.cells()[0])
    assert len(part.X) == 150
    assert len(part.X_test) == 100
    assert (part.Y == 1).sum() + (part.Y_test == 1).sum() == min(n_similar, 125)
    # Of dissimilar pairs there are 20 only: similar ones fill up.
    pairs, similarity = bench_data._balanced(np.array([0] * 20 + [1]), 100, 0)
    assert (len(pairs), (similarity == -1).sum()) == (100, 20)
