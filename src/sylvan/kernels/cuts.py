"""Judging the cuts of a node by the sum of the labels' variances (for one-hot classes: Gini).

With S the sum over labels of (weight of the rows that have the label)^2 and W the weight of a side, the best cut
maximises S_left / W_left + S_right / W_right. A row of weight w adds w * (2 * count + w) to S for each label it has.
With `cross` = sum over labels of total * left count, S_right = S - 2 cross + S_left.

A node keeps its rows' labels in one of two forms:

- bits: eight labels to a byte; a table turns a byte into LANES zeros and ones, which are added at once. The last bit
  stands for a label that every row has, so that the sum of a side includes W; it adds the same number to all cuts.
  In large nodes each bin of a feature is added up first (a histogram).
- lists: the labels a row has. For many labels of which a row has few.
"""

from collections import namedtuple

import numpy as np

from sylvan.kernels.compile import maker, part, section
from sylvan.kernels.lanes import LANES, LANES_OF_BYTE, add_lanes
from sylvan.kernels.rng import random_unit

MISSING = 255  # the bin of missing values; ordinary bins are 0 .. 254
NONE = np.uint32(0xFFFFFFFF)  # "no row", "no label"
_ONE = np.uint64(1)
_1, _0 = np.float32(1.0), np.float32(0.0)

Bins = namedtuple("Bins", "codes start low high mostly_one unusual_start unusual patience")
"""Binned features: `codes` (d, n); the values in bin b of feature f lie in [low, high][start[f] + b].

`mostly_one` marks features that have one value in nearly all rows; `unusual` lists, from each row's `unusual_start` on,
those of them of which the row has another value. A node looks there after `patience` vain tries.
"""

Labels = namedtuple("Labels", "start label bits")
"""Positive labels of each row, as lists and as `bits` (n, n_bytes); (n, 0) if bits do not pay."""

Rules = namedtuple("Rules", "max_features max_depth min_leaf min_split random_cut count_constants")

Cut = namedtuple("Cut", "score feature bin threshold missing_left saw_missing")
"""The best cut so far: rows with code <= bin go left. Arrays of length 1, so that functions can change them."""

Work = namedtuple(
    "Work", "sums weight bits total32 count32 count64 label_start label total count head next code hist words"
)
"""The open node's rows.

`sums` (weight, cross, S of the row alone), `weight` the same in single precision; `bits`, `total32`, `count32`,
`count64` of the bit form; `label_start`, `label`, `total`, `count` of the list form; `code`, bins of the feature in
hand; `head`, `next`, `words` rows by bin and the bins in use; `hist` label weights of each bin.
"""

Shape = namedtuple("Shape", "n_rows n_labels n_bytes weight squares")
"""The open node: rows, labels in the list form, bytes per row (0: list form), W and S."""


@maker
def make_work(n_rows, n_positives, n_labels, n_bytes, random_cut):
    """Allocate the room that nodes of up to `n_rows` rows need."""
    n_listed, n_places = (n_rows, n_positives) if n_bytes == 0 else (0, 0)
    lanes, n_bins = (n_bytes, LANES), 0 if random_cut else 256
    return Work(
        sums=np.empty((n_rows, 3)), weight=np.empty(n_rows, np.float32), bits=np.empty((n_rows, n_bytes), np.uint8),
        total32=np.empty(lanes, np.float32), count32=np.empty(lanes, np.float32), count64=np.empty(lanes),
        label_start=np.empty(n_listed + 1, np.uint64), label=np.empty(n_places, np.uint32),
        total=np.empty(n_labels), count=np.empty(n_labels), head=np.full(256, NONE, np.uint32),
        next=np.empty(max(n_rows, 256) + 1, np.uint32), code=np.empty(n_rows, np.uint8),
        hist=np.zeros((n_bins * n_bytes, LANES)), words=np.zeros(4, np.uint64),
    )  # fmt: skip


_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_58 = np.uint64(58)
_BIT_INDEX = np.argsort([((1 << i) * 0x03F79D71B4CB0A89 % 2**64) >> 58 for i in range(64)]).astype(np.int64)


@part
def lowest_bit(word):
    """Index of the lowest set bit of a word that is not 0."""
    return _BIT_INDEX[((word & (~word + _ONE)) * _DE_BRUIJN) >> _58]


@part
def offer(cut, score, feature, last_left, threshold, missing_left, saw_missing):
    """Keep a cut if it is better than the best so far."""
    if score > cut.score[0]:
        cut.score[0], cut.feature[0], cut.bin[0] = score, feature, last_left
        cut.threshold[0], cut.missing_left[0], cut.saw_missing[0] = threshold, missing_left, saw_missing


@part
def _settle(bins, feature, value, low, high):
    """Turn a threshold between bins low < high into (last left bin, threshold) that agree on every training row.

    A bin may hold several values; a threshold that falls among them moves up to the largest.
    """
    first = np.uint64(bins.start[feature] + low)
    length = np.uint64(high - low)
    while length > _ONE:  # the last bin whose smallest value is <= value; no branch, it could not be predicted
        half = length >> _ONE
        first += half if bins.low[first + half] <= value else np.uint64(0)
        length -= half
    return np.int64(first) - bins.start[feature], max(value, bins.high[first])


@part
def middle(bins, feature, left, right):
    """Return a threshold half way between two bins left < right."""
    low = bins.high[bins.start[feature] + left]
    high = bins.low[bins.start[feature] + right]
    middle = low + (high - low) / 2
    return middle if middle < high else low


@part
def offer_between(bins, feature, left, right, score, missing_left, n_missing, cut):
    """Offer the cut between two neighbouring bins of a node."""
    if right == MISSING:
        last_left, threshold = MISSING - 1, np.inf
    else:
        last_left, threshold = _settle(bins, feature, middle(bins, feature, left, right), left, right)
    offer(cut, score, feature, last_left, threshold, missing_left, n_missing > 0)


@part
def open_node(rows, row_weight, labels, weight, room, n_seen, random_cut):
    """Copy what the node's cuts are judged by into small contiguous arrays, `room.work`."""
    if labels.bits.shape[1] > 0:
        return _open_bits(rows, row_weight, labels, room.work, weight, room.tally, random_cut)
    return _open_lists(rows, row_weight, labels, room.work, weight, room.tally, room.seen, n_seen, room.local)


@section
def _open_bits(rows, row_weight, labels, work, weight, tally, random_cut):
    n_bytes = np.uint64(labels.bits.shape[1])
    squares = 0.0
    for b in range(n_bytes):
        for j in range(LANES):
            total = tally[b, j]
            work.total32[b, j] = total
            squares += total * total
    for k in range(rows.size):
        row = np.uint64(rows[k])
        work.weight[k] = row_weight[row]
        for b in range(n_bytes):
            work.bits[k, b] = labels.bits[row, b]
        if not random_cut:
            w, cross = row_weight[row], _0
            for b in range(n_bytes):
                cross += add_lanes(work.total32, b, LANES_OF_BYTE, np.uint64(work.bits[k, b]), _0)
            n_own = np.int64(labels.start[row + _ONE] - labels.start[row]) + 1
            work.sums[k, 0] = w
            work.sums[k, 1] = w * cross
            work.sums[k, 2] = w * w * n_own
    return Shape(rows.size, 0, n_bytes, weight, squares)


@section
def _open_lists(rows, row_weight, labels, work, weight, tally, seen, n_seen, local):
    """Keep the labels that vary in the node, renumbered; those that all rows have add the same to all cuts."""
    flat = tally.reshape(tally.size)
    n_local = 0
    squares = 0.0
    for k in range(n_seen):
        label = seen[k]
        if flat[label] < weight:
            local[label] = n_local
            work.total[n_local] = flat[label]
            squares += flat[label] * flat[label]
            n_local += 1
        else:
            local[label] = NONE
    fill = 0
    for k in range(rows.size):
        row = np.uint64(rows[k])
        w = row_weight[row]
        work.label_start[k] = fill
        cross, n_own = 0.0, 0
        for j in range(labels.start[row], labels.start[row + _ONE]):
            index = local[labels.label[j]]
            if index != NONE:
                work.label[fill] = index
                fill += 1
                n_own += 1
                cross += work.total[index]
        work.sums[k, 0] = w
        work.sums[k, 1] = cross * w
        work.sums[k, 2] = w * w * n_own
    work.label_start[rows.size] = fill
    return Shape(rows.size, n_local, np.uint64(0), weight, squares)


@section
def gather(codes, rows, out):
    """Copy the node's codes of one feature; return the smallest and largest ordinary code and the missing rows."""
    m = rows.size
    first = codes[rows[0]]
    k = 1
    while k < m and codes[rows[k]] == first:
        k += 1
    if k == m:
        return np.int64(first), np.int64(first), 0 if first != MISSING else m
    for k in range(m):
        out[k] = codes[rows[k]]
    low, high = out[0], out[0]
    for k in range(m):  # bytes: compared many at a time
        low = min(low, out[k])
        high = max(high, out[k])
    if high != MISSING:
        return np.int64(low), np.int64(high), 0
    largest, missing = np.int64(low), 0
    for k in range(m):
        if out[k] == MISSING:
            missing += 1
        else:
            largest = max(largest, np.int64(out[k]))
    return np.int64(low), largest, missing


@part
def _add_row(work, shape, k):
    """Add row k's labels to the counts; return by how much the sum of squared counts grows."""
    if shape.n_bytes > 0:
        dot, w = _0, work.weight[k]
        for b in range(shape.n_bytes):
            dot += add_lanes(work.count32, b, LANES_OF_BYTE, np.uint64(work.bits[k, b]), w)
        return 2.0 * work.sums[k, 0] * dot + work.sums[k, 2]
    gain, weight = 0.0, work.sums[k, 0]
    for j in range(work.label_start[k], work.label_start[k + _ONE]):
        index = work.label[j]
        have = work.count[index]
        gain += weight * (2.0 * have + weight)
        work.count[index] = have + weight
    return gain


@part
def _score(shape, side_weight, side_squares, side_cross):
    other_weight = shape.weight - side_weight
    other = (shape.squares - 2.0 * side_cross + side_squares) / other_weight
    if shape.n_bytes == 0:  # weights may be real numbers, and a side of hardly any weight win by what subtraction loses
        other = min(other, shape.n_labels * other_weight)  # all labels in all rows
    return side_squares / side_weight + other


@section
def _score_side(work, shape, n_side):
    """Score a cut by adding up one side, whose rows are the first of `next`; the other side follows from the totals."""
    work.count32[:], work.count[: shape.n_labels] = _0, 0.0
    weight, squares, cross = 0.0, 0.0, 0.0
    if shape.n_bytes == 0:
        for i in range(n_side):
            k = np.uint64(work.next[i])
            weight += work.sums[k, 0]
            cross += work.sums[k, 1]
            squares += _add_row(work, shape, k)
        return _score(shape, weight, squares, cross)
    for i in range(n_side):
        k = work.next[i]
        for b in range(shape.n_bytes):
            add_lanes(work.count32, b, LANES_OF_BYTE, np.uint64(work.bits[k, b]), work.weight[k])
    for b in range(shape.n_bytes):
        for j in range(LANES):
            count, total = np.float64(work.count32[b, j]), np.float64(work.total32[b, j])
            squares += count * count
            cross += count * total
    weight = np.float64(work.count32[shape.n_bytes - _ONE, LANES - 1])
    return _score(shape, weight, squares, cross)


@section
def _one_cut(work, shape, feature, last_left, threshold, missing_left, n_missing, rules, cut):
    """Judge a single cut of a feature, unless a side would be smaller than a leaf may be."""
    m = shape.n_rows
    last = np.uint8(last_left)
    n_left = n_missing if missing_left else 0
    for k in range(m):
        n_left += work.code[k] <= last
    if n_left < rules.min_leaf or m - n_left < rules.min_leaf:
        return
    score = 0.0
    if not (rules.random_cut and rules.max_features == 1):  # else there is nothing to compare with
        take_left = 2 * n_left <= m
        n_side = np.uint64(0)
        for k in range(m):  # list the smaller side; no branch on the side of a row, it could not be predicted
            code = work.code[k]
            work.next[n_side] = k
            n_side += np.uint64(((code <= last) | (missing_left & (code == MISSING))) == take_left)
        score = _score_side(work, shape, n_side)
    offer(cut, score, feature, last_left, threshold, missing_left, n_missing > 0)


@section
def draw_cut(bins, feature, low, high, n_missing, state):
    """Draw a cut uniformly between the node's smallest and largest value: last left bin, threshold, missing left."""
    missing_left = n_missing > 0 and random_unit(state) < 0.5
    if low == high:  # only "missing or not" can be asked
        return MISSING - 1, np.inf, False
    lo = bins.high[bins.start[feature] + low]
    hi = bins.low[bins.start[feature] + high]
    value = lo + random_unit(state) * (hi - lo)
    last_left, threshold = _settle(bins, feature, value if value < hi else lo, low, high)
    return last_left, threshold, missing_left


@section
def _sweep_rows(work, shape, bins, feature, missing_left, n_missing, rules, cut):
    """Try every cut of a feature: rows hang in one list per bin, bins in use are the bits of `words`."""
    m = shape.n_rows
    work.count32[:], work.count[: shape.n_labels] = _0, 0.0
    left_weight, left_squares, left_cross, n_left, previous = 0.0, 0.0, 0.0, 0, -1
    step = -1 if missing_left else 0  # step -1: missing values go left before all others
    word = work.words[0]
    while True:
        if step < 0:
            this, step = MISSING, 0
        else:
            while word == 0 and step < 3:
                step += 1
                word = work.words[step]
            if word == 0:
                break
            this = 64 * step + lowest_bit(word)
            word &= word - _ONE
            if this == MISSING and missing_left:
                break
            if previous >= 0 and n_left >= rules.min_leaf:
                if m - n_left < rules.min_leaf:
                    break
                score = _score(shape, left_weight, left_squares, left_cross)
                if score > cut.score[0]:
                    offer_between(bins, feature, previous, this, score, missing_left, n_missing, cut)
            previous = this
        k = work.head[this]
        while k != NONE:
            n_left += 1
            left_weight += work.sums[k, 0]
            left_cross += work.sums[k, 1]
            left_squares += _add_row(work, shape, np.uint64(k))
            k = work.next[k]


@section
def _best_cut_rows(work, shape, bins, feature, n_missing, rules, cut):
    """Best cut of a feature in a small node: linear in the rows, no sort, no walk over empty bins."""
    work.words[:] = 0
    for k in range(shape.n_rows):
        code = work.code[k]
        work.next[k] = work.head[code]
        work.head[code] = k
        work.words[code >> 6] |= _ONE << np.uint64(code & 63)
    for missing_left in range(2 if n_missing > 0 else 1):
        _sweep_rows(work, shape, bins, feature, missing_left == 1, n_missing, rules, cut)
    for k in range(shape.n_rows):
        work.head[work.code[k]] = NONE


@section
def _sweep_bins(work, shape, bins, feature, low, high, missing_left, n_missing, rules, cut):
    """Try every cut of a feature from the label weights of its bins."""
    n_bytes = shape.n_bytes
    work.count64[:] = 0.0
    left_weight, left_squares, left_cross, n_left, previous = 0.0, 0.0, 0.0, 0, -1
    first = low - 1 if missing_left else low
    last = high if missing_left else high + 1
    for step in range(first, last + 1):
        this = MISSING if step < low or step > high else step
        line = np.uint64(this) * n_bytes
        weight = work.hist[line + n_bytes - _ONE, LANES - 1]
        if weight == 0.0:
            continue
        if previous >= 0 and n_left >= rules.min_leaf:
            if shape.n_rows - n_left < rules.min_leaf:
                break
            score = _score(shape, left_weight, left_squares, left_cross)
            if score > cut.score[0]:
                offer_between(bins, feature, previous, this, score, missing_left, n_missing, cut)
        if this != MISSING:
            previous = this
        n_left += np.int64(work.next[this])
        left_weight += weight
        for b in range(n_bytes):
            left_cross += add_lanes(work.hist, line + b, work.total32, b, 0.0)
            left_squares += add_lanes(work.hist, line + b, work.hist, line + b, 0.0)
            left_squares += 2.0 * add_lanes(work.count64, b, work.hist, line + b, 1.0)


@section
def _best_cut_bins(work, shape, bins, feature, low, high, n_missing, rules, cut):
    """Best cut of a feature in a large node: add up each bin, then walk over the bins."""
    n_bytes = shape.n_bytes
    work.next[:256] = 0  # free in this form: it counts the rows of each bin
    for k in range(shape.n_rows):
        code = work.code[k]
        line = np.uint64(code) * n_bytes
        work.next[code] += np.uint32(1)
        for b in range(n_bytes):
            add_lanes(work.hist, line + b, LANES_OF_BYTE, np.uint64(work.bits[k, b]), work.sums[k, 0])
    for missing_left in range(2 if n_missing > 0 else 1):
        _sweep_bins(work, shape, bins, feature, low, high, missing_left == 1, n_missing, rules, cut)
    width = np.int64(n_bytes)
    work.hist[low * width : (high + 1) * width] = 0.0
    work.hist[MISSING * width :] = 0.0


@part
def judge_best_cut(work, shape, bins, feature, low, high, n_missing, state, rules, cut):
    """Offer the feature's best cut."""
    n_bins = bins.start[feature + 1] - bins.start[feature]
    if n_bins == 2 and n_missing == 0:
        _one_cut(work, shape, feature, 0, middle(bins, feature, 0, 1), False, n_missing, rules, cut)
    elif shape.n_bytes > 0 and shape.n_rows > 256 and shape.n_rows > 2 * n_bins:
        _best_cut_bins(work, shape, bins, feature, low, high, n_missing, rules, cut)
    else:
        _best_cut_rows(work, shape, bins, feature, n_missing, rules, cut)


@part
def judge_random_cut(work, shape, bins, feature, low, high, n_missing, state, rules, cut):
    """Offer a cut of the feature that is drawn."""
    last_left, threshold, missing_left = draw_cut(bins, feature, low, high, n_missing, state)
    _one_cut(work, shape, feature, last_left, threshold, missing_left, n_missing, rules, cut)
