"""`make demo`: half the positives of a data set are hidden; which of them does a deep forest find again?"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from sylvan import auto, imldf, rf_et
from sylvan._files import whole_file
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.measures import get_measure, measure_name

MEASURES = ("micro_auroc", "micro_average_precision", "ranking_loss", "brier_loss", "hamming_loss", "micro_mcc")
SEED = 0


def _recovery(Y: pd.DataFrame, Y_recorded: pd.DataFrame, Y_completed: pd.DataFrame, c: Any) -> pd.DataFrame:
    """For each label: how many positives were hidden, suggested, and of these how many were right."""
    hidden = (Y == 1) & (Y_recorded == 0)
    suggested = (Y_completed == 1) & (Y_recorded == 0)
    table = pd.DataFrame({"hidden": hidden.sum(), "suggested": suggested.sum(), "right": (hidden & suggested).sum()})
    table.loc["all labels"] = table.sum()
    table["recovered"] = (table["right"] / table["hidden"]).map("{:.0%}".format)
    table["precision"] = (table["right"] / table["suggested"]).map("{:.0%}".format)
    table["estimated c"] = [*c, np.mean(c)]
    return table


def _show_rules(X: pd.DataFrame, Y: pd.DataFrame) -> None:
    """Print the most stable rules of a deep forest on interactions."""
    model = imldf(random_state=SEED).fit(X, Y)
    rules = model.interactions_.sort_values("stability", ascending=False, kind="stable")
    print("\nRules: the five most stable of imldf, trained on all labels (pixels are from 0 to 16):\n")
    for _, rule in rules.head(5).iterrows():
        print(f"  if {rule['rule']}:")
        print(f"     {rule['says']}   ({rule['support']} rows, stability {rule['stability']:.1f})")
    n_hold, size = len(model.explain(X.iloc[[0]])), model.model_size_ / 1e6
    print(f"\nOf {len(rules)} rules, {n_hold} hold for row {X.index[0]}. The model takes {size:.1f} MB.")


def write_pictures(folder: Path) -> Path:
    """Write the digits as a table, half of whose positives are hidden, and as pictures; return the table's path."""
    from PIL import Image  # noqa: PLC0415 (comes with matplotlib, an extra)

    X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    names = [f"digit-{number}.png" for number in range(1, len(X) + 1)]
    for name, pixels in zip(names, X.to_numpy()):
        shades = (255 - 15 * pixels).clip(0).astype(np.uint8).reshape(8, 8)
        Image.fromarray(shades).resize((160, 160), Image.Resampling.NEAREST).save(folder / "pictures" / name)
    labels = hide_positives(Y, 0.5, random_state=SEED).reset_index(drop=True)
    table = pd.concat([pd.DataFrame({"picture": names}), X.astype(int).reset_index(drop=True), labels], axis=1)
    path = folder / "digits.csv"
    with whole_file(path) as file:
        file.write(table.to_csv(index=False).encode())
    return path


def main() -> None:
    """Hide half the positives of the digit attributes, fit, print measures, recovery and suggestions."""
    X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=0.3, random_state=SEED)
    Y_recorded = hide_positives(Y_train, 0.5, random_state=SEED)
    n_hidden = int(Y_train.to_numpy().sum() - Y_recorded.to_numpy().sum())
    print(f"Digit attributes: {len(X)} images of {X.shape[1]} pixels, {Y.shape[1]} labels.")
    print(f"Training rows: {len(X_train)}. Half the positives, {n_hidden} of them, are hidden.\n")

    auto(2, max_layers=2, random_state=SEED).fit(X_train[:100], Y_recorded[:100])  # compiles, or loads what is compiled
    rf_et(30, random_state=SEED).fit(X_train[:100], Y_recorded[:100])
    scores, models = {}, {}
    for name, model, labels in (
        ("rf_et, nothing hidden", rf_et(random_state=SEED), Y_train),
        ("rf_et, half hidden", rf_et(random_state=SEED), Y_recorded),
        ("auto, half hidden", auto(random_state=SEED), Y_recorded),
    ):
        began = time.perf_counter()
        models[name] = model.fit(X_train, labels)
        seconds = time.perf_counter() - began
        proba, labels = model.predict_proba(X_test), model.predict(X_test)
        measures = {measure_name(measure): get_measure(measure) for measure in MEASURES}
        scores[name] = {key: m(Y_test, labels if m.uses_threshold else proba) for key, m in measures.items()}
        scores[name]["seconds"] = seconds
    table = pd.DataFrame(scores).map("{:.3f}".format)
    table.loc["layers"] = [str(model.n_layers_) for model in models.values()]
    print("Measured on 30 % held-out rows with their true labels (losses: smaller is better):\n")
    print(table.to_string())
    print("\nThe plain forests keep the ranking, but with half the positives unrecorded their probabilities")
    print("halve (Brier loss), and a threshold of 0.5 cuts most of them off (MCC). auto estimates what share")
    print("was recorded, and gives probabilities that a label is there, recorded or not.\n")

    deep = models["auto, half hidden"]
    print(deep.summary())
    print("\nHidden positives of the training rows that auto found again (c: estimated share recorded):\n")
    table = _recovery(Y_train, Y_recorded, deep.imputed_labels_, deep.label_frequency_)
    print(table.to_string(float_format="{:.2f}".format))

    best = deep.suggest_labels(top=10).drop(columns="layer")  # nothing is imputed between layers
    best["truth"] = ["hidden" if Y_train.at[row, label] else "not there" for row, label in zip(best.row, best.label)]
    print("\nThe ten best suggestions:\n")
    print(best.to_string(index=False, float_format="{:.3f}".format))
    print(f"\nThe model takes {deep.model_size_ / 1e6:.1f} MB.")
    _show_rules(X_train, Y_train)
    print("\nNext: README.md. To decide yourself which suggestions are right, on a page in your browser: make review")


if __name__ == "__main__":
    main()
