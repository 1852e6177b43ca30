"""A file is there as a whole or not at all, and what killed processes leave is removed."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from sylvan._files import whole_file

WRITE = """
import os, sys
from sylvan._files import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer():
    """Begin to write a file in another process, which waits in the middle."""
    begun = []

    def begin(path):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        begun.append(process)
        assert process.stdout.readline() == "written\n"
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def parts(folder):
    return sorted(path.name for path in folder.glob(".*.part"))


def write(path):
    with whole_file(path) as file:
        file.write(b"whole")


@pytest.mark.skipif(os.name == "nt", reason="nothing is removed on Windows")
def test_what_a_killed_process_left_is_removed(tmp_path, writer):
    (tmp_path / "a.csv").write_text("old")
    process = writer(tmp_path / "a.csv")
    assert len(parts(tmp_path)) == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / "a.csv").read_text() == "old"
    assert len(parts(tmp_path)) == 1
    write(tmp_path / "b.csv")  # another file: what was left is not its own
    assert len(parts(tmp_path)) == 1
    write(tmp_path / "a.csv")
    assert parts(tmp_path) == []
    assert (tmp_path / "a.csv").read_text() == "whole"


def test_what_a_living_process_writes_is_left_alone(tmp_path, writer):
    process = writer(tmp_path / "a.csv")
    write(tmp_path / "a.csv")
    assert len(parts(tmp_path)) == 1
    process.communicate("")
    assert (tmp_path / "a.csv").read_text() == "half"  # it was last
    assert parts(tmp_path) == []


def test_other_hidden_files_are_left_alone(tmp_path):
    with whole_file(tmp_path / "a.csv") as file:
        (mine,) = parts(tmp_path)
        file.write(b"whole")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    prefix = mine.rpartition(f"{os.getpid()}-")[0]
    others = [
        ".a.csv.part",
        f".a.csv.00000000-{gone.pid}-abcdefgh.part",  # of another machine
        f"{prefix}{gone.pid}-abcdefgh.csv",
        f"{prefix}{os.getppid()}-abcdefgh.part",
        f"{prefix}x-abcdefgh.part",
        f"{prefix}{10**30}-abcdefgh.part",
    ]
    for name in (*others, f"{prefix}{gone.pid}-abcdefgh.part"):
        (tmp_path / name).write_text("x")
    write(tmp_path / "a.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "a.csv"])


def test_long_names_with_the_same_beginning_are_two_files(tmp_path):
    names = ["x" * 60 + end for end in "ab"]
    found = []
    for name in names:
        with whole_file(tmp_path / name):
            found.append(parts(tmp_path)[0].partition("-")[0])
    assert found[0] != found[1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, monkeypatch, number):
    (tmp_path / "a.csv").write_text("old")

    def full(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=os.strerror(number)) as found:
        write(tmp_path / "a.csv")
    assert found.value.filename == str(tmp_path / "a.csv")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.csv", "old")]


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(OSError, match="read") as found, whole_file(tmp_path / "a.csv"):
        raise OSError(errno.EIO, "read", "source.csv")
    assert found.value.filename == "source.csv"
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "none/a.csv"):
        with pytest.raises(OSError, match=r"not a regular file|no folder"):
            write(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
