"""Reasons as they are defined, step by step and cell by cell."""

import numpy as np

from sylvan.cascade.layer import through_layers


def steps_of(forest, x, heard):
    """Return what each step on a row's paths adds to the forest's answer, (column, by label), and the base rate."""
    steps, base = [], 0.0
    for number, tree in enumerate(forest.trees_):
        if not heard[number]:
            continue
        value = tree.value.toarray() / heard.sum()
        node = 0
        base = base + value[0]
        while tree.feature[node] >= 0:
            v = x[tree.feature[node]]
            left = tree.missing_left[node] if np.isnan(v) else v <= tree.threshold[node]
            child = (tree.children_left if left else tree.children_right)[node]
            steps.append((int(tree.feature[node]), value[child] - value[node]))
            node = child
    return steps, base


def explain(model, X, row, label, heard_of=None, blocks=None):
    """Return contributions of the features to one cell, and its base rate, for class vectors between layers.

    `heard_of` gives the trees of a forest that judge the row, and `blocks` the features of each layer; those of new
    rows if they are not given.
    """
    layers = model.layers_
    blocks = blocks or [seen for seen, _ in through_layers(layers, X, narrow=False)]
    heard_of = heard_of or (lambda forest: np.ones(forest.trees_.n_trees, bool))
    out, base = np.zeros(X.shape[1]), 0.0
    relevance = [{} for _ in layers]  # of each layer's answers: (slot, label) to a number
    asked = range(len(layers)) if model.average_layers else [len(layers) - 1]
    for at in reversed(range(len(layers))):
        layer = layers[at]
        for slot, forest in enumerate(layer.forests):
            made = [(block, k) for block in layer.visible[slot] for k in range(layer.widths[block])]
            x = np.concatenate([[blocks[at][block][row, k] for block, k in made], X[row]])
            steps, root = steps_of(forest, x, heard_of(forest))
            shares = np.zeros(len(steps))
            if at in asked:
                weight = 1 / (len(layer.forests) * len(asked))
                base += weight * root[label]
                shares += [weight * d[label] for _, d in steps]
            for k, amount in ((k, amount) for (s, k), amount in relevance[at].items() if s == slot):
                moved, travelled = sum(d[k] for _, d in steps), sum(abs(d[k]) for _, d in steps)
                if travelled < 1e-13:
                    base += amount
                    continue
                for number, (_, d) in enumerate(steps):
                    part = np.sign(moved) * d[k] + (1 - abs(moved) / travelled) * abs(d[k])
                    shares[number] += amount * part / travelled
            for (column, _), share in zip(steps, shares):
                if column >= len(made):
                    out[column - len(made)] += share
                else:  # the block of a forest holds its answers
                    relevance[at - 1][made[column]] = relevance[at - 1].get(made[column], 0.0) + share
    return out, base
