"""Windows of images and sequences: where they are, what is in them, and what is said about them in pools."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sylvan._validation import check_integer, check_share
from sylvan.io import stored
from sylvan.io.checks import require

_SEQUENCE_PARTS = (16, 9, 4)  # windows of a sequence are this part of its length
_IMAGE_PARTS = (4, 3, 2)  # and of an image of each side: the same parts of its area


@stored("Grain")
class Grain(NamedTuple):
    """One size of windows; all numbers are down and across."""

    size: tuple[int, int]  # height and width of a window
    stride: tuple[int, int]  # steps between windows
    positions: tuple[int, int]  # number of windows
    pool: tuple[int, int]  # number of windows whose answers are averaged

    def check_fits(self, shape: tuple[int, int, int]) -> None:
        """Check windows that came from a file, for images of this shape."""
        whole = zip(self.size, self.stride, self.positions, self.pool, shape)
        fits = all(1 <= a <= n and s >= 1 and p >= 1 and at == (n - a) // s + 1 for a, s, at, p, n in whole)
        require(fits, "Windows do not fit the image.")

    @property
    def n_windows(self) -> int:
        """Number of windows."""
        return self.positions[0] * self.positions[1]

    @property
    def pooled(self) -> tuple[int, int]:
        """Number of answers, down and across."""
        return -(-self.positions[0] // self.pool[0]), -(-self.positions[1] // self.pool[1])

    @property
    def n_out(self) -> int:
        """Number of answers."""
        return self.pooled[0] * self.pooled[1]

    def windows(self, images: np.ndarray) -> np.ndarray:
        """Return all windows of images (n, parts, height, width, channels), a view of (n, down, across, ...)."""
        every = np.lib.stride_tricks.sliding_window_view(images, self.size, axis=(2, 3))
        every = every[:, :, :: self.stride[0], :: self.stride[1]]  # n, parts, down, across, channels, a, b
        return every.transpose(0, 2, 3, 1, 5, 6, 4)

    def average(self, maps: np.ndarray) -> np.ndarray:
        """Return the means of answers (n, down, across, n_labels) over pools; those at the edge may be smaller."""
        for axis, width in enumerate(self.pool, start=1):
            if width > 1:
                starts = np.arange(0, maps.shape[axis], width)
                counts = np.diff([*starts, maps.shape[axis]])
                shape = [1] * maps.ndim
                shape[axis] = -1
                maps = np.add.reduceat(maps, starts, axis=axis) / counts.reshape(shape)
        return maps

    def spread(self, importances: np.ndarray, inside: np.ndarray, out: np.ndarray) -> None:
        """Add importances of answers (down, across) to the pixels `out` that they come from.

        `inside` has importances within a window, (parts, a, b, channels); `out` is (parts, height, width, channels).
        """
        for down, across in np.ndindex(self.positions):
            pool = down // self.pool[0], across // self.pool[1]
            size = [min(w, n - at * w) for at, w, n in zip(pool, self.pool, self.positions)]  # windows in the pool
            top, left = down * self.stride[0], across * self.stride[1]
            window = out[:, top : top + self.size[0], left : left + self.size[1]]
            window += importances[pool] / (size[0] * size[1]) * inside


def check_grains(windows: Any, stride: Any, pooling: Any, shape: tuple[int, int, int]) -> list[Grain]:
    """Return the windows of each size in images of a shape (height, width, channels)."""
    height, width, _ = shape
    sequence = width == 1
    stride = _check_two("stride", stride, sequence)
    pool = (1, 1) if pooling is None else _check_two("pooling", pooling, sequence)
    if isinstance(windows, str) and windows == "auto":
        if sequence:
            sizes = [(max(1, height // part), 1) for part in _SEQUENCE_PARTS]
        else:
            sizes = [(max(1, round(height / part)), max(1, round(width / part))) for part in _IMAGE_PARTS]
    elif not isinstance(windows, (list, tuple, np.ndarray)) or not len(windows):
        raise ValueError(f"windows must be 'auto' or a list of sizes, such as [3, 5], got {windows!r}.")
    else:
        sizes = [_check_two("windows", size, sequence) for size in windows]
    sizes = list(dict.fromkeys(sizes))
    for size in sizes:
        if size[0] > height or size[1] > width:
            plain = sequence and size[1] == 1
            found, whole = (size[0], height) if plain else (f"{size[0]} x {size[1]}", f"{height} x {width}")
            raise ValueError(f"A window of {found} is larger than the {'sequence' if sequence else 'image'}: {whole}.")
    positions = [((height - a) // stride[0] + 1, (width - b) // stride[1] + 1) for a, b in sizes]
    return [Grain(size, stride, at, pool) for size, at in zip(sizes, positions)]


def _check_two(name: str, value: Any, sequence: bool) -> tuple[int, int]:
    """Return an int as the same for both sides, or two ints; sequences have one side."""
    if isinstance(value, Integral):
        side = check_integer(name, value, 1)
        return (side, 1) if sequence else (side, side)
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name} must be an integer, or two for height and width, got {value!r}.")
    return check_integer(name, value[0], 1), check_integer(name, value[1], 1)


def check_shape(shape: Any, n_columns: int, pairs: bool) -> tuple[int, int, int]:
    """Return (height, width, channels); a sequence has width 1."""
    n_parts = 2 if pairs else 1
    if shape is None:
        if n_columns % n_parts:
            raise ValueError(f"pairs=True needs two sequences of equal length, but X has {n_columns} columns.")
        return n_columns // n_parts, 1, 1
    sides = (shape,) if isinstance(shape, Integral) else tuple(np.atleast_1d(shape).tolist())
    if not 1 <= len(sides) <= 3:
        raise ValueError(f"shape must be a length, (height, width) or (height, width, channels), got {shape!r}.")
    height, width, channels = (check_integer("shape", side, 1) for side in (*sides, 1, 1)[:3])
    needed = n_parts * height * width * channels
    if needed != n_columns:
        of = " * ".join(str(side) for side in ((2, *sides) if pairs else sides))
        raise ValueError(f"X has {n_columns} columns, but shape={shape!r} means {of} = {needed}.")
    return height, width, channels


def draw_windows(grain: Grain, subsample: Any, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """Return (n, number) positions of the windows that forests learn from, ascending."""
    if subsample is None:
        return np.broadcast_to(np.arange(grain.n_windows), (n, grain.n_windows))
    number = min(grain.n_windows, check_share("window_subsample", subsample, grain.n_windows, 1))
    drawn = random_state.rand(n, grain.n_windows).argpartition(number - 1, axis=1)[:, :number]
    return np.sort(drawn, axis=1)


def take_windows(grain: Grain, images: np.ndarray, rows: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return the drawn windows of these rows, one after the other, as a matrix."""
    down, across = np.divmod(drawn, grain.positions[1])
    return grain.windows(images)[rows[:, None], down, across].reshape(drawn.size, -1)
