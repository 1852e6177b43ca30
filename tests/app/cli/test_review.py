"""`sylvan review`: a link, a page, decisions that survive; and what is refused before a long fit."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from types import SimpleNamespace

import httpx
import pandas as pd
import pytest

from app.cli.running import (
    ENVIRONMENT,
    LABELS,
    TINY,
    call,
    command,
    done,
    error_of,
    make_songs,
    nothing_written,
    read_as_text,
)
from sylvan.app.review.store import DecisionStore
from sylvan.labels.decisions import as_table

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")
DATA = ("songs.csv", "-l", "tag_*")


@pytest.fixture
def folder(tmp_path):
    make_songs().to_csv(tmp_path / "songs.csv", index=False)
    return tmp_path


@contextlib.contextmanager
def running(folder, *arguments, options=TINY):
    """The command in a process, until it has printed its link; a client that has used it."""
    process = subprocess.Popen(
        command("review", *DATA, "--no-browser", "--user", "ana", *arguments, *options),
        cwd=folder, env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    watch = threading.Timer(120, process.kill)
    watch.start()
    try:
        first = process.stdout.readline()
        assert first.startswith("Review: "), process.stderr.read()
        url = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43,}", first).group()
        address = url.partition("/?")[0]
        with httpx.Client(base_url=address, headers={"Origin": address}, follow_redirects=True) as client:
            client.get(url)
            yield SimpleNamespace(process=process, client=client, url=url)
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def decide(page, decision="confirmed"):
    cell = page.client.get("/api/state").json()["cell"]
    found = page.client.post("/api/decide", json={"cell": cell["cell"], "decision": decision, "was": cell["decision"]})
    assert found.status_code == 200, found.text
    return cell


# ------------------------------------------------------------------------------------------------------------ the page


@pytest.mark.slow
def test_decisions_survive_kill_9_and_the_same_command_goes_on(folder):
    with running(folder, "--audit", "5") as page:
        answered = [decide(page, word) for word in ("confirmed", "rejected", "unsure")]
        page.process.send_signal(signal.SIGKILL)
        page.process.wait()
    found = as_table(folder / "songs-decisions.csv")
    found = found[found["decision"] != ""]
    assert found[["row", "label"]].values.tolist() == [[each["row"], each["label"]] for each in answered]
    with running(folder, "--audit", "5") as page:
        state = page.client.get("/api/state").json()
        assert state["audit"] == {"planned": 5, "answered": 3}
        assert state["user"] == "ana"
        assert [each["cell"] for each in state["recent"]] == [each["cell"] for each in answered[::-1]]
        decide(page)
        assert page.client.post("/api/finish", json={}).json()["finished"]["folder"] == str(folder / "songs-review")
        page.process.send_signal(signal.SIGINT)
        out, err = page.process.communicate(timeout=60)
    assert page.process.returncode == 0
    assert err.splitlines()[-1].startswith("Ended. 4 decisions of ana in songs-decisions.csv")
    assert out == ""
    old, new = read_as_text(folder / "songs.csv"), read_as_text(folder / "songs-review" / "completed.csv")
    assert old.drop(columns=LABELS).equals(new.drop(columns=LABELS))
    assert (old[LABELS] == "1").equals((old[LABELS] == "1") & (new[LABELS] == "1"))
    assert new.set_index("id").at[answered[0]["row"], answered[0]["label"]] == "1"
    done(call(folder, "audit", *DATA, "-d", "songs-decisions.csv", *TINY))


@pytest.mark.slow
def test_a_stored_model_columns_that_were_dropped_and_pictures(folder):
    songs = make_songs()
    songs["title"] = [f"Song, no. {at}" for at in range(60)]
    songs["cover"] = [f"{at}.png" for at in range(60)]
    songs.to_csv(folder / "songs.csv", index=False)
    (folder / "covers").mkdir()
    for at in range(60):
        (folder / "covers" / f"{at}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([at]))
    drop = ("--drop", "title,cover")
    done(call(folder, "fit", *DATA, *drop, "--with-rows", "-o", "songs.sylvan", *TINY))
    arguments = (*drop, "--model", "songs.sylvan", "--images", "covers", "--audit", "0", "--decisions", "ana.csv")
    with running(folder, *arguments, options=()) as page:
        cell = page.client.get("/api/state").json()["cell"]
        values = {each["name"]: each for each in cell["values"]}
        assert values["title"]["value"] == f"Song, no. {int(cell['row'])}"
        assert values["mode"]["value"] in ("minor", "major")
        assert cell["values"][0]["name"] == "cover"
        found = page.client.get(values["cover"]["url"])
        assert found.headers["content-type"] == "image/png"
        assert found.content[-1] == int(cell["row"])
        decide(page)
    assert len(as_table(folder / "ana.csv")) == 1


# ------------------------------------------------------------------------------------- what is refused before the fit


def test_a_file_of_another_table_is_refused(folder):
    store = DecisionStore(folder / "songs-decisions.csv", "ana")
    store.append([{"row": "book 1", "label": "tag_calm", "decision": "confirmed"}])
    store.close()
    with nothing_written(folder):
        assert "that the table does not have: 'book 1'" in error_of(call(folder, "review", *DATA, *TINY))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--decisions", "songs.csv"), "read by this command"),
        (("--decisions", "none/a.csv"), "no folder"),
        (("--others", "none.csv"), "cannot be read"),
        (("--others", "songs.csv"), "need the column 'label'"),
        (("--images", "none"), "does not exist"),
        (("--model", "none.sylvan"), "none.sylvan"),
        (("--precision", "80"), "range"),
        (("--user", " "), "name of the user"),
        (("--classes",), ""),
        (("--export", "excel", "a.json"), "no format 'excel'"),
        (("--import", "none.json"), "none.json"),
        (("--out", ".", "--decisions", "decisions.csv"), "another folder"),
    ],
)
def test_what_makes_no_sense_is_refused(folder, arguments, words):
    before = set(os.listdir(folder))
    assert words in error_of(call(folder, "review", *DATA, *arguments, *TINY))
    assert set(os.listdir(folder)) - before <= {"songs-decisions.csv"}
    assert not (folder / "songs-decisions.csv").exists() or as_table(folder / "songs-decisions.csv").empty


def test_classes_are_refused(folder):
    songs = make_songs().drop(columns=LABELS[1:])
    songs.to_csv(folder / "songs.csv", index=False)
    found = call(folder, "review", "songs.csv", "-l", LABELS[0], "--classes", *TINY)
    assert "classes have none" in error_of(found)


def test_a_file_that_somebody_else_writes_is_refused(folder):
    store = DecisionStore(folder / "songs-decisions.csv", "ben")
    assert "another `sylvan review`" in error_of(call(folder, "review", *DATA, *TINY))
    store.close()


def test_a_model_of_another_table_is_refused(folder):
    make_songs(40, seed=3).to_csv(folder / "other.csv", index=False)
    for name, more in (("other.sylvan", ["--with-rows"]), ("bare.sylvan", [])):
        done(call(folder, "fit", "other.csv", "-l", "tag_*", "-o", name, *more, *TINY))
    assert "was not fitted with this table" in error_of(call(folder, "review", *DATA, "--model", "other.sylvan"))
    assert "--with-rows" in error_of(call(folder, "review", *DATA, "--model", "bare.sylvan"))


# --------------------------------------------------------------------------------------------------- other programs


def answer_of(who):
    said = {"from_name": "answer", "to_name": "question", "type": "choices", "value": {"choices": ["confirmed"]}}
    return {"completed_by": {"email": who}, "updated_at": "2026-01-01T10:00:00Z", "result": [said]}


def test_cells_go_to_another_program_and_answers_come_back(folder):
    export = ("--export", "label-studio", "tasks.json", "--audit", "4")
    done(call(folder, "review", *DATA, *export, *TINY))
    assert len(as_table(folder / "songs-decisions.csv")) == 4
    tasks = json.loads((folder / "tasks.json").read_text())
    assert len(tasks) == 104
    audited = [task for task in tasks if task["data"]["how"] == "audited"]
    assert len(audited) == 4
    assert not any(task.get("predictions") for task in audited)
    assert all("tempo" in json.dumps(task["data"]) for task in tasks)
    for at, task in enumerate(tasks):
        task["id"] = at
    for task in tasks[:6]:
        task["annotations"] = [answer_of("ben@example.org")]
    (folder / "answers.json").write_text(json.dumps(tasks))
    for _ in range(2):  # the second time, all are there already
        done(call(folder, "review", *DATA, "--import", "answers.json", *TINY))
        found = as_table(folder / "songs-decisions.csv")
        found = found[found["decision"] != ""]
        assert len(found) == 6
        assert found["how"].tolist() == ["audited"] * 4 + ["reviewed"] * 2
        assert set(found["who"]) == {"ben@example.org"}
    told = done(call(folder, "audit", *DATA, "-d", "songs-decisions.csv", *TINY))
    assert "6 cells are decided" in told.stderr + told.stdout


def test_a_changed_answer_without_a_time_is_a_later_one(folder):
    """Argilla's records do not say when they were answered; names may look like formulas."""
    table = pd.read_csv(folder / "songs.csv")
    table["id"] = "=" + table["id"].astype(str)
    table.to_csv(folder / "songs.csv", index=False)
    done(call(folder, "review", *DATA, "--export", "argilla", "records.json", "--audit", "0", *TINY))
    records = json.loads((folder / "records.json").read_text())[:3]
    for words in ("confirmed", "confirmed", "rejected", "confirmed"):
        for record in records:
            record |= {"status": "completed", "responses": {"answer": [{"value": words, "user_id": "ben"}]}}
        (folder / "answers.json").write_text(json.dumps(records))
        told = done(call(folder, "review", *DATA, "--import", "answers.json", *TINY))
    found = as_table(folder / "songs-decisions.csv")
    assert found["decision"].tolist() == ["confirmed"] * 3 + ["rejected"] * 3 + ["confirmed"] * 3
    assert "3 answers of 3 taken" in told.stderr + told.stdout
    assert "there already" not in told.stderr + told.stdout
    told = done(call(folder, "audit", *DATA, "-d", "songs-decisions.csv", *TINY))
    assert "3 cells are decided: 3 confirmed" in " ".join((told.stderr + told.stdout).split())


def test_answers_about_another_table_are_not_taken(folder):
    done(call(folder, "review", *DATA, "--export", "label-studio", "tasks.json", "--audit", "4", *TINY))
    make_songs(30, seed=1).assign(id=[f"b{at}" for at in range(30)]).to_csv(folder / "songs.csv", index=False)
    tasks = json.loads((folder / "tasks.json").read_text())
    tasks[0]["annotations"] = [answer_of("ben")]
    (folder / "answers.json").write_text(json.dumps(tasks))
    with nothing_written(folder):
        found = call(folder, "review", *DATA, "--import", "answers.json", "--decisions", "songs-decisions.csv", *TINY)
        assert "that the table does not have" in error_of(found)


def test_it_is_in_the_list_of_commands(tmp_path):
    assert "review" in call(tmp_path, "--help").stdout
    assert "--others" in call(tmp_path, "review", "--help").stdout
