"""Results of a comparison that never ran: plausible scores of given methods, for tests of reports."""

import itertools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

LOSSES = {"hamming_loss", "ranking_loss", "one_error", "coverage"}


def make_results(
    methods: Sequence[str] = ("rf_et", "cafe", "sdf"),
    datasets: Sequence[str] = ("flags", "birds", "yeast"),
    factors: Mapping[str, Sequence[Any]] | None = None,
    measures: Sequence[str] = ("micro_auroc", "hamming_loss"),
    *,
    repeats: int = 3,
    name: str = "made",
    names: Mapping[str, str] | None = None,
    failing: float = 0.0,
    layers: bool = True,
    seed: int = 0,
) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    factors = {} if factors is None else dict(factors)
    skill = dict(zip(methods, np.linspace(0.03, -0.03, len(methods))))
    scores, stages, cells = [], [], []
    for dataset, level in itertools.product(datasets, itertools.product(*factors.values())):
        base = rng.uniform(0.6, 0.85)
        for repeat, method in itertools.product(range(repeats), methods):
            place = {"dataset": dataset, **dict(zip(factors, level)), "repeat": repeat, "method": method}
            failed = rng.random() < failing
            n_layers = int(rng.integers(1, 5))
            costs = {"seconds": rng.uniform(0.5, 90), "predict_seconds": 0.1, "wall_seconds": 3.0, "peak_mib": 210.5}
            marks = {"finished": "2026-01-02T03:04:05+00:00", "versions": {"sylvan": "0.1"}, "machine": "a machine"}
            outcome = {"target": "", "status": "failed" if failed else "done"}
            outcome["error"] = "ValueError: <no> rows & no luck\n\nTraceback: deep down" if failed else ""
            cells.append(place | outcome | costs | {"model_mb": 1.5, "n_layers": n_layers} | marks)
            for measure in () if failed else measures:
                value = base + skill[method] + rng.normal(0, 0.01) - 0.1 * place.get("ilr", 0)
                value = 1 - value if measure in LOSSES else value
                scores.append(place | {"measure": measure, "value": value})
                for layer in range(1, n_layers + 1) if layers and n_layers > 1 else ():
                    stages.append(place | {"measure": measure, "layer": layer, "value": value - 0.02 / layer})
    columns = ["dataset", *factors, "repeat", "method", "measure"]
    protocol = SimpleNamespace(
        name=name, title="A comparison", factors={key: tuple(values) for key, values in factors.items()},
        measures=tuple(measures), repeat_name="fold", repeats=repeats, seed=7, split={"kind": "folds"},
        text='title = "A <comparison>"', datasets=tuple(datasets), cost_notes=list,
        method_names=dict(names or {method: method.upper() for method in methods}),
    )  # fmt: skip
    table = pd.DataFrame(cells, columns=None if cells else [*columns[:-1], "target", "status", "error"])
    return SimpleNamespace(
        protocol=protocol,
        scores=pd.DataFrame(scores, columns=[*columns, "value"]),
        layers=pd.DataFrame(stages, columns=[*columns, "layer", "value"]),
        cells=table,
        planned=table[[*columns[:-1], "target", "status"]],
        command="sylvan bench made --out results.db",
    )
