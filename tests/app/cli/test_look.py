"""`sylvan look`: how a table would be read, all that is wrong with it at once, and a command that works."""

import json
import shlex
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from app.cli.running import TINY, call, done, error_of, start


@pytest.fixture
def field(tmp_path):
    """A table as people have them: ids, dates, units, a decimal comma, categories, remarks, words as labels."""
    random = np.random.default_rng(0)
    n = 60
    wet = random.random(n) < 0.5
    table = pd.DataFrame(
        {
            "sample_id": [f"S-{at:03d}" for at in range(n)],
            "taken": pd.date_range("2021-03-01", periods=n, freq="9D").strftime("%d.%m.%Y"),
            "lead": [f"{value:.1f} mg".replace(".", ",") for value in random.uniform(0, 9, n)],
            "site": random.choice(["mud", "sand", "rock"], n),
            "constant": 7,
            "species: elm": np.where(wet, "yes", "no"),
            "species: oak": np.where(random.random(n) < 0.4, "yes", "no"),
        }
    )
    table.to_csv(tmp_path / "field.csv", index=False)
    return table


def test_says_how_columns_are_read(field, tmp_path):
    found = json.loads(done(call(tmp_path, "look", "field.csv", "--json")).stdout)
    read = {line["column"]: line["read_as"] for line in found["columns"]}
    assert read["sample_id"] == "id"
    assert (read["taken"], read["lead"], read["site"]) == ("dates", "numbers", "categories")
    assert found["rows"] == 60
    assert found["likely_labels"] == ["species: elm", "species: oak"]
    assert found["problems"] == []
    about = {line["column"]: line["about"] for line in found["columns"]}
    assert about["lead"] == "numbers with decimal commas; numbers in mg"


def test_its_advice_can_be_followed(field, tmp_path):
    first = done(call(tmp_path, "look", "field.csv")).stdout
    assert "Columns that may be labels: 'species: elm', 'species: oak'." in first
    advice = first.strip().splitlines()[-1].partition("Next: sylvan ")[2]
    second = done(call(tmp_path, *shlex.split(advice)))
    assert "Nothing is in the way." in second.stdout
    advice = second.stdout.strip().splitlines()[-1].partition("Next: sylvan ")[2]
    done(call(tmp_path, *shlex.split(advice), *TINY))
    assert len(pd.read_csv(tmp_path / "completed.csv")) == 60


def test_all_that_is_wrong_is_said_at_once(field, tmp_path):
    bad = field.assign(twin=np.arange(60) * 1.5, copy=np.arange(60) * 1.5)
    bad.loc[3, "lead"], bad.loc[5, "taken"], bad.loc[7, "species: oak"] = "much", "soon", "perhaps"
    bad["leak"] = (bad["species: elm"] == "yes") * 2
    bad.to_csv(tmp_path / "bad.csv", index=False)
    found = json.loads(done(call(tmp_path, "look", "bad.csv", "-l", "species*", "--json")).stdout)
    problems = "\n".join(found["problems"])
    for part in ("'much' in row 4", "'soon' in row 6", "perhaps", "'twin' and 'copy' are the same"):
        assert part in problems
    fixed = bad.drop(index=[3, 5, 7])
    fixed.to_csv(tmp_path / "fixed.csv", index=False)
    text = done(call(tmp_path, "look", "fixed.csv", "-l", "species*")).stdout
    assert "'leak' (of 'species: elm')" in text.replace("\n", " ")


def test_a_large_table_is_shown_before_all_is_read(tmp_path):
    n = 20_000
    random = np.random.default_rng(0)
    table = pd.DataFrame({"a": random.normal(size=n).round(3), "b": random.integers(0, 9, n).astype(str)})
    table["tag"] = (table["a"] > 0).astype(int)
    table.to_csv(tmp_path / "large.csv", index=False)
    found = done(call(tmp_path, "look", "large.csv", "-l", "tag"))
    assert "large.csv: the first 5,000 rows, 3 columns" in found.stdout
    assert "All rows are looked at" in found.stderr
    table.loc[19_000, "b"] = "7 or 8"
    table.to_csv(tmp_path / "large.csv", index=False)
    found = done(call(tmp_path, "look", "large.csv", "-l", "tag", "--json"))
    assert "'7 or 8' in row 19001" in json.loads(found.stdout)["problems"][0]
    with (tmp_path / "large.csv").open("a") as file:
        file.write("1,2\n")
    assert "line 20002 has 2 cells" in error_of(call(tmp_path, "look", "large.csv", "-l", "tag"))


def test_first_findings_need_nothing_heavy(field, tmp_path):
    code = (
        "import sys, sylvan.app.cli.look as look\n"
        "heavy = ('sklearn', 'numba', 'matplotlib')\n"
        "look._equal = lambda frame, where: print([name for name in heavy if name in sys.modules]) or []\n"
        "from sylvan.app.cli.main import sylvan\n"
        "sylvan.main(['look', 'field.csv'], 'sylvan')\n"
    )
    began = time.perf_counter()
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "\n[]\n" in found.stdout, found.stdout
    assert time.perf_counter() - began < 30


def test_look_in_a_process(field, tmp_path):
    found = done(start(tmp_path, "look", "field.csv", "-l", "species*"))
    assert "decimal" in found.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "field.csv"]


def test_look_names_the_id_that_a_fit_takes(tmp_path):
    n = 30
    columns = {"code": [f"c{at}" for at in range(n)], "id": range(7, 7 + n), "x": np.arange(n) % 5, "tag": [0, 1] * 15}
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv", index=False)
    lines = json.loads(done(call(tmp_path, "look", "a.csv", "-l", "tag", "--json")).stdout)["columns"]
    assert [line["column"] for line in lines if line["read_as"] == "id"] == ["id"]
    found = done(call(tmp_path, "fit", "a.csv", "-l", "tag", "-o", "m.sylvan", *TINY)).stderr
    assert "Column 'id' names the rows" in found.replace("\n", " ")


@pytest.mark.parametrize(
    ("labels", "others"),
    [
        (["it's", "b c"], ["x"]), (["a,b", "c,d"], ["x"]), (["t_a", "t_b", "t_c", "t_d", "t_e"], ["t_age", "x"]),
        (["t_a", "t_b", "t_c", "t_d", "t_e"], ["x"]), (["[t]", "t*"], ["x"]),
    ],
)  # fmt: skip
def test_commands_that_it_shows_work_in_a_shell(tmp_path, labels, others):
    random = np.random.default_rng(0)
    table = pd.DataFrame({name: random.normal(size=60).round(2) for name in others})
    table = table.assign(**{name: random.integers(0, 2, 60) for name in labels})
    table.to_csv(tmp_path / "completed.csv", index=False)  # a name that the advice must not use again
    first = done(call(tmp_path, "look", "completed.csv")).stdout.strip().splitlines()[-1]
    second = done(call(tmp_path, *shlex.split(first.partition("Next: sylvan ")[2])))
    assert "Nothing is in the way." in second.stdout, second.stdout
    advice = second.stdout.strip().splitlines()[-1].partition("Next: sylvan ")[2]
    done(call(tmp_path, *shlex.split(advice), *TINY))
    assert list(pd.read_csv(tmp_path / "completed-2.csv")) == [*others, *labels]


def test_advice_for_classes_is_a_fit(tmp_path):
    pd.DataFrame({"x": range(30), "kind": ["a", "b", "c"] * 10}).to_csv(tmp_path / "a.csv", index=False)
    shown = done(call(tmp_path, "look", "a.csv", "-l", "kind", "--classes")).stdout.strip().splitlines()[-1]
    done(call(tmp_path, *shlex.split(shown.partition("Next: sylvan ")[2]), *TINY))


def test_what_is_not_shown_is_counted(tmp_path):
    table = pd.DataFrame({f"f{at}": [0.5, 1.5] * 10 for at in range(70)} | {"tag": [0, 1] * 10})
    table.to_csv(tmp_path / "wide.csv", index=False)
    assert (
        "... and 11 further columns: 10 numbers, 1 label."
        in done(call(tmp_path, "look", "wide.csv", "-l", "tag")).stdout
    )


def test_an_index_is_shown_as_left_out(tmp_path):
    table = pd.DataFrame({"code": [f"A{at}" for at in range(40)], "x": np.arange(40) % 5, "t": [0, 1] * 20})
    table.drop(index=[3, 9]).to_csv(tmp_path / "gaps.csv")
    found = json.loads(done(call(tmp_path, "look", "gaps.csv", "-l", "t", "--json")).stdout)["columns"]
    assert [(line["column"], line["read_as"]) for line in found[:2]] == [("unnamed", "left out"), ("code", "id")]
