"""Nodes that stand for nothing: each is refused for what is wrong with it."""

import numpy as np
import pytest

import sylvan
from model_files import forged
from sylvan.exceptions import ModelFileError

ARRAY = {"is": "array", "array": 0, "writeable": True}
KEY = np.arange(624, dtype=np.uint32)


def array(number):
    return {"is": "array", "array": number, "writeable": False}


@pytest.fixture
def refused(tmp_path):
    def check(nodes, arrays=(), match="cannot be read by this version of sylvan"):
        path = tmp_path / "model.sylvan"
        path.write_bytes(forged(nodes, arrays))
        with pytest.raises(ModelFileError, match=match):
            sylvan.load(path)

    return check


@pytest.mark.parametrize("number", [0, 1, -1, 10**9, "0", None, True, 0.0])
def test_parts_refer_to_parts_before_them(refused, number):
    """So that there is no loop, and nothing that is not there."""
    refused([{"is": "list", "items": [{"node": number}]}], match="refers to one that is not there")


def test_nesting_is_bounded(refused):
    deep = [{"is": "list", "items": []}]
    deep += [{"is": "list", "items": [{"node": at}]} for at in range(10_000)]
    refused(deep, match="parts lie too deep")
    many = [{"is": "list", "items": [1] * 10}]
    many += [{"is": "list", "items": [{"node": at}] * 10} for at in range(20)]
    refused(many, match="parts stand in too many places")
    columns = {"is": "frame", "columns": {"node": 2}, "index": {"node": 1}, "dtypes": ["float64"] * 5000}
    nodes = [ARRAY, {"is": "range_index", "range": [0, 10**5, 1], "name": None}]
    nodes += [{"is": "range_index", "range": [0, 5000, 1], "name": None}, columns | {"values": [{"node": 0}] * 5000}]
    refused(nodes, [np.zeros(10**5)], match="parts stand in too many places")


@pytest.mark.parametrize(
    "node",
    [
        {"is": "pickle"}, {}, 5, None, [], {"is": "list"}, {"is": "list", "items": 5}, {"is": "list", "items": [[1]]},
        {"is": "list", "items": [{}]}, {"is": "list", "items": [{"float": "1e400"}]}, {"is": "list", "items": [2**64]},
        {"is": "dict", "items": [[1, 2], [1, 3]]}, {"is": "dict", "items": [[1]]}, {"is": "object"},
        {"is": "scalar", "type": "<i1000", "value": 5}, {"is": "scalar", "type": "|i1", "value": 300},
        {"is": "scalar", "type": "<U999999999", "value": "a"}, {"is": "scalar", "type": "<i8", "value": "5"},
        {"is": "objects", "shape": [3], "items": [1, 2]}, {"is": "objects", "shape": [-1], "items": [1, 2]},
        {"is": "objects", "shape": [0, 10**12], "items": [1]}, {"is": "array", "array": 0, "writeable": True},
        {"is": "range_index", "range": [0, 2**63, 1], "name": None},
        {"is": "range_index", "range": [0, 1, 0], "name": None},
        {"is": "range_index", "range": [0, 1.5, 1], "name": None},
    ],
)  # fmt: skip
def test_nodes_that_stand_for_nothing(refused, node):
    refused([node])


@pytest.mark.parametrize(
    ("key", "rest"),
    [
        (KEY, [625, 0, 0.0]), (KEY, [-1, 0, 0.0]), (KEY, [2**31, 0, 0.0]), (KEY, [5, 7, 0.0]), (KEY, [5, 0, "a"]),
        (KEY, [5, 0]), (KEY[:-1], [5, 0, 0.0]), (KEY.astype(np.int64), [5, 0, 0.0]), (0 * KEY, [5, 0, 0.0]),
        (KEY.reshape(2, -1), [5, 0, 0.0]),
    ],
)  # fmt: skip
def test_random_states(refused, key, rest):
    """A place beyond the key reads foreign memory; a key of zeros never ends to draw."""
    refused([{"is": "random_state", "array": 0, "rest": rest}], [key], match="cannot be read")


INDPTR, INDICES, DATA = np.array([0, 1, 3]), np.array([0, 1, 2]), np.ones(3)


@pytest.mark.parametrize(
    ("shape", "arrays"),
    [
        ([2, 2], [DATA, INDICES, INDPTR]),
        ([3, 3], [DATA, INDICES, INDPTR]),
        ([2, -3], [DATA, INDICES, INDPTR]),
        ([2], [DATA, INDICES, INDPTR]),
        ([2, 3], [DATA, -INDICES, INDPTR]),
        ([2, 3], [DATA, INDICES, INDPTR[::-1].copy()]),
        ([2, 3], [DATA, INDICES, np.array([0, 1, 10**9])]),
        ([2, 3], [DATA, INDICES, np.array([1, 1, 3])]),
        ([2, 3], [DATA[:2], INDICES, INDPTR]),
        ([2, 3], [DATA, INDICES.astype(float), INDPTR]),
        ([2, 3], [DATA, INDICES.astype(np.int32), INDPTR]),
        ([2, 3], [DATA[:, None], INDICES, INDPTR]),
    ],
)
def test_sparse_matrices(refused, shape, arrays):
    nodes = [array(0), array(1), array(2)]
    refused([*nodes, {"is": "sparse", "shape": shape, "parts": [{"node": at} for at in range(3)]}], arrays)


def test_tables(refused):
    index = {"is": "range_index", "range": [0, 3, 1], "name": None}
    frame = {"is": "frame", "columns": {"node": 2}, "index": {"node": 1}, "values": [{"node": 0}]}
    frame["dtypes"] = ["float64"]
    one = {"is": "range_index", "range": [0, 1, 1], "name": None}
    good = [np.zeros(3)]
    refused([array(0), index, one, frame], good, match="holds no model but a DataFrame")
    refused([array(0), index, one, frame], [np.zeros(4)])
    refused([array(0), index, index, frame], good)
    refused([array(0), index, one, frame | {"dtypes": []}], good)
    refused([array(0), index, one, frame | {"index": {"node": 0}}], good)
    for dtype in ("U1000000000", "period[D]", "<M8[fs]", "Sparse[int]", 5, None, "datetime64[ns, UTC]"):
        refused([array(0), index, one, frame | {"dtypes": [dtype]}], good)
        refused([array(0), {"is": "index", "dtype": dtype, "values": {"node": 0}, "name": None}], good)
    series = {"is": "series", "dtype": "float64", "values": {"node": 0}, "name": None, "index": {"node": 1}}
    refused([array(0), one, series], good)
    refused([array(0), index, series], [np.zeros((3, 1))])


@pytest.mark.parametrize("ends", [[1, 3], [1, 2, 4], [2, 1, 3], [-1, 3], [], [[1, 3]], [1, 2**62, 3], [3, 3, 4]])
def test_texts(refused, ends):
    """Texts of a wild length, or of bytes that are no text."""
    node = {"is": "texts", "shape": [len(ends)], "arrays": [0, 1]}
    refused([node], [np.array(ends, np.int64), np.frombuffer(b"a\xffb", np.uint8)])
    refused([node], [np.array(ends, np.float64), np.frombuffer(b"abc", np.uint8)])


def test_arrays_belong_to_one_node_each(refused):
    refused([array(0), array(0)], [np.zeros(2)], match="arrays are not in order")
    refused([array(1), array(0)], [np.zeros(2)] * 2, match="arrays are not in order")
    refused([array(0)], [np.zeros(2)] * 2, match="arrays that belong nowhere")
