"""What has a deep forest learnt? A few dozen rules, and what each of them says about the labels.

    python examples/read_the_rules.py [--quick]

The picture shows how much more, or less, frequent each label is where a rule holds.
"""

import sys

from sylvan import imldf
from sylvan.cascade.augment import Interactions
from sylvan.cascade.length import FixedLength
from sylvan.datasets import load_digit_attributes
from sylvan.plotting import InteractionMatrixDisplay

quick = "--quick" in sys.argv
X, Y = load_digit_attributes(return_X_y=True, as_frame=True)  # 8 x 8 pixels with values from 0 to 16
train = slice(0, 1500)

# One layer is enough, and is what `imldf()` has. Three are grown to show rules about rules.
n_trees, n_rules = (15, 10) if quick else (30, 20)
features = Interactions(n_rules)  # the features of the next layer are the rules' scores alone
model = imldf(n_trees, augment=features, max_layers=3, length=FixedLength(), random_state=0).fit(X[train], Y[train])
rules = model.interactions_.sort_values("stability", ascending=False, kind="stable")

print(f"{len(rules)} rules, {model.n_layers_} layers. The most stable ones:\n")
for name, rule in rules.head(5).iterrows():  # says: share of a label where the rule holds, and in all rows
    print(f"{name}: {rule['rule']}\n     {rule['support']} rows: {rule['says']}")

print(f"\nRules that hold for row {X.index[1500]}, the first three:\n")
print(model.explain(X[1500:1501])[["interaction", "rule", "score"]].head(3).to_string(index=False))

deep = next(name for name, rule in rules["rule"].items() if name.startswith("3.") and "score of 2." in rule)
print("\nA rule of the last layer, and the rules that it is about:\n")
print(model.expand_interaction(deep))

InteractionMatrixDisplay.from_estimator(model, layer=1).plot().figure_.savefig("read_the_rules.png", dpi=120)
print("\nThe picture is in read_the_rules.png.")
