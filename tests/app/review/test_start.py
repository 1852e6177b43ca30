"""The page from Python, and what it writes at the end."""

import os
import re
import socket

import httpx
import numpy as np
import pandas as pd
import pytest
import threadpoolctl

import sylvan
from app.review.made_reviews import LABELS, fitted, session_of, table_of
from page_reader import assert_harmless, read
from sylvan.app.review.finish import Results, completed_name, write_labels
from sylvan.exceptions import DecisionError, TableError
from sylvan.labels.decisions import as_table

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpoolctl.threadpool_limits(1):
        yield


def decide_all(session, n, true=None):
    """Answer as somebody does who knows the truth."""
    for _ in range(n):
        cell = session.state(sylvan.app.review.session.Order())["cell"]["cell"]
        row, label = map(int, cell.split("."))
        session.decide(cell, "confirmed" if fitted().true[row, label] else "rejected", None)


def results_of(folder, Y="made", inputs=()):
    made = fitted()
    return Results(folder, "completed.csv", write_labels(made.findings, made.Y if isinstance(Y, str) else Y), inputs)


# ----------------------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("Y", ["made", None])
def test_the_completed_table_has_confirmed_cells_and_the_list_and_no_rejected_one(tmp_path, Y):
    session = session_of(tmp_path / "decisions.csv", audit=20, title="songs.csv")
    decide_all(session, 40)
    found = results_of(tmp_path / "out", Y).write(session)
    session.close()
    assert found["folder"] == str(tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == sorted(found["files"])
    made = fitted()
    done = pd.read_csv(tmp_path / "out" / "completed.csv", index_col=0)
    assert list(done.index) == list(made.Y.index)
    assert list(done) == LABELS
    audit = made.findings.audit(tmp_path / "decisions.csv")
    certificate = audit.certify(0.8)
    expected = made.findings.recorded | (audit.decisions.marks(made.Y.shape) == 1)
    for row, label in zip(certificate.cells["row"], certificate.cells["label"]):
        expected[made.Y.index.get_loc(row), LABELS.index(label)] = True
    np.testing.assert_array_equal(done.to_numpy() == 1, expected)
    assert not (done.to_numpy() == 1)[audit.decisions.marks(made.Y.shape) == -1].any()
    text = (tmp_path / "out" / "certificate.txt").read_text()
    assert certificate.note in text
    assert "40 cells are decided" in text
    facts = text.split("\n\n")[1].split("\n")[0]
    when = r"\d{4}-\d\d-\d\d at \d\d:\d\d UTC"
    wanted = rf"songs.csv: 60 rows, 3 labels. Written on {when}. Asked for: 80% right, with 90% confidence."
    assert re.fullmatch(wanted, facts)
    total = audit.n_missing().loc["all labels"]
    assert f"between {total['low']:.0f} and {total['high']:.0f}" in text
    page = read(tmp_path / "out" / "report.html")
    assert facts in page.text
    assert facts not in page.sections["What is known"]  # it stands above all sections
    kinds = [line[3] for line in page.rows("list")]
    assert kinds == sorted(kinds, reverse=True)
    assert set(kinds) == {"suggested", "confirmed"}
    assert page.tables["list"][0] == ["Row", "Label", "Probability", "Kind"]


def test_nothing_is_said_of_suggested_cells_if_there_are_none(tmp_path):
    session = session_of(tmp_path / "decisions.csv", audit=0, precision=0.999)
    results_of(tmp_path / "out").write(session)
    session.close()
    text = (tmp_path / "out" / "certificate.txt").read_text()
    assert "completed.csv has 0 confirmed cells and no suggested one. No rejected cell is in it." in text


@pytest.mark.parametrize("as_array", [False, True])
def test_unknown_cells_that_nobody_confirmed_stay_unknown(tmp_path, as_array):
    X, Y, _ = table_of()
    Y = Y.astype(float).mask(np.random.default_rng(1).random(Y.shape) < 0.4)
    Y = Y.to_numpy() if as_array else Y
    findings = sylvan.auto(5, max_layers=2, random_state=0, n_jobs=1, zeros="absent").fit(X, Y).labels_
    write_labels(findings, Y)(tmp_path / "done.csv", pd.DataFrame({"row": [], "label": []}))
    done = pd.read_csv(tmp_path / "done.csv", index_col=0)
    np.testing.assert_array_equal(done.to_numpy(), np.asarray(Y))
    assert "1.0" not in (tmp_path / "done.csv").read_text() or not as_array


def test_a_few_answers_of_an_audit_promise_no_number(tmp_path):
    session = session_of(tmp_path / "decisions.csv", audit=30)
    decide_all(session, 5)
    results_of(tmp_path / "out").write(session)
    session.close()
    text = (tmp_path / "out" / "certificate.txt").read_text()
    assert "It is too early to count what was missing: 5 of 30 drawn cells are answered." in text
    assert "labels were missing" not in text


def test_all_decisions_are_in_one_file_that_reads_as_they_do(tmp_path):
    ben = session_of(tmp_path / "ben.csv", "ben", audit=0)
    decide_all(ben, 5)
    ben.close()
    ana = session_of(tmp_path / "ana.csv", "ana", others=[tmp_path / "ben.csv"])
    decide_all(ana, 9)
    results_of(tmp_path / "out").write(ana)
    ana.close()
    made = fitted().findings
    both = made.audit([tmp_path / "ana.csv", tmp_path / "ben.csv"])
    merged = made.audit(tmp_path / "out" / "decisions.csv")
    np.testing.assert_array_equal(both.decisions.marks((60, 3)), merged.decisions.marks((60, 3)))
    assert merged.decisions.audit == both.decisions.audit
    assert merged.n_missing().equals(both.n_missing())


def test_the_page_can_be_sent_on(tmp_path):
    labels = ['say "yes"', "<script>alert(1)</script>", "loud"]
    X, Y, _ = table_of()
    Y.columns = labels
    Y.index = X.index = [f"<b>{name}</b>" for name in X.index]
    found = sylvan.auto(5, max_layers=2, random_state=0, n_jobs=1).fit(X, Y).labels_
    session = session_of(tmp_path / "decisions.csv", "<i>ana</i>", findings=found, title="<u>songs</u>.csv")
    decide_all(session, 8)
    Results(tmp_path / "out", "completed.csv", write_labels(found, Y)).write(session)
    session.close()
    html = (tmp_path / "out" / "report.html").read_text()
    assert not re.search(r"<script|<b>song|<i>ana|<u>songs", html)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert_harmless(tmp_path / "out" / "report.html")


def test_finishing_again_replaces_what_was_written(tmp_path):
    session = session_of(tmp_path / "decisions.csv")
    results = results_of(tmp_path / "out")
    results.write(session)
    first = (tmp_path / "out" / "certificate.txt").read_text()
    decide_all(session, 6)
    results.write(session)
    assert (tmp_path / "out" / "certificate.txt").read_text() != first
    assert len(os.listdir(tmp_path / "out")) == 4
    session.close()


@pytest.mark.parametrize("name", ["completed.csv", "decisions.csv", "report.html", "certificate.txt"])
def test_results_never_replace_what_is_read(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(TableError, match="another folder"):
        results_of(tmp_path, inputs=[tmp_path / "x" / ".." / name, None])


@pytest.mark.parametrize(
    ("name", "completed"),
    [("a.csv", "completed.csv"), ("b.tsv.gz", "completed.tsv.gz"), ("c.arff", "completed.csv"),
     ("d.TXT", "completed.TXT"), ("e.v1.csv", "completed.csv"), ("f.xlsx", "completed.xlsx"),
     ("g.arff", "completed.csv")],
)  # fmt: skip
def test_the_completed_table_is_called_as_the_table(name, completed, tmp_path):
    assert completed_name(tmp_path / name) == completed


# --------------------------------------------------------------------------------------------------------- from Python


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    return opened


def test_a_review_from_python(inside):
    made = fitted()
    review = made.findings.review(made.X, made.Y, audit=5, user="ana", random_state=0)
    try:
        assert inside == [review.url]
        address = review.url.partition("/?")[0]
        with httpx.Client(headers={"Origin": address}, follow_redirects=True) as browser:
            browser.get(review.url)
            state = browser.get(f"{address}/api/state").json()
            assert state["user"] == "ana"
            assert {each["name"] for each in state["cell"]["values"]} == {"tempo", "energy", "depth"}
            body = {"cell": state["cell"]["cell"], "decision": "rejected", "was": None}
            assert browser.post(f"{address}/api/decide", json=body).status_code == 200
            found = browser.post(f"{address}/api/finish", json={}).json()["finished"]
        assert found["folder"] == os.path.realpath("decisions-review")
        assert found["files"] == ["completed.csv", "decisions.csv", "certificate.txt", "report.html"]
        assert found["notes"][0].startswith("table: 60 rows, 3 labels. Written on ")
        assert found["notes"][1] == "1 cell is decided: 0 confirmed, 1 rejected, 0 unsure."
        assert review.decisions["decision"].tolist().count("rejected") == 1
        assert "1 decision" in repr(review)
        assert f'href="{review.url}"' in review._repr_html_()
    finally:
        review.stop()
    assert as_table("decisions.csv").to_dict("records") == review.decisions.to_dict("records")
    made.findings.review(open_browser=False, user="ana").stop()  # the file is free again
    assert len(inside) == 1


def test_an_open_page_goes_on_after_a_restart(inside):
    """The address follows from the file; another file, and one that is taken, has another one."""
    ports = []
    for name in ("a.csv", "a.csv", "b.csv"):
        review = fitted().findings.review(open_browser=False, decisions=name)
        ports.append(review.server.port)
        if name == "b.csv":
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", ports[0]))
                taken.listen()
                other = fitted().findings.review(open_browser=False, decisions="a.csv")
                assert other.server.port not in ports
                other.stop()
        review.stop()
    assert ports[0] == ports[1] != ports[2]


def test_the_page_shows_the_rows_of_the_fit_if_nobody_brings_them(inside):
    review = fitted().findings.review(open_browser=False, audit=0)
    address = review.url.partition("/?")[0]
    with httpx.Client(headers={"Origin": address}, follow_redirects=True) as browser:
        browser.get(review.url)
        values = browser.get(f"{address}/api/state").json()["cell"]["values"]
        assert {each["name"] for each in values} == {"tempo", "energy", "depth"}
        assert "review(X, Y)" in browser.post(f"{address}/api/refit", json={}).json()["error"]
        assert browser.post(f"{address}/api/finish", json={}).status_code == 200
    review.stop()


def test_what_does_not_fit_is_refused_and_no_file_is_made(inside, tmp_path):
    made = fitted()
    with pytest.raises(ValueError, match="X must have the 60 rows"):
        made.findings.review(made.X[:10])
    with pytest.raises(ValueError, match="Y must have the 60 rows"):
        made.findings.review(made.X, made.Y[::-1])
    with pytest.raises(ValueError, match="Y must hold 0 and 1 only"):
        made.findings.review(made.Y, made.X)
    with pytest.raises(ValueError, match="X must have the 3 features of the fit, got 2 columns"):
        made.findings.review(made.X.iloc[:, :2], made.Y)
    with pytest.raises(ValueError, match="Y has other labels on record"):
        made.findings.review(made.X, 1 - made.Y)
    with pytest.raises(NotADirectoryError, match="not a folder of images"):
        made.findings.review(images=tmp_path / "none")
    with pytest.raises(TableError, match="another folder"):
        made.findings.review(out=".")
    y = pd.Series(np.array(["a", "b", "c"])[np.arange(60) % 3], made.X.index)
    classes = sylvan.gcforest(5, max_layers=1, random_state=0, n_jobs=1).fit(made.X, y)
    with pytest.raises(DecisionError, match="classes have none"):
        classes.labels_.review()
    assert os.listdir(tmp_path) == []


def test_a_port_that_is_taken_is_told_and_the_file_is_free_again(inside):
    first = fitted().findings.review(open_browser=False, decisions="a.csv")
    port = first.server.port
    for _ in range(2):
        with pytest.raises(OSError, match="choose another one"):
            fitted().findings.review(open_browser=False, decisions="b.csv", port=port)
    with pytest.raises(DecisionError, match="another `sylvan review`"):
        fitted().findings.review(open_browser=False, decisions="a.csv")
    first.stop()
