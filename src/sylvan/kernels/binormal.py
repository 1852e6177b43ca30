"""How likely a ranking is if scores of positives and of negatives are normal, and some positives are not recorded."""

import numpy as np

from sylvan.kernels.compile import kernel

_MOST = 0.995  # share of positives: there must be some negatives
_LEAST_RATE = 1e-6


@kernel("(f8[], f8[], f8[], f8, f8[], f8[], f8[], f8[,], f8[,], out f8[])")
def binormal_likelihood(recorded, sizes, middles, density, frequencies, above0, height0, above1, height1, out):
    """Write the log likelihood of each frequency c to `out`, with the separation that makes it greatest.

    Scores of negatives are N(0, 1), those of positives N(separation, 1); a share density / c of the rows is positive.
    In a bin of rows, the highest scores first, a share c P(positive | score) is `recorded` of its `sizes`; `middles`
    are the shares of rows above the bins' middles. `above0`, `height0` (n_scores,) are P(score > s) and density of
    negatives at ascending s, `above1`, `height1` (n_separations, n_scores) those of positives. More positives than
    rows: -inf.
    """
    last = len(above0) - 1
    for at in range(len(frequencies)):
        c = frequencies[at]
        out[at] = -np.inf
        if density > c * (1.0 + 1e-9):
            continue
        share = min(density / c, _MOST)
        for which in range(len(above1)):
            s = last  # scores fall as ranks grow
            total = 0.0
            for i in range(len(middles)):
                while s > 0 and share * above1[which, s - 1] + (1.0 - share) * above0[s - 1] < middles[i]:
                    s -= 1
                positive = share * height1[which, s]
                q = positive / (positive + (1.0 - share) * height0[s])
                u = share * above1[which, s] + (1.0 - share) * above0[s]
                if s > 0 and middles[i] > u:
                    positive = share * height1[which, s - 1]
                    q_next = positive / (positive + (1.0 - share) * height0[s - 1])
                    u_next = share * above1[which, s - 1] + (1.0 - share) * above0[s - 1]
                    q += (q_next - q) * (middles[i] - u) / (u_next - u)
                rate = min(max(c * q, _LEAST_RATE), 1.0 - _LEAST_RATE)
                total += recorded[i] * np.log(rate) + (sizes[i] - recorded[i]) * np.log1p(-rate)
            out[at] = max(out[at], total)
