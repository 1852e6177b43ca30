"""What does a deep forest look at? Images scanned by windows, and importance traced back to the pixels.

    python examples/look_at_windows.py [--quick]

Trained on handwritten digits of 8 x 8 pixels, with and without scanning.
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sylvan import gcforest

quick = "--quick" in sys.argv
n_trees, n_rows = (10, 300) if quick else (60, 1200)
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, train_size=n_rows, random_state=0, stratify=y)

models = {
    "pixels": gcforest(n_trees, max_layers=2, random_state=0),
    "windows, scanned": gcforest(n_trees, max_layers=2, scanning=(8, 8), random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
axes[0].imshow(X.mean(axis=0).reshape(8, 8), cmap="gray_r")
axes[0].set_title("mean image")
for (name, model), ax in zip(models.items(), axes[1:]):
    accuracy = model.fit(X, y).score(X_test, y_test)
    print(f"{name}: accuracy {accuracy:.3f}, {model.n_layers_} layers, {model.model_size_ / 1e6:.0f} MB")
    ax.imshow(model.feature_importances_.reshape(8, 8), cmap="viridis")
    ax.set_title(f"importance, {name}\naccuracy {accuracy:.1%}")
for ax in axes:
    ax.set(xticks=[], yticks=[])
figure.savefig("look_at_windows.png", dpi=120)
print("The picture is in look_at_windows.png.")
