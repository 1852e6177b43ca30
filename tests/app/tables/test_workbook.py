"""Workbooks: what is in them stays, suggested cells are coloured, and decisions come back."""

import openpyxl
import pandas as pd
import pytest

from app.cli.running import TINY, call, done, error_of, make_songs
from sylvan.app.tables import TableError, TableWriter, open_table, read_training_table, write_completed
from sylvan.labels.decisions import as_table

COLOUR = "00FFF2CC"


@pytest.fixture
def book(tmp_path):
    """A workbook with a title above the table, a formula, a format, a note in another sheet."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "songs"
    sheet.append(["Songs of 2020"])
    frame = make_songs(60)
    sheet.append(list(frame.columns))
    for row in frame.itertuples(index=False, name=None):
        sheet.append([None if pd.isna(cell) else cell for cell in row])
    sheet["J1"] = "=SUM(C3:C62)"
    sheet["B3"].font = openpyxl.styles.Font(bold=True)
    book.create_sheet("notes")["A1"] = "ask Ann"
    book.save(tmp_path / "songs.xlsx")
    return tmp_path / "songs.xlsx", frame


def test_a_sheet_is_read_as_the_same_table_as_text(book, tmp_path):
    path, frame = book
    frame.to_csv(tmp_path / "songs.csv", index=False)
    mine, other = (read_training_table(each, "tag_*") for each in (path, tmp_path / "songs.csv"))
    pd.testing.assert_frame_equal(mine.X, other.X)
    pd.testing.assert_frame_equal(mine.Y, other.Y)
    assert "the sheet 'songs' is read (sheet='...' names another)" in mine.notes[0]


def test_what_is_in_a_workbook_stays(book, tmp_path):
    path, frame = book
    table = read_training_table(path, "tag_*")
    rows = [at for at in range(60) if not frame["tag_calm"].iloc[at]][:3]
    listed = pd.DataFrame({"id": ["=1+1"], "label": ["tag_calm"], "probability": [0.9], "decision": [""]})
    write_completed(tmp_path / "out.xlsx", table.source, table.schema.labels, rows, ["tag_calm"] * 3, listed=listed)
    old, new = openpyxl.load_workbook(path), openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert new.sheetnames == ["songs", "notes", "suggestions"]
    assert new["notes"]["A1"].value == "ask Ann"
    assert new["songs"]["B3"].font.bold
    calm = 1 + list(frame.columns).index("tag_calm")
    for line, again in zip(old["songs"].iter_rows(), new["songs"].iter_rows(), strict=True):
        for cell, other in zip(line, again, strict=True):
            if cell.column == calm and cell.row - 3 in rows:
                assert (cell.value, other.value, other.fill.fgColor.rgb) == (0, 1, COLOUR)
            else:
                assert cell.value == other.value
                assert other.fill.fgColor.rgb != COLOUR
    sheet = new["suggestions"]
    assert [cell.value for cell in sheet[2]] == ["=1+1", "tag_calm", 0.9, None]
    assert sheet["A2"].data_type == "s"  # text, no formula
    (choice,) = sheet.data_validations.dataValidation
    assert choice.formula1 == '"confirmed,rejected,unsure"'
    assert "D2:D" in str(choice.sqref)


def test_other_tables_become_workbooks(tmp_path):
    frame = make_songs(20)
    frame.to_csv(tmp_path / "songs.csv", index=False)
    table = read_training_table(tmp_path / "songs.csv", "tag_*")
    row = int((frame["tag_calm"] == 0).to_numpy().argmax())
    write_completed(tmp_path / "out.xlsx", table.source, table.schema.labels, [row], ["tag_calm"])
    again = read_training_table(tmp_path / "out.xlsx", "tag_*")
    assert again.Y["tag_calm"].sum() == table.Y["tag_calm"].sum() + 1
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx")["table"]
    coloured = [cell.coordinate for line in sheet.iter_rows() for cell in line if cell.fill.fgColor.rgb == COLOUR]
    assert coloured == [sheet.cell(row + 2, 1 + list(frame.columns).index("tag_calm")).coordinate]
    assert sheet["A2"].value == "000"  # ids stay text


def test_decisions_come_back_from_a_workbook(book, tmp_path):
    path, _ = book
    arguments = ("impute", path.name, "-l", "tag_*", "-o", "out.xlsx", *TINY)
    done(call(tmp_path, *arguments, "--min-proba", "0.2"))
    filled = openpyxl.load_workbook(tmp_path / "out.xlsx")
    sheet = filled["suggestions"]
    heads = [cell.value for cell in sheet[1]]
    assert heads[:3] == ["id", "label", "probability"]
    for row in (2, 3):
        sheet.cell(row, heads.index("decision") + 1).value = "rejected"
    filled.save(tmp_path / "decided.xlsx")
    decided = as_table(tmp_path / "decided.xlsx")
    assert decided["decision"].tolist()[:3] == ["rejected", "rejected", ""]
    more = ("--decisions", "decided.xlsx", "--suggestions", "next.csv", "--min-proba", "0.2", "--force")
    done(call(tmp_path, *arguments, *more))
    following = pd.read_csv(tmp_path / "next.csv", dtype=str)
    left = set(zip(following["id"], following["label"]))
    assert not left & set(zip(decided["id"][:2], decided["label"][:2]))


def test_predictions_go_into_a_workbook_and_back(book, tmp_path):
    path, frame = book
    done(call(tmp_path, "fit", path.name, "-l", "tag_*", "-o", "m.sylvan", *TINY))
    done(call(tmp_path, "predict", "m.sylvan", path.name, "-o", "out.xlsx"))
    assert open_table(tmp_path / "out.xlsx").whole()["id"].tolist() == frame["id"].tolist()


def test_sheets_by_name(book, tmp_path):
    path, _ = book
    with pytest.raises(TableError, match="there are 'songs', 'notes'"):
        open_table(path, sheet="song")
    with pytest.raises(TableError, match="no row with names of columns above rows of values"):
        open_table(path, sheet="notes")
    assert open_table(path, sheet="songs").n_rows == 60
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="has no sheets"):
        open_table(tmp_path / "x.csv", sheet="songs")
    assert "no sheet 'tunes'" in error_of(call(tmp_path, "look", path.name, "--sheet", "tunes"))


def test_text_in_new_workbooks_is_no_formula(tmp_path):
    with TableWriter(tmp_path / "a.xlsx") as out:
        out.write(
            pd.DataFrame({"=a": ["=1+1", "+2", "x\x07y"], "n": [1.5, None, 3], "d": pd.to_datetime(["2020-01-01"] * 3)})
        )
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active
    assert [cell.data_type for cell in sheet["A"]] == ["s"] * 4
    assert sheet["C2"].value.year == 2020
