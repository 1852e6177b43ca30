"""Read what a deep forest has learnt: a few dozen rules, and what each of them says about the labels.

    python examples/read_the_rules.py [picture.png]

The picture (needs matplotlib) shows how much more, or less, frequent each label is where a rule holds.
"""

import sys

import numpy as np

from sylvan import imldf
from sylvan.datasets import load_digit_attributes
from sylvan.length import FixedLength

X, Y = load_digit_attributes(return_X_y=True, as_frame=True)  # 8 x 8 pixels with values from 0 to 16
train, new = slice(0, 1500), slice(1500, None)

# Here one layer is enough, and is what `imldf()` keeps. Three are grown to show rules about rules.
model = imldf(30, n_interactions=20, length=FixedLength(3), random_state=0).fit(X[train], Y[train])
rules = model.interactions_.sort_values("stability", ascending=False, kind="stable")

print(f"{len(rules)} rules, {model.n_layers_} layers. The most stable ones:\n")
for name, rule in rules.head(5).iterrows():  # says: share of a label where the rule holds, and in all rows
    print(f"{name}: {rule['rule']}\n     {rule['support']} rows: {rule['says']}")

print(f"\nRules that hold for row {X.index[1500]}, the first three:\n")
print(model.explain(X[1500:1501])[["interaction", "rule", "score"]].head(3).to_string(index=False))

deep = next(name for name, rule in rules["rule"].items() if name.startswith("3.") and "score of 2." in rule)
print("\nA rule of the last layer, and the rules that it is about:\n")
print(model.expand_interaction(deep))

if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    first = rules[rules["layer"] == 1].head(20)
    holds = model.explain(X[train]).pivot(index="row", columns="interaction", values="score").notna()
    holds = holds.reindex(index=X.index[train], columns=first.index, fill_value=False).to_numpy(float)
    rates = holds.T @ Y[train] / holds.sum(axis=0)[:, None] - Y[train].mean()
    figure, axes = plt.subplots(figsize=(9, 7), layout="constrained")
    most = 100 * np.abs(rates.to_numpy()).max()
    image = axes.imshow(100 * rates, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    axes.set_xticks(range(Y.shape[1]), Y.columns, rotation=30, ha="right")
    axes.set_yticks(range(len(first)), first["rule"] + "   " + first.index)
    figure.suptitle("How much more frequent labels are where a rule holds")
    figure.colorbar(image, label="percentage points")
    path = sys.argv[1] if len(sys.argv) > 1 else "rules_against_labels.png"
    figure.savefig(path, dpi=120)
    print(f"\nThe picture is in {path}.")
