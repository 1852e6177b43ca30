"""Results that are kept in the repository, and what is renewed from them (`benchmarks/results.py`, `claims.py`)."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from sylvan.bench import load_protocol, read_results
from sylvan.bench.cell import Outcome
from sylvan.bench.published import published_figures
from sylvan.bench.store import Store
from sylvan.pages.words import DASH

ROOT = Path(__file__).parents[2]
README = ROOT / "docs" / "results" / "README.md"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import claims
    import results

    return claims, results


def fill(path, *, more=(), but=0, **outcome):
    """Results of protocol B that are the published ones, or worse by 0.1 for methods as published."""
    protocol = load_protocol("B").select(repeats=2)
    protocol = protocol.select(methods=[*protocol.methods, *more])
    figures = published_figures("B").set_index(["dataset", "ilr", "method", "measure"])["value"]
    with Store(path, create=True) as store:
        for cell in store.plan(protocol, command="sylvan bench --out /home/somebody/B.db")[but:]:
            method = cell.method.removesuffix("_published")
            worse = 0.0 if method == cell.method else 0.1
            place = (cell.dataset, dict(cell.factors)["ilr"], method)
            scores = {name: figures[*place, name] + worse * (1 if "loss" in name else -1) for name in protocol.measures}
            layers = {(1, name): 0.5 for name in protocol.measures}
            store.add(Outcome(cell, protocol.definition(cell), scores=scores, layers=layers, seconds=1.0, **outcome))
    return protocol


def rows(text, name):
    part = text.split(f"## Protocol {name}")[1].split("\n## ")[0]
    return {
        line.split("|")[1].strip(): [c.strip() for c in line.split("|")[2:5]]
        for line in part.splitlines()
        if "|" in line
    }


def test_what_is_kept_has_all_scores_and_names_nobody(tmp_path, scripts):
    protocol = fill(
        tmp_path / "B.db", but=3, error='File "/home/somebody/lib/x.py"', warnings="at /usr/lib/y.so, 1/2/3"
    )
    before = (tmp_path / "B.db").read_bytes()
    scripts[1].keep(tmp_path / "B.db", tmp_path / "B.db.xz")
    assert (tmp_path / "B.db").read_bytes() == before
    kept, results = scripts[1].read(tmp_path / "B.db.xz"), read_results(tmp_path / "B.db")
    pd.testing.assert_frame_equal(kept.scores, results.scores)
    assert (kept.planned["status"] == "planned").sum() == 3
    assert kept.protocol == results.protocol
    assert kept.layers.empty
    assert kept.command == "sylvan bench --out B.db"
    assert set(kept.cells["error"]) == {'File "x.py"'}
    assert set(kept.cells["warnings"]) == {"at y.so, 1/2/3"}
    again = tmp_path / "again.db"
    again.write_bytes(scripts[1].lzma.decompress((tmp_path / "B.db.xz").read_bytes()))
    with closing(sqlite3.connect(again)) as connection:
        assert not any("/home" in line or "somebody" in line for line in connection.iterdump())
    with Store(again) as store:  # a run goes on where it was
        assert len(store.plan(protocol)) == 3


def test_one_command_keeps_writes_the_page_and_renews_the_claims(tmp_path, scripts):
    shutil.copy(README, tmp_path)
    before = README.read_text(encoding="utf-8")
    fill(tmp_path / "B.db", more=["lcforest_published"])
    scripts[1].main([str(tmp_path / "B.db")], tmp_path)
    after = (tmp_path / "README.md").read_text(encoding="utf-8")
    changed = [line for line, other in zip(after.splitlines(), before.splitlines(), strict=True) if line != other]
    assert all(line.startswith("| ") for line in changed)
    for claim, (published, exact, ours) in rows(after, "B").items():
        if claim.startswith("LCForest is best"):
            assert ours == published != exact
        if claim.startswith("WELL"):
            assert (ours, exact) == (published, DASH)
        if claim.startswith("The figures"):
            assert exact.startswith("-.100; 0 of 48; ")
            assert ours == "+.000; 48 of 48; 47 of 47"  # one published deviation is 0, and ours too
    assert rows(after, "C") == rows(before, "C")
    assert "assets/B-ranks.png" in (tmp_path / "B.md").read_text(encoding="utf-8")
    (tmp_path / "B.md").unlink()
    scripts[1].main([], tmp_path)
    assert (tmp_path / "B.md").is_file()
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == after


def test_runs_that_lack_methods_renew_no_claim(tmp_path, scripts):
    fill(tmp_path / "B.db")
    results = read_results(tmp_path / "B.db")
    part = results.scores[~results.scores["method"].isin(["dbpnn", "lcforest"])]
    found = scripts[0].figures_of("B", type(results)(results.protocol, part, *list(vars(results).values())[2:]))
    assert all(one[1:] == [None, None] for one in found.values())


def test_the_page_has_a_row_for_each_claim_and_the_papers_figures(scripts):
    text = README.read_text(encoding="utf-8")
    assert scripts[0].renew(text, {}) == text  # what was published is what is computed from the published figures
    figures = [cell for name in "ABCD" for row in rows(text, name).values() for cell in row]
    assert not any(cell in ("", "x", "nan") for cell in figures)


def test_gains_and_places_by_hand(scripts):
    claims = scripts[0]
    values = {"a": (0.9, 0.5), "b": (0.8, 0.7), "c": (0.1, 0.6)}
    scores = pd.DataFrame(
        [
            {"dataset": d, "ilr": 0.5, "repeat": 0, "method": m, "measure": q, "value": v}
            for q in ("micro_auroc", "hamming_loss")
            for m, pair in values.items()
            for d, v in zip(("x", "y"), pair)
        ]
    )
    t = claims.table(scores)
    assert claims.places(t, "b", ["micro_auroc", "hamming_loss"]) == "1, 3 of 3"
    assert claims.gains(t, "hamming_loss", {"a": "b"}, "ilr", (0.5, 0.7)) == f"+.050, {DASH}"
    assert claims.won(t, "a", ["micro_auroc", "hamming_loss"]) == [(1, 2), (1, 2)]
    assert claims.won(t, "a", ["hamming_loss"], ["c"]) == [(1, 2)]
    assert re.fullmatch(r"-\.300", claims.short(-0.3))
