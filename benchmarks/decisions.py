"""What people decide about single cells: reviews, audits and certificates, with reviewers who are made up.

Positives of complete tables are hidden, `auto` is fitted, and a made-up reviewer answers from the truth. Hidden are
40 % of each label's positives at random ("random"), a share between 0 and 70 % that differs by label ("by label"), or
half of them, those on hard rows more often ("hard rows"). A repetition is another random draw of cells (audits of 100
and 400 cells have a quarter as many); `--seeds` are other hidings and fits.

    python benchmarks/decisions.py audit certify stated --seeds 3 --repeats 34 --cache fits
    python benchmarks/decisions.py review learn --seeds 3 --cache fits
    python benchmarks/decisions.py written --cache fits
    python benchmarks/decisions.py cost
    python benchmarks/decisions.py audit --sets yeast,emotions --hiding random --repeats 300

Prints tables in Markdown. Data sets are looked up by `sylvan.datasets.load_dataset` (set SYLVAN_DATA); labels with
fewer than 10 positives and rows after the first 2000 are left out. `--cache` keeps what fits say, so that audits can be
repeated without them.
"""

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.isotonic import IsotonicRegression

from sylvan import auto, slcforest
from sylvan.bench.data import hide_labels
from sylvan.datasets import load_dataset
from sylvan.labels.audit import Audit
from sylvan.labels.decisions import read_decisions

SETS = (
    "emotions", "yeast", "scene", "birds", "flags", "CHD_49", "medical", "Image", "CAL500", "VirusGO", "VirusPseAAC",
    "3sources_guardian1000", "slashdot", "tmc2007-500",
)  # fmt: skip
HIDING = {"nothing": 0.0, "random": 0.4, "by label": "by label", "hard rows": "hard rows"}
MOST_ROWS, FEWEST_POSITIVES = 2000, 10


def places(cells):
    return cells["row"].to_numpy(int), cells["label"].to_numpy(int)


class Case(NamedTuple):
    """A table with hidden positives, and what a fit says of it."""

    name: str
    hiding: str
    seed: int
    truth: np.ndarray
    recorded: np.ndarray
    proba: np.ndarray  # P(present | not recorded), before anybody decided anything
    frequency: np.ndarray

    @property
    def missing(self):
        return self.truth & ~self.recorded

    def audit(self, *decisions):
        return Audit.from_probabilities(self.proba, self.recorded, list(decisions) or None)

    def right(self, cells):
        return self.truth[places(cells)]

    def answer(self, cells, rng=None, *, wrong=0.0, unsure=0.0, skip=0.0):
        """Return cells with the answers of a reviewer, who errs in a share of them, cannot tell, or skips."""
        right = self.right(cells)
        if wrong:
            right = right ^ (rng.random(len(cells)) < wrong)
        said = np.where(right, "confirmed", "rejected").astype(object)
        if unsure:
            said[rng.random(len(cells)) < unsure] = "unsure"
        if skip:  # whoever skips does not do so at random: absent cells twice as often
            said[rng.random(len(cells)) < skip * np.where(right, 1.0, 2.0)] = ""
        return cells.assign(decision=said)


def load(name):
    X, Y = load_dataset(name, return_X_y=True)
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)[:MOST_ROWS]
    Y = np.asarray(Y.toarray() if sparse.issparse(Y) else Y).astype(int)[:MOST_ROWS]
    return X, Y[:, Y.sum(axis=0) >= FEWEST_POSITIVES]


def make_case(name, hiding, seed, cache):
    file = None if cache is None else Path(cache) / f"{name}-{hiding.replace(' ', '-')}-{seed}.pickle"
    if file is not None and file.exists():
        return Case(*pickle.loads(file.read_bytes()))
    X, Y = load(name)
    recorded = hide_labels(X, Y, HIDING[hiding], seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = auto(n_jobs=1, random_state=seed).fit(X, recorded).labels_
    case = Case(name, hiding, seed, Y > 0, recorded > 0, found.missing, found.frequency["value"].to_numpy())
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(tuple(case)))
    return case


def cases(arguments):
    for name in arguments.sets:
        for hiding in arguments.hiding:
            for seed in range(arguments.seeds):
                yield make_case(name, hiding, seed, arguments.cache)


def word(value):
    return str(value) if not isinstance(value, float) else "" if np.isnan(value) else f"{value:.3g}"


def show(title, table):
    """Print a table in Markdown."""
    lines = [[word(value) for value in line] for line in table.itertuples(index=False)]
    print(f"\n### {title}\n")
    for line in ([*table.columns], ["---"] * len(table.columns), *lines):
        print("| " + " | ".join(line) + " |", flush=True)


# -- audits ----------------------------------------------------------------------------------------------------------


def floor(case, n, z=1.645):
    """Return the half-width that a stratified design with n cells has if it knows how many are missing by rank."""
    open_cells = ~case.recorded
    right = case.missing[open_cells][np.argsort(-case.proba[open_cells], kind="stable")].astype(float)
    p = IsotonicRegression(increasing=False).fit_transform(np.arange(len(right)), right)
    return z * np.sqrt(p * (1 - p)).sum() / np.sqrt(n) / right.sum()


def lists_covered(case, audit):
    """Return whether intervals of the precision of some lists hold: of the best 100 and 300, and 100 of a label."""
    ranking = audit.ranking
    label = int(case.missing.sum(axis=0).argmax())
    cells = {"top 100": ranking.cells[:100], "top 300": ranking.cells[:300]}
    cells["a label"] = ranking.cells[ranking.cells % case.truth.shape[1] == label][:100]
    found = {}
    marks = audit.decisions.marks(case.truth.shape).ravel()
    for name, some in cells.items():
        for kind, chosen in (("", some), (" undecided", some[marks[some] == 0])):
            frame = pd.DataFrame(ranking.frame(chosen))
            line = audit.precision_of(frame)
            found[name + kind] = line["low"] - 1e-9 <= case.right(frame).mean() <= line["high"] + 1e-9
    return found


def audit_section(arguments):
    rows = []
    for case in cases(arguments):
        truth, by_label = case.missing.sum(), case.missing.sum(axis=0)
        empty = case.audit()
        for n in (100, 200, 400):
            for repeat in range(arguments.repeats if n == 200 else -(-arguments.repeats // 4)):
                plan = case.answer(empty.plan(n, random_state=repeat))
                audit = case.audit(plan)
                found = audit.n_missing()
                total, labels = found.iloc[-1], found.iloc[:-1]
                rows.append({
                    "set": case.name, "hiding": case.hiding, "n": n, "truth": truth,
                    "model": case.proba[~case.recorded].sum(),
                    "bias": total["missing"] / truth - 1, "covered": total["low"] <= truth <= total["high"],
                    "half": (total["high"] - total["low"]) / 2 / truth,
                    "floor": floor(case, n) if not repeat else np.nan,
                    "labels": np.mean((labels["low"] <= by_label) & (by_label <= labels["high"])),
                    "label_half": np.median((labels["high"] - labels["low"]) / 2 / np.maximum(by_label, 1)),
                })  # fmt: skip
                if n == 200 and repeat < 2:
                    rows[-1] |= lists_covered(case, audit)
    table = pd.DataFrame(rows)
    means = table.groupby(["set", "hiding", "n"], sort=False).mean(numeric_only=True)
    for n in (100, 200, 400):
        of_n = means.xs(n, level="n").reset_index()
        show(f"audit: {n} cells", of_n[[name for name in of_n if "top" not in name and "a label" not in name]])
    lists = [name for name in table if "top" in name or "a label" in name]
    show("audit: intervals of lists that hold, 200 cells", table[lists].astype(float).mean().to_frame().T)
    print("\nleast coverage by n:", means["covered"].groupby("n").min().to_dict())


# -- certificates ----------------------------------------------------------------------------------------------------


def oracle(case, precision):
    """Return the length of the longest prefix of the ranking with that precision."""
    open_cells = ~case.recorded
    right = case.missing[open_cells][np.argsort(-case.proba[open_cells], kind="stable")]
    good = np.flatnonzero(np.cumsum(right) >= precision * np.arange(1, len(right) + 1))
    return int(good[-1]) + 1 if len(good) else 0


def two_stages(case, precision, seed):
    scout = case.answer(case.audit().plan(60, precision=precision, random_state=seed))
    return [scout, case.answer(case.audit(scout).plan(140, precision=precision, random_state=seed + 1))]


def counting(case, precision, seed):
    return [case.answer(case.audit().plan(200, random_state=seed))]


def disturbed(case, precision, seed):
    """Review cells before, between and after the draws; a tenth is unsure, some are skipped."""
    rng = np.random.default_rng(seed)
    habits = {"unsure": 0.05, "skip": 0.03}
    done = [case.answer(picked(case.audit().next_cells(30)), rng, unsure=0.1)]
    done.append(case.answer(case.audit(*done).plan(60, precision=precision, random_state=seed), rng, **habits))
    done.append(unlike(case.answer(picked(case.audit(*done).next_cells(30)), rng, unsure=0.1), done))
    done.append(case.answer(case.audit(*done).plan(140, precision=precision, random_state=seed), rng, **habits))
    later = case.audit(*done).certify(precision).cells.query("~confirmed").head(40)
    done.append(unlike(case.answer(picked(later), rng), done))
    return done


def peeking(case, precision, seed):
    """Draw list after list, and answer until one is certified; of a failed one, look at the rest of it."""
    done = two_stages(case, precision, seed)
    for more in range(4):
        if case.audit(*done).certify(precision).certified:
            break
        done.append(case.answer(case.audit(*done).plan(70, precision=precision, random_state=seed + 10 + more)))
    return done


def picked(cells):
    return cells[["row", "label"]].assign(decision="", how="reviewed")


def unlike(cells, done):
    """Leave out cells that somebody was asked about already."""
    asked = pd.MultiIndex.from_frame(pd.concat(done)[["row", "label"]])
    return cells[~pd.MultiIndex.from_frame(cells[["row", "label"]]).isin(asked)]


WAYS = {"60 + 140": two_stages, "count 200": counting, "disturbed": disturbed, "peeking": peeking}


def certify_section(arguments):
    rows = []
    for case in cases(arguments):
        for precision in (0.8, 0.9):
            best = oracle(case, precision)
            for way, draw in WAYS.items():
                for repeat in range(arguments.repeats):
                    certificate = case.audit(*draw(case, precision, 1000 * repeat)).certify(precision)
                    right = case.right(certificate.cells)
                    done = certificate.certified
                    rows.append({
                        "set": case.name, "hiding": case.hiding, "precision": precision, "way": way, "oracle": best,
                        "certified": done, "false": done and right.mean() < precision,
                        "length": len(right) if done else 0,
                        "share": len(right) * done / best if best > 100 else np.nan,
                    })  # fmt: skip
    table = pd.DataFrame(rows)
    for way in WAYS:
        means = table[table["way"] == way].groupby(["set", "hiding", "precision"], sort=False).mean(numeric_only=True)
        show(f"certify: {way}", means.reset_index())
        print(
            f"\nmost false {means['false'].max():.3f}, in all {table[table['way'] == way]['false'].mean():.3f};",
            end=" ",
        )
        print(f"share of the oracle {means['share'].mean():.2f}, least {means['share'].min():.2f}")


# -- stated probabilities --------------------------------------------------------------------------------------------


def stated_section(arguments):
    rows = []
    for case in cases(arguments):
        empty = case.audit()
        open_cells = ~case.recorded
        for repeat in range(arguments.repeats):
            audit = case.audit(case.answer(empty.plan(200, random_state=repeat)))
            marks = audit.decisions.marks(case.truth.shape)
            for name, missing in (("stated", case.proba), ("corrected", audit.missing)):
                cells = open_cells & (marks == 0) & (missing >= 0.5)
                rows.append({
                    "set": case.name, "hiding": case.hiding, "what": name, "cells": cells.sum(),
                    "said": missing[cells].sum(), "right": case.truth[cells].sum(),
                })  # fmt: skip
    table = pd.DataFrame(rows)
    error = (table["said"] - table["right"]).abs() / table["cells"].clip(lower=1)
    table["error"] = error.where(table["cells"] >= 50)
    sums = table.groupby(["set", "hiding", "what"], sort=False)[["cells", "said", "right"]].sum()
    sums = sums.assign(stated=sums["said"] / sums["cells"], true=sums["right"] / sums["cells"])
    sums["mean |error|"] = table.groupby(["set", "hiding", "what"], sort=False)["error"].mean()
    sums["cells"] = table.groupby(["set", "hiding", "what"], sort=False)["cells"].mean()
    show("stated: cells of p >= .5", sums[["cells", "stated", "true", "mean |error|"]].reset_index())
    pooled = table.groupby(["hiding", "what"])[["said", "right", "cells"]].sum()
    print("\nPooled:\n", pooled["said"] / pooled["cells"], pooled["right"] / pooled["cells"])


# -- reviews ---------------------------------------------------------------------------------------------------------


def refit(case, model, recorded, decisions=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(n_jobs=1, random_state=case.seed).fit(load(case.name)[0], recorded, decisions=decisions)


def length_of_review(case):
    """Return how many suggestions to review: 500, or half as many as labels are missing, so that some are left."""
    return int(min(500, case.missing.sum() // 2))


def frequency_error(case, frequency):
    """Return how far the frequencies of labels are from the truth, on average."""
    true = case.recorded.sum(axis=0) / case.truth.sum(axis=0)
    return np.abs(frequency - true).mean()


def judge(case, model, reviewed, n):
    """Return what a fit after a review says, against the truth."""
    frequency = model.labels_.frequency["value"].to_numpy()
    listed = model.suggest_labels(top=n)
    rejected = reviewed[reviewed["decision"] == "rejected"]
    again = pd.merge(listed[["row", "label"]], rejected[["row", "label"]])
    return {
        "c": case.recorded.sum() / (case.recorded.sum(axis=0) / frequency).sum(),
        "c off": frequency_error(case, frequency),
        "rejected again": len(again), "next right": case.right(listed).mean(),
    }  # fmt: skip


def left_over(case, audit, answered):
    """Say whether the number of labels that are still missing is within its interval."""
    asked = np.zeros(case.truth.shape, bool)
    asked[places(answered)] = True
    still = (case.missing & ~asked).sum()
    line = audit.n_missing().iloc[-1]
    low, high = line["low"] - line["confirmed"], line["high"] - line["confirmed"]
    return {"still": still, "expected": line["missing"] - line["confirmed"], "inside": float(low <= still <= high)}


def review_section(arguments):
    rows, again = [], []
    for case in cases(arguments):
        rng = np.random.default_rng(case.seed)
        n, base = length_of_review(case), case.audit()
        ranked = base.ranking.frame(base.ranking.cells[: 2 * n])
        first, second = (pd.DataFrame(ranked)[part] for part in (slice(0, n), slice(n, None)))
        key = {"set": case.name, "hiding": case.hiding, "n": n}
        true = {"true c": case.recorded.sum() / case.truth.sum(), "c off before": frequency_error(case, case.frequency)}
        for wrong in (0.0, 0.05):
            reviewed = case.answer(first, rng, wrong=wrong).assign(how="reviewed")
            found = judge(case, refit(case, auto(), case.recorded.astype(int), reviewed), reviewed, n)
            found |= true | {"first right": case.right(first).mean(), "next, no refit": case.right(second).mean()}
            found |= left_over(case, case.audit(reviewed), reviewed)
            rows.append(key | {"way": f"decisions, {wrong:.0%} wrong"} | found)
            for repeat in range(arguments.repeats):
                plan = case.audit(reviewed).plan(200, random_state=repeat)
                done = pd.concat([reviewed, case.answer(plan, rng, wrong=wrong)])
                again.append(key | {"wrong": wrong} | left_over(case, case.audit(done), done))
        written = case.recorded.copy()
        reviewed = case.answer(first)
        right = reviewed[reviewed["decision"] == "confirmed"]
        written[places(right)] = True
        model = refit(case, auto(), written.astype(int))
        old = judge(case, model, reviewed, n) | true
        old["c"] = written.sum() / (written.sum(axis=0) / model.labels_.frequency["value"].to_numpy()).sum()
        rows.append(key | {"way": "written into the table"} | old)
    table = pd.DataFrame(rows)
    show("review", table.groupby(["set", "hiding", "way"], sort=False).mean().reset_index())
    columns = ["true c", "c", "c off before", "c off", "rejected again", "next, no refit", "next right", "inside"]
    show("review: means", table.groupby(["hiding", "way"], sort=False)[columns].mean().reset_index())
    table = pd.DataFrame(again).groupby(["set", "hiding", "wrong"], sort=False)
    show("review and an audit of 200: labels still missing", table.mean().reset_index())


def imputing_section(arguments):
    """Count rejected cells that an imputing algorithm offers again."""
    rows = []
    for case in cases(arguments):
        n = length_of_review(case)
        model = refit(case, slcforest(max_layers=4), case.recorded.astype(int))
        reviewed = case.answer(model.suggest_labels(top=n)[["row", "label"]]).assign(how="reviewed")
        model = refit(case, slcforest(max_layers=4), case.recorded.astype(int), reviewed)
        rejected = reviewed[reviewed["decision"] == "rejected"][["row", "label"]]
        listed = (model.suggest_labels(), model.suggest_labels(top=2 * n))
        imputed = np.asarray(model.imputed_labels_)[places(rejected)].sum()
        again = [len(pd.merge(cells[["row", "label"]], rejected)) for cells in listed]
        found = {"rejected": len(rejected), "offered": sum(again), "imputed": imputed}
        rows.append({"set": case.name, "hiding": case.hiding} | found)
    show("review: rejected cells that slcforest offers again", pd.DataFrame(rows))


def learn_section(arguments):
    """Precision of the next list after a review, by what learns from it."""
    rows = []
    for case in cases(arguments):
        n, base = length_of_review(case), case.audit()
        first = pd.DataFrame(base.ranking.frame(base.ranking.cells[:n]))
        reviewed = case.answer(first).assign(how="reviewed")
        audit = case.audit(reviewed)
        open_cells = audit.candidates & (audit.decisions.marks(case.truth.shape) == 0)
        both = case.recorded | (audit.decisions.marks(case.truth.shape) == 1)
        forest = refit(case, auto(), both.astype(int)).labels_.missing
        rank = [np.argsort(np.argsort(values[open_cells])) for values in (audit.missing, forest)]
        ways = {
            "records": case.proba[open_cells], "+ offset by label": audit.missing[open_cells],
            "forests learn": forest[open_cells], "mean of both ranks": rank[0] + rank[1],
        }  # fmt: skip
        right = case.missing[open_cells]
        found = {way: right[np.argsort(-values, kind="stable")[:n]].mean() for way, values in ways.items()}
        rows.append({"set": case.name, "hiding": case.hiding, "n": n} | found)
    table = pd.DataFrame(rows)
    show("learn: precision of the next list", table.groupby(["set", "hiding"], sort=False).mean().reset_index())
    show("learn: means", table.drop(columns="set").groupby("hiding", sort=False).mean().reset_index())


# -- what is written ------------------------------------------------------------------------------------------------


def written_section(arguments):
    """How many cells, and how many right ones, go into a completed table without any decision, by the rule for it."""
    rows = []
    for name in arguments.sets:
        for hiding in ("nothing", *arguments.hiding):
            case = make_case(name, hiding, 0, arguments.cache)
            p = np.where(case.recorded, 0.0, case.proba).ravel()
            order = np.argsort(-p, kind="stable")[: (p > 0.5).sum()]
            right, mean = case.missing.ravel()[order], np.cumsum(p[order]) / np.arange(1, len(order) + 1)
            found = {"set": name, "hiding": hiding, "missing": case.missing.sum()}
            for precision in (0.0, 0.7, 0.8, 0.9):
                n = int(np.flatnonzero(mean >= precision)[-1]) + 1 if (mean >= precision).any() else 0
                found |= {f"n {precision}": n, f"right {precision}": right[:n].sum()}
            rows.append(found)
    table = pd.DataFrame(rows)
    show("written: cells that are more probable than not, until so many are expected to be right", table)
    sums = table.drop(columns="set").groupby("hiding", sort=False).sum()
    show("written: in all", sums.reset_index())


# -- cost ------------------------------------------------------------------------------------------------------------


def measure(n_rows, n_labels):
    """Plan and evaluate an audit of made-up probabilities; print seconds, and GiB beyond the inputs."""
    rng = np.random.default_rng(0)
    proba = np.empty((n_rows, n_labels))
    recorded, truth = np.zeros(proba.shape, np.int8), np.zeros(proba.shape, bool)
    for first in range(0, n_rows, 5000):
        rows = slice(first, first + 5000)
        proba[rows] = rng.random(proba[rows].shape) ** 8
        truth[rows] = rng.random(proba[rows].shape) < proba[rows] ** 1.3
        recorded[rows] = truth[rows] & (rng.random(proba[rows].shape) < 0.5)
    before, began, cpu = gigabytes(), time.perf_counter(), time.process_time()
    empty = Audit.from_probabilities(proba, recorded)
    plan = empty.plan(200, random_state=0)
    right = truth[places(plan)]
    plan["decision"] = np.where(right, "confirmed", "rejected")
    planned = time.perf_counter()
    there = recorded > 0
    audit = empty.after(read_decisions(plan, pd.RangeIndex(n_rows), range(n_labels), there, ~there))
    audit.n_missing()
    audit.certify(0.8)
    audit.next_cells(50)
    done = time.perf_counter()
    print(json.dumps([planned - began, done - planned, time.process_time() - cpu, gigabytes() - before]))


def gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def cost_section(_):
    rows = []
    for n_rows in (10**5, 10**6):
        command = [sys.executable, "-c", f"from decisions import measure; measure({n_rows}, 20)"]
        told = subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True)
        rows.append([f"{n_rows:,} x 20", *json.loads(told.stdout.splitlines()[-1])])
    show("cost", pd.DataFrame(rows, columns=["cells", "plan s", "evaluate s", "CPU s", "GiB beyond the inputs"]))


SECTIONS = {
    "review": review_section, "imputing": imputing_section, "learn": learn_section, "audit": audit_section,
    "certify": certify_section, "stated": stated_section, "written": written_section, "cost": cost_section,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="+", choices=SECTIONS)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--hiding", type=lambda text: text.split(","), default=list(HIDING)[1:])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=34)
    parser.add_argument("--cache", help="folder for what fits say")
    arguments = parser.parse_args()
    for section in arguments.sections:
        began = time.perf_counter()
        SECTIONS[section](arguments)
        print(f"\n{section}: {time.perf_counter() - began:.0f} seconds", flush=True)


if __name__ == "__main__":
    main()
