"""Which method is best on my data? A comparison with shared folds, and ranks.

    python examples/compare_methods.py [--quick]

A small protocol: three methods, `auto` among them, half of the positives hidden, the built-in set. `sylvan bench` does
the same from the command line, with reports.
"""

import sys
import tempfile
from pathlib import Path

from sylvan.bench import load_protocol, run
from sylvan.bench.statistics import ranks
from sylvan.plotting import RankDisplay

quick = "--quick" in sys.argv
protocol = load_protocol("A", quick=True).select(
    datasets=["digit_attributes"],
    methods=["auto", "rf_et", "slcforest"],
    factors={"ilr": [0.5] if quick else [0.0, 0.3, 0.5]},
    repeats=2,
)
with tempfile.TemporaryDirectory() as folder:
    results = run(protocol, Path(folder) / "results.db", n_jobs=1)

means = results.scores.pivot_table(index="method", columns="measure", values="value", sort=False)
print(means.round(3).to_string())
print("\nAverage ranks, 1 is best:")
table = ranks(results.scores).overall.pivot_table(index="method", columns="measure", values="rank", sort=False)
print(table.round(2).to_string())
print("\nOne data set proves nothing: tests over data sets (`sylvan.bench.statistics`) need six or more.")

display = RankDisplay.from_results(results).plot()
display.figure_.savefig("compare_methods.png", dpi=120)
print("The picture is in compare_methods.png.")
