"""Does depth help? The score of each layer, against the recorded labels and against the truth.

    python examples/which_layer_helps.py [--quick]

A cascade judges its layers by out-of-sample probabilities of the training rows, against recorded labels, of which many
are missing here. Held-out rows whose labels are complete show whether it judged right.
"""

import sys

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from sylvan import auto, gcforest, slcforest
from sylvan.cascade.length import FixedLength
from sylvan.datasets import hide_positives, load_digit_attributes
from sylvan.measures import micro_auroc
from sylvan.plotting import LayerScoreDisplay

quick = "--quick" in sys.argv
n_trees, n_layers = (20, 3) if quick else (100, 8)
X, Y_true = load_digit_attributes(return_X_y=True, as_frame=True)
X, X_test, Y_true, Y_test = train_test_split(X, Y_true, test_size=0.4, random_state=0)
Y = hide_positives(Y_true, 0.5, random_state=0)

models = {
    "gcforest: labels as they are": gcforest(n_trees, length=FixedLength(), max_layers=n_layers, random_state=0),
    "slcforest: labels are imputed": slcforest(n_trees, length=FixedLength(), max_layers=n_layers, random_state=0),
    "auto: the mean of the layers so far": auto(n_trees // 2, max_layers=n_layers, random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(15, 4.2), layout="constrained", sharey=True)
for (name, model), ax in zip(models.items(), axes):
    model.fit(X, Y)
    LayerScoreDisplay.from_estimator(model, X=X_test, Y=Y_test).plot(ax=ax)
    ax.set_title(name)
    scores = [micro_auroc(Y_test, proba) for proba in model.staged_predict_proba(X_test)]
    best = max(range(len(scores)), key=scores.__getitem__)
    print(f"{name}: micro AUROC on complete labels, layer 1: {scores[0]:.3f}, last: {scores[-1]:.3f}, best: {best + 1}")
figure.savefig("which_layer_helps.png", dpi=120)
print("The picture is in which_layer_helps.png.")
