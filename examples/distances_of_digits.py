"""Can a distance be learned from pairs alone? Digits that are known to show the same number, or not.

    python examples/distances_of_digits.py [--quick]

The picture shows pairs of new images: the nearest and the furthest of the same digit, and the
nearest and the furthest of different digits.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

from sylvan import SiameseDeepForest
from sylvan.pairs import draw_pairs

quick = "--quick" in sys.argv
n_trees, n_pairs = (15, 600) if quick else (50, 2000)
X, y = load_digits(return_X_y=True)  # 8 x 8 pixels
known, new = slice(0, 1200), slice(1200, None)

# The classes serve to draw pairs; the model knows only which pairs are alike.
pairs, similarity = draw_pairs(y[known], n_pairs, random_state=0)
model = SiameseDeepForest(n_trees, max_layers=3, preprocessor=X, n_jobs=-1, random_state=0).fit(pairs, similarity)

new_pairs, truth = draw_pairs(y[new], 1000, random_state=1)
new_pairs += 1200  # pairs are row numbers of X; no training pair has one of these points
distances = model.pair_distance(new_pairs)
print(f"{model.n_layers_} layers. New pairs: AUROC {model.score(new_pairs, truth):.3f}, ", end="")
print(f"accuracy {np.mean(model.predict(new_pairs) == truth):.3f}")
print(f"mean distance of the same digit {distances[truth > 0].mean():.2f}, of others {distances[truth < 0].mean():.2f}")

small = SiameseDeepForest(20, max_layers=1, preprocessor=X, random_state=0)
found = cross_val_score(small, pairs, similarity, cv=3, scoring="accuracy")
print(f"A smaller model in cross-validation: accuracy {found.mean():.3f} +- {found.std():.3f},")
print("which flatters, since pairs of different folds share points.")

# Ten images of each digit are enough to name the others by their nearest neighbours.
reference = np.concatenate([np.flatnonzero(y[known] == digit)[:10] for digit in range(10)])
names = model.classify(X[new][:100], X[reference], y[reference])
print(f"Named right by the 5 nearest of {len(reference)} images: {np.mean(names == y[new][:100]):.0%}")

figure = plt.figure(figsize=(10, 6.5), layout="constrained")
figure.suptitle("Pairs of new digits by their learned distance")
rows = figure.subfigures(4, 1)
order = np.argsort(distances, kind="stable")
lines = [
    ("same digit, nearest", order[truth[order] > 0][:6]),
    ("same digit, furthest", order[truth[order] > 0][::-1][:6]),
    ("different digits, nearest", order[truth[order] < 0][:6]),
    ("different digits, furthest", order[truth[order] < 0][::-1][:6]),
]
for row, (title, chosen) in zip(rows, lines):
    row.suptitle(title, fontsize=10, x=0.01, ha="left")
    for pair, axes in zip(chosen, row.subplots(1, 6)):
        both = [X[point].reshape(8, 8) for point in new_pairs[pair]]
        gap = np.full((8, 1), np.nan)
        axes.imshow(np.hstack([both[0], gap, both[1]]), cmap="gray_r")
        axes.set_title(f"{distances[pair]:.2f}", fontsize=9)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("0.7")
figure.savefig("distances_of_digits.png", dpi=120)
print("The picture is in distances_of_digits.png.")
