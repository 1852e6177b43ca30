"""Try estimators of the label frequency on probabilities that were kept, in seconds instead of hours.

    export SYLVAN_DATA=folder
    python benchmarks/frequency_ideas.py keep --cache fits      fit auto, keep what it says out of sample (minutes)
    python benchmarks/frequency_ideas.py judge --cache fits     what each estimator makes of it

Sets of protocol A and of A-new, three folds, with 0, 30, 50 and 70 % of the positives hidden, by label, and on hard
rows. "c" is the error of c, "held" the share of labels whose interval has it; MCC and Hamming loss of held-out rows are
what Calibration makes of c; "stated" and "right" are of cells that are suggested with p of .5 or more. All are means
over data sets.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import matthews_corrcoef

from sylvan import auto
from sylvan.bench import data, load_protocol
from sylvan.bench.protocol import Cell
from sylvan.labels.calibrate import Calibration
from sylvan.labels.frequency import BinormalFrequency, CombinedFrequency, TopRate
from sylvan.labels.impute import KeepLabels
from sylvan.labels.state import mean_of

LEVELS = (0.0, 0.3, 0.5, 0.7, "by label", "hard rows")
PROTOCOLS = ("frequency", "A-new")
ESTIMATORS = {"combined": CombinedFrequency(), "binormal": BinormalFrequency(), "top rate": TopRate()}


def keep(folder, repeats):
    """Fit auto to all cells, and keep labels and probabilities of each in a file."""
    folder.mkdir(exist_ok=True)
    first = {}
    step = KeepLabels.step

    def noted(self, state, probas):
        first.setdefault("layer", mean_of(probas))  # what the frequency is estimated from
        return step(self, state, probas)

    KeepLabels.step = noted
    for name in PROTOCOLS:
        protocol = load_protocol(name)
        for cell in (
            Cell(dataset, (("missing", level),), repeat, "auto")
            for repeat in range(repeats)
            for dataset in protocol.datasets
            for level in LEVELS
        ):
            path = folder / f"{name}_{cell.dataset}_{dict(cell.factors)['missing']}_{cell.repeat}.npz"
            if path.exists():
                continue
            sample = data.sample(protocol, cell)
            truth = data.truth(protocol, cell)
            first.clear()
            model = auto(random_state=cell.repeat, n_jobs=1).fit(sample.X, sample.Y)
            new = mean_of(model._ask(sample.X_test))  # noqa: SLF001 (before it is calibrated)
            said = {"first": first["layer"], "mean": model.labels_.proba, "new": new}
            labels = {"recorded": sample.Y, "truth": truth, "new_truth": sample.Y_test}
            bits = {name: np.asarray(values) > 0 for name, values in labels.items()}
            np.savez_compressed(path, **bits, **{name: values.astype("f4") for name, values in said.items()})
            print(path.name, flush=True)


def judge_cell(kept, estimator):
    """Return the error of c, the share of intervals that hold it, MCC, Hamming loss, stated, right and number."""
    recorded, truth = kept["recorded"], kept["truth"]
    true_c = recorded.sum(axis=0) / np.maximum(truth.sum(axis=0), 1)
    found = estimator.estimate(None, recorded.astype(int), proba=kept["first"].astype(float))
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    error = np.nanmean(np.abs(found.value - true_c))
    held = np.nanmean((low <= true_c + 1e-9) & (true_c <= high + 1e-9))
    c, low, high = (np.where(np.isnan(values), 1.0, values) for values in (found.value, low, high))
    calibrated = Calibration().fit(recorded, kept["mean"].astype(float), np.clip(c, 1e-3, 1.0), (low, high))
    missing = calibrated.given_unrecorded(calibrated.transform(kept["mean"].astype(float)), c, recorded.sum(axis=0))
    suggested = (missing >= 0.5) & ~recorded
    predicted = calibrated.transform(kept["new"].astype(float)) > calibrated.threshold_
    mcc = matthews_corrcoef(kept["new_truth"].ravel(), predicted.ravel())
    counts = missing[suggested].sum(), (truth & suggested).sum(), suggested.sum()
    return error, held, mcc, np.mean(predicted != kept["new_truth"]), *counts


def judge(folder):
    """Print a line for each estimator, protocol and level."""
    heads = ("estimator", "protocol", "hidden", "c", "held", "MCC", "Hamming", "stated", "right", "n")
    print(("{:<11}" * 3 + "{:>8}" * 7).format(*heads))
    for name, estimator in ESTIMATORS.items():
        for protocol in PROTOCOLS:
            for level in LEVELS:
                by_set = {}
                for path in sorted(folder.glob(f"{protocol}_*_{level}_*.npz")):
                    with np.load(path) as kept:
                        of_set = by_set.setdefault(path.name.split(f"_{level}_")[0], [])
                        of_set.append(judge_cell(dict(kept), estimator))
                if not by_set:
                    continue
                means = np.mean([np.mean(cells, axis=0) for cells in by_set.values()], axis=0)
                stated, right, n = np.sum([np.sum(cells, axis=0)[4:] for cells in by_set.values()], axis=0)
                line = (*means[:4], stated / max(n, 1), right / max(n, 1), n)
                print(("{:<11}" * 3 + "{:8.3f}" * 6 + "{:8.0f}").format(name, protocol, str(level), *line))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["keep", "judge"])
    parser.add_argument("--cache", type=Path, required=True, help="the folder of what is kept")
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.what == "keep":
        keep(chosen.cache, chosen.repeats)
    else:
        judge(chosen.cache)
