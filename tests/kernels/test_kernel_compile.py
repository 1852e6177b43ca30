import numpy as np
import pytest
from numba import types

from sylvan.kernels.compile import kernel, read_signature


def test_numbers_and_arrays():
    found = read_signature("i8(f8, flag, u1[,], out i4[])")
    assert found.return_type == types.int64
    assert found.args[:2] == (types.float64, types.boolean)
    assert found.args[2] == types.Array(types.uint8, 2, "C", readonly=True)
    assert found.args[3] == types.Array(types.int32, 1, "C")


def test_results():
    assert read_signature("void(i8)") == types.void(types.int64)
    assert read_signature("i8 f8(i8)").return_type == types.Tuple([types.int64, types.float64])
    assert read_signature("(i8, f4[])") == (types.int64, types.Array(types.float32, 1, "C", readonly=True))


def test_any_layout():
    @kernel("f8(f8[,*])")
    def corner(values):
        return values[0, 1]

    table = np.arange(6.0).reshape(2, 3)
    assert corner(table) == 1.0
    assert corner(table.T) == 3.0
    assert corner(table[:, ::2]) == 2.0


def test_a_type_that_does_not_exist():
    with pytest.raises(KeyError, match="f2"):
        read_signature("void(f2[])")
