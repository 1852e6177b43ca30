import numpy as np
import pytest

from sylvan.kernels.reasons import add_votes, count_neighbours, hand_down, measure_paths, spell_out, sum_up

# A tree: the root asks column 2, its left child column 0; leaves 0, 1 below that, and 2. Three labels.
PARENT = np.array([-1, 0, 0, 1, 1])
FEATURE = np.array([2, 0, -1, -1, -1], np.int32)
FIRST, LAST = np.array([0, 0, 2, 0, 1]), np.array([3, 2, 3, 1, 2])
SIZE = np.array([1.0, 3.0, 4.0])
TABLE = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.25], [0.5, 0.5, 1.0]])
LEAF_NODES = np.array([3, 4, 2], np.int32)


def tree(node0=0, leaf0=0):
    """Return the tree's arrays as if others came before it."""
    parent = np.concatenate([np.full(node0, -7), np.where(PARENT >= 0, PARENT + node0, -1)])
    feature = np.concatenate([np.full(node0, -7, np.int32), FEATURE])
    first, last = (np.concatenate([np.full(node0, -7), ends + leaf0]) for ends in (FIRST, LAST))
    return parent, feature, first, last


def below():
    out = np.empty((4, 4))
    sum_up(TABLE, SIZE, out)
    return out


def value(node):
    leaves = slice(FIRST[node], LAST[node])
    return np.average(TABLE[leaves], axis=0, weights=SIZE[leaves])


def steps(leaf):
    """Return (column, change) from the leaf up to the root."""
    found, node = [], int(LEAF_NODES[leaf])
    while PARENT[node] >= 0:
        found.append((int(FEATURE[PARENT[node]]), value(node) - value(PARENT[node])))
        node = int(PARENT[node])
    return found


def test_lists_become_tables():
    start, label = np.array([0, 2, 2, 3]), np.array([0, 2, 1], np.uint16)
    table = np.full((3, 2), 9.0)
    spell_out(start, label, np.array([0.5, 0.25, 1.0]), np.array([1, 0, -1]), table)
    np.testing.assert_array_equal(table, [[0.0, 0.5], [0.0, 0.0], [1.0, 0.0]])


def test_sums():
    np.testing.assert_allclose(below()[1:], np.cumsum(np.column_stack([TABLE, np.ones(3)]) * SIZE[:, None], axis=0))


def test_votes():
    leaf = np.array([[0, 2], [1, 1]])
    out = np.zeros((2, 3))
    start, label = np.array([0, 2, 2, 3]), np.array([0, 2, 1], np.uint16)
    add_votes(leaf, np.array([[1, 0], [1, 1]], np.uint8), start, label, np.array([0.5, 0.25, 1.0]), out)
    np.testing.assert_array_equal(out, [[0.5, 0.0, 0.25], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize(("node0", "leaf0"), [(0, 0), (6, 11)])
def test_paths(node0, leaf0):
    parent, feature, first, last = tree(node0, leaf0)
    place = np.array([2, 0, -1, 1, 0])  # cells: of rows 2, 0, none, 1, 0
    leaf, weight = LEAF_NODES.copy(), np.array([0.5, 2.0, 0.0])
    rng = np.random.default_rng(0)
    signed, plain = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    signed[1, 0] = plain[1, 0] = 0.0
    wanted = (np.arange(15).reshape(5, 3) % 4 > 0).astype(float)
    moved, travelled, out = np.zeros((5, 3)), np.zeros((5, 3)), np.zeros((5, 4))
    measure_paths(place, leaf, weight, parent, first, last, node0, leaf0, TABLE, below(), wanted, moved, travelled)
    column = np.array([3, 9, 1])
    rest = (parent, feature, first, last, node0, leaf0, TABLE, below(), signed, plain, column, out)
    hand_down(place, leaf, weight, *rest)
    for cell, row in enumerate(place):
        expected = np.zeros(4)
        changes = np.array([d for _, d in steps(row)]) if row >= 0 else np.zeros((1, 3))
        factor = weight[row] if row >= 0 else 0.0
        np.testing.assert_allclose(moved[cell], factor * changes.sum(axis=0) * (wanted[cell] != 0))
        np.testing.assert_allclose(travelled[cell], factor * np.abs(changes).sum(axis=0) * (wanted[cell] != 0))
        for asked, d in steps(row) if row >= 0 else []:
            expected[column[asked]] += factor * (signed[cell] @ d + plain[cell] @ np.abs(d))
        np.testing.assert_allclose(out[cell], expected, atol=1e-15)
    assert np.abs(out).max() > 0.1


def test_neighbours():
    row, start = np.array([4, 1, 0, 2, 3], np.int32), np.array([0, 2, 2, 5])
    asked = np.array([0, -1, 1, 2, 3], np.int32)
    shared = np.zeros((3, 4), np.float32)
    count_neighbours(np.array([0, 2, 2], np.int32), np.array([1.0, 0.5, 0.0]), row, start, asked, shared)
    np.testing.assert_array_equal(shared, [[0, 0, 0, 1], [0.5, 0.5, 0.5, 0], [0, 0, 0, 0]])
