"""A small random generator for kernels: one 64-bit state per tree, the same numbers on every machine and thread."""

import numpy as np

from sylvan.kernels.compile import part

_GAMMA, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)


@part
def random_bits(state):
    """SplitMix64 (Steele, Lea and Flood 2014): advance `state[0]` and return 64 random bits."""
    state[0] = state[0] + _GAMMA
    z = state[0]
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@part
def random_below(state, bound):
    """Return an integer in [0, bound), bound < 2**32. The bias of the multiply-shift is below bound / 2**32."""
    return np.int64(((random_bits(state) & _LOW_32) * np.uint64(bound)) >> _32)


@part
def random_unit(state):
    """Return a float in [0, 1) with 53 random bits."""
    return np.float64(random_bits(state) >> _11) * (1.0 / 9007199254740992.0)
