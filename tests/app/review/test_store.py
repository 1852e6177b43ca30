"""What was acknowledged is in the file, whatever happens next; what is no file of decisions is left alone."""

import errno
import os
import random
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from sylvan.app.review import store as rooms
from sylvan.app.review.store import DecisionStore
from sylvan.exceptions import DecisionError
from sylvan.labels.decisions import COLUMNS, as_table

HEAD = ",".join(COLUMNS) + "\n"
LINE = "7,rock,confirmed,reviewed,,,,ana,2026-01-02T03:04:05.000006+00:00\n"
NASTY = [
    'say "yes"',
    "a\nb",
    "a\r\nb",
    "=cmd|' /C calc'!A0",
    "<script>",
    "a,b;c\td",
    " blank ",
    "ü\u2028n\x85\x0b",
    "'=x",
]


def line(row="7", label="rock", decision="confirmed", **more):
    return {"row": row, "label": label, "decision": decision, "how": "reviewed", **more}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.csv"


def reopened(path, user="ana"):
    store = DecisionStore(path, user)
    store.close()
    return store


def test_lines_come_back_as_they_were(path):
    store = DecisionStore(path, "ana")
    written = [store.append([line(row=name, label=name)])[0] for name in NASTY]
    store.close()
    assert reopened(path).lines == written == store.lines
    read = as_table(path)  # as `impute --decisions` reads it
    assert read.to_dict("records") == written
    bare = [name.removeprefix("'") if name[1:2] == "=" else name for name in read["row"]]
    assert bare == [name.removeprefix("'") for name in NASTY]
    assert not any(text.startswith(("=", "+", "-", "@")) for text in read["row"])


def test_who_and_when_are_added_and_times_rise(path, monkeypatch):
    class Clock(datetime):
        now_ = datetime(2026, 5, 1, tzinfo=UTC)

        @classmethod
        def now(cls, tz=None):
            cls.now_ -= timedelta(hours=1)  # somebody sets it back all the time
            return cls.now_

    monkeypatch.setattr(rooms, "datetime", Clock)
    store = DecisionStore(path, "ana")
    for _ in range(3):
        store.append([line(), line(label="pop")])
    store.close()
    again = DecisionStore(path, "ana")
    again.append([line()])
    again.close()
    when = [each["when"] for each in again.lines]
    assert when == sorted(when)
    assert len(set(when)) == 4  # two lines of one decision have one time
    assert {each["who"] for each in again.lines} == {"ana"}
    assert pd.to_datetime(pd.Series(when), utc=True, format="ISO8601").notna().all()


def test_an_audit_is_lines_that_wait(path):
    store = DecisionStore(path, "ana")
    store.append(
        [line(decision="", chance=0.05, stratum="ranks 1 to 9, 9 cells", audit="ab-count-1-0-0-cd")], by_user=False
    )
    store.close()
    assert path.read_text() == HEAD + '7,rock,,reviewed,0.05,"ranks 1 to 9, 9 cells",ab-count-1-0-0-cd,,\n'


def test_a_decision_is_on_the_disk_before_it_is_acknowledged(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    store = DecisionStore(path, "ana")
    assert len(synced) == 2  # the first line, and the folder that now has the file
    store.append([line()])
    assert synced[-1] == path.stat().st_size > len(HEAD)
    store.close()


# --------------------------------------------------------------------------------------------------- after a crash


@pytest.mark.parametrize("name", ["7", "a\nb", "ü,\n\n"])
def test_a_torn_line_is_cut_off_and_no_other(path, name):
    store = DecisionStore(path, "ana")
    store.append([line()])
    kept = path.read_bytes()
    store.append([line(row=name, label=name)])
    store.close()
    whole = path.read_bytes()
    for cut in range(len(kept) + 1, len(whole)):
        path.write_bytes(whole[:cut])
        again = DecisionStore(path, "ana")
        if cut == len(whole) - 1:  # all is there but the end of the line
            assert again.lines == store.lines
            assert path.read_bytes() == whole
        else:
            assert again.lines == store.lines[:1], cut
            assert path.read_bytes() == kept
            assert "does not count" in again.note
            assert path.with_name(f"{path.name}.rest").read_bytes().endswith(whole[len(kept) : cut] + b"\n")
        again.append([line(label="pop")])
        again.close()
        assert len(reopened(path).lines) == len(again.lines)


def test_a_torn_first_line_is_written_anew(path):
    for cut in range(len(HEAD)):
        path.write_bytes(HEAD.encode()[:cut])
        assert reopened(path).lines == []
        assert path.read_text() == HEAD


@pytest.mark.parametrize("when", [None, "2024-05-03T10:00:00.123Z", "2024-01-31 10:00"])
def test_a_last_line_without_an_end_that_somebody_typed_is_kept(path, when):
    text = LINE.rstrip("\n")
    text = text if when is None else f"{text.rpartition(',')[0]},{when}"
    path.write_text(HEAD + text)
    assert reopened(path).lines[0]["row"] == "7"
    assert path.read_text() == HEAD + text + "\n"


def test_a_time_that_nothing_can_follow_is_refused(path):
    path.write_text(HEAD + f"{LINE.rpartition(',')[0]},9999-12-31T23:59:59.999999+00:00\n")
    with pytest.raises(DecisionError, match="9999"):
        DecisionStore(path, "ana")


_WRITER = """
import sys
from sylvan.app.review.store import DecisionStore
store = DecisionStore(sys.argv[1], "ana")
for number in range(10**6):
    store.append([{"row": f"{number}\\n", "label": "x" * (number % 97), "decision": "confirmed"}])
    print(number, flush=True)
"""


def test_kill_9_loses_nothing_that_was_acknowledged(path):
    random.seed(0)
    told = 0
    for _ in range(2):
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, path], stdout=subprocess.PIPE, text=True)
        try:
            for _ in range(random.randint(1, 90)):
                said = writer.stdout.readline()
            with pytest.raises(DecisionError, match="another `sylvan review`"):
                DecisionStore(path, "ben")
        finally:
            writer.send_signal(signal.SIGKILL)
            said = [said, *writer.stdout.read().split("\n")]
            writer.wait()
            writer.stdout.close()
        acknowledged = max(int(number) for number in said if number.strip())
        store = reopened(path)  # the lock died with the process
        rows = [each["row"] for each in store.lines[told:]]
        assert rows == [f"{number}\n" for number in range(len(rows))]
        assert len(rows) > acknowledged
        told = len(store.lines)


# ------------------------------------------------------------------------------------------------------- bad files


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("row,label,decision\n1,a,yes\n", "first line must be"),
        ("id,tempo\n1,2\n", "first line must be"),
        ("no table at all", "first line must be"),
        (HEAD + "1,a,confirmed\n" + LINE, "line 2 has 3 cells"),
        (HEAD + LINE + "7,rock,confirmed,reviewed,,,,ana,2026,9,9\n", "line 3 has 11 cells"),
        (HEAD + '5" vinyl' + LINE + LINE, "quotes are not closed"),
        (HEAD.encode() + b"\xff" + LINE.encode(), "not text in UTF-8"),
        (HEAD + "\0" + LINE, "not text"),
        (HEAD.encode("utf-16"), "not a file of decisions"),
        (bytes(range(256)), "not a file of decisions"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_decisions_is_refused_and_left_alone(path, content, words):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(content)
    with pytest.raises(DecisionError, match=words):
        DecisionStore(path, "ana")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("sign", "end", "mark"), [(",", "\r\n", b"\xef\xbb\xbf"), (";", "\n", b""), ("\t", "\r\n", b"")]
)
def test_a_file_that_a_spreadsheet_saved_goes_on_as_it_is(path, sign, end, mark):
    path.write_bytes(mark + (HEAD + LINE).replace(",", sign).replace("\n", end).encode())
    store = DecisionStore(path, "ana")
    store.append([line(row="8")])
    store.close()
    assert [each["row"] for each in reopened(path).lines] == ["7", "8"]
    assert as_table(path)["row"].tolist() == ["7", "8"]


def test_columns_may_stand_in_another_order(path):
    path.write_text("decision,when,who,row,label,how,chance,stratum,audit\n")
    store = DecisionStore(path, "ana")
    store.append([line()])
    store.close()
    assert as_table(path)[["row", "label", "decision", "who"]].values.tolist() == [["7", "rock", "confirmed", "ana"]]


@pytest.mark.parametrize("user", ["", " ", "\n"])
def test_somebody_must_have_decided(path, user):
    with pytest.raises(DecisionError, match="name of the user"):
        DecisionStore(path, user)
    assert not path.exists()


def test_there_must_be_a_folder_and_a_file(tmp_path):
    with pytest.raises(DecisionError, match="no folder"):
        DecisionStore(tmp_path / "none" / "decisions.csv", "ana")
    with pytest.raises(DecisionError, match="not a regular file"):
        DecisionStore(tmp_path, "ana")


# ----------------------------------------------------------------------------------------------- while it is running


def test_two_cannot_write_one_file(path):
    store = DecisionStore(path, "ana")
    with pytest.raises(DecisionError, match="another `sylvan review`"):
        DecisionStore(path, "ben")
    store.close()
    reopened(path, "ben")


@pytest.mark.parametrize("how", ["edited", "replaced", "removed", "cut"])
def test_a_file_that_somebody_changed_is_not_written(path, how):
    store = DecisionStore(path, "ana")
    store.append([line()])
    content = path.read_bytes()
    if how == "removed":
        path.unlink()
    elif how == "replaced":
        path.rename(path.with_suffix(".old"))
        path.write_bytes(content)
    else:
        path.write_bytes(content + b"more\n" if how == "edited" else content[:-5])
    there = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(DecisionError, match="changed by another program"):
            store.append([line(label="pop")])
    assert (path.read_bytes() if path.exists() else None) == there
    assert len(store.lines) == 1
    store.close()


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_a_full_disk_is_told_and_leaves_no_part(path, fails, monkeypatch):
    store = DecisionStore(path, "ana")
    store.append([line()])
    content, write = path.read_bytes(), os.write

    def full(handle, data=b""):
        if data:
            write(handle, bytes(data[:9]))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, fails, full)
        with pytest.raises(OSError, match="No space left") as told:
            store.append([line(label="pop")])
    assert told.value.filename == str(path)
    assert path.read_bytes() == content
    assert len(store.lines) == 1
    store.append([line(label="pop")])  # there is space again
    store.close()
    assert [each["label"] for each in reopened(path).lines] == ["rock", "pop"]
