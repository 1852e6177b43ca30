"""Names from files are shown on the terminal, and never obeyed; JSON has them as they are."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.running import ENVIRONMENT, TINY, call, command, done, error_of, make_songs
from strategies import examples
from sylvan.app.cli.terminal import in_options, visible

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")
EVIL = "\x1b[31m\x1b]0;title\x07\u202egnp.exe\u2066\x9b2J"
SHOWN = r"\x1b[31m\x1b]0;title\x07\u202egnp.exe\u2066\x9b2J"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@given(st.text(st.characters()))
@examples(200)
def test_nothing_that_steers_a_terminal_is_left(text):
    found = visible(text)
    assert not CONTROLS.search(found)
    assert "\n" not in found
    if found == text:
        assert text.isprintable() or not CONTROLS.search(text)


def test_text_is_left_as_it_is():
    for text in ("Größe 中文 (naïve) [red] 👩\u200d🔬", r"back\slash", ""):
        assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("say drop='title,a b' or", "say --drop 'title,a b' or"),
        ("if lists, separator=';'.", "if lists, --label-separator ';'."),
        ("say classes=True; label_file=... names it", "say --classes; --label-file names it"),
        ("""drop="it's" """, """--drop "it's" """),
        (r"drop='a\'b'", r"--drop 'a\'b'"),
        ("n_id='x', id=5 and valid=True stay", "n_id='x', id=5 and valid=True stay"),
    ],
)
def test_parameters_become_options(text, expected):
    assert in_options(text) == expected


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A table with escapes in names of columns, in ids, labels and categories, and in its own name."""
    folder = tmp_path_factory.mktemp("evil")
    frame = make_songs(missing=False).rename(columns={"tag_loud": f"tag_{EVIL}", "tempo": f"tempo{EVIL}[bold]x[/bold]"})
    frame["id"] = [f"{EVIL}{at}" for at in range(len(frame))]
    frame.to_csv(folder / f"{EVIL}.csv", index=False)
    done(call(folder, "fit", f"{EVIL}.csv", "-l", "tag_*", "-o", f"{EVIL}.sylvan", "--with-rows", *TINY))
    return folder


COMMANDS = {
    "impute": ["impute", f"{EVIL}.csv", "-l", "tag_*", "-o", f"out{EVIL}.csv", "--force", "--check", *TINY],
    "fit": ["fit", f"{EVIL}.csv", "-l", "tag_*", "-o", f"{EVIL}.sylvan", "--with-rows", "--force", *TINY],
    "evaluate": ["evaluate", f"{EVIL}.sylvan", f"{EVIL}.csv", "--by-label"],
    "explain": ["explain", f"{EVIL}.sylvan"],
    "explain row": ["explain", f"{EVIL}.sylvan", f"{EVIL}3"],
    "explain new": ["explain", f"{EVIL}.sylvan", f"{EVIL}3", "--data", f"{EVIL}.csv"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_escapes_in_names_are_shown(evil, name):
    found = done(call(evil, *COMMANDS[name]))
    assert not CONTROLS.search(found.stdout + found.stderr)
    folded = re.sub(r"[│\s]", "", found.stdout + found.stderr)  # long names go on in the next line of a cell
    assert SHOWN[:20].replace(" ", "") in folded
    assert "[bold]" in folded or name not in ("explain",)


@pytest.mark.parametrize("name", ["impute", "fit", "evaluate", "explain", "explain row", "explain new"])
def test_json_is_exact(evil, name):
    found = json.loads(done(call(evil, *COMMANDS[name], "--json")).stdout)
    assert json.dumps(EVIL)[1:-1] in json.dumps(found)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["fit", f"none{EVIL}.csv", "-l", "x", "-o", "m.sylvan"], 2),
        (["fit", f"{EVIL}.csv", "-l", f"no{EVIL}", "-o", "m.sylvan"], 2),
        (["fit", f"{EVIL}.csv", f"--{EVIL}", "x"], 2),
        ([f"impute{EVIL}"], 2),
        (["predict", f"none{EVIL}.sylvan", f"{EVIL}.csv"], 2),
        (["datasets", f"none{EVIL}", "-o", "x.csv"], 2),
        (["bench", "--protocol", f"no{EVIL}"], 2),
        (["bench", "--methods", f"no{EVIL}"], 2),
        (["bench", "show", f"no{EVIL}.db"], 2),
    ],
)
def test_escapes_in_errors_are_shown(evil, monkeypatch, arguments, code):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: (_ for _ in ()).throw(ValueError("none")))
    found = call(evil, *arguments)
    assert not CONTROLS.search(found.stdout + found.stderr)
    assert r"\x1b[31m" in error_of(found, code)


def test_escapes_are_shown_with_debug(evil):
    found = call(evil, "--debug", "fit", f"{EVIL}.csv", "-l", f"no{EVIL}", "-o", "m.sylvan")
    assert "Traceback" in found.stderr
    assert not CONTROLS.search(found.stderr)


def test_categories_that_are_new_are_shown(evil, tmp_path):
    frame = make_songs(10, missing=False).rename(columns={"tempo": f"tempo{EVIL}[bold]x[/bold]"})
    frame.assign(mode=EVIL).to_csv(tmp_path / "new.csv", index=False)
    found = done(call(tmp_path, "predict", evil / f"{EVIL}.sylvan", "new.csv", "-o", "out.csv"))
    assert f"not seen, taken as missing: '{SHOWN}'." in found.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="has no such terminals")
def test_predictions_on_a_terminal(evil):
    """Through a pipe they are exact; on a terminal they are shown."""
    arguments = command("predict", f"{EVIL}.sylvan", f"{EVIL}.csv", "--quiet")
    exact = subprocess.run(arguments, cwd=evil, env=os.environ | ENVIRONMENT, capture_output=True, check=True).stdout
    assert EVIL.encode() in exact
    ours, theirs = pty.openpty()
    with subprocess.Popen(arguments, cwd=evil, env=os.environ | ENVIRONMENT, stdout=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # closed at the other end
                break
            if not part:
                break
            shown += part
        os.close(ours)
    assert process.returncode == 0
    lines = shown.decode().removesuffix("\x1b[0m").split("\r\n")  # colorama resets colours at the end
    assert lines == [visible(line) for line in exact.decode().split("\n")]
