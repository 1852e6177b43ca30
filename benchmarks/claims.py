"""The figures that published claims rest on, from three sources by the same rule: tables of docs/results/README.md.

A row of a table there is a claim; its cells are the paper's own figures, those of runs `as_published`, and ours.
`renew` writes the cells for which there are results and leaves the others as they are. `results.py` calls it.
"""

import numpy as np
import pandas as pd

from sylvan.bench import load_protocol
from sylvan.bench.published import AS_PUBLISHED, compare, published_figures
from sylvan.bench.statistics import complete_blocks, greater_is_better, wilcoxon_pairs
from sylvan.pages.words import DASH

RANKING = ["micro_auroc", "micro_average_precision", "ranking_loss"]
NO_IMPUTING = ["rf_et", "gcforest", "cafe", "cafe_os"]
EMBEDDED = {"cafe_slc": "slcforest", "cafe_fla": "flaforest", "cafe": "rf_et"}
C_MEASURES = ["hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision", "macro_auroc"]
LATE = (0.3, 0.5, 0.7)
# In protocol D what was published is one order of each pair; the network has no other.
ONE_ORDER = {
    "sdf_one_order": "sdf", "gcforest_one_order": "gcforest_pairs", "rf_one_order": "rf_pairs",
    "bagging_one_order": "bagging_pairs", "siamese_network": "siamese_network",
}  # fmt: skip


# Figures: of a table of means with a column for each method and (data set, levels) as rows, `t(measure, **levels)`.


def ranks(t, measure, **levels):
    """Mean ranks, the best first: within each repeat, averaged over repeats, then over data sets and levels."""
    found = t(measure, "repeat", **levels).rank(axis=1, ascending=not greater_is_better(measure))
    return (
        found.groupby([name for name in found.index.names if name != "repeat"]).mean().mean().sort_values(kind="stable")
    )


def places(t, method, measures, **levels):
    """Places by mean rank, one for each measure."""
    found = [ranks(t, measure, **levels) for measure in measures]
    return f"{', '.join(str(int((one < one[method] - 1e-9).sum()) + 1) for one in found)} of {len(found[0])}"


def first(t, measures, n=1, **levels):
    """Name the first by mean rank, measure by measure."""
    found = [ranks(t, measure, **levels).index[:n] for measure in measures]
    return "; ".join(", ".join(NAMES[name] for name in names) for names in found)


def last_four(t, methods, measures, **levels):
    """How many of the methods are among the last by mean rank."""
    found = [set(ranks(t, measure, **levels).index[-len(methods) :]) for measure in measures]
    return ", ".join(str(len(one & set(methods))) for one in found) + f" of {len(methods)}"


def won(t, method, measures, but=()):
    """In how many cells a method is the best."""
    counts = []
    for measure in measures:
        wide = t(measure).drop(columns=list(but))
        best = wide.max(axis=1) if greater_is_better(measure) else wide.min(axis=1)
        counts.append((int((wide[method] == best).sum()), len(wide)))
    return counts


def gains(t, measure, pairs, factor, levels):
    """Mean gain of methods over others, at each level."""
    sign = 1 if greater_is_better(measure) else -1
    found = []
    for level in levels:
        wide = t(measure, **{factor: [level]})
        found.append(short(np.mean([sign * (wide[a] - wide[b]) for a, b in pairs.items()]), "+") if len(wide) else DASH)
    return ", ".join(found)


def beating(t, method):
    """Comparisons in which a method is significantly beaten in ranking."""
    lost = total = 0
    for measure in RANKING:
        for share in (0.5, 0.7):
            pairs = wilcoxon_pairs(t(measure, ilr=[share]))
            for a, b, p, effect in pairs[["method_a", "method_b", "p_adjusted", "effect"]].itertuples(index=False):
                if method in (a, b):
                    total += 1
                    lost += p < 0.05 and (effect > 0) == (greater_is_better(measure) == (a != method))
    return f"{lost} of {total}"


def ahead(t):
    """Count the measures in which all forests are ahead of all rivals."""
    forests = ["imldf", "mldf", "rf_pct"]
    found = [ranks(t, measure) for measure in C_MEASURES]
    return f"{sum(set(one.index[:3]) == set(forests) for one in found)} of {len(found)}"


def over_rivals(t, rivals):
    wide = t("accuracy", best=[True]).groupby("dataset").mean()
    return ", ".join(short((wide["sdf"] - wide[rival]).mean(), "+") for rival in rivals)


def counted(counts):
    return ", ".join(f"{number} of {n}" for number, n in counts)


def summed(counts):
    number, n = np.sum(counts, axis=0)
    return f"{number} of {n} ({number / n:.0%})"


def short(value, sign=""):
    """Write a number below 1 without its zero."""
    return f"{round(value, 3) + 0.0:{sign}.3f}".replace("0.", ".", 1)


NAMES = load_protocol("A").method_names
ILR = (0.0, 0.3, 0.5, 0.7)
PAIRS = (100, 500, 1000, 2000)
# Of the methods of A, those with runs as published: all but LCForest. Places among all are of no use without them.
WITH_RUNS = ["rf_et", "gcforest", "slcforest", "flaforest", "cafe_os", *EMBEDDED]
# Protocol: start of the claim in the table, methods that must be run as published for it, figure.
CLAIMS = {
    "A": [
        ("SLCForest is best in ranking", WITH_RUNS, lambda t: places(t, "slcforest", RANKING, ilr=ILR[:3])),
        ("SLCForest beats LCForest", ["slcforest"],
         lambda t: gains(t, "micro_auroc", {"slcforest": "lcforest"}, "ilr", ILR)),
        ("LCForest is worst", WITH_RUNS, lambda t: places(t, "lcforest", RANKING)),
        ("No method significantly beats RF+ET", WITH_RUNS, lambda t: beating(t, "rf_et")),
        ("CaFE-SLC, CaFE-FLA and LCForest lead", WITH_RUNS,
         lambda t: first(t, ["micro_mcc", "hamming_loss"], 3, ilr=LATE)),
        ("Methods without imputation are the four worst", WITH_RUNS,
         lambda t: last_four(t, NO_IMPUTING, ["micro_mcc", "hamming_loss", "micro_f1"], ilr=LATE)),
        ("Tree embeddings help", [*EMBEDDED, *EMBEDDED.values()],
         lambda t: gains(t, "micro_auroc", EMBEDDED, "ilr", ILR)),
        ("Imputation helps even with all labels", WITH_RUNS,
         lambda t: first(t, [*RANKING, "hamming_loss", "micro_mcc", "micro_f1"], ilr=[0.0])),
    ],
    "B": [
        ("LCForest is best in Hamming loss", ["lcforest"],
         lambda t: counted(won(t, "lcforest", ["hamming_loss", "micro_f1"]))),
        ("LCForest is best in macro F1", ["lcforest"], lambda t: counted(won(t, "lcforest", ["macro_f1"], ["well"]))),
        ("WELL's Hamming loss is high", ["well"],
         lambda t: " to ".join(short(x) for x in t("hamming_loss")["well"].agg(["min", "max"]))),
        ("WELL's F1 falls quickly", ["well"],
         lambda t: ", ".join(short(t("micro_f1", ilr=[x])["well"].mean()) for x in (0.2, 0.3, 0.4, 0.5))),
    ],
    "C": [
        ("iMLDF has the best average rank", ["imldf"], lambda t: places(t, "imldf", C_MEASURES)),
        ("iMLDF is first in 88 %", ["imldf"], lambda t: summed(won(t, "imldf", C_MEASURES))),
        ("DBPNN, ML-kNN, MLARAM and RAkEL are behind", ["imldf", "mldf"], ahead),
    ],
    "D": [
        ("SDF beats gcForest", ["sdf", "gcforest_pairs"],
         lambda t: gains(t, "accuracy", {"sdf": "gcforest_pairs"}, "pairs", PAIRS)),
        ("SDF beats RF and Bagging", ["sdf", "rf_pairs", "bagging_pairs"],
         lambda t: over_rivals(t, ["rf_pairs", "bagging_pairs"])),
        ("SDF beats the Siamese network", ["sdf", "siamese_network"], lambda t: over_rivals(t, ["siamese_network"])),
    ],
}  # fmt: skip
NEAR = "The figures of the paper's methods come out"
OWN = {"A": list(NAMES)[:9], "B": ["lcforest"], "C": ["imldf", "mldf"], "D": ["sdf", "gcforest_pairs"]}


def table(scores):
    """Return a function that gives means over shared repeats: (data set, levels, `more`) by methods."""
    levels = [name for name in scores if name not in ("dataset", "repeat", "method", "measure", "value")]

    def wide(measure, *more, **chosen):
        rows = scores[scores["measure"] == measure]
        for name, values in chosen.items():
            rows = rows[rows[name].isin(values)]
        return rows.pivot_table(index=["dataset", *levels, *more], columns="method", values="value").dropna()

    return wide


def of_paper(name):
    """Return the published figures as a table of scores, and which methods they are of."""
    figures = published_figures(name)
    if name == "D":  # Table 8 has the best figure of each method, the others those at each number of pairs and trees
        figures["best"] = figures["source"].str.endswith("Table 8")
        figures.loc[figures["best"], ["pairs", "trees"]] = 0
    scores = figures.drop(columns=["sd", "source"]).assign(repeat=0)
    return scores, list(dict.fromkeys(figures["method"]))


def of_runs(name, scores, methods, named=None):
    """Return our scores of the paper's methods; `named` has the names under which some were run as published."""
    if named:
        scores = scores[~scores["method"].isin({*named.values()} - {*named})].replace({"method": named})
    scores = scores[scores["method"].isin(methods)]
    if name == "D":
        scores = scores[scores["points"] == "shared"].assign(best=lambda rows: rows["pairs"] == rows["pairs"].max())
    parts = [complete_blocks(part).scores for _, part in scores.groupby("measure")]
    return pd.concat(parts) if parts else scores


def near(name, scores):
    """Mean gain over the published figures; how many are within .02, and how many within two standard deviations."""
    cells = compare(scores, published_figures(name))
    if cells.empty:
        return None
    sds = cells["sds"].dropna()
    within = f"; {int((sds.abs() <= 2).sum())} of {len(sds)}" if len(sds) else ""
    return f"{short(cells['gain'].mean(), '+')}; {int((cells['gain'].abs() <= 0.02).sum())} of {len(cells)}{within}"


def figures_of(name, results):
    """Return by start of a claim the figures of the paper, of runs as published, and ours; None where there is none."""
    paper, methods = of_paper(name)
    ours = None if results is None else results.scores
    there = set() if ours is None else set(ours["method"])
    named = {key: key.removesuffix(AS_PUBLISHED) for key in there if key.endswith(AS_PUBLISHED)}
    named |= {key: method for key, method in ONE_ORDER.items() if key in there}
    found = {}
    for claim, subjects, figure in CLAIMS[name]:
        # In D each claim is about few methods; ranks are among all of the paper's.
        needed, sources = set(subjects if name == "D" else methods), [paper, None, None]
        if needed <= there:
            sources[2] = of_runs(name, ours, methods)
            if set(subjects) <= set(named.values()):
                sources[1] = of_runs(name, ours, methods, named)
        found[claim] = [None if rows is None else figure(table(rows)) for rows in sources]
    if ours is not None:
        exact = [method for method in OWN[name] if method in named.values()]
        published = of_runs(name, ours, exact, named)
        plain = of_runs(name, ours, OWN[name]) if set(OWN[name]) <= there else ours[:0]
        found[NEAR] = [None, near(name, published), near(name, plain)]
    return found


def renew(text, results):
    """Return the page with the figures of `results` (by name of the protocol) in the rows of its claims."""
    lines = text.split("\n")
    for name in CLAIMS:
        for claim, cells in figures_of(name, results.get(name)).items():
            head = f"## Protocol {name}"
            start = next(i for i, line in enumerate(lines) if line.startswith(head))
            at = next(i for i in range(start, len(lines)) if lines[i].startswith(f"| {claim}"))
            parts = lines[at].split("|")
            for column, figure in enumerate(cells, start=2):
                parts[column] = parts[column] if figure is None else f" {figure} "
            lines[at] = "|".join(parts)
    return "\n".join(lines)
