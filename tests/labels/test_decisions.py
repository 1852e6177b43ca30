"""Decisions are read as they were meant or refused; what they say of other cells is what plain code says."""

import gzip
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls
from scipy.special import expit, logit
from scipy.stats import hypergeom

from strategies import examples
from sylvan.exceptions import DecisionError, DecisionWarning
from sylvan.labels import recalibrate
from sylvan.labels.audit import Audit
from sylvan.labels.decisions import COLUMNS, read_decisions
from sylvan.labels.promise import Part, keeps_promise, least_right
from sylvan.labels.recalibrate import Recalibration


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Numbers are few: threads of BLAS would only wait for each other."""
    with threadpoolctl.threadpool_limits(1):
        yield


NAMES = ["a", "b", "c"]
RECORDED = np.zeros((6, 3), bool)
RECORDED[0, 0] = True
CANDIDATES = ~RECORDED
CANDIDATES[5, 2] = False  # known to be absent
DRAWN = {"how": "audited", "chance": 0.5, "stratum": "ranks 1 to 10, 8 cells", "audit": "abcdef01-count-1-0-0-0a1b2c"}


def read(lines, rows=range(6), labels=NAMES):
    """The decisions of lines, a table, a path or a list of these."""
    is_made_here = isinstance(lines, dict) or (isinstance(lines, list) and isinstance(lines[0], dict))
    lines = pd.DataFrame(lines) if is_made_here else lines
    rows = rows if isinstance(rows, pd.Index) else pd.Index(list(rows), tupleize_cols=False)
    return read_decisions(lines, rows, labels, RECORDED, CANDIDATES)


def found(decisions):
    return dict(zip(zip(decisions.row.tolist(), decisions.label.tolist()), decisions.decision.tolist()))


def line(row=1, label="a", decision="confirmed", **more):
    return {"row": row, "label": label, "decision": decision, **more}


# ------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (["confirmed", "Confirmed ", "ACCEPT", "accepted", "yes", "Y", 1, 1.0, True, np.int64(1), np.True_, "true"], 1),
        (["rejected", "Reject", "NO", "n", 0, 0.0, False, np.float64(0), "FALSE", "0"], -1),
        (["unsure", " Unsure", "?", "cannot tell"], 0),
    ],
)
def test_words(words, meaning):
    for word in words:
        assert found(read([line(decision=word)])) == {(1, 0): meaning}, word


@pytest.mark.parametrize("blank", ["", " ", None, np.nan, pd.NA, pd.NaT, "NA", "nan"])
@pytest.mark.parametrize("more", [{}, DRAWN])
def test_blank_decisions_wait(blank, more):
    assert len(read([line(decision=blank, **more)])) == 0
    assert found(read([line(decision=blank, **more), line(2, "b", "no", **more)])) == {(2, 1): -1}


def test_nothing_decided_is_nothing():
    for empty in ({"row": [], "label": [], "decision": []}, pd.DataFrame([], columns=list(COLUMNS))):
        assert len(read(empty)) == 0


# ------------------------------------------------------------------------------------------------------------- files

FILES = {
    "comma.csv": ("row,label,decision\n1,a,yes\n2,b,no\n", "utf-8"),
    "tabs.tsv": ("row\tlabel\tdecision\n1\ta\tyes\n2\tb\tno\n", "utf-8"),
    "tabs.csv": ("row\tlabel\tdecision\r\n1\ta\tyes\r\n2\tb\tno\r\n", "utf-16"),
    "excel.csv": ("Row;Label;Decision;who\r\n1;a;Yes;\r\n2;b;No;\r\n;;;\r\n\r\n", "utf-8-sig"),
    "bars.txt": ("label|row|decision\na|1|yes\nb|2|no", "utf-8"),
    "quotes.csv": ('"row","label","decision","note"\n"1","a","yes","x, ""y""\nz"\n2,b,no,\n', "utf-8"),
    "index.csv": (",row,label,decision,\n0,1,a,yes,\n1,2,b,no,\n", "utf-8"),
    "short.csv": ("row,label,decision,who\n1,a,yes\n2,b,no\n3,c\n", "utf-8"),
    "zipped.csv.gz": ("row,label,decision\n1,a,yes\n2,b,no\n", "utf-8"),
}


def write(path, text, encoding="utf-8"):
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path):
    path = write(tmp_path / name, *FILES[name])
    assert found(read(path)) == found(read(str(path))) == found(read([path])) == {(1, 0): 1, (2, 1): -1}
    assert found(read([path, pd.DataFrame([line(3, "c")])])) == {(1, 0): 1, (2, 1): -1, (3, 2): 1}


def test_chances_with_a_comma_are_read(tmp_path):
    text = "row;label;decision;how;chance;stratum;audit\n1;a;yes;audited;0,125;ranks 1 to 10, 8 cells;ab-count-1-0-0\n"
    assert read(write(tmp_path / "audit.csv", text)).chance.tolist() == [0.125]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nothing.csv", None, "nothing.csv cannot be read as a table of decisions: No such file"),
        ("folder", "folder", "Is a directory"),
        ("empty.csv", b"", "is empty"),
        ("blanks.csv", b" \n\n,,\n", "is empty"),
        ("one.csv", b"decision\nconfirmed\n", "need the column 'row'; it has 'decision'"),
        ("table.parquet", b"PAR1\x15\x04\x15\x00", "table.parquet"),
        ("bad.csv.gz", b"row,label,decision", "bad.csv.gz cannot be read"),
        ("open.csv", b'row,label,decision\n1,"a,yes\n', "open.csv cannot be read"),
        ("long.csv", b"row,label,decision\n1,a,b,yes\n", "more cells than columns: '1', 'a', 'b', 'yes'"),
        ("twice.csv", b"row,Row,label,decision\n1,2,a,yes\n", "two columns 'row'"),
    ],
)
def test_files_that_cannot_be_read(name, content, words, tmp_path):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(DecisionError, match=words):
        read(path)


@pytest.mark.parametrize("word", ["ja", "confirmed", "x", "yes", "1", "1.0", "oui", "TRUE"])
def test_files_as_spreadsheets_on_windows_write_them(word, tmp_path):
    (tmp_path / "d.csv").write_bytes(f"row;label;decision;who\r\n1;b;{word};Jörg\r\n2;b;nein;Jörg\r\n".encode("cp1252"))
    found = read(tmp_path / "d.csv")
    assert found.decision.tolist() == [1, -1]


@pytest.mark.parametrize("wrong", [5, None, np.zeros(3), "nothing", b"x", [5], [None], {1}])
def test_other_things_are_no_decisions(wrong):
    with pytest.raises((TypeError, DecisionError), match=r"decisions must be a DataFrame|No such file"):
        read_decisions(wrong, pd.RangeIndex(6), NAMES, RECORDED, CANDIDATES)


@pytest.mark.parametrize("nothing", [[], ()])
def test_an_empty_list_is_refused(nothing):
    with pytest.raises(DecisionError, match="leave it out if nobody has decided"):
        read_decisions(nothing, pd.RangeIndex(6), NAMES, RECORDED, CANDIDATES)


# ----------------------------------------------------------------------------------------------- names of rows, labels

INDEXES = {
    "numbers": pd.RangeIndex(10, 16),
    "floats": pd.Index([0.5, 1, 2, 3, 4, 5]),
    "text": pd.Index(list("uvwxyz")),
    "numbers as text": pd.Index(list("987654")),
    "zeros in front": pd.Index([f"00{at}" for at in range(6)]),
    "words for nothing": pd.Index(["x", "NA", "None", "nan", "null", ""]),
    "formulas": pd.Index(["=1", "+2", "-3", "@4", "5", "6"]),
    "separators": pd.Index(["a,b", "c;d", "e\tf", 'g"h', "i\nj", "k"]),
    "days": pd.date_range("2024-01-01", periods=6),
    "times": pd.date_range("2024-01-01 10:00:00.5", periods=6, freq="h"),
    "zones": pd.date_range("2024-03-30", periods=6, tz="Europe/Berlin"),
    "spans": pd.timedelta_range("1 days", periods=6),
    "months": pd.period_range("2024-01", periods=6, freq="M"),
    "dates": pd.Index([day.date() for day in pd.date_range("2024-01-01", periods=6)]),
    "categories": pd.CategoricalIndex(list("uvwxyz")),
    "two levels": pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]]),
    "mixture": pd.Index([1, "a", 2.5, ("x", 1), "2", b"3"], dtype=object, tupleize_cols=False),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_rows_of_any_name_come_back_from_a_file(index, tmp_path):
    table = pd.DataFrame({"row": index[[1, 3, 2]], "label": ["a", "b", "c"], "decision": ["yes", "no", "?"]})
    expected = {(1, 0): 1, (3, 1): -1, (2, 2): 0}
    assert found(read(table, index)) == expected
    table.to_csv(tmp_path / "file.csv", index=False)
    assert found(read(tmp_path / "file.csv", index)) == expected
    more = pd.DataFrame({"row": index[[4]], "label": ["a"], "decision": ["yes"]})
    assert found(read([tmp_path / "file.csv", table, more], index)) == expected | {(4, 0): 1}


@pytest.mark.parametrize(
    "labels", [["1", "2", "3"], [1, 2, 3], [("a", 1), ("b", 2), ("c", 3)], [True, "x", 2.5], ["NA", "None", ""]]
)
def test_labels_of_any_name_come_back_from_a_file(labels, tmp_path):
    names = pd.Series([labels[2], labels[0], labels[1]], dtype=object)
    table = pd.DataFrame({"row": [1, 2, 3], "label": names, "decision": ["yes", "no", "yes"]})
    expected = {(1, 2): 1, (2, 0): -1, (3, 1): 1}
    assert found(read(table, labels=labels)) == expected
    table.to_csv(tmp_path / "file.csv", index=False)
    assert found(read(tmp_path / "file.csv", labels=labels)) == expected


def test_zeros_that_a_spreadsheet_dropped_are_missed():
    with pytest.raises(DecisionError, match=r"not have: 3; did you mean '003'\? Spreadsheets drop zeros in front"):
        read([line(3)], INDEXES["zeros in front"])


def test_numbers_that_became_floats_are_found():
    assert found(read({"row": [1.0, 2.0], "label": ["a", "b"], "decision": [1.0, np.nan]})) == {(1, 0): 1}
    assert found(read([line("4.0")], pd.Index([0.5, 1, 2, 3, 4, 5]))) == {(4, 0): 1}


def test_no_day_is_guessed():
    days = pd.date_range("2024-01-01", periods=6)
    assert found(read([line("2024-01-02"), line("2024-01-03T00:00")], days)) == {(1, 0): 1, (2, 0): 1}
    with pytest.raises(DecisionError, match="01/02/2024"):
        read([line("01/02/2024")], days)


# ----------------------------------------------------------------------------------------------- who decided, and when

A, B, C = "Ann", "Bob", "Eve"
VOICES = {
    "one": ([(A, "yes")], 1, 0, 0),
    "two agree": ([(A, "yes"), (B, "yes")], 1, 1, 1),
    "two disagree": ([(A, "yes"), (B, "no")], 0, 1, 0),
    "two of three": ([(A, "no"), (B, "yes"), (C, "no")], -1, 1, 0),
    "unsure has no vote": ([(A, "unsure"), (B, "yes")], 1, 0, 0),
    "tie and unsure": ([(A, "no"), (B, "yes"), (C, "?")], 0, 1, 0),
    "all unsure": ([(A, "?"), (B, "?")], 0, 0, 0),
    "named and nameless": ([("", "no"), (B, "no")], -1, 1, 1),
    "the same line twice": ([(A, "yes"), (A, "yes"), (B, "no")], 0, 1, 0),
    "nameless twice": ([("", "yes"), (None, "yes")], 1, 0, 0),
    "blanks around names": ([(A, "yes"), (" Ann ", "yes")], 1, 0, 0),
}


@pytest.mark.parametrize(("voices", "decision", "n_twice", "n_agree"), VOICES.values(), ids=VOICES)
def test_the_majority_decides(voices, decision, n_twice, n_agree):
    merged = read([line(decision=word, who=who) for who, word in voices])
    assert (found(merged), merged.n_twice, merged.n_agree) == ({(1, 0): decision}, n_twice, n_agree)


@pytest.mark.parametrize("who", [A, ""])
@pytest.mark.parametrize("times", [("2024-01-01 10:00", "2024-01-02"), ("2024-01-01T10:00Z", "2024-01-01T13:00+02:00")])
def test_the_later_decision_of_a_person_counts(who, times):
    early, late = (line(decision=word, who=who, when=when) for word, when in zip(("yes", "no"), times))
    for lines in ([early, late], [late, early]):
        assert found(read(lines)) == {(1, 0): -1}
    assert found(read([early, late, line(decision="yes", who=B)])) == {(1, 0): 0}
    assert found(read([early | DRAWN, late])) == {(1, 0): -1}
    assert read([late, early | DRAWN]).chance.tolist() == [0.5]  # how it was chosen stays
    assert found(read([early, late, late | {"decision": "yes", "when": "2025-01-01"}])) == {(1, 0): 1}


@pytest.mark.parametrize("times", [(None, None), ("2024-01-01", None), ("2024-01-01", "2024-01-01"), ("soon", "now")])
def test_two_decisions_without_an_order_are_refused(times):
    lines = [line(decision=word, who=A, when=when) for word, when in zip(("yes", "no"), times)]
    with pytest.raises(DecisionError, match="Row 1, label 'a' is decided twice by Ann, and not the same"):
        read(lines)


def drawn_order(answers, others):
    """A plan of six draws with answers of one person, and decisions of another about cells of it."""
    order = [(row, label) for label in "ab" for row in (1, 2, 3)]
    plan = [line(row, label, "", **DRAWN) for row, label in order]
    plan += [line(*order[at], "rejected", who="ana", **DRAWN) for at in answers]
    return plan + [line(*order[at], "confirmed", who="ben") for at in others]


@pytest.mark.parametrize(
    ("answers", "others", "counted"),
    [
        ([0, 1], [], [0, 1]),
        ([0, 2], [1], [0, 1, 2]),  # she need not look at it again
        ([0], [4], [0]),  # further down nobody has been yet: it waits
        ([0], [1, 2, 4], [0, 1, 2]),
        ([1, 3, 5], [0, 2, 4], [0, 1, 2, 3, 4, 5]),
        ([], [0, 2], [0]),
        ([2], [], [2]),
    ],
)
def test_a_draw_is_answered_by_whoever_decides_its_cell(answers, others, counted):
    read_all = read(drawn_order(answers, others))
    draws = {(int(read_all.row[at]), int(read_all.label[at])) for at in read_all.drawn}
    assert draws == {(1 + at % 3, at // 3) for at in counted}
    assert len(read_all) == len({*answers, *others})


def test_what_others_have_decided_does_not_bend_a_count():
    """One person's audit, of which another one has decided the most probable cells before: the same numbers."""
    proba, present, recorded = made(3, n=200)
    start = Audit.from_probabilities(proba, recorded)
    plan = answered(start.plan(60, random_state=0), present).assign(who="ana")
    ben = answered(pd.DataFrame(start.ranking.frame(start.ranking.cells[:150])), present).assign(who="ben")
    seen = set(zip(ben["row"], ben["label"]))
    left = plan[[cell not in seen for cell in zip(plan["row"], plan["label"])]]
    assert 0 < len(left) < 60
    asked = pd.concat([plan.assign(decision="", who=""), left, ben], ignore_index=True)
    whole = pd.concat([plan, ben], ignore_index=True)
    one, other = (Audit.from_probabilities(proba, recorded, table).n_missing() for table in (asked, whole))
    pd.testing.assert_frame_equal(one, other)


@st.composite
def said(draw):
    """Lines of which no person says two things of a cell, in two orders."""
    keys = st.tuples(st.integers(1, 4), st.sampled_from("bc"), st.sampled_from(["", A, B, C]))
    keys = draw(st.lists(keys, min_size=1, max_size=12, unique=True))
    kinds = [{}, DRAWN, DRAWN | {"audit": "abcdef01-list-2-0-0-0a1b2c", "stratum": "ranks 1 to 9, 9 cells"}]
    lines = [
        line(row, label, draw(st.sampled_from(["yes", "no", "?"])), who=who, **draw(st.sampled_from(kinds)))
        for row, label, who in keys
    ]
    lines += draw(st.lists(st.sampled_from(lines), max_size=2))
    return lines, draw(st.permutations(lines)), draw(st.integers(0, len(lines)))


@given(said())
@examples(60)
def test_the_order_of_lines_and_files_does_not_matter(case):
    lines, others, cut = case
    first, second = read(lines), read(others)
    for name in ("row", "label", "decision", "drawn", "chance", "first", "last", "size"):
        assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.audit, first.n_twice, first.n_agree) == (second.audit, second.n_twice, second.n_agree)
    if 0 < cut < len(lines):
        parts = read([pd.DataFrame(others[:cut]), pd.DataFrame(others[cut:])])
        assert found(parts) == found(first)
    votes = {}
    for each in lines:
        cell = each["row"], NAMES.index(each["label"])
        votes.setdefault(cell, {})[each["who"]] = {"yes": 1, "no": -1, "?": 0}[each["decision"]]
    assert found(first) == {cell: int(np.sign(sum(of.values()))) for cell, of in votes.items()}
    drawn = {(each["row"], NAMES.index(each["label"]), each["audit"]) for each in lines if "how" in each}
    assert {(*list(found(first))[at], name) for at, name in zip(first.drawn, first.audit)} == drawn


# ------------------------------------------------------------------------------------------------- what is refused

BAD = {
    "row": (line("zz"), r"1 row that the table does not have: 'zz'; there are 0, 1, 2, 3, 4, \.\.\. \(6 in all\)"),
    "label": (line(label="aa"), "1 label that the table does not have: 'aa'; did you mean 'a'"),
    "no row": (line(None), "1 row that the table does not have"),
    "decision": (line(decision="perhaps"), "Row 1, label 'a' has the decision 'perhaps'; a decision is 'confirmed'"),
    "recorded": (line(0), "recorded already, the first: row 0, label 'a'. Decisions must not be written into"),
    "recorded, rejected": (line(0, decision="no"), "A recorded label cannot be rejected; if it is wrong, correct it"),
    "absent": (line(5, "c"), "1 decision is about cells that the table says are absent, the first: row 5, label 'c'"),
    "how": (line(how="guessed"), "'how' says 'audited' or 'reviewed', not 'guessed'"),
    "no chance": (line(how="audited"), "its chance of being drawn is missing"),
    "chance 0": (line(**DRAWN | {"chance": 0}), r"is (0|0\.0): it must be greater than 0 and at most 1"),
    "chance 2": (line(**DRAWN | {"chance": 2.0}), r"is 2\.0: it must be greater than 0"),
    "chance below 0": (line(**DRAWN | {"chance": -0.5}), r"is -0\.5: it must be greater than 0"),
    "endless chance": (line(**DRAWN | {"chance": np.inf}), "is inf: it must be greater than 0"),
    "chance in words": (line(**DRAWN | {"chance": "half"}), "is 'half': it must be greater than 0"),
    "chance, but not how": (line(**DRAWN | {"how": "", "chance": "half"}), "is 'half': it must be greater than 0"),
    "no stratum": (line(**DRAWN | {"stratum": None}), "need the columns 'stratum' and 'audit'"),
    "no audit": (line(**DRAWN | {"audit": ""}), "need the columns 'stratum' and 'audit'"),
    "other stratum": (line(**DRAWN | {"stratum": "the best"}), "need the columns 'stratum' and 'audit'"),
    "rank 0": (line(**DRAWN | {"stratum": "ranks 0 to 3, 2 cells"}), "'ranks 0 to 3, 2 cells' is not a stratum"),
    "ranks backwards": (line(**DRAWN | {"stratum": "ranks 9 to 3, 2 cells"}), "is not a stratum"),
    "too many cells": (line(**DRAWN | {"stratum": "ranks 1 to 3, 4 cells"}), "is not a stratum"),
    "no cells": (line(**DRAWN | {"stratum": "ranks 1 to 3, 0 cells"}), "is not a stratum"),
    "huge ranks": (line(**DRAWN | {"stratum": f"ranks 1 to {10**30}, 4 cells"}), "need the columns"),
    "other audit": (line(**DRAWN | {"audit": "mine"}), "'mine' does not name an audit; keep the column 'audit'"),
    "evil audit": (line(**DRAWN | {"audit": "ab-evil-1-0"}), "'ab-evil-1-0' does not name an audit"),
}


@pytest.mark.parametrize(("wrong", "words"), BAD.values(), ids=BAD)
def test_bad_lines_are_refused(wrong, words):
    for lines in ([wrong], [line(2, "b"), wrong], [wrong, line(2, "b", "")]):
        with pytest.raises(DecisionError, match=words):
            read(lines)


@pytest.mark.parametrize("column", ["row", "label", "decision"])
def test_missing_columns_are_named(column):
    table = pd.DataFrame([line()]).rename(columns={column: f"{column}s"})
    with pytest.raises(DecisionError, match=f"need the column '{column}'; did you mean '{column}s'"):
        read(table)


def test_a_table_without_a_column_is_named(tmp_path):
    path = write(tmp_path / "short.csv", "row,label\n1,a\n")
    with pytest.raises(DecisionError, match=r"short\.csv\) need the column 'decision'; it has 'row', 'label'"):
        read([pd.DataFrame([line()]), path])


def test_labels_of_one_name_cannot_be_told_apart():
    with pytest.raises(DecisionError, match="two labels 'a'"):
        read([line()], labels=["a", "b", "a"])


def test_a_waiting_line_may_be_wrong():
    wrong = [line(0, decision=""), line(99, decision=None), line(decision="", how="guessed", chance=7)]
    assert len(read(wrong)) == 0


LIES = {
    "row": np.array([-1]),
    "label": np.array([-1]),
    "decision": np.array([2], np.int8),
    "drawn": np.array([1]),
    "chance": np.array([0.0]),
    "first": np.array([0]),
    "last": np.array([5]),
    "size": np.array([11]),
    "audit": [""],
    "n_twice": -1,
    "n_agree": 1,
}


@pytest.mark.parametrize("name", LIES)
def test_decisions_that_lie_cannot_come_from_a_file(name):
    true = read([line(**DRAWN)])
    true._check_stored()
    with pytest.raises(ValueError, match=r"must|There are|were drawn|Drawn|Audits have"):
        replace(true, **{name: LIES[name]})._check_stored()
    with pytest.raises(ValueError, match="Audits have other names"):
        replace(true, audit=["mine"])._check_stored()


# ------------------------------------------------------------------------------------------------------- plans


def made(seed, n=60, n_labels=4):
    """Probabilities, what is present and what is recorded."""
    rng = np.random.default_rng(seed)
    proba = rng.beta(0.5, 1.5, (n, n_labels))
    present = rng.random(proba.shape) < proba**1.3
    return proba, present, present & (rng.random(proba.shape) < 0.5)


def answered(plan, present, words=("confirmed", "rejected")):
    right = present[plan["row"].astype(int), plan["label"].astype(int)]
    return plan.assign(decision=np.where(right, *words))


def numbers_of(plan):
    """First and last rank of each cell's stratum, from 1 on, and its size."""
    return plan["stratum"].str.extract(r"ranks (\d+) to (\d+), (\d+) cells").astype(int).to_numpy()


@pytest.mark.parametrize("precision", [None, 0.7])
@pytest.mark.parametrize("n", [1, 7, 40, 1000])
def test_chances_are_what_was_drawn_of_each_stratum(n, precision):
    proba, _, recorded = made(0)
    audit = Audit.from_probabilities(proba, recorded)
    plan = audit.plan(n, precision=precision, random_state=3)
    pd.testing.assert_frame_equal(plan, audit.plan(n, precision=precision, random_state=3))
    assert plan.columns.tolist() == list(COLUMNS)
    n_open = (~recorded).sum()
    assert len(plan) == min(n, n_open) or precision
    assert not plan.duplicated(["row", "label"]).any()
    assert (plan["decision"] == "").all()
    first, last, size = numbers_of(plan).T
    counts = plan.groupby("stratum")["row"].transform("size")
    assert_allclose(plan["chance"], counts / size)
    assert (size == last - first + 1).all()  # nothing is decided yet
    order = np.argsort(-np.where(recorded, -1, proba).ravel(), kind="stable")
    rank = 1 + np.argsort(order)[plan["row"].astype(int) * 4 + plan["label"].astype(int)]
    assert ((rank >= first) & (rank <= last)).all()
    if n < n_open:
        assert not plan.equals(audit.plan(n, precision=precision, random_state=4))


def test_cells_are_drawn_as_often_as_their_chance_says():
    proba, _, recorded = made(1, n=10)
    audit = Audit.from_probabilities(proba, recorded)
    n_draws, drawn, chance = 300, np.zeros(proba.shape), np.full(proba.shape, np.nan)
    for seed in range(n_draws):
        plan = audit.plan(12, random_state=seed)
        at = plan["row"].astype(int), plan["label"].astype(int)
        drawn[at] += 1
        chance[at] = plan["chance"]
    assert (drawn[~recorded] > 0).all()
    assert (drawn[recorded] == 0).all()
    share, p = drawn[~recorded] / n_draws, chance[~recorded]
    assert len(np.unique(p)) > 1
    z = (share - p) / np.sqrt(p * (1 - p) / n_draws)
    assert np.abs(z).max() < 4
    assert p.sum() == pytest.approx(12)


def test_decided_cells_are_not_drawn_again():
    proba, present, recorded = made(2)
    audit = Audit.from_probabilities(proba, recorded)
    parts = [answered(audit.plan(50, random_state=0), present)]
    parts[0].loc[:9, "decision"] = "unsure"
    while True:
        try:
            plan = Audit.from_probabilities(proba, recorded, parts).plan(60, random_state=0)
        except ValueError as error:
            assert "no cell left to look at" in str(error)  # noqa: PT017 (the end is reached by plans)
            break
        parts.append(answered(plan, present))
    cells = pd.concat(parts)
    assert not cells.duplicated(["row", "label"]).any()
    assert len(cells) == (~recorded).sum()
    assert len(set(cells["audit"])) == len(parts)
    last = Audit.from_probabilities(proba, recorded, parts).n_missing().loc["all labels"]
    n_said = (cells["decision"] == "confirmed").sum()
    assert last["confirmed"] == n_said <= last["low"] <= last["missing"] <= last["high"] <= n_said + 10


def test_a_plan_that_nobody_filled_in_says_nothing():
    proba, _, recorded = made(3)
    audit = Audit.from_probabilities(proba, recorded)
    waiting = Audit.from_probabilities(proba, recorded, audit.plan(20, random_state=0))
    pd.testing.assert_frame_equal(waiting.n_missing(), audit.n_missing())
    assert not waiting.is_audited


# ------------------------------------------------------------------------------------------------- what answers say

ANSWERS = {
    "truth": lambda right, rng: np.where(right, "yes", "no"),
    "all confirmed": lambda right, rng: np.full(len(right), "yes"),
    "all rejected": lambda right, rng: np.full(len(right), "no"),
    "all unsure": lambda right, rng: np.full(len(right), "unsure"),
    "some wait": lambda right, rng: rng.choice(["yes", "no", "unsure", ""], len(right)),
}


@pytest.mark.parametrize("kind", [*ANSWERS, "one label", "one row"])
@pytest.mark.parametrize(("seed", "precision", "n"), [(0, None, 15), (1, 0.6, 30), (2, None, 3)])
@pytest.mark.filterwarnings("ignore::sylvan.exceptions.DecisionWarning")
def test_numbers_stay_where_they_can_be(kind, seed, precision, n):
    proba, present, recorded = made(seed, n=20)
    rng = np.random.default_rng(seed)
    plan = Audit.from_probabilities(proba, recorded).plan(n, precision=precision, random_state=seed)
    right = present[plan["row"].astype(int), plan["label"].astype(int)]
    first = plan.assign(decision=ANSWERS.get(kind, ANSWERS["truth"])(right, rng))
    if kind.startswith("one "):
        column = kind.removeprefix("one ")
        first.loc[first[column] != first[column].iloc[0], "decision"] = ""
    parts = [first]
    for _ in range(2):
        audit = Audit.from_probabilities(proba, recorded, parts)
        check_numbers(audit, recorded, proba)
        try:
            plan = audit.plan(n, precision=precision, random_state=seed)
        except ValueError:
            break
        if plan.empty:
            break
        parts.append(answered(plan, present))


def check_numbers(audit, recorded, proba):
    d, open_cells = audit.decisions, ~recorded
    marks = d.marks(proba.shape)
    table = audit.n_missing()
    confirmed = np.append((marks == 1).sum(axis=0), (marks == 1).sum())
    possible = np.append((open_cells & (marks != -1)).sum(axis=0), (open_cells & (marks != -1)).sum())
    assert_array_equal(table["confirmed"], confirmed)
    assert (table["low"] >= confirmed - 1e-9).all(), table
    assert (table["low"] <= table["missing"] + 1e-9).all(), table
    assert (table["missing"] <= table["high"] + 1e-9).all(), table
    assert (table["high"] <= possible + 1e-9).all(), (table, possible)
    c = audit.frequency()
    assert ((c.low <= c.value + 1e-12) & (c.value <= c.high + 1e-12)).all()
    p = audit.missing
    assert ((p >= 0) & (p <= 1)).all()
    assert (p[marks == 1] == 1).all()
    assert (p[marks == -1] == 0).all()
    unsure = np.zeros(proba.shape, bool)
    unsure[d.row[d.decision == 0], d.label[d.decision == 0]] = True
    for precision in (0.3, 0.8):
        certificate = audit.certify(precision)
        cells = certificate.cells
        at = cells["row"].astype(int), cells["label"].astype(int)
        assert not recorded[at].any()
        assert not (marks == -1)[at].any()
        assert not (certificate.certified and unsure[at].any())
        assert_array_equal(cells["confirmed"], marks[at] == 1)
        assert not cells.duplicated(["row", "label"]).any()
        frame = certificate.as_frame()
        assert set(frame["promise"]) <= {"certified" if certificate.certified else "expected"}
        assert frame.attrs["note"] == certificate.note == str(certificate)
        if certificate.certified:
            assert f"At least {precision:.0%} of these {len(cells):,} cells are right" in certificate.note
        if len(cells):
            share = audit.precision_of(cells)
            assert -1e-9 <= share["low"] <= share["high"] <= 1 + 1e-9, share
            assert 0 <= share["precision"] <= 1


@pytest.mark.parametrize("seed", [0, 18])
def test_what_people_confirmed_of_a_list_is_right(seed):
    proba, present, recorded = made(seed, n=20)
    parts = []
    for _ in range(3):
        audit = Audit.from_probabilities(proba, recorded, parts or None)
        for cells in (audit.certify(precision).cells for precision in (0.3, 0.8) if parts):
            share, sure = audit.precision_of(cells), cells["confirmed"].mean()
            assert sure <= share["low"] + 1e-9, share
            assert sure <= share["high"] + 1e-9, share
        parts.append(answered(audit.plan(15, precision=0.6, random_state=seed), present))


def test_the_number_of_missing_labels_is_that_of_plain_code():
    """Sum over strata of their size times the share found, of two audits, the second without what the first decided."""
    proba, present, recorded = made(5, n=200)
    first = answered(Audit.from_probabilities(proba, recorded).plan(60, random_state=1), present)
    expected = plain_number(first)
    one = Audit.from_probabilities(proba, recorded, first)
    assert one.n_missing().loc["all labels", "missing"] == pytest.approx(expected)
    second = answered(one.plan(60, random_state=2), present)
    before = (first["decision"] == "confirmed").sum()
    both = Audit.from_probabilities(proba, recorded, [first, second]).n_missing().loc["all labels"]
    ends = sorted([expected, before + plain_number(second)])
    assert ends[0] <= both["missing"] <= ends[1]
    assert both["high"] / both["low"] < one.n_missing()["high"].iloc[-1] / one.n_missing()["low"].iloc[-1]
    truth = (present & ~recorded).sum()
    assert 0.6 * truth < both["missing"] < 1.5 * truth


def plain_number(plan):
    total = 0.0
    for _, lines in plan.groupby("stratum"):
        size = numbers_of(lines)[0, 2]
        total += size * (lines["decision"] == "confirmed").mean()
    return total


def test_an_audit_of_another_ranking_counts_but_cannot_certify():
    proba, present, recorded = made(6, n=200)
    audit = Audit.from_probabilities(proba, recorded)
    count = answered(audit.plan(150, random_state=0), present)
    assert Audit.from_probabilities(proba, recorded, count).certify(0.3).certified
    other = np.random.default_rng(0).permuted(proba, axis=0)
    foreign = Audit.from_probabilities(other, recorded, count)
    with pytest.warns(DecisionWarning, match="drawn from another ranking"):
        certificate = foreign.certify(0.3)
    assert not certificate.certified
    assert foreign.is_audited
    assert foreign.n_missing().loc["all labels", "missing"] == pytest.approx(plain_number(count))


def test_a_plan_comes_back_from_a_spreadsheet(tmp_path):
    proba, present, recorded = made(7)
    audit = Audit.from_probabilities(proba, recorded)
    plan = answered(audit.plan(50, random_state=0), present, ("Yes", "No"))
    path = tmp_path / "audit.csv"
    plan.to_csv(path)  # with an index
    expected = Audit.from_probabilities(proba, recorded, plan).n_missing()
    pd.testing.assert_frame_equal(Audit.from_probabilities(proba, recorded, path).n_missing(), expected)
    commas = plan.assign(chance=plan["chance"].map(lambda chance: f"{chance:.15g}".replace(".", ",")))
    commas.columns = commas.columns.str.upper()
    commas.to_csv(path, sep=";", index=False, encoding="utf-8-sig", lineterminator="\r\n")
    pd.testing.assert_frame_equal(Audit.from_probabilities(proba, recorded, path).n_missing(), expected)


# ------------------------------------------------------------------------------------------------------ plain twins


def test_the_least_number_of_right_cells_is_that_of_brute_force():
    for size in (1, 2, 5, 11):
        for n in range(1, size + 1):
            for right in range(n + 1):
                for risk in (0.05, 0.3):
                    possible = range(right, size - (n - right) + 1)
                    # the first number of which so many right ones would not be a surprise
                    likely = [k for k in possible if hypergeom.pmf(range(right, n + 1), size, k, n).sum() > risk]
                    part = Part(size, n, right)
                    least = likely[0] if likely else possible[-1]
                    assert least_right(part, risk) == least, (part, risk)
                    for precision in (0.5, 0.8):
                        kept = least >= precision * (size - (n - right)) - 1e-9
                        assert bool(keeps_promise(part, size, 0, precision, risk)) == kept, (part, risk, precision)


def plain_loss(at, proba, label, right, sd):
    loss, errors = 0.0, getattr(recalibrate, "_ERRORS", 0.0)  # the share of answers that are slips
    for p, j, y in zip(proba, label, right):
        q = errors + (1 - 2 * errors) * expit(at[0] + at[1] * logit(p) + at[2 + j])
        loss -= np.log(q if y else 1 - q)
    ridge = (at[0] / recalibrate._SD[0]) ** 2 + ((at[1] - 1) / recalibrate._SD[1]) ** 2 + np.sum((at[2:] / sd) ** 2)
    return loss + 0.5 * ridge


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_recalibration_is_that_of_a_plain_loss(seed, n_labels):
    rng = np.random.default_rng(seed)
    n = (4, 30, 80)[seed]
    proba, label = rng.uniform(0.02, 0.98, n), rng.integers(0, n_labels, n)
    right = rng.random(n) < expit(-0.7 + 0.8 * logit(proba) + label)
    fitted = Recalibration.fit(proba, label, right, n_labels)
    at = np.array([fitted.intercept, fitted.slope, *fitted.offsets])
    found = []
    for sd in recalibrate._LABEL_SDS:  # how far labels are apart is found, too
        start = np.array([0.0, 1.0, *np.zeros(n_labels)])
        found.append(minimize(plain_loss, start, (proba, label, right, sd), method="BFGS", tol=1e-8).x)
    shares, _ = nnls(np.vstack([np.transpose(found), 100 * np.ones(len(found))]), np.append(at, 100))
    assert shares.sum() == pytest.approx(1, abs=1e-3)  # one of the optima, or a mean of them
    assert_allclose(np.transpose(found) @ shares, at, atol=2e-3)
    if n_labels == 1:
        assert_allclose(at, found[0], atol=2e-3)
    new = rng.random((5, n_labels))
    by_hand = 1 / (1 + np.exp(-(fitted.intercept + fitted.slope * np.log(new / (1 - new)) + fitted.offsets)))
    assert_allclose(fitted.transform(new), by_hand)
    assert_allclose(fitted.covariance, fitted.covariance.T)
    assert (np.linalg.eigvalsh(fitted.covariance) > 0).all()


def test_without_decisions_nothing_is_corrected():
    fitted = Recalibration.fit(np.empty(0), np.empty(0, int), np.empty(0, bool), 2)
    proba = np.array([[0.1, 0.9], [0.5, 0.2]])
    assert_allclose(fitted.transform(proba), proba)


def test_rejected_suggestions_lower_their_label_and_confirmed_ones_raise_it():
    proba, _, recorded = made(8, n=300)
    open_cells = np.argwhere(~recorded & (proba > 0.4))
    lines = [line(row, label, "yes" if label == 0 else "no") for row, label in open_cells if label < 2][:120]
    audit = Audit.from_probabilities(proba, recorded, pd.DataFrame(lines))
    undecided = ~recorded & (audit.decisions.marks(proba.shape) == 0)
    change = audit.missing - proba
    assert change[:, 0][undecided[:, 0]].mean() > 0.02 > -0.02 > change[:, 1][undecided[:, 1]].mean()


def test_messages_show_names_as_people_write_them():
    for lines in ([line(np.int64(70))], [line(np.int64(0))], [line(np.int64(1), decision=np.int64(7))]):
        with pytest.raises(DecisionError) as error:
            read(lines)
        assert not re.search(r"np\.|numpy", str(error.value))


def test_strata_that_contradict_each_other_are_refused():
    plan = Audit.from_probabilities(np.random.default_rng(0).random((60, 4)), np.zeros((60, 4), int)).plan(
        20, random_state=0
    )
    plan = plan.assign(decision="yes")
    rows, labels = pd.RangeIndex(60), [0, 1, 2, 3]
    nothing, open_cells = np.zeros((60, 4), bool), np.ones((60, 4), bool)
    assert len(read_decisions(plan, rows, labels, nothing, open_cells).drawn) == 20
    for stratum in ("ranks 1 to 5, 5 cells", "ranks 1 to 200, 200 cells"):
        wrong = plan.assign(stratum=np.where(np.arange(20) < 3, stratum, plan["stratum"]))
        with pytest.raises(DecisionError, match="contradict each other"):
            read_decisions(wrong, rows, labels, nothing, open_cells)


def test_names_that_were_kept_from_being_formulas_are_found():
    rows = pd.Index(["=1+1", "'=1+1", "-a", "b", "@c", "+d"])
    lines = [line("'=1+1"), line("'-a", "b", "no"), line("'@c"), line("'+d"), line("b")]
    assert found(read(lines, rows)) == {(1, 0): 1, (2, 1): -1, (4, 0): 1, (5, 0): 1, (3, 0): 1}
    assert found(read([line("'=1+1", "b")], rows[[0, 2, 3, 4, 5]].append(pd.Index(["f"])))) == {(0, 1): 1}


def test_names_may_hold_what_ends_a_line_elsewhere(tmp_path):
    rows = pd.Index(["a\u2028b", "a\x85b", "a\x0bb", "a\rb", "a\n\nb", "c"])
    pd.DataFrame([line(name, "b") for name in rows]).to_csv(tmp_path / "d.csv", index=False, quoting=1)
    assert found(read(tmp_path / "d.csv", rows)) == {(at, 1): 1 for at in range(6)}


# ----------------------------------------------------------------------------------------------------------- taken back

_TIMES = ["2026-01-01T10:00", "2026-01-01T11:00", "2026-01-01T12:00", "2026-01-01T13:00"]


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (["withdrawn"], None),
        (["yes", "withdrawn"], None),
        (["withdrawn", "yes"], 1),
        (["yes", "withdrawn", "no"], -1),
        (["yes", "no", "withdrawn"], None),
        (["yes", "withdrawn", "yes"], 1),
        (["yes", "withdrawn", "yes", "Withdrawn "], None),
        (["unsure", "withdrawn"], None),
    ],
)
@pytest.mark.parametrize("more", [{}, DRAWN])
def test_the_latest_word_may_take_back_what_was_said(words, meaning, more):
    lines = [line(decision=word, who="ana", when=when, **more) for word, when in zip(words, _TIMES)]
    for order in (lines, lines[::-1]):
        decided = read(order)
        assert found(decided) == ({} if meaning is None else {(1, 0): meaning})
        assert len(decided.drawn) == len(decided) * bool(more)


def test_one_person_takes_back_only_what_that_person_said():
    lines = [line(decision="no", who="ana", when=_TIMES[0], **DRAWN), line(decision="yes", who="ben", when=_TIMES[1])]
    lines.append(line(decision="withdrawn", who="ana", when=_TIMES[2], **DRAWN))
    decided = read(lines)
    assert found(decided) == {(1, 0): 1}
    assert decided.drawn.tolist() == [0]  # the cell was drawn, whoever answers
    assert decided.n_twice == 0


def test_what_was_taken_back_may_be_recorded_later():
    lines = [line(0, "a", "yes", who="ana", when=_TIMES[0]), line(0, "a", "withdrawn", who="ana", when=_TIMES[1])]
    assert found(read(lines)) == {}
    with pytest.raises(DecisionError, match="recorded already"):
        read(lines[:1])


def test_without_times_nobody_knows_what_was_taken_back():
    with pytest.raises(DecisionError, match="decided twice"):
        read([line(decision="yes", who="ana"), line(decision="withdrawn", who="ana")])
