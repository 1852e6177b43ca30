"""What `_check_stored` methods are made of: short tests of arrays and numbers that came from a file."""

from typing import Any

import numpy as np

MOST_JOBS = 4096
_ROUNDING = 1e-6  # by which a mean of probabilities may pass 1


def require(holds: Any, otherwise: str) -> None:
    """Raise an error that says what is wrong, unless `holds`."""
    if not holds:
        raise ValueError(otherwise)


def check_array(
    name: str, value: Any, dtype: Any, shape: tuple[int | None, ...], low: float | None = None,
    high: float | None = None, *, nan: bool = False, contiguous: bool = False,
) -> np.ndarray:  # fmt: skip
    """Return an array if it has this type and shape (None: any length), and lies in [low, high].

    `nan` says whether values may be NaN; without `low` and `high` nothing is asked of values. `contiguous`: the array
    goes into a kernel as it is.
    """
    if not (type(value) is np.ndarray and value.dtype == dtype):
        found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)}, got {found}.")
    require(value.flags.c_contiguous or not contiguous, f"{name} must be C-contiguous.")
    same = len(shape) == value.ndim and all(n is None or n == m for n, m in zip(shape, value.shape))
    require(same, f"{name} must have shape {shape}, got {value.shape}.")
    if value.size:
        least, most = (np.fmin, np.fmax) if nan else (np.minimum, np.maximum)
        flat = value.reshape(-1)
        lies = (low is None or least.reduce(flat) >= low) and (high is None or most.reduce(flat) <= high)
        require(lies or (nan and np.isnan(least.reduce(flat))), f"{name} must lie between {low} and {high}.")
    return value


def check_proba(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return probabilities of a shape."""
    return check_array(name, value, np.float64, shape, -_ROUNDING, 1.0 + _ROUNDING)


def check_finite(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return double-precision numbers of a shape, none of them infinite or NaN."""
    return check_array(name, value, np.float64, shape, -np.finfo(float).max, np.finfo(float).max)


def check_jobs(n_jobs: Any) -> None:
    """Refuse numbers of jobs that no machine has: predictions start as many threads."""
    jobs = 1 if n_jobs is None else n_jobs
    require(jobs != 0 and abs(jobs) <= MOST_JOBS, f"n_jobs must be None or from -{MOST_JOBS} to {MOST_JOBS}, not 0.")


def check_names(name: str, value: Any, n: int) -> None:
    """Check that names of n columns or labels are there."""
    array = isinstance(value, np.ndarray)
    require((value.shape if array else (len(value),)) == (n,), f"{name} must have {n} entries.")


def all_or_none(made: Any, names: tuple[str, ...]) -> bool:
    """Say whether an estimator is fitted: it has all of these attributes, or none."""
    there = [name for name in names if name in vars(made)]
    missing = sorted({*names} - {*there})
    require(not there or not missing, f"{missing} of {type(made).__name__} is missing.")
    return bool(there)
