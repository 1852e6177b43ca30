"""What is shown of a cell is what people wrote; what the model thinks adds up; pictures come from one folder only."""

import logging
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sylvan.app.review import cells as rooms
from sylvan.app.review.cells import FileValues, FrameValues, Images, Viewer
from sylvan.app.tables import open_table
from sylvan.labels.reasons import Reason
from sylvan.labels.recalibrate import Recalibration

ROWS = pd.Index([f"song {at}" for at in range(40)])
LABELS = ["happy", "calm"]
X = pd.DataFrame(
    {"tempo": np.arange(40.0), "mode": np.arange(40) % 2.0, "depth": np.r_[np.nan, np.ones(39)]}, index=ROWS
)
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


class Explains:
    """A model that says of each cell: tempo speaks for it, depth against it."""

    feature_importances_ = np.array([0.1, 0.7, 0.2])

    def __init__(self):
        self.asked = []

    def explain_cells(self, rows, labels, X=None, similar=0):
        self.asked.append(len(rows))
        reasons = [
            [Reason("depth", np.nan, "missing", -0.3), Reason("tempo", 4.0, "high", 0.2)]
            for _ in rows
        ]  # fmt: skip
        other = [[SimpleNamespace(row=ROWS[9], share=0.25), SimpleNamespace(row="gone", share=0.1)] for _ in rows]
        n = len(rows)
        return SimpleNamespace(top=lambda k: [each[:k] for each in reasons], similar=other,
                               base_present=np.full(n, 0.4), present=np.full(n, 0.3))  # fmt: skip


def viewer_of(model=None, **more):
    return Viewer(model, ROWS, LABELS, **({"X": X, "features": list(X)} | more))


def by_name(shown, part="values"):
    return {each["name"]: each for each in shown[part]}


# --------------------------------------------------------------------------------------------------------------- values


def test_values_of_a_table_in_memory():
    fitted = SimpleNamespace(labels_=SimpleNamespace(X=X.to_numpy(float)))
    viewer = viewer_of(fitted, categories={"mode": ["minor", "major"]})
    viewer.prepare([2 * 3 + 1], True)
    shown = viewer.show(2 * 3 + 1, 0.5)
    assert (shown["cell"], shown["row"], shown["label"]) == ("3.1", "song 3", "calm")
    assert {name: each["value"] for name, each in by_name(shown).items()} == {
        "tempo": "3",
        "mode": "major",
        "depth": "1",
    }
    assert {name: each["level"] for name, each in by_name(shown).items()} == {"tempo": "low", "mode": "", "depth": ""}
    assert by_name(viewer.show(0, 0.5))["depth"]["value"] == ""
    assert by_name(viewer.show(2 * 39, 0.5))["tempo"]["level"] == "high"


def test_values_of_a_file_are_shown_as_they_are_written(tmp_path):
    path = tmp_path / "songs.csv"
    lines = [f'{at};"{at},50";007;"A ""title""; <b>{at}</b>";{at % 2}' for at in range(40)]
    path.write_text("\n".join(["id;tempo;code;title;happy", *lines]))
    table = open_table(path, decimal=",")
    values = FileValues(table, ["tempo", "code", "title"])
    viewer = viewer_of(values=values)
    assert by_name(viewer.show(2 * 7, 0.5))["tempo"]["value"] == "7"  # from memory, until the file is read
    assert viewer.show(2 * 7, 0.5)["pending"]
    viewer.prepare([2 * 7, 2 * 39 + 1], True)
    shown = viewer.show(2 * 7, 0.5)
    assert not shown["pending"]
    assert [(each["name"], each["value"]) for each in shown["values"]] == [
        ("code", "007"), ("title", 'A "title"; <b>7</b>'), ("tempo", "7,50"),  # features come last
    ]  # fmt: skip
    assert by_name(viewer.show(2 * 39, 0.5))["title"]["value"] == 'A "title"; <b>39</b>'


def test_one_pass_over_the_file_reads_all_rows(tmp_path, monkeypatch):
    path = tmp_path / "songs.csv"
    path.write_text("tempo\n" + "".join(f"{at}\n" for at in range(40)))
    values = FileValues(open_table(path), ["tempo"])
    passes, chunks = [], values.table.chunks
    monkeypatch.setattr(values.table, "chunks", lambda *args, **more: passes.append(1) or chunks(7, *args[1:], **more))
    assert values.read([39, 0, 13, 14]) == {row: [str(row)] for row in (0, 13, 14, 39)}
    assert len(passes) == 1


def test_a_file_that_changed_is_not_read_again(tmp_path):
    path = tmp_path / "songs.csv"
    path.write_text("tempo,title\n" + "".join(f"{at},t\n" for at in range(40)))
    viewer = viewer_of(values=FileValues(open_table(path), ["tempo", "title"]))
    path.write_text("other,columns\n1,2\n")
    viewer.prepare([2 * 5], True)
    shown = viewer.show(2 * 5, 0.5)
    assert {name: each["value"] for name, each in by_name(shown).items()} == {"tempo": "5", "title": ""}
    assert not shown["pending"]


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_arrays_and_sparse_matrices(make):
    viewer = viewer_of(X=make(X.fillna(0.0).to_numpy()), features=["x0", "x1", "x2"])
    viewer.prepare([2 * 5], True)
    assert {each["name"]: each["value"] for each in viewer.show(2 * 5, 0.5)["values"]} == {
        "x0": "5",
        "x1": "1",
        "x2": "1",
    }


def test_without_features_there_are_names_alone():
    viewer = Viewer(None, ROWS, LABELS)
    viewer.prepare([3], True)
    shown = viewer.show(3, 0.5)
    assert shown["values"] == []
    assert not shown["pending"]


def test_long_texts_and_many_columns_are_cut():
    wide = pd.DataFrame(np.zeros((40, 500)), columns=[f"f{at}" for at in range(500)]).astype(object)
    wide["text"] = "x" * 100_000
    shown = viewer_of(X=wide, features=list(wide), values=FrameValues(wide, list(wide))).show(0, 0.5)
    assert len(shown["values"]) == 60
    assert shown["more_values"] == 441
    viewer = viewer_of(X=wide[["text"]], features=["text"])
    value = viewer.show(0, 0.5)["values"][0]
    assert value["kind"] == "text"
    assert len(value["value"]) == 5001


def test_what_is_kept_does_not_grow_with_the_table(monkeypatch):
    monkeypatch.setattr(rooms, "_KEPT", 10)
    viewer = viewer_of(Explains())
    for row in range(40):
        viewer.prepare([2 * row], True)
    assert len(viewer._rows) == len(viewer._reasons) == 10


# -------------------------------------------------------------------------------------------------------------- reasons


def test_reasons_add_up_and_come_with_similar_rows():
    viewer = viewer_of(Explains())
    assert viewer.show(8, 0.35)["reasons"] is None
    assert viewer.show(8, 0.35)["pending"]
    viewer.prepare([8, 9], True)
    assert viewer.model.asked == [2]
    shown = viewer.show(8, 0.3)
    assert [(each["name"], each["value"], each["level"]) for each in shown["reasons"]] == [
        ("depth", "1", ""), ("tempo", "4", "high"),
    ]  # fmt: skip
    total = shown["base"] + sum(each["contribution"] for each in shown["reasons"]) + shown["rest"]
    assert total == pytest.approx(shown["probability"])
    assert [each["name"] for each in shown["values"]] == ["depth", "tempo", "mode"]  # by what they contribute
    assert by_name(shown)["tempo"]["contribution"] == 0.2
    assert [(each["row"], each["share"]) for each in shown["similar"]] == [("song 9", 0.25)]
    like = shown["similar"][0]["values"]
    assert [(each["name"], each["value"]) for each in like] == [("depth", "1"), ("tempo", "9"), ("mode", "1")]


@pytest.mark.parametrize("probability", [0.1, 0.35, 0.8])
def test_reasons_lead_from_what_holds_for_any_row_to_the_probability(probability):
    """Decisions correct both ends, so that nothing of them is left for "everything else"."""
    viewer = viewer_of(Explains())
    viewer.prepare([8], True)
    corrected = Recalibration(0.7, 1.5, np.array([0.2, 0.0]), np.eye(4))
    shown = viewer.show(8, probability, corrected)
    assert shown["base"] == pytest.approx(corrected.transform(np.array([[0.4, 0.4]]))[0, 0])
    factor = (probability - shown["base"]) / (0.3 - 0.4)
    assert [each["contribution"] for each in shown["reasons"]] == pytest.approx([-0.3 * factor, 0.2 * factor])
    assert shown["rest"] == pytest.approx(0.0, abs=1e-12)


def test_categories_are_neither_high_nor_low():
    viewer = viewer_of(Explains(), categories={"tempo": ["slow", "quick"]})
    viewer.prepare([8], True)
    assert [each["level"] for each in viewer.show(8, 0.3)["reasons"]] == ["", ""]


def test_of_a_drawn_cell_nothing_of_the_model_is_told():
    viewer = viewer_of(Explains())
    viewer.prepare([8], True)
    shown = viewer.show(8, None)
    assert [shown[name] for name in ("probability", "base", "rest", "reasons", "similar")] == [None] * 5
    assert all(each["contribution"] is None for each in shown["values"])
    assert [each["name"] for each in shown["values"]] == ["mode", "depth", "tempo"]  # by the whole model, not this cell
    assert not shown["pending"]


def test_drawn_cells_are_not_explained():
    viewer = viewer_of(Explains())
    viewer.prepare([8], False)
    assert viewer.model.asked == []


def test_without_a_model_there_will_be_no_reasons():
    viewer = viewer_of(SimpleNamespace())
    viewer.prepare([8], True)
    assert viewer.show(8, 0.5)["reasons"] == []
    assert not viewer.show(8, 0.5)["pending"]


def test_a_model_that_cannot_explain_is_asked_once(caplog):
    class Broken(Explains):
        def explain_cells(self, rows, labels, X=None, similar=0):
            self.asked.append(len(rows))
            raise RuntimeError("no")

    model = Broken()
    viewer = viewer_of(model)
    with caplog.at_level(logging.WARNING):
        viewer.prepare([8], True)
        viewer.prepare([9], True)
    assert model.asked == [1]
    assert "Reasons could not be found" in caplog.text
    assert viewer.show(8, 0.5)["reasons"] == []
    assert not viewer.show(8, 0.5)["pending"]


def test_another_model_has_other_reasons():
    viewer = viewer_of(Explains())
    viewer.prepare([8], True)
    viewer.use(Explains())
    assert viewer.show(8, 0.5)["reasons"] is None
    viewer.prepare([8], True)
    assert viewer.show(8, 0.5)["reasons"]


# --------------------------------------------------------------------------------------------------------------- images


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "covers"
    (folder / "more").mkdir(parents=True)
    files = {
        "a.png": PNG,
        "b.JPG": b"\xff\xd8\xff\xe0",
        "c.gif": b"GIF89a",
        "d.webp": b"RIFF0000WEBPVP8 ",
        "more/e.png": PNG,
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (tmp_path / "secret.png").write_bytes(PNG)
    return folder


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.png", "image/png"), ("b.JPG", "image/jpeg"), ("c.gif", "image/gif"), ("d.webp", "image/webp"),
     ("more/e.png", "image/png"), ("more/../a.png", "image/png")],
)  # fmt: skip
def test_pictures_of_the_folder_are_shown(folder, name, kind):
    data, said = Images(folder).read(name)
    assert said == kind
    assert data == (folder / name).read_bytes()


def test_pictures_may_be_named_by_their_address(folder):
    (folder / "a b.png").write_bytes(PNG)
    assert Images(folder).read((folder / "a b.png").as_uri()) == (PNG, "image/png")


@pytest.mark.parametrize(
    "name",
    ["../secret.png", "more/../../secret.png", "{folder}/../secret.png", "/etc/passwd", "none.png", "", ".", "more",
     "a", "a.png\0", "x" * 5000 + ".png", "\ud800.png", "~/a.png", "file://{folder}/../secret.png", "file://[/a.png",
     "file:///etc/passwd", "file://{folder}/%2e%2e/secret.png", "http://localhost{folder}/a.png"],
)  # fmt: skip
def test_there_is_no_way_out_of_the_folder(folder, name):
    assert Images(folder).read(name.format(folder=folder)) is None
    assert Images(None).read("a.png") is None


def test_links_out_of_the_folder_are_not_followed(folder):
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "out").symlink_to(folder.parent)
    (folder / "inside.png").symlink_to(folder / "a.png")
    (folder / "loop.png").symlink_to(folder / "loop.png")
    images = Images(folder)
    assert [images.read(name) for name in ("link.png", "out/secret.png", "loop.png")] == [None] * 3
    assert images.read("inside.png")[0] == PNG


@pytest.mark.parametrize(
    ("name", "data"),
    [("x.svg", b"<svg onload='alert(1)'/>"), ("x.html", b"<script>"), ("x.png", b"<script>alert(1)</script>"),
     ("x.png", b"\xff\xd8\xff"), ("x.jpg", PNG), ("x.png", b""), ("x.webp", b"RIFF0000WAVE"), ("x.txt", PNG)],
)  # fmt: skip
def test_what_is_no_picture_is_not_shown(folder, name, data):
    (folder / name).write_bytes(data)
    assert Images(folder).read(name) is None


def test_large_pictures_are_not_shown(folder, monkeypatch):
    monkeypatch.setattr(rooms, "_LARGEST_IMAGE", len(PNG) - 1)
    assert Images(folder).read("a.png") is None


def test_a_cell_that_names_a_picture_has_its_address(folder):
    table = pd.DataFrame({"tempo": 1.0, "cover": ["a.png", "../secret.png", "gone.png", "x.svg"] * 10})
    viewer = viewer_of(X=X, features=list(X), values=FrameValues(table, list(table)), images=folder)
    viewer.prepare([0, 2], False)
    first, second = viewer.show(0, None)["values"], viewer.show(2, None)["values"]
    assert (first[0]["name"], first[0]["kind"], first[0]["url"]) == ("cover", "image", "/image/1/0")
    assert {each["kind"] for each in second} == {"value"}
    assert viewer.picture(1, 0) == (PNG, "image/png")
    for column, row in ((1, 1), (1, 2), (0, 0), (2, 0), (1, 40), (-1, 0), (1, -1)):
        assert viewer.picture(column, row) is None
