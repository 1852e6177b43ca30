"""How the tests start `sylvan`, and the small tables that they give to it."""

import contextlib
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
from click.testing import CliRunner

from sylvan.app.cli.main import sylvan

TINY = ("--trees", "10", "--layers", "2", "--jobs", "1")
LABELS = ["tag_happy", "tag_calm", "tag_loud"]
ENVIRONMENT = {"SYLVAN_DATA": "", "COLUMNS": "100", "NO_COLOR": "1"}


def make_songs(n=60, seed=0, missing=True):
    """Songs with ids that begin with zeros, a text column and holes; two fifths of the labels are not recorded."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(n, 4)).round(3)
    true = np.column_stack([values[:, 0] > 0, values[:, 1] > 0, values[:, 0] + values[:, 2] > 0])
    observed = true & (random.random(true.shape) < 0.6)
    table = pd.DataFrame(values, columns=["tempo", "energy", "depth", "length"])
    if missing:
        table = table.mask(random.random(table.shape) < 0.05)
    table.insert(0, "id", [f"{at:03d}" for at in range(n)])
    table["mode"] = random.choice(["minor", "major"], n)
    return table.assign(**dict(zip(LABELS, observed.astype(int).T)))


def call(folder, *arguments):
    """Run the command in this process."""
    with contextlib.chdir(folder):
        found = CliRunner(env=ENVIRONMENT).invoke(sylvan, [str(part) for part in arguments])
    assert found.exception is None or isinstance(found.exception, SystemExit), repr(found.exception)
    return SimpleNamespace(returncode=found.exit_code, stdout=found.stdout, stderr=found.stderr)


def command(*arguments):
    """The command in a process of its own, as a list of words."""
    return [sys.executable, "-m", "sylvan.app.cli", *(str(part) for part in arguments)]


def start(folder, *arguments, **options):
    """Run the command in a process, with no terminal."""
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=os.environ | ENVIRONMENT,
        timeout=300,
        **({"capture_output": True, "text": True} | options),
    )


def done(found):
    """The result of a command that must succeed."""
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    return found


def error_of(found, code=2):
    """The last line, which says what was wrong; there is one such line, and no traceback."""
    assert found.returncode == code, (found.returncode, found.stdout, found.stderr)
    assert "Traceback" not in found.stderr
    lines = found.stderr.splitlines()
    assert [line.startswith("Error: ") for line in lines] == [False] * (len(lines) - 1) + [True], found.stderr
    return lines[-1]


def contents(folder):
    """All files of a folder, hidden ones too, with what is in them."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@contextlib.contextmanager
def nothing_written(folder):
    """Check that a folder has the same files with the same bytes at the end."""
    before = contents(folder)
    yield
    after = contents(folder)
    assert sorted(after) == sorted(before)
    assert after == before


def read_as_text(path, **options):
    """A written table, every cell as it stands in the file."""
    return pd.read_csv(path, dtype=str, keep_default_na=False, **options)
