"""What is wrong is said in one line; nothing is written, and what was there stays."""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sylvan
import sylvan.app.cli.main as main
from app.cli.running import (
    ENVIRONMENT,
    LABELS,
    TINY,
    call,
    command,
    contents,
    done,
    error_of,
    make_songs,
    nothing_written,
    start,
)
from sylvan.forests import RandomForest
from sylvan.io import save

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")
GOOD = "id,x,y,tag_a,tag_b\n" + "".join(f"r{at},{at},{at % 3},{at % 2},{(at + 1) % 2}\n" for at in range(12))
FIT = ["-l", "tag_*", "-o", "out.sylvan", *TINY]
IMPUTE = ["-l", "tag_*", "-o", "out.csv", *TINY]

BAD_TABLES = [
    (b"", "t.csv is empty."),
    (b"\n", "has no names of columns"),
    (b"id,x,tag_a\n", "has no rows below its first line"),
    (b"x,x,tag_a\n1,2,0\n", "columns 1 and 2 have the same name 'x'"),
    (b"x,tag_a\n1,0\n2\n", "line 3 has 1 cell, the first line 2"),
    (b"x,y\n1,0\n", "--labels 'tag_*' matches no column; the columns are 'x', 'y'."),
    (b"x,Tag_a\n1,0\n", "did you mean 'Tag_a'?"),
    (b"tag_a,tag_b\n1,0\n", "has no feature column"),
    (b"x,tag_a,tag_b\n1,0,1\n2,maybe,0\n", "Label 'tag_a' has the value 'maybe' in row 2"),
    (b"x,tag_a\n1,0\n2,0\n", "No label is positive in any row: 'tag_a'"),
    (b"x,tag_a\n5 mg,1\n7 g,0\n", "Column 'x' has numbers with 'g' and 'mg'"),
    (b"x,tag_a\n1,0\ntwo,1\n3,1\n", "Column 'x' holds numbers, but 'two' in row 2"),
    (b"x,tag_a\n1,0\ninf,1\n", "Column 'x' has an infinite value in row 2"),
    (b"x,tag_a\n1,\x000\n", "NUL"),
    (b"\x00\x01\x02\x03" * 50, "is not a table of text"),
    (bytes(range(256)) * 8, "is not"),
]


@pytest.mark.parametrize("name", ["fit", "impute"])
@pytest.mark.parametrize(("content", "message"), BAD_TABLES)
def test_bad_tables(tmp_path, name, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    with nothing_written(tmp_path):
        assert message in error_of(call(tmp_path, name, "t.csv", *(FIT if name == "fit" else IMPUTE)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "none.csv", *FIT], "There is no file none.csv"),
        (["fit", "god.csv", *FIT], "did you mean 'good.csv'?"),
        (["fit", "folder", *FIT], "folder"),
        (["fit", "good.doc", *FIT], "unknown kind of file"),
        (["fit", "good.csv", "--delimiter", ";", *FIT], "has no ';'; its cells seem to be separated by ','"),
        (["fit", "good.csv", "--delimiter", "xx", *FIT], "--delimiter 'xx' is not one character"),
        (["fit", "good.csv", "--decimal", "xx", *FIT], "--decimal"),
        (["fit", "good.csv", "--encoding", "klingon", *FIT], "There is no encoding 'klingon'"),
        (["fit", "good.csv", "--id", "idd", *FIT], "--id 'idd' matches no column; did you mean 'id'?"),
        (["fit", "good.csv", "--drop", "z", *FIT], "--drop 'z' matches no column"),
        (["fit", "good.csv", "--categorical", "z", *FIT], "--categorical 'z' matches no column"),
        (["fit", "good.csv", "--classes", *FIT], "--classes needs one label column, but 2 were chosen"),
        (["fit", "good.csv", "--label-file", "none.csv", *FIT], "There is no file none.csv"),
        (["fit", "good.csv", "--blank", "one", *FIT], "--blank"),
        (["fit", "good.csv", "-o", "out.sylvan", *TINY], "Which columns of good.csv are labels?"),
        (["fit", "good.csv", "-l", "tag_*"], "Missing option '--out'"),
        (["fit", *FIT], "Missing argument 'DATA'"),
        (["fit", "good.csv", *FIT, "-a", "slcforrest"], "no algorithm 'slcforrest'; did you mean 'slcforest'?"),
        (["fit", "good.csv", *FIT, "-a", "gcforest", "--frequency", "0.5"], "gcforest does not take it"),
        (["fit", "good.csv", *FIT, "--frequency", "often"], "--frequency is a number above 0 and up to 1"),
        (["fit", "good.csv", *FIT, "--frequency", "1.5"], "1.5"),
        (["fit", "good.csv", *FIT, "--frequency", "0.8-0.4"], "a range such as 0.4-0.8"),
        (["fit", "good.csv", *FIT, "--frequency", "0-0.4"], "a range such as 0.4-0.8"),
        (["fit", "good.csv", *FIT, "--frequency", "0.4-often"], "got '0.4-often'"),
        (["fit", "good.csv", *FIT, "--frequency", "tag_a="], "--frequency is a number above 0"),
        (["fit", "good.csv", *FIT, "--frequency", "tag_c=0.4"], "labels that Y does not have: ['tag_c']"),
        (["fit", "good.csv", *FIT, "--frequency", "0.4", "--frequency", "0.5"], "as LABEL=NUMBER only"),
        (["fit", "good.csv", *FIT, "--frequency", "0.4", "--frequency", "tag_a=0.5"], "or one value for all"),
        (["fit", "good.csv", *FIT, "-a", "slcforest", "--frequency", "0.4-0.8"], "as a range is for auto"),
        (["fit", "good.csv", *FIT, "-a", "slcforest", "--frequency", "tag_a=0.4-0.8"], "as a range is for auto"),
        (["fit", "good.csv", *FIT, "--set", "trees"], "--set is NAME=VALUE, got 'trees'"),
        (["fit", "good.csv", *FIT, "--set", "n_tres=3"], "n_tres"),
        (["fit", "good.csv", *FIT, "-a", "slcforest", "--set", "impute__treshold=0.3"], "mean 'impute__threshold'?"),
        (["fit", "good.csv", *FIT, "-a", "slcforest", "--set", "impute__threshold=5"], "threshold must be a number"),
        (["fit", "good.csv", *FIT, "--set", "impute__threshold=0.3"], "did you mean 'decision_threshold'?"),
        (["fit", "good.csv", *FIT, "--set", "calibrate__own_sare=0.3"], "did you mean 'calibrate__own_share'?"),
        (["fit", "good.csv", *FIT, "--set", "calibrate__own_share=3"], "own_share must be a number"),
        (["fit", "good.csv", *FIT, "--threshold", "calibrated"], "decision_threshold='calibrated' is half the label"),
        (["fit", "good.csv", *FIT, "-a", "rf-et", "--threshold", "learned"], "set calibrate=Calibration()"),
        (["fit", "good.csv", *FIT, "--set", "impute=3"], "impute must be an instance"),
        (["fit", "good.csv", *FIT, "--set", "forests__x=3"], "forests__x"),
        (["fit", "good.csv", *FIT, "--set", "impute__frequency=3"], "frequency"),
        (["fit", "good.csv", *FIT, "--trees", "0"], "--trees"),
        (["fit", "good.csv", *FIT, "--seed", "-1"], "--seed"),
        (["fit", "good.csv", *FIT, "--jobs", "0"], "n_jobs"),
        (["fit", "good.csv", *FIT, "--checkpoint", "good.csv"], "good.csv"),
        (["impute", "good.csv", *IMPUTE, "--min-proba", "2"], "--min-proba"),
        (["impute", "good.csv", *IMPUTE, "--max-per-label", "-1"], "--max-per-label"),
        (["impute", "good.csv", "-l", "y", "--classes", "-o", "out.csv", *TINY], "have none that could be missing"),
        (["impute", "good.csv", "-l", "tag_*", "-o", "out.doc", *TINY], "tables can be written as .csv"),
        (["impute", "good.csv", *IMPUTE, "--suggestions", "out.doc"], "tables can be written as .csv"),
        (["impute", "good.csv", *IMPUTE, "--suggestions", "out.csv"], "out.csv is named twice"),
        (["impute", "good.csv", *IMPUTE, "--suggestions", "none/s.csv"], "There is no folder none for s.csv"),
        (["impute", "good.csv", *IMPUTE, "--report", "old.txt"], "old.txt is there already; --force"),
        (["impute", "good.csv", *IMPUTE, "--model", "old.txt"], "old.txt is there already; --force"),
        (["impute", "good.csv", "-l", "tag_*", "-o", "old.txt", *TINY], "old.txt is there already; --force"),
        (["impute", "good.csv", "-l", "tag_*", "-o", "folder", "-f", *TINY], "folder"),
        (["fit", "good.csv", "-l", "tag_*", "-o", "none/out.sylvan", *TINY], "There is no folder none for out.sylvan"),
        (["fit", "good.csv", "-l", "tag_*", "-o", "old.txt", *TINY], "old.txt is there already; --force"),
    ],
)  # fmt: skip
def test_bad_options(tmp_path, arguments, message):
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "good.doc").write_text(GOOD)
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "folder").mkdir()
    with nothing_written(tmp_path):
        assert message in error_of(call(tmp_path, *arguments))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "good.csv", "good.doc", "old.txt"]


def test_bad_new_rows(songs, tmp_path):
    cases = [
        (songs.new.rename(columns={"tempo": "Tempo"}), "was fitted with: 'tempo'. Is 'tempo' now called 'Tempo'?"),
        (songs.new[["id", "tempo"]], "'energy', 'depth', 'length', 'mode'"),
        (songs.new.assign(tempo=["fast"] + [1] * 24), "Column 'tempo' holds numbers, but 'fast' in row 1"),
        (songs.new.assign(tempo=["1"] * 24 + ["inf"]), "Column 'tempo' has an infinite value in row 25"),
    ]  # fmt: skip
    for frame, message in cases:
        frame.to_csv(tmp_path / "new.csv", index=False)
        for more in ([], ["-o", "out.csv"]):
            with nothing_written(tmp_path):
                assert message in error_of(call(tmp_path, "predict", songs.path, "new.csv", *more))
        with nothing_written(tmp_path):
            error_of(call(tmp_path, "evaluate", songs.path, "new.csv"))
    with nothing_written(tmp_path):
        assert "tables can be written as" in error_of(
            call(songs.folder, "predict", songs.path, "new.csv", "-o", tmp_path / "x.doc")
        )
    songs.new.assign(tag_calm=7).to_csv(tmp_path / "new.csv", index=False)
    found = error_of(call(tmp_path, "evaluate", songs.path, "new.csv"))
    assert "Label 'tag_calm' has the value '7' in row 1" in found


def test_what_is_said_at_prediction_can_be_done_there(songs, tmp_path):
    """A hint must not name an option that the command does not have."""
    songs.new.assign(tempo=["fast"] + [1] * 24).to_csv(tmp_path / "new.csv", index=False)
    text = done(call(tmp_path, "predict", "--help")).stdout
    error = error_of(call(tmp_path, "predict", songs.path, "new.csv"))
    for word in error.split():
        if word.startswith("--"):
            assert word.strip(".,;:)(") in text, error


def damaged_models(songs):
    content = songs.path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    newer = content[:8] + struct.pack("<I", 99) + content[12:]
    return {
        "empty": (b"", "is not a model file of sylvan"),
        "text": (b"hello", "is not a model file of sylvan"),
        "rubbish": (bytes(range(256)), "is not a model file of sylvan"),
        "header": (content[:20], "is cut off: it ends in its header"),
        "cut": (content[:-100], "is cut off"),
        "longer": (content + b"x", "is damaged"),
        "flipped": (bytes(flipped), "is damaged: its checksum does not fit"),
        "newer": (newer, "has format 99; this version of sylvan"),
    }


@pytest.mark.parametrize("name", ["predict", "evaluate", "explain"])
def test_damaged_model_files(songs, tmp_path, name):
    data = [songs.folder / "new.csv"] if name != "explain" else []
    for kind, (content, message) in damaged_models(songs).items():
        (tmp_path / "m.sylvan").write_bytes(content)
        with nothing_written(tmp_path):
            assert message in error_of(call(tmp_path, name, "m.sylvan", *data)), kind
    assert "There is no file none.sylvan" in error_of(call(tmp_path, name, "none.sylvan", *data))
    assert "is a directory" in error_of(call(tmp_path, name, tmp_path, *data))
    assert "is not a model file" in error_of(call(tmp_path, name, songs.folder / "songs.csv", *data))


def test_models_of_other_kinds(songs, tmp_path):
    X, Y = np.arange(40.0).reshape(20, 2), np.arange(40).reshape(20, 2) % 4 // 2
    Y[::2] = 1 - Y[::2]
    sylvan.rf_et(3, random_state=0).save(tmp_path / "unfitted.sylvan")
    save(RandomForest(n_trees=3).fit(X, Y), tmp_path / "forest.sylvan")
    sylvan.rf_et(3, random_state=0).fit(X, Y).save(tmp_path / "nameless.sylvan")
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    for name, message in (
        ("unfitted", "which is not a deep forest"),
        ("forest", "holds a RandomForest, which is not a deep forest"),
        ("nameless", "was fitted without names of columns; use it in Python: sylvan.load("),
    ):
        assert message in error_of(call(tmp_path, "predict", f"{name}.sylvan", "new.csv"))


def test_errors_have_exit_codes_in_a_process(songs, tmp_path):
    found = start(tmp_path, "fit", "none.csv", *FIT)
    assert "There is no file none.csv" in error_of(found)
    assert found.stdout == ""


def test_debug_shows_where_an_error_came_from(songs, tmp_path):
    found = call(tmp_path, "--debug", "fit", "none.csv", *FIT)
    assert found.returncode == 2
    assert "Traceback" in found.stderr
    assert "TableError" in found.stderr


# Failures that are nobody's mistake


def full(*args, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "songs.csv", "-l", "tag_*", "-o", "{}/out.sylvan", *TINY],
        ["impute", "songs.csv", "-l", "tag_*", "-o", "{}/out.csv", *TINY],
        ["predict", "songs.sylvan", "new.csv", "-o", "{}/out.csv"],
        ["predict", "songs.sylvan", "new.csv", "-o", "{}/out.csv.gz"],
        ["predict", "songs.sylvan", "new.csv", "-o", "{}/out.parquet"],
        ["datasets", "digit_attributes", "-o", "{}/out.csv"],
    ],
)
def test_a_full_disk(songs, tmp_path, monkeypatch, arguments):
    arguments = [part.format(tmp_path) for part in arguments]
    out = next(part for part in arguments if part.startswith(str(tmp_path)))
    with open(out, "w") as file:
        file.write("old")
    monkeypatch.setattr(os, "fsync", full)
    with nothing_written(tmp_path):
        found = error_of(call(songs.folder, *arguments, "--force"), code=1)
    assert "No space left on device" in found


def test_files_may_not_grow(songs, tmp_path):
    """What a disk quota does, in a real process."""
    make_songs(4000, seed=3).to_csv(tmp_path / "many.csv", index=False)
    arguments = ("predict", songs.path, "many.csv", "--proba", "-o", "out.csv.gz")
    done(call(tmp_path, *arguments))  # kernels are compiled and stored, so that the process has no need to
    limit = (tmp_path / "out.csv.gz").stat().st_size // 2
    with nothing_written(tmp_path):
        found = start(
            tmp_path, *arguments, "--force",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )  # fmt: skip
        assert "File too large" in error_of(found, code=1)


def test_a_full_disk_on_standard_output(songs):
    with open("/dev/full", "w") as device:
        found = start(songs.folder, "predict", "songs.sylvan", "new.csv", capture_output=False, stdout=device,
                      stderr=subprocess.PIPE)  # fmt: skip
    assert found.returncode == 1
    assert [line for line in found.stderr.splitlines() if line] == ["Error: No space left on device."]


def test_no_memory(songs, tmp_path, monkeypatch):
    def fit(*args, **options):
        raise MemoryError

    monkeypatch.setattr(sylvan.DeepForestClassifier, "fit", fit)
    with nothing_written(tmp_path):
        found = error_of(
            call(songs.folder, "fit", "songs.csv", "-l", "tag_*", "-o", tmp_path / "m.sylvan", *TINY), code=1
        )
    assert "There is not enough memory" in found


def test_an_error_of_ours(songs, tmp_path, monkeypatch):
    """What nobody has foreseen is one line, too, and not without a word."""

    def fit(*args, **options):
        raise RuntimeError

    monkeypatch.setattr(sylvan.DeepForestClassifier, "fit", fit)
    arguments = ("fit", "songs.csv", "-l", "tag_*", "-o", tmp_path / "m.sylvan", *TINY)
    with nothing_written(tmp_path):
        assert error_of(call(songs.folder, *arguments), code=1) == "Error: RuntimeError"


def test_models_that_may_not_be_read(songs, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "songs.sylvan")

    monkeypatch.setattr("sylvan.io.read_about", refuse)
    found = call(songs.folder, "predict", "songs.sylvan", "new.csv")
    assert error_of(found, code=found.returncode or 1) == "Error: songs.sylvan: Permission denied."


def test_ctrl_c_during_a_fit(tmp_path):
    """One line, exit code 130, and no file that was not there."""
    make_songs(80).to_csv(tmp_path / "songs.csv", index=False)
    arguments = ("fit", "songs.csv", "-l", "tag_*", "-o", "m.sylvan", "--trees", "200", "--layers", "5000")
    process = subprocess.Popen(
        command(*arguments, "--jobs", "1", "--no-memory-check", "--checkpoint", "parts"), cwd=tmp_path,
        env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + 120
        while not list(tmp_path.glob("parts/*")) and time.monotonic() < end:  # the fit has begun
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        for _ in range(12):  # one that comes while a library imports or compiles may be lost; people press again
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, errors = process.communicate(timeout=5)
                break
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    lines = [line for line in errors.splitlines() if not line.startswith(("Column", "Text columns", "Warning: "))]
    assert lines == ["Stopped."]
    assert [path.name for path in contents(tmp_path) if path.name.endswith(".part") or path.name == "m.sylvan"] == []


def test_ctrl_c_in_a_callback_of_c_is_not_lost(capsys):
    """Kernels are loaded with such callbacks, in which Python can only report an interrupt."""

    def callback():
        signal.raise_signal(signal.SIGINT)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", main.repeat_interrupt)
        ctypes.CFUNCTYPE(ctypes.c_int)(callback)()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(30)
    assert capsys.readouterr().err == ""


def test_ctrl_c_while_writing(songs, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with nothing_written(tmp_path):
        found = call(songs.folder, "predict", "songs.sylvan", "new.csv", "-o", tmp_path / "out.csv")
    assert found.returncode == 130
    assert found.stderr.splitlines() == ["Stopped."]


def test_a_model_with_a_table_of_its_own_cannot_lie(songs, tmp_path):
    """A model file whose notes about the table do not fit is refused in a line."""
    save(songs.model, tmp_path / "m.sylvan", about={"table": {"features": ["a"]}})
    with nothing_written(tmp_path):
        found = call(tmp_path, "predict", "m.sylvan", songs.folder / "new.csv")
        assert found.returncode in (1, 2)
        assert "m.sylvan" in error_of(found, code=found.returncode)


def test_new_rows_with_labels_only(songs, tmp_path):
    songs.new[["id", *LABELS]].to_csv(tmp_path / "new.csv", index=False)
    assert "lacks columns" in error_of(call(tmp_path, "predict", songs.path, "new.csv"))
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "new.csv", index=False)
    assert "lacks columns" in error_of(call(tmp_path, "explain", songs.path, "1", "--data", "new.csv"))


# Results that cannot be written are refused before a fit


@pytest.fixture
def no_fit(monkeypatch):
    def fit(*args, **options):
        raise AssertionError("the fit has begun")

    monkeypatch.setattr(sylvan.DeepForestClassifier, "fit", fit)


WRITERS = [
    ["fit", "good.csv", "-l", "tag_*", "-o", "{}", *TINY],
    ["impute", "good.csv", "-l", "tag_*", "-o", "{}", *TINY],
    ["impute", "good.csv", *IMPUTE, "--suggestions", "{}"],
    ["impute", "good.csv", *IMPUTE, "--report", "{}"],
    ["impute", "good.csv", *IMPUTE, "--model", "{}"],
    ["datasets", "digit_attributes", "-o", "{}"],
    ["bench", "--quick", "-o", "{}"],
]


def refused_early(folder, arguments, path, *more, code=2):
    (folder / "good.csv").write_text(GOOD)
    with nothing_written(folder):
        found = error_of(call(folder, *(part.format(path) for part in arguments), *more), code)
    assert str(path) in found
    return found


@pytest.mark.parametrize("arguments", WRITERS)
def test_pipes_and_devices_are_refused(tmp_path, no_fit, arguments):
    os.mkfifo(tmp_path / "pipe.csv")
    force = [] if arguments[0] == "bench" else ["--force"]
    for path in ("pipe.csv", "/dev/null", "/dev/full"):
        assert "is not a regular file" in refused_early(tmp_path, arguments, path, *force)


@pytest.mark.parametrize("arguments", WRITERS)
def test_read_only_folders_are_refused(tmp_path, no_fit, monkeypatch, arguments):
    (tmp_path / "there").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "there" and access(path, mode))
    assert "is read-only for you" in refused_early(tmp_path, arguments, "there/out.csv")


@pytest.mark.parametrize("arguments", WRITERS)
def test_full_disks_are_refused(tmp_path, no_fit, monkeypatch, arguments):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    assert "No space left on device" in refused_early(tmp_path, arguments, "out.csv", code=1)


def test_disks_with_too_little_space_are_refused(tmp_path, no_fit, monkeypatch):
    """A completed table is about as large as the table."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=len(GOOD) - 1))
    found = refused_early(tmp_path, ["impute", "good.csv", "-l", "tag_*", "-o", "{}"], "out.csv", code=1)
    assert "needs about 0 kB, and the disk has 0 kB free" in found
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=len(GOOD)))
    found = call(tmp_path, "impute", "good.csv", "-l", "tag_*", "-o", "out.csv", *TINY)
    assert error_of(found, code=1) == "Error: the fit has begun"


def test_what_a_killed_command_left_is_removed(songs, tmp_path):
    """kill -9 in the middle of writing: the next run removes the hidden part."""
    code = (
        "import os, sys, signal\nfrom sylvan.app.cli.main import sylvan\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\nsylvan(sys.argv[1:])"
    )
    arguments = ["predict", str(songs.path), str(songs.folder / "new.csv"), "-o", str(tmp_path / "out.csv")]
    killed = subprocess.run([sys.executable, "-c", code, *arguments], env=os.environ | ENVIRONMENT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    done(call(tmp_path, *arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


# Features that are probably none


@pytest.mark.parametrize("name", ["fit", "impute"])
def test_copies_of_labels_and_lost_digits_are_named(tmp_path, name):
    frame = make_songs(missing=False)
    frame["mood"] = 1 - frame["tag_calm"]
    frame["hash"] = np.random.default_rng(0).integers(2**60, 2**63, len(frame))
    frame.to_csv(tmp_path / "songs.csv", index=False)
    out = "m.sylvan" if name == "fit" else "out.csv"
    found = done(call(tmp_path, name, "songs.csv", "-l", "tag_*", "-o", out, *TINY))
    (line,) = [line for line in found.stderr.splitlines() if "copies of labels" in line]
    assert line.startswith("Warning: ")
    assert "'mood' (of 'tag_calm')" in line
    assert "above 2**53, whose last digits are lost: 'hash'." in line
    assert line.endswith("--drop leaves columns out.")


def test_classes_among_the_features_are_named(tmp_path):
    frame = make_songs(missing=False).assign(kind=lambda table: np.where(table["tempo"] > 0, "up", "down"))
    frame["copy"] = frame["kind"]
    frame[["tempo", "copy", "kind"]].to_csv(tmp_path / "songs.csv", index=False)
    found = done(call(tmp_path, "fit", "songs.csv", "-l", "kind", "--classes", "-o", "m.sylvan", *TINY))
    assert "'copy' (of '" in found.stderr
