"""Data and models that the tests of iMLDF share."""

import re
from functools import cache

import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal

from cascade.naive_cascade import make_weak_labels
from sylvan import imldf
from sylvan.cascade.augment import Interactions
from sylvan.cascade.contracts import parts_of
from sylvan.cascade.length import FixedLength
from sylvan.forests import ExtraTrees, OutOfBag, RandomForest

X, Y, Y_OBSERVED = make_weak_labels()
X = X.round(1)
X_NEW, Y_NEW, _ = make_weak_labels(seed=1)
X_NEW = X_NEW.round(1)
FEATURES = ["age", "body mass", "c", "d", "e", "f"]
LABELS = ["ash", "beech", "elm", "oak"]
TABLE = pd.DataFrame(X, columns=FEATURES, index=[f"row {i}" for i in range(len(X))])
TABLE_NEW = pd.DataFrame(X_NEW, columns=FEATURES, index=[f"new {i}" for i in range(len(X_NEW))])
RF = RandomForest(8, out_of_sample=OutOfBag())
ET = ExtraTrees(8, bootstrap=True, out_of_sample=OutOfBag())


def published(n_interactions, n_bootstraps=2, **settings):
    """Interactions as in the paper, which has more kinds of columns than the default."""
    return Interactions(
        n_interactions, n_bootstraps=n_bootstraps, **{"threshold_rule": "relax", "labels": "full"} | settings
    )


def small(n_interactions=6, n_bootstraps=3, **options):
    """A cascade on rules; options of `Interactions` are those that it knows."""
    known = Interactions().get_params()
    settings = {name: options.pop(name) for name in list(options) if name in known}
    augment = published(n_interactions, n_bootstraps, **settings)
    defaults = {"augment": augment, "n_forests": 2, "length": FixedLength(), "max_layers": 3, "random_state": 0}
    return imldf(8, **{"score_folds": None} | defaults | options)


@cache
def fitted(**options):
    """A model for tests that only look at it."""
    return small(**options).fit(TABLE, pd.DataFrame(Y_OBSERVED, columns=LABELS))


def assert_same(one, other, rows=X_NEW):
    assert_array_equal(one.predict_proba(rows), other.predict_proba(rows))
    assert_array_equal(one.transform(rows), other.transform(rows))
    assert_array_equal(one.oos_proba_, other.oos_proba_)
    pd.testing.assert_frame_equal(one.interactions_, other.interactions_)
    pd.testing.assert_frame_equal(one.explain(rows), other.explain(rows))
    pd.testing.assert_frame_equal(one.mining_report_, other.mining_report_)


def miner_of(layer):
    (miner,) = parts_of(layer.augment)
    return miner


def conditions(rules):
    """The conditions of each rule as (column, greater, threshold)."""
    out = []
    for first, last in zip(rules.start[:-1], rules.start[1:]):
        where = range(first, last)
        out.append([(int(rules.column[c]), bool(rules.greater[c]), float(rules.threshold[c])) for c in where])
    return out


class Words:
    """Reads rules as people do: asks whether a rule in words holds for a row of named features.

    `scores` has the score of each rule that holds, as `explain` tells it.
    """

    def __init__(self, rules, features, scores):
        self.rules, self.features, self.scores, self.used = rules, features, scores, set()

    def holds(self, name):
        return all(self.condition(text) for text in self.rules[name].split(" and "))

    def condition(self, text):
        for kind in ("does not hold", "holds"):
            if text.endswith(kind):
                self.used.add(kind)
                return self.holds(text.removesuffix(f" {kind}")) == (kind == "holds")
        both = re.fullmatch(r"(\S+) < (.+) <= (\S+)", text)
        if both:
            self.used.add("both")
            low, name, high = both.groups()
            return float(low) < self.value(name) <= float(high)
        name, sign, threshold = re.fullmatch(r"(.+) (>|<=) (\S+)", text).groups()
        return self.value(name) > float(threshold) if sign == ">" else self.value(name) <= float(threshold)

    def value(self, name):
        if name in self.features:
            return self.features[name]
        self.used.add("score")
        return float(np.float32(self.scores.get(name.removeprefix("score of "), 0.0)))  # as columns store it


def read_all(model, table):
    """Read all rules for all rows: they must hold where explain says so. Return which kinds of words were read."""
    told = model.explain(table)
    rules, used = model.interactions_["rule"], set()
    for name, row in table.iterrows():
        mine = told[told["row"] == name]
        words = Words(rules, row.to_dict(), dict(zip(mine["interaction"], mine["score"])))
        assert [rule for rule in rules.index if words.holds(rule)] == list(mine["interaction"]), name
        used |= words.used
    return used


def referred(text):
    """The rules that a rule in words refers to, each once."""
    found = re.findall(r"score of (\d+\.\d+)|(\d+\.\d+) (?:holds|does not hold)", text)
    return list(dict.fromkeys(one or other for one, other in found))
