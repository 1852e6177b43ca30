"""Promises survive reviewers who skip, cannot tell, or plan twice; and tables in which there is little to find."""

import numpy as np
import pandas as pd
import pytest

from sylvan.labels.audit import Audit, score_interval


def made(seed=0, n=200):
    rng = np.random.default_rng(seed)
    proba = rng.beta(0.5, 1.0, (n, 4))
    return proba, rng.random((n, 4)) < proba, np.zeros((n, 4), int)


def answered(plan, present):
    right = present[plan["row"].to_numpy(int), plan["label"].to_numpy(int)]
    return plan.assign(decision=np.where(right, "confirmed", "rejected"))


def test_skipped_cells_count_as_wrong():
    proba, present, recorded = made()
    scout = answered(Audit.from_probabilities(proba, recorded).plan(60, precision=0.7, random_state=0), present)
    plan = Audit.from_probabilities(proba, recorded, scout).plan(140, precision=0.7, random_state=0)
    whole = answered(plan, present)
    assert Audit.from_probabilities(proba, recorded, [scout, whole]).certify(0.7).certified
    half = whole.assign(decision=whole["decision"].where(whole["decision"] == "confirmed", "")).iloc[:70]
    found = Audit.from_probabilities(proba, recorded, [scout, half]).certify(0.7)
    assert not found.certified
    assert "without an answer" in found.note
    n = f"{len(found.cells) - int(found.cells['confirmed'].sum()):,}"
    open_cells = f"{n} cells that nobody has decided are expected to be 70% right"
    assert found.note.startswith(f"Not certified. {open_cells}, but the audited cells do not show it yet.")


def test_what_was_not_audited_is_not_certified():
    proba, _, recorded = made()
    found = Audit.from_probabilities(proba, recorded).certify(0.7)
    n = f"{len(found.cells):,} cells"
    assert found.note == f"Not certified. {n} are expected to be 70% right, but that was not audited."
    none = Audit.from_probabilities(proba / 10, recorded).certify(0.7)
    assert none.note == "Not certified. No list is expected to be 70% right."


def test_cells_that_nobody_can_tell_are_not_drawn_again():
    proba, _, recorded = made(n=20)
    plan = Audit.from_probabilities(proba, recorded).plan(50, random_state=0).assign(decision="unsure")
    again = Audit.from_probabilities(proba, recorded, plan).plan(80, random_state=1)
    assert len(again) == 30
    assert not len(plan.merge(again, on=["row", "label"]))


def test_two_draws_are_two_audits():
    proba, _, recorded = made()
    audit = Audit.from_probabilities(proba, recorded)
    names = {audit.plan(n, precision=0.7, random_state=n)["audit"].iloc[0] for n in (50, 60)}
    assert len(names) == 2


@pytest.mark.parametrize("said", ["confirmed", "rejected", "unsure"])
def test_all_answers_alike(said):
    proba, _, recorded = made(n=10)
    plan = Audit.from_probabilities(proba, recorded).plan(100, random_state=0).assign(decision=said)
    audit = Audit.from_probabilities(proba, recorded, plan)
    line = audit.n_missing().iloc[-1]
    assert line["low"] <= line["missing"] <= line["high"]
    assert audit.certify(0.8).certified == (said == "confirmed")
    with pytest.raises(ValueError, match="no cell left"):
        audit.plan(1)


def test_a_list_without_its_rejected_cells_is_not_flattered():
    proba, present, recorded = made()
    plan = answered(Audit.from_probabilities(proba, recorded).plan(300, random_state=0), present)
    audit = Audit.from_probabilities(proba, recorded, plan)
    cells = pd.DataFrame(audit.ranking.frame(audit.ranking.cells[:200]))
    wrong = plan[plan["decision"] == "rejected"]
    kept = cells[~pd.MultiIndex.from_frame(cells).isin(pd.MultiIndex.from_frame(wrong[["row", "label"]]))]
    right = present[kept["row"].to_numpy(int), kept["label"].to_numpy(int)].mean()
    found = audit.precision_of(kept)
    assert found["low"] <= right <= found["high"]


def test_intervals_where_nothing_is_found_are_near_the_rule_of_three():
    low, high = score_interval(0.0, 1.0, 1.645)
    assert low == 0.0
    assert 2.0 < high < 3.5


def test_a_cell_that_two_audits_drew_counts_in_both():
    proba, present, recorded = made()
    empty = Audit.from_probabilities(proba, recorded)
    count, scout = empty.plan(80, random_state=0), empty.plan(60, precision=0.7, random_state=1)
    assert len(count.merge(scout, on=["row", "label"]))
    right = [present[plan["row"], plan["label"].astype(int)] for plan in (count, scout)]
    count, scout = (
        plan.assign(decision=np.where(it, "confirmed", "rejected")) for plan, it in zip((count, scout), right)
    )
    both, alone = (Audit.from_probabilities(proba, recorded, each) for each in ([count, scout], count))
    assert [len(audit.draws) for audit in both.ranking.audits] == [80, 60]
    for name in ("missing", "low", "high"):  # strata are those of the audit; only their smoothing knows more answers
        assert both.n_missing().iloc[-1][name] == pytest.approx(alone.n_missing().iloc[-1][name], rel=0.15)
