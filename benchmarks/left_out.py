"""Was a part of auto chosen for its data? Choose it again with each data set left out.

Reads results of the protocol "auto" (`sylvan bench --protocol auto --out auto.db`): auto, and auto with one part
changed at a time. A gain of a variant is the difference of its mean score to that of auto, in units of the standard
deviation that the measure has between variants on that set and level. For each data set that is left out, the variant
with the greatest mean gain on the others is chosen, and judged on the one left out.

    python benchmarks/left_out.py auto.db
"""

import argparse

import numpy as np

from sylvan.bench import read_results
from sylvan.bench.statistics import greater_is_better

MEASURES = ["micro_auroc", "micro_average_precision", "hamming_loss", "ranking_loss", "micro_mcc"]


def gains(scores):
    """Return gains over auto, (data set, variant), averaged over measures and levels, on repeats that all have."""
    scores = scores[scores["measure"].isin(MEASURES)]
    wide = scores.pivot_table(index=["dataset", "ilr", "repeat", "measure"], columns="method", values="value").dropna()
    means = wide.groupby(["dataset", "ilr", "measure"]).mean()
    sign = np.where([greater_is_better(measure) for measure in means.index.get_level_values("measure")], 1.0, -1.0)
    differences = means.sub(means["auto"], axis=0).mul(sign, axis=0)
    scaled = differences.div(means.std(axis=1).clip(lower=1e-6), axis=0)
    return scaled.groupby("dataset").mean(), differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", help="file of results")
    arguments = parser.parse_args()
    results = read_results(arguments.results)
    gain, differences = gains(results.scores)
    print("Mean gain over auto in standard deviations, and in thousandths by measure:\n")
    table = differences.groupby("measure").mean().T[MEASURES] * 1000
    table.insert(0, "gain", gain.mean())
    print(table.sort_values("gain", ascending=False).to_string(float_format="{:.2f}".format))
    print("\nLeft out      best on the others       its gain there  gain on the one left out")
    found = []
    for dataset in gain.index:
        others = gain.drop(index=dataset).mean()
        best = others.idxmax()
        found.append(gain.loc[dataset, best])
        print(f"{dataset:<14}{best:<25}{others[best]:>14.3f}{found[-1]:>26.3f}")
    print(f"\nMean gain of what was chosen without the set that judges it: {np.mean(found):.3f}")


if __name__ == "__main__":
    main()
