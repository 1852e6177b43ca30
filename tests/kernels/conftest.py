"""Kernels are tested compiled and, with NUMBA_DISABLE_JIT=1, as the plain Python they are written in."""

import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # growth.py; naive.py and strategies.py
pytest.register_assert_rewrite("growth")


@pytest.fixture(autouse=True)
def _let_integers_wrap():
    """Unsigned integers wrap around by design; numpy's scalars warn about it, compiled code does not."""
    with np.errstate(over="ignore"):
        yield
