"""Which cell comes next, what is stored, and what the bar says: as plain reading of the file says it."""

import threading
import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from hypothesis import given
from hypothesis import strategies as st

import sylvan
from app.review.made_reviews import LABELS, decided_in, fitted, refit_made, session_of, table_of
from strategies import examples
from sylvan.app.review.session import Conflict, Order
from sylvan.exceptions import DecisionError
from sylvan.labels.decisions import COLUMNS, as_table, text_of

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")
FIRST = Order()


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Numbers are few: threads of BLAS would only wait for each other."""
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.csv"


@pytest.fixture
def session(path):
    made = session_of(path)
    yield made
    made.close()


def decide(session, decision="confirmed", order=FIRST):
    """Answer the current cell; return its name."""
    cell = session.state(order)["cell"]
    session.decide(cell["cell"], decision, cell["decision"])
    return cell["cell"]


def until(true, seconds=60):
    """Wait for what happens in the background."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def lines_of(path):
    return as_table(path).to_dict("records")


# ----------------------------------------------------------------------------------------------------------- the order


def test_the_audit_comes_first_and_nothing_of_the_model_is_told(session, path):
    drawn = {(line["row"], line["label"]) for line in lines_of(path)}
    assert len(drawn) == 6
    for answered in range(6):
        state = session.state(FIRST)
        cell = state["cell"]
        assert state["phase"] == "audit"
        assert state["audit"] == {"planned": 6, "answered": answered}
        assert (cell["row"], cell["label"]) in drawn
        assert cell["how"] == "audited"
        assert [cell[name] for name in ("probability", "base", "reasons", "rest", "similar")] == [None] * 5
        decide(session, ("confirmed", "rejected", "unsure")[answered % 3])
    state = session.state(FIRST)
    assert state["phase"] == "queue"
    assert state["cell"]["how"] == "reviewed"
    assert 0 <= state["cell"]["probability"] <= 1
    answers = [line for line in lines_of(path) if line["decision"]]
    assert {line["how"] for line in answers} == {"audited"}
    assert all(float(line["chance"]) > 0 and line["stratum"] and line["audit"] for line in answers)


def test_the_queue_is_that_of_the_audit_in_python(path):
    session = session_of(path, audit=0)
    expected = fitted().findings.audit().next_cells(5)
    for line in expected.itertuples():
        cell = session.state(FIRST)["cell"]
        assert (cell["row"], cell["label"]) == (line.row, line.label)
        assert cell["probability"] == pytest.approx(line.probability)
        with session.lock:
            session.ledger.decide(session.find(cell["cell"]), "unsure")  # without a count, which may change the order
            session._current.clear()
    session.close()


@pytest.mark.parametrize("label", [None, 1])
@pytest.mark.parametrize("row", [None, 7])
def test_orders_by_probability_and_for_one_label_or_row(path, label, row):
    session = session_of(path, audit=0)
    found = fitted().findings
    order = Order("probability", label, row)
    cells = np.argwhere(found.state.candidates)
    cells = [(r, j) for r, j in cells.tolist() if label in (None, j) and row in (None, r)]
    expected = sorted(cells, key=lambda cell: -found.missing[cell])[:6]
    seen = []
    for _ in expected:
        cell = session.state(order)["cell"]
        seen.append(tuple(map(int, cell["cell"].split("."))))
        with session.lock:
            session.ledger.decide(session.find(cell["cell"]), "unsure")
            session._current.clear()
    np.testing.assert_allclose([found.missing[each] for each in seen], [found.missing[each] for each in expected])
    assert len(set(seen)) == len(expected)
    if row is not None:
        assert session.state(order)["phase"] == "done"
        assert session.state(order)["cell"] is None
    session.close()


def test_the_current_cell_stays_until_it_is_decided(session):
    for order in (FIRST, Order("probability", 2, None)):
        names = {session.state(order)["cell"]["cell"] for _ in range(3)}
        session._recount()
        names |= {session.state(order)["cell"]["cell"]}
        assert len(names) == 1


def test_all_cells_can_be_decided(path):
    session = session_of(path, audit=0)
    n = int(fitted().findings.state.candidates.sum())
    for _ in range(n):
        decide(session, "rejected")
    assert session.state(FIRST)["phase"] == "done"
    assert session.state(FIRST)["bar"]["rejected"] == n
    session.draw(10, None)  # of nothing
    assert "no cell left" in session.state(FIRST)["notice"]
    session.close()


# ------------------------------------------------------------------------------------------------- changes and undo


def test_a_change_is_a_later_line(session, path):
    name = decide(session, "confirmed")
    session.decide(name, "rejected", "confirmed")
    words = [line["decision"] for line in lines_of(path) if line["decision"]]
    assert words == ["confirmed", "rejected"]
    assert list(decided_in(path).values()) == ["rejected"]
    assert session.state(FIRST)["bar"]["rejected"] == 1
    assert [each["decision"] for each in session.state(FIRST)["recent"]] == ["rejected"]


def test_the_same_decision_again_writes_nothing(session, path):
    name = decide(session, "confirmed")
    before = path.read_bytes()
    session.decide(name, "confirmed", "confirmed")
    assert path.read_bytes() == before


def test_what_is_taken_back_was_never_said(session, path):
    name = decide(session, "rejected")
    session.decide(name, "withdrawn", "rejected")
    assert decided_in(path) == {}
    state = session.state(FIRST)
    assert state["bar"]["decided"] == 0
    assert state["recent"] == []
    assert state["audit"]["answered"] == 0
    session.decide(name, "confirmed", None)
    assert list(decided_in(path).values()) == ["confirmed"]


def test_nothing_can_be_taken_back_twice(session, path):
    name = decide(session)
    session.decide(name, "withdrawn", "confirmed")
    before = path.read_bytes()
    with pytest.raises(Conflict):
        session.decide(name, "withdrawn", "confirmed")
    session.decide(name, "withdrawn", None)
    assert path.read_bytes() == before


def test_a_cell_that_another_tab_decided_is_not_overwritten(session, path):
    name = decide(session, "rejected")
    before = path.read_bytes()
    for was in (None, "confirmed", "unsure"):
        with pytest.raises(Conflict):
            session.decide(name, "confirmed", was)
    assert path.read_bytes() == before


def settled(session, order=FIRST):
    """Wait for counts and reasons; return the cell that is shown."""
    until(lambda: not (session.state(order)["cell"]["pending"] or session.state(order)["bar"]["counting"]))
    return session.state(order)["cell"]


def test_a_decision_is_not_taken_for_what_the_model_thinks(path):
    """A cell that is shown again has the model's probability, not 0 or 1, and reasons that lead to it."""
    with closing(session_of(path, audit=0, model=fitted().model)) as session:
        cell = settled(session)
        for word, before in (("rejected", None), ("confirmed", "rejected")):
            session.decide(cell["cell"], word, before)
            settled(session)
            session.show(FIRST, session.find(cell["cell"]))
            shown = settled(session)
            assert (shown["cell"], shown["decision"]) == (cell["cell"], word)
            assert 0.02 < shown["probability"] < 0.98
            assert shown["rest"] == pytest.approx(0.0, abs=1e-6)  # all three features are shown
            total = shown["base"] + sum(each["contribution"] for each in shown["reasons"]) + shown["rest"]
            assert total == pytest.approx(shown["probability"])


def test_the_probability_of_a_cell_does_not_change_while_somebody_looks_at_it(path):
    with closing(session_of(path, audit=0)) as session:
        order = Order("probability")
        for _ in range(6):
            session.decide(session.state(order)["cell"]["cell"], "rejected", None)
        cell = session.state(order)["cell"]  # comes up before the six are counted
        settled(session, order)
        row, label = map(int, cell["cell"].split("."))
        assert session.count.audit.missing[row, label] < cell["probability"] - 0.01
        assert session.state(order)["cell"]["probability"] == cell["probability"]
        session.show(order, session.find(cell["cell"]))  # it comes up anew
        assert session.state(order)["cell"]["probability"] == pytest.approx(session.count.audit.missing[row, label])


def test_a_decided_cell_can_be_shown_and_left(session):
    name = decide(session, "rejected")
    following = session.state(FIRST)["cell"]["cell"]
    session.show(FIRST, session.find(name))
    for _ in range(2):
        assert session.state(FIRST)["cell"]["cell"] == name
        assert session.state(FIRST)["cell"]["decision"] == "rejected"
    session.show(FIRST, None)
    assert session.state(FIRST)["cell"]["cell"] == following


@pytest.mark.parametrize(
    "name", ["", "1", "1.1.1", "-1.0", "1.-1", "60.0", "0.3", "1e9.0", " 1.0", "1.0 ", "²0.0", "1" * 50 + ".0", None, 1]
)
def test_other_names_are_no_cells(session, name):
    with pytest.raises(ValueError, match="no such cell"):
        session.decide(name, "confirmed", None)


def test_recorded_cells_are_not_decided(session, path):
    row, label = np.argwhere(fitted().findings.recorded)[0]
    with pytest.raises(ValueError, match="no such cell"):
        session.decide(f"{row}.{label}", "rejected", None)


def test_many_threads_lose_and_double_nothing(path):
    session = session_of(path, audit=0)
    cells = np.argwhere(fitted().findings.state.candidates)[:60].tolist()
    conflicts = []

    def work():
        for row, label in cells:
            try:
                session.decide(f"{row}.{label}", "confirmed", None)
            except Conflict:
                conflicts.append(1)
            session.state(FIRST)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(decided_in(path)) == len(lines_of(path)) == 60
    assert len(conflicts) == 180
    session.close()


# --------------------------------------------------------------------------------------------------- started again


def test_a_second_start_goes_on_with_the_same_audit(path):
    session = session_of(path, random_state=None)
    decide(session)
    decide(session, "rejected")
    before, recent = lines_of(path), session.state(FIRST)["recent"]
    session.close()
    session = session_of(path, random_state=None)
    assert lines_of(path) == before
    assert session.state(FIRST)["audit"] == {"planned": 6, "answered": 2}
    assert session.state(FIRST)["recent"] == recent
    assert session.state(FIRST)["bar"]["decided"] == 2
    session.close()


def test_a_plan_that_was_not_written_to_its_end_is_drawn_anew(path):
    session_of(path).close()
    kept = path.read_text().splitlines(keepends=True)
    path.write_text("".join(kept[:4]))
    session = session_of(path)
    assert session.state(FIRST)["audit"]["planned"] == 6
    session.close()


def test_more_cells_are_drawn_and_the_answer_counts_in_both_audits(path):
    session = session_of(path, random_state=None, audit=40)
    session.draw(100, None)
    plan = pd.DataFrame(lines_of(path))
    twice = plan[plan.duplicated(["row", "label"])].iloc[0]
    assert session.state(FIRST)["audit"]["planned"] == len(plan.drop_duplicates(["row", "label"]))
    at = list(fitted().Y.index).index(twice["row"]), LABELS.index(twice["label"])
    session.decide(f"{at[0]}.{at[1]}", "confirmed", None)
    answers = [line for line in lines_of(path) if line["decision"]]
    assert len({line["audit"] for line in answers}) == 2
    assert len(fitted().findings.audit(path).decisions.drawn) == 2
    session.close()


def test_decisions_of_another_table_are_refused(path):
    X, Y, _ = table_of()
    other = Y.set_axis([f"book {at}" for at in range(60)])
    model = sylvan.auto(5, max_layers=2, random_state=0, n_jobs=1).fit(X.set_axis(other.index), other)
    session = session_of(path)
    decide(session)
    session.close()
    before = path.read_bytes()
    with pytest.raises(DecisionError, match=r"Decisions name .* rows? that the table does not have"):
        session_of(path, findings=model.labels_)
    assert path.read_bytes() == before


def test_cells_that_were_recorded_meanwhile_are_refused(path):
    session = session_of(path)
    decide(session)
    session.close()
    row, label = np.argwhere(fitted().findings.recorded)[0]
    path.write_text(path.read_text() + f"song {row},{LABELS[label]},rejected,reviewed,,,,ana,\n")
    with pytest.raises(DecisionError, match="recorded"):
        session_of(path)


# ---------------------------------------------------------------------------------------------------- several people


def test_what_others_decided_is_not_asked_again_and_counts(path, tmp_path):
    other = tmp_path / "ben.csv"
    ben = session_of(other, "ben", audit=0)
    names = [decide(ben, word) for word in ("confirmed", "rejected", "unsure")]
    ben.close()
    before = other.read_bytes()
    ana = session_of(path, audit=0, others=[other])
    assert ana.state(FIRST)["bar"]["decided"] == 3
    seen = [decide(ana, "unsure") for _ in range(int(fitted().findings.state.candidates.sum()) - 3)]
    assert not set(names) & set(seen)
    assert ana.state(FIRST)["phase"] == "done"
    assert [each["cell"] for each in ana.state(FIRST)["recent"]] == seen[:-11:-1]  # her own
    assert other.read_bytes() == before
    ana.close()


def test_what_others_have_drawn_is_answered_together(path, tmp_path):
    """Two people with the same table answer one audit, and nobody decides a drawn cell because it looked probable."""
    other = tmp_path / "ben.csv"
    ben = session_of(other, "ben", audit=20)
    drawn = [ben.state(FIRST)["cell"]["cell"]]
    decide(ben)
    ben.close()
    ana = session_of(path, others=[other], audit=20)
    state = ana.state(FIRST)
    assert (state["phase"], state["audit"]) == ("audit", {"planned": 20, "answered": 1})
    drawn += [decide(ana, "rejected") for _ in range(19)]
    assert len(set(drawn)) == 20
    assert ana.state(FIRST)["phase"] == "queue"
    assert len(fitted().findings.audit([path, other]).decisions.drawn) == 20
    ana.close()


@pytest.mark.parametrize("order", [Order("value", 0), Order("probability", 0), Order("value", None, 5)])
def test_an_order_shows_no_drawn_cell_that_waits(path, order):
    """Somebody who looks at one label only must not answer only the draws of this label."""
    session = session_of(path, audit=60)
    waiting = set(session._planned)
    while session.state(order)["phase"] == "queue":
        cell = session.state(order)["cell"]
        assert session.find(cell["cell"]) not in waiting
        assert cell["how"] == "reviewed"
        decide(session, order=order)
    assert session.state(FIRST)["audit"] == {"planned": 60, "answered": 0}
    session.close()


@st.composite
def histories(draw):
    """What two people wrote about a few cells: draws, answers, changes, withdrawals; times in order for each."""
    lines = []
    for at in range(draw(st.integers(1, 14))):
        cell = draw(st.sampled_from(["song 1,happy", "song 2,calm", "song 3,loud"]))
        word = draw(st.sampled_from(["confirmed", "rejected", "unsure", "withdrawn", ""]))
        who = draw(st.sampled_from(["ana", "ben"]))
        draws = draw(st.sampled_from(["reviewed,,,", 'audited,0.5,"ranks 1 to 10, 8 cells",abcdef01-count-1-0-0-0a']))
        lines.append((who, f"{cell},{word},{draws},{who},2024-01-01T00:00:{at:02d}.000000+00:00"))
    return lines


@given(lines=histories())
@examples(60)
def test_what_is_shown_is_what_everybody_else_reads(lines, tmp_path_factory):
    """The session counts line by line, everybody else all lines at once."""
    folder = tmp_path_factory.mktemp("people")
    found = fitted().findings
    open_cells = [line for line in lines if found.state.candidates[cell_of(line[1])]]
    for who in ("ana", "ben"):
        mine = [text for by, text in open_cells if by == who]
        (folder / f"{who}.csv").write_text("\n".join([",".join(COLUMNS), *mine]) + "\n")
    ana = session_of(folder / "ana.csv", audit=0, others=[folder / "ben.csv"])
    said = {ana.find(f"{row}.{label}"): word for (row, label), word in positions_of(folder).items()}
    assert dict(ana.ledger.said) == said
    ana.close()


def cell_of(text):
    row, label = text.split(",")[:2]
    return fitted().Y.index.get_loc(row), LABELS.index(label)


def positions_of(folder):
    decided = decided_in([folder / "ana.csv", folder / "ben.csv"])
    return {(fitted().Y.index.get_loc(row), LABELS.index(label)): word for (row, label), word in decided.items()}


@pytest.mark.parametrize(
    ("own", "merged"), [("confirmed", "confirmed"), ("rejected", "unsure"), ("unsure", "confirmed")]
)
def test_two_people_about_one_cell(path, tmp_path, own, merged):
    other = tmp_path / "ben.csv"
    ben = session_of(other, "ben", audit=0)
    name = decide(ben, "confirmed")
    ben.close()
    ana = session_of(path, audit=0, others=[other])
    assert ana.state(FIRST)["bar"]["confirmed"] == 1
    ana.decide(name, own, None)
    assert ana.ledger.said[ana.find(name)] == merged
    assert list(decided_in([path, other]).values()) == [merged]
    assert ana.state(FIRST)["bar"][merged] == 1
    ana.decide(name, "withdrawn", own)
    assert ana.ledger.said[ana.find(name)] == "confirmed"
    ana.close()


def test_bad_files_of_others_are_refused(path, tmp_path):
    other = tmp_path / "ben.csv"
    other.write_text("row,tag,decision\nsong 1,happy,yes\n")
    with pytest.raises(DecisionError, match="need the column 'label'"):
        session_of(path, others=[other])


def test_what_the_fit_was_told_stays_if_nothing_can_be_written(path, monkeypatch):
    """A full disk costs the new decision, not the old one."""
    made = fitted()
    row, label = np.argwhere(made.findings.state.candidates)[7]
    told = pd.DataFrame({"row": [made.Y.index[row]], "label": [LABELS[label]], "decision": ["confirmed"]})
    found = made.findings.audit(told).decisions
    session = session_of(path, audit=0, findings=made.findings.after(found))
    name = f"{row}.{label}"
    assert session.ledger.said[session.find(name)] == "confirmed"
    monkeypatch.setattr(session.ledger.store, "append", full)
    with pytest.raises(OSError, match="full"):
        session.decide(name, "rejected", None)
    assert session.ledger.said[session.find(name)] == "confirmed"
    assert session.ledger.frame()["decision"].tolist() == ["confirmed"]
    session.close()


def full(lines, **how):
    raise OSError("the disk is full")


def test_what_the_fit_was_told_counts_until_somebody_says_otherwise(path):
    made = fitted()
    cells = np.argwhere(made.findings.state.candidates)[:3].tolist()
    told = pd.DataFrame([{"row": made.Y.index[r], "label": LABELS[j], "decision": "confirmed"} for r, j in cells])
    found = made.findings.after(made.findings.audit(told).decisions)
    session = session_of(path, findings=found, audit=0)
    assert session.state(FIRST)["bar"]["confirmed"] == 3
    assert session.state(FIRST)["recent"] == []
    name = "{}.{}".format(*cells[0])
    session.decide(name, "rejected", None)
    assert session.state(FIRST)["bar"]["confirmed"] == 2
    assert session.state(FIRST)["bar"]["rejected"] == 1
    assert session.ledger.frame()["decision"].tolist() == ["rejected", "confirmed", "confirmed"]
    session.close()
    assert list(decided_in(path).values()) == ["rejected"]


# ------------------------------------------------------------------------------------------------- counts and refits


def test_the_bar_says_what_the_audit_in_python_says(session, path):
    true = fitted().true
    for _ in range(12):
        cell = session.state(FIRST)["cell"]["cell"]
        row, label = map(int, cell.split("."))
        session.decide(cell, "confirmed" if true[row, label] else "rejected", None)
    until(lambda: not session.state(FIRST)["bar"]["counting"])
    bar = session.state(FIRST)["bar"]
    audit = fitted().findings.audit(path)
    total = audit.n_missing().loc["all labels"]
    assert [bar[end] for end in ("missing", "low", "high")] == pytest.approx([*total[["missing", "low", "high"]]])
    assert bar["audited"]
    assert bar["note"] == audit.certify(0.8).note
    assert bar["decided"] == 12


def test_a_failed_count_leaves_the_last_one(session, monkeypatch):
    before = session.state(FIRST)["bar"]
    monkeypatch.setattr(session, "_counted", lambda *args: 1 / 0)
    decide(session)
    until(lambda: not session.state(FIRST)["bar"]["counting"])
    assert session.state(FIRST)["bar"]["missing"] == before["missing"]
    assert session._counter.thread.is_alive()


def test_a_refit_learns_what_was_decided_while_the_queue_goes_on(path):
    allowed = threading.Event()

    def fit(lines):
        allowed.wait(60)
        return refit_made()(lines)

    session = session_of(path, refit=fit)
    first = decide(session, "rejected")
    session.refit()
    session.refit()  # once is enough
    assert session.state(FIRST)["refit"]["state"] == "running"
    second = decide(session, "confirmed")
    allowed.set()
    until(lambda: session.state(FIRST)["refit"]["state"] != "running")
    assert session.state(FIRST)["refit"]["state"] == "done"
    assert session.findings is not fitted().findings
    assert session.findings.decisions is not None
    assert len(session.findings.decisions) == 1
    until(lambda: not session.state(FIRST)["bar"]["counting"])
    assert session.state(FIRST)["bar"]["decided"] == 2
    assert session.state(FIRST)["audit"] == {"planned": 6, "answered": 2}  # the same ranking
    assert {first, second} == {each["cell"] for each in session.state(FIRST)["recent"]}
    session.close()


def test_a_failed_refit_is_told_and_changes_nothing(path):
    def fit(lines):
        raise ValueError("there is\nno memory")

    session = session_of(path, refit=fit)
    decide(session)
    findings = session.findings
    session.refit()
    until(lambda: session.state(FIRST)["refit"]["state"] != "running")
    refit = session.state(FIRST)["refit"]
    assert refit["state"] == "failed"
    assert refit["message"].endswith("there is no memory")
    assert session.findings is findings
    decide(session)
    session.close()


def test_without_a_model_nothing_can_be_fitted_again(session):
    assert "The model is not here" in session.state(FIRST)["notice"]
    with pytest.raises(ValueError, match="To fit again"):
        session.refit()


# -------------------------------------------------------------------------------------------------- tables of all kinds


def named(rows=None, labels=None):
    found = fitted().findings
    columns = found.columns if labels is None else pd.Index(labels, dtype=object)
    form = found.form if labels is None else replace(found.form, names=np.array(labels, dtype=object))
    return replace(found, index=found.index if rows is None else rows, columns=columns, form=form)


@pytest.mark.parametrize(
    "rows",
    [
        pd.RangeIndex(60),
        pd.Index(range(100, 160)),
        pd.Index([at + 0.5 for at in range(60)]),
        pd.date_range("2024-01-31", periods=60, freq="h"),
        pd.date_range("2024-01-31", periods=60, freq="h", tz="Europe/Berlin"),
        pd.Index(["same"] * 60),  # then rows are called by their positions
        pd.Index([f"=cmd|{at}" for at in range(60)]),
        pd.Index([f'a"{at}\n<script>' for at in range(60)]),
        pd.Index([f"{at:03d}" for at in range(60)]),
        pd.Index([("a", at) for at in range(60)], tupleize_cols=False),
        pd.MultiIndex.from_arrays([np.arange(60) // 7, np.arange(60) % 7], names=["site", "year"]),
    ],
    ids=lambda rows: type(rows).__name__ + text_of(rows[1])[:12],
)
def test_rows_of_any_name_go_on_after_a_restart(path, rows):
    for answered in range(2):
        session = session_of(path, findings=named(rows))
        state = session.state(FIRST)
        assert state["audit"] == {"planned": 6, "answered": answered}
        row = int(state["cell"]["cell"].split(".")[0])
        assert state["cell"]["row"] == text_of(named(rows).rows[row])
        decide(session)
        session.close()
    assert len(named(rows).audit(path).decisions) == 2


def test_labels_of_any_name_go_on_after_a_restart(path):
    labels = ['say "yes"', "=cmd|a\nb", "<script>alert(1)</script>"]
    for answered in range(2):
        session = session_of(path, findings=named(labels=labels))
        assert session.state(FIRST)["labels"] == labels
        assert session.state(FIRST)["audit"]["answered"] == answered
        decide(session)
        session.close()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pd.Index([1, "1", *range(2, 60)], dtype=object), "called '1'"),
        (pd.Index(["a\0", *map(str, range(59))]), "no text file"),
    ],
)
def test_names_that_no_file_can_tell_apart_are_refused(path, rows, words):
    with pytest.raises(DecisionError, match=words):
        session_of(path, findings=named(rows))


def test_one_label(path):
    X, Y, _ = table_of()
    model = sylvan.auto(5, max_layers=2, random_state=0, n_jobs=1).fit(X, Y[["calm"]])
    session = session_of(path, findings=model.labels_)
    for _ in range(8):
        decide(session, "confirmed")
    assert session.state(FIRST)["bar"]["confirmed"] == 8
    session.close()


def test_zeros_that_are_absent_are_not_asked(path):
    X, Y, _ = table_of()
    Y = Y.astype(float).mask(np.random.default_rng(0).random(Y.shape) < 0.1)
    model = sylvan.auto(5, max_layers=2, random_state=0, n_jobs=1).fit(X, Y)
    session = session_of(path, findings=model.labels_, audit=0)
    assert len(model.labels_.audit().ranking.cells) == Y.isna().to_numpy().sum()
    while (cell := session.state(FIRST)["cell"]) is not None:
        row, label = map(int, cell["cell"].split("."))
        assert np.isnan(Y.iloc[row, label])
        session.decide(cell["cell"], "rejected", None)
    session.close()


def test_a_model_without_calibration(path):
    X, Y, _ = table_of()
    model = sylvan.slcforest(5, max_layers=2, random_state=0, n_jobs=1).fit(X, Y)
    session = session_of(path, findings=model.labels_)
    for _ in range(8):
        decide(session, "rejected")
    until(lambda: not session.state(FIRST)["bar"]["counting"])
    session.close()


@pytest.mark.parametrize("classes", [["a", "b", "c"], ["a", "b"]])
def test_classes_are_refused(path, classes):
    X, _, _ = table_of()
    y = pd.Series(np.array(classes)[np.arange(60) % len(classes)], X.index)
    model = sylvan.gcforest(5, max_layers=1, random_state=0, n_jobs=1).fit(X, y)
    with pytest.raises(DecisionError, match="classes have none"):
        session_of(path, findings=model.labels_)


def test_the_columns_are_those_of_decisions(path):
    session_of(path).close()
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
