"""The page in Markdown says what the tables of scores say."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from made_results import make_results
from sylvan.bench import make_protocol
from sylvan.bench.markdown import write_markdown
from sylvan.bench.store import Results

METHODS = ("rf_et", "cafe", "slcforest")


def made(datasets=("flags", "birds", "yeast"), factors=None, measures=("micro_auroc", "hamming_loss"), **options):
    """Results of runs that never were, under a real protocol."""
    name = options.pop("name", "A")
    fake = make_results(METHODS, datasets, factors, measures, name=name, **options)
    spec = {
        "task": "labels",
        "datasets": list(datasets),
        "measures": list(measures),
        "repeats": fake.protocol.repeats,
        "factors": {key: list(values) for key, values in (factors or {}).items()},
        "methods": {method: {"name": method.upper()} for method in METHODS},
        "title": "A | title",
    }
    protocol = make_protocol(spec, name=name)
    planned = fake.cells[["dataset", *protocol.factors, "repeat", "method", "target", "status"]]
    return Results(protocol, fake.scores, fake.layers, fake.cells, planned, pd.DataFrame(), fake.command)


def tables(page):
    """All tables of the page, each as a list of rows of texts."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", page + "\n", flags=re.MULTILINE):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
        assert len({len(row) for row in rows}) == 1
        found.append([rows[0], *rows[2:]])
    return found


def after(page, heading):
    return tables(page.split(heading)[1])[0]


def test_means_and_bold(tmp_path):
    results = made(factors={"ilr": [0.0, 0.5]})
    page = write_markdown(results, tmp_path / "page.md").read_text()
    for measure, best in (("micro AUROC", np.max), ("Hamming loss", np.min)):
        head, *rows = after(page, f"{measure} (")
        assert head == ["method", "ILR 0", "ILR 0.5"]
        scores = results.scores[results.scores["measure"] == measure.replace(" ", "_").lower()]
        means = scores.groupby(["method", "ilr", "dataset"])["value"].mean().groupby(["method", "ilr"]).mean()
        for column, ilr in ((1, 0.0), (2, 0.5)):
            values = {row[0]: float(row[column].strip("*")) for row in rows}
            assert values == {method.upper(): round(means[method, ilr], 3) for method in METHODS}
            bold = {row[0] for row in rows if row[column].startswith("**")}
            assert bold == {name for name, value in values.items() if value == best(list(values.values()))}


def test_ranks_are_sorted_and_of_complete_blocks(tmp_path):
    results = made()
    gone = results.scores["method"].eq("cafe") & results.scores["dataset"].eq("flags") & results.scores["repeat"].eq(0)
    results = Results(results.protocol, results.scores[~gone], *list(vars(results).values())[2:])
    page = write_markdown(results, tmp_path / "page.md").read_text()
    assert "2 blocks in which a method has no value are left out." in page
    _, *rows = after(page, "## Average ranks")
    ranks = [np.mean([float(cell.strip("*")) for cell in row[1:]]) for row in rows]
    assert ranks == sorted(ranks)
    assert np.isclose(
        np.sum([[float(cell.strip("*")) for cell in row[1:]] for row in rows], axis=0), 6, atol=0.02
    ).all()


def test_the_best_by_mean_and_by_rank(tmp_path):
    """One bad data set costs the mean, not the rank."""
    results = made(("flags", "birds", "yeast", "scene"), factors={"ilr": [0.0, 0.5]})
    scores = results.scores.copy()
    spoilt = scores["method"].eq("rf_et") & scores["dataset"].eq("flags") & scores["ilr"].eq(0.5)
    loss = scores["measure"].eq("hamming_loss")
    scores["value"] = scores["method"].map({"rf_et": 0.9, "cafe": 0.8, "slcforest": 0.7})
    scores.loc[spoilt, "value"] = 0.1
    scores.loc[loss, "value"] = 1 - scores.loc[loss, "value"]
    results = Results(results.protocol, scores, *list(vars(results).values())[2:])
    head, *rows = after(write_markdown(results, tmp_path / "page.md").read_text(), "## Tests over data sets")
    found = {(row[0], row[1]): (row[head.index("best mean")], row[head.index("best rank")]) for row in rows}
    for measure in ("micro AUROC", "Hamming loss"):
        assert found[measure, "ILR 0"] == ("RF_ET", "RF_ET")
        assert found[measure, "ILR 0.5"] == ("CAFE", "RF_ET")


def test_levels_that_are_numbers_and_words(tmp_path):
    results = made(factors={"missing": ["by label", 0.5, 0.0]})
    page = write_markdown(results, tmp_path / "page.md").read_text()
    head, *rows = after(page, "micro AUROC (")
    assert head == ["method", "missing 0", "missing 0.5", "missing by label"]
    assert len(rows) == 3


def test_every_data_set_has_mean_and_deviation(tmp_path):
    results = made()
    page = write_markdown(results, tmp_path / "page.md").read_text()
    head, *rows = after(page, "<summary>Hamming loss</summary>")
    assert head == ["Data set", "RF_ET", "CAFE", "SLCFOREST"]
    assert [row[0] for row in rows] == ["flags", "birds", "yeast", "mean of 3"]
    for row in rows[:-1]:
        means = {}
        for method, text in zip(METHODS, row[1:]):
            keys = {"dataset": row[0], "method": method, "measure": "hamming_loss"}
            values = results.scores[(results.scores[list(keys)] == keys).all(axis=1)]["value"]
            assert text.replace("*", "") == f"{values.mean():.3f} ±{values.std():.3f}"
            means[text] = values.mean()
        assert min(means, key=means.get).startswith("**")


def test_names_cannot_become_markup(tmp_path):
    results = made(("<script>x</script>", "a|b", "{{7*7}}"))
    page = write_markdown(results, tmp_path / "page.md").read_text()
    assert "<script" not in page
    assert "| a\\|b |" in page
    assert "| {{7*7}} |" in page


def test_published_figures_and_failures(tmp_path):
    results = made(("emotions", "flags"), {"ilr": [0.5]}, failing=0.2, seed=3)
    failed = int((results.cells["status"] == "failed").sum())
    assert failed
    page = write_markdown(results, tmp_path / "page.md").read_text()
    assert f"{len(results.cells) - failed} of {len(results.cells)} cells finished, {failed} failed." in page
    _, *rows = after(page, "## Against the published figures")
    assert [row[0] for row in rows] == ["RF_ET", "CAFE", "SLCFOREST", "all"]
    assert all(re.fullmatch("\u2212?0[.][0-9]{3}", row[1]) and row[3] == "4" for row in rows[:-1])


def test_nothing_finished_and_no_published_figures(tmp_path):
    results = made(name="mine")
    assert "published" not in write_markdown(results, tmp_path / "page.md").read_text()
    empty = Results(results.protocol, results.scores[:0], results.layers[:0], results.cells[:0], results.planned)
    assert "No cell is finished." in write_markdown(empty, tmp_path / "empty.md").read_text()


PICTURE = re.compile(r"!\[([^\[\]]+)\]\((assets/[\w.-]+\.png)\)")


def test_pictures_lie_beside_the_page_and_say_what_is_seen(tmp_path):
    results = made(("emotions", "flags", "birds"), {"ilr": [0.3, 0.5]})
    page = write_markdown(results, tmp_path / "a page.md").read_text()
    found = {name: alt for alt, name in PICTURE.findall(page)}
    names = ("ranks", "ilr", "published", "cost")
    assert list(found) == [f"assets/a-page-{name}.png" for name in names]
    assert sorted(found) == sorted(f"assets/{file.name}" for file in (tmp_path / "assets").iterdir())
    for name in found:
        with Image.open(tmp_path / name) as image:
            assert image.width <= 1000
            assert not image.info
        assert (tmp_path / name).stat().st_size < 60_000
    order = [row[0] for row in after(page, "## Average ranks")[1:]]
    texts = dict(zip(names, found.values()))
    assert re.search(" [0-9]+(,| and) ".join(order), texts["ranks"])
    head, *rows = after(page, "<summary>micro AUROC")
    best = max(rows, key=lambda row: float(row[head.index("ILR 0.5")].strip("*")))[0]
    assert f"Best at 0.5, micro AUROC ↑: {best};" in texts["ilr"]
    assert f"the best {order[0]}" in texts["cost"]
    assert not re.search(r"\n{3}", page)


def test_same_results_same_page_and_pictures(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_markdown(made(("emotions", "flags"), {"ilr": [0.3, 0.5]}), tmp_path / name / "A.md")
    files = [file.relative_to(tmp_path / "one") for file in (tmp_path / "one").rglob("*.*")]
    assert len(files) == 5
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)


@pytest.mark.parametrize("name", ["a]b", "[x](y)", "a\nb", "\\"])
def test_names_do_not_end_the_text_of_a_picture(tmp_path, name):
    results = made()
    results.protocol.methods["cafe"]["name"] = name
    page = write_markdown(results, tmp_path / "page.md").read_text()
    assert len(PICTURE.findall(page)) == page.count("![") == 2


def test_one_data_set_and_one_repeat_are_said_once(tmp_path):
    results = made(("emotions",), {"ilr": [0.3, 0.5]})
    first = results.scores[results.scores["repeat"] == 0]
    results = Results(results.protocol, first, *list(vars(results).values())[2:])
    page = write_markdown(results, tmp_path / "page.md").read_text()
    assert page.count("two data sets or more") == 1
    assert "too few" not in page
    assert "Scores of one fold." in page
    assert "-ranks.png" not in page
    head, *_ = after(write_markdown(made(), tmp_path / "few.md").read_text(), "## Tests over data sets")
    assert head[-1] == "best rank"  # three sets are too few for pairs: two columns would say nothing


def test_a_quick_run_is_not_held_against_published_figures(tmp_path):
    results = made(("emotions", "flags"), {"ilr": [0.5]})
    quick = Results(replace(results.protocol, title="A (quick)"), *list(vars(results).values())[1:])
    assert "published" in write_markdown(results, tmp_path / "page.md").read_text()
    assert "published" not in write_markdown(quick, tmp_path / "page.md").read_text()


@pytest.mark.parametrize("repeats", [2, 3])
def test_repeats_that_are_finished(tmp_path, repeats):
    results = made(repeats=3)
    kept = results.scores[(results.scores["method"] != "cafe") | (results.scores["repeat"] < repeats)]
    results = Results(results.protocol, kept, *list(vars(results).values())[2:])
    _, *rows = tables(write_markdown(results, tmp_path / "page.md").read_text())[0]
    assert {row[-1] for row in rows} == {"3 of 3" if repeats == 3 else "2 to 3 of 3"}
