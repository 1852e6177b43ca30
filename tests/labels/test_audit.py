"""Audits and certificates keep what they promise, and decisions are read or refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from sylvan.exceptions import DecisionError
from sylvan.labels.audit import Audit
from sylvan.labels.promise import Part, bounds_of_sum, least_right


def made(seed):
    rng = np.random.default_rng(seed)
    proba = rng.beta(0.4, 1.5, (400, 5))
    present = rng.random((400, 5)) < proba**1.5  # stated probabilities are too high
    recorded = present & (rng.random((400, 5)) < 0.5)
    return proba, present, recorded


def answered(plan, present):
    right = present[plan["row"].astype(int), plan["label"].astype(int)]
    return plan.assign(decision=np.where(right, "confirmed", "rejected"))


def test_intervals_cover_and_certificates_hold():
    covered, kept = [], []
    for seed in range(40):
        proba, present, recorded = made(seed)
        truth = (present & ~recorded).sum()
        empty = Audit.from_probabilities(proba, recorded)
        found = Audit.from_probabilities(proba, recorded, answered(empty.plan(100, random_state=seed), present))
        line = found.n_missing().loc["all labels"]
        covered.append(line["low"] <= truth <= line["high"])
        scout = answered(empty.plan(60, precision=0.7, random_state=seed), present)
        some = Audit.from_probabilities(proba, recorded, scout)
        more = answered(some.plan(140, precision=0.7, random_state=seed), present)
        certificate = Audit.from_probabilities(proba, recorded, [scout, more]).certify(0.7)
        if certificate.certified:
            cells = certificate.cells
            kept.append(present[cells["row"].astype(int), cells["label"].astype(int)].mean() >= 0.7)
    assert np.mean(covered) >= 0.8
    assert len(kept) >= 10
    assert np.mean(kept) >= 0.9


def test_one_part_has_the_bounds_of_clopper_and_pearson():
    low, high = bounds_of_sum([Part(10**6, 20, 15)], 0.9)
    assert low / 10**6 == pytest.approx(beta.ppf(0.05, 15, 6), abs=0.01)
    assert high / 10**6 == pytest.approx(beta.ppf(0.95, 16, 5), abs=0.01)
    assert least_right(Part(30, 30, 21), 0.1) == 21


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"row": 1000, "label": 0, "decision": "confirmed"}, "does not have"),
        ({"row": 0, "label": 9, "decision": "confirmed"}, "does not have"),
        ({"row": 0, "label": 0, "decision": "perhaps"}, "'confirmed', 'rejected' or 'unsure'"),
        ({"row": 0, "label": 0, "decision": "rejected", "how": "audited", "chance": 2}, "chance"),
    ],
)
def test_bad_decisions_are_refused(line, words):
    recorded = np.zeros((5, 2), int)
    with pytest.raises(DecisionError, match=words):
        Audit.from_probabilities(np.full((5, 2), 0.5), recorded, pd.DataFrame([line]))
