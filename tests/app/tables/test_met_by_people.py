"""What people met with files of their own: each was read wrongly, or refused with advice that did not help."""

import time

import numpy as np
import pandas as pd
import pytest
from openpyxl import load_workbook

from app.cli.running import TINY, call, done
from sylvan import auto
from sylvan.app.tables import LabelCells, TableError, TableWriter, open_table, read_training_table, write_completed
from sylvan.labels.weak import read_weak_labels
from sylvan.tables import Categories, guess_column


def written(tmp_path, text, name="a.csv", **options):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def rows(n, line):
    return "".join(line(at) for at in range(n))


def test_a_few_zeros_do_not_turn_what_blanks_mean():
    """A dash here and there among blanks: it says no, and blanks still mean that nobody recorded a label."""
    Y = np.full((300, 2), np.nan)
    Y[:80], Y[80:86] = 1, 0
    with pytest.warns(UserWarning, match="12 label cells are 0 beside 428 unknown"):
        weak = read_weak_labels(Y)
    assert not weak.leaves_out
    np.testing.assert_array_equal(weak.candidates, np.isnan(Y))  # nothing is suggested where somebody said no
    assert read_weak_labels(Y, zeros="absent").leaves_out
    Y[80:140] = 0  # a sample of which all is known
    assert read_weak_labels(Y).leaves_out


def test_decimal_commas_are_no_thousands():
    for cells, numbers in (
        (["<0.01", "0,123", "0,456"], [0.01, 0.123, 0.456]),
        (["0.5", "0,123", "7"], [0.5, 0.123, 7]),
        (["0,12", "1,234", "<0.01"], [0.12, 1.234, 0.01]),
    ):
        found = guess_column(pd.Series(cells * 4, name="lead"))
        assert found.reading.read(pd.Series(cells))[:, 0].tolist() == numbers
        assert "decimal commas and points" in found.note
    asked = guess_column(pd.Series(["1,234", "2.345"] * 4, name="lead"))
    assert "say decimal=','" in asked.question


def test_points_beside_decimal_commas_are_asked_about(tmp_path):
    path = written(tmp_path, "lead;people;t\n" + rows(9, lambda at: f"{at},7{at};{at + 1}.500;{at % 2}\n"))
    with pytest.raises(TableError, match=r"'people' has numbers such as '1.500' .* say decimal=','"):
        read_training_table(path, "t")
    assert read_training_table(path, "t", decimal=",").X["people"].tolist() == [1000 * at + 1500 for at in range(9)]


def test_dates_in_two_forms():
    found = guess_column(pd.Series(["29.07.2020", "2020-07-30 00:00:00", "30.08.2020"] * 4, name="d"))
    assert "some are written as 2020-07-30" in found.note
    days = found.reading.read(pd.Series(["29.07.2020", "2020-07-30 00:00:00"]))[:, 0]
    assert days[1] - days[0] == 1


def test_times_with_a_zone_are_said_to_be_turned():
    assert "turned into UTC" in guess_column(pd.Series(["2020-01-01T00:00+02:00", "2020-03-02T11:00+02:00"] * 5)).note
    zone = pd.Series(pd.date_range("2020-01-01", periods=9, tz="Europe/Berlin", freq="31h"))
    assert "turned into UTC" in guess_column(zone).note
    assert "UTC" not in guess_column(zone.dt.tz_localize(None)).note


def test_ordered_categories_keep_their_order():
    sizes = pd.Categorical(["mid", "low", "high"] * 5, ["low", "mid", "high"], ordered=True)
    assert guess_column(pd.Series(sizes)).reading == Categories(["low", "mid", "high"])
    assert "'Mud' and 'mud' are taken as different" in guess_column(pd.Series(["mud", "Mud", "sand"] * 5)).note


def test_names_of_rows_or_a_separator_at_the_end_is_asked(tmp_path):
    path = written(tmp_path, "x,wet,t1,t2\n" + rows(9, lambda at: f"r{at},0.{at},0,{at % 2},\n"))
    with pytest.raises(TableError, match="each row has a cell more than the first line has names"):
        open_table(path).columns  # noqa: B018


def test_a_table_without_names(tmp_path):
    path = written(tmp_path, rows(9, lambda at: f"5.{at},0.{at},{at % 2}\n"))
    table = open_table(path)
    assert table.columns[0] == "5.0"
    assert "the names of columns are numbers (5.0, 0.0, 0, ...)" in table.notes[0]
    assert not open_table(written(tmp_path, "0,1,2\n" + rows(9, lambda at: f"{at},1,0\n"))).notes


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("Site name\tremark\ttag\nW-0\tbrown, cold, deep\t0\nW-1\tbrown, 3, deep\t1\n", ["Site name", "remark", "tag"]),
        ("My tags;hit\nrock, pop, uk;1\nrock, 1990, uk;0\n", ["My tags", "hit"]),
        ('"water depth\n(m)";lead;tag\n1;2;0\n3;4;1\n', ["water depth\n(m)", "lead", "tag"]),
        ("PAR1,PAR2,tag\n1,2,0\n3,4,1\n", ["PAR1", "PAR2", "tag"]),
        ("a title\r\ra;b;tag\r1;2;0\r3;4;1\r", ["a", "b", "tag"]),
    ],
)
def test_first_lines_have_the_names(tmp_path, text, columns):
    (tmp_path / "a.csv").write_bytes(text.encode())
    table = open_table(tmp_path / "a.csv")
    assert table.columns == columns
    assert len(table.whole()) == 2


def test_remarks_below_a_table(tmp_path):
    text = "sample;lead;depth;a;b\n" + rows(24, lambda at: f"S{at};{at}.5;{at % 7};{at % 2};{at % 3 % 2}\n")
    path = written(tmp_path, text + "Source: lab of the office;;;;\n* lead by ICP-MS;;;;\n")
    table = read_training_table(path, "a,b")
    assert len(table.X) == 24
    assert any("nothing but remarks, 'Source: lab of the office' and 1 more" in note for note in table.notes)
    write_completed(tmp_path / "out.csv", table.source, table.schema.labels, table.source_rows[[0]], ["a"])
    assert (tmp_path / "out.csv").read_text() == path.read_text().replace("S0;0.5;0;0;0", "S0;0.5;0;1;0")


def test_an_index_is_no_feature_and_codes_name_rows(tmp_path):
    table = pd.DataFrame(
        {"inventory_no": [f"A/{at * 7}" for at in range(30)], "x": np.arange(30) % 4, "t": [0, 1] * 15}
    )
    table.drop(index=[3, 9]).to_csv(tmp_path / "gaps.csv")
    for options in ({}, {"id": "inventory_no"}):
        found = read_training_table(tmp_path / "gaps.csv", "t", **options)
        assert list(found.X) == ["x"]
        assert found.X.index[0] == "A/0"
        assert any("numbers the rows; it is left out" in note for note in found.notes)
    table.drop(columns="inventory_no").assign(y=1.5 * table["x"]).drop(index=[3]).to_csv(tmp_path / "bare.csv")
    assert read_training_table(tmp_path / "bare.csv", "t").X.index[3] == "4"


def test_labels_that_may_be_one(tmp_path):
    lists = ["Berlin; war", "berlin; letters", "letters, war", "letters", "war", "Berlin", "letters; war", "berlin"]
    path = written(tmp_path, "x;tags\n" + rows(24, lambda at: f"{at}.5;{lists[at % 8].replace(';', '|')}\n"))
    notes = read_training_table(path, "tags").notes
    assert "Labels 'Berlin' and 'berlin' are taken as different." in notes
    assert "Label 'letters, war' holds names of other labels: is ',' between labels, too?" in notes


def test_counts_are_labels_if_somebody_says_so(tmp_path):
    path = written(tmp_path, "x;elm;oak\n" + rows(30, lambda at: f"{at}.5;{at % 4};{12 * (at % 3 == 0)}\n"))
    with pytest.raises(TableError, match=r"positive='>0' says so"):
        read_training_table(path, "elm,oak")
    table = read_training_table(path, "elm,oak", positive=[">0"])
    assert table.Y["elm"].tolist() == [int(at % 4 > 0) for at in range(30)]
    write_completed(tmp_path / "out.csv", table.source, table.schema.labels, [0], ["elm"])
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "0.5;1;12"
    with pytest.raises(ValueError, match=r"Y = \(Y > 0\)"):
        auto().fit(np.arange(30)[:, None], np.column_stack([np.arange(30) % 4, np.arange(30) % 2]))


def test_a_total_below_labels_is_named(tmp_path):
    path = written(
        tmp_path, "s,x,elm\n" + rows(20, lambda at: f"s{at},{at}.5,{'x' if at % 2 else ''}\n") + "Total,210,10\n"
    )
    with pytest.raises(TableError, match="Row 21 looks like a total of the others: remove it"):
        read_training_table(path, "elm")


def test_copies_of_labels_written_with_a_mark(tmp_path):
    marks = ["x" if at % 3 else None for at in range(60)]
    X = pd.DataFrame({"size": np.arange(60) % 7, "copy": marks})
    with pytest.warns(UserWarning, match=r"copies of labels.*'copy' \(of 'elm'\)"):
        auto(5, max_layers=1, random_state=0).fit(
            X, pd.DataFrame({"elm": [mark == "x" for mark in marks], "oak": [0, 1] * 30})
        )


def test_lists_with_commas_in_python():
    lists = ["red, big", "red", "big, old, red", "", "old"] * 10
    X = np.arange(50)[:, None] % 5
    with pytest.warns(UserWarning, match="read as lists of labels, with ','"):
        model = auto(5, max_layers=1, random_state=0).fit(X, pd.Series(lists))
    assert set(model.label_names_in_) == {"red", "big", "old"}
    one = pd.DataFrame({"tags": [text.split(", ") for text in lists]})
    assert set(auto(5, max_layers=1, random_state=0).fit(X, one).label_names_in_) >= {"red", "big", "old"}
    towns = pd.Series(["Austin, TX", "Boise, ID", "Provo, UT"] * 20)
    assert list(auto(5, max_layers=1, random_state=0).fit(np.arange(60)[:, None] % 3, towns).classes_) == sorted(
        set(towns)
    )


def test_lists_in_brackets_with_a_stray_quote_are_read_at_once():
    cells = LabelCells(["t"], "lists", "[]")
    names = " ".join(f"'t{at}'" for at in range(200))
    began = time.perf_counter()
    cells.read(pd.DataFrame({"t": [f"[{names} O'Neil]"]}))
    assert time.perf_counter() - began < 5


def test_long_quoted_cells_are_copied_in_linear_time(tmp_path):
    note = "\n".join("a line of a letter" for _ in range(40_000))
    path = written(tmp_path, f'note,x,t\n"{note}",1,0\nb,2,1\nc,3,0\n')
    table = read_training_table(path, "t", drop="note")
    began = time.perf_counter()
    write_completed(tmp_path / "out.csv", table.source, table.schema.labels, [2], ["t"])
    assert time.perf_counter() - began < 20  # 400 times 1.4 s if each line looked at all before it
    assert (tmp_path / "out.csv").read_text() == path.read_text().replace("c,3,0", "c,3,1")


def test_workbooks_that_are_only_written_have_choices(tmp_path):
    with TableWriter(tmp_path / "list.xlsx") as out:
        out.write(pd.DataFrame({"row": ["a"], "label": ["t"], "decision": [""]}))
    (choice,) = load_workbook(tmp_path / "list.xlsx").active.data_validations.dataValidation
    assert "confirmed" in choice.formula1


def test_workbooks_that_are_none(tmp_path):
    for name, content, ending in (
        ("a.xlsx", b"x,t\n1,0\n", ".csv"),
        ("b.xls", b"PK\x03\x04", ".xlsx"),
        ("c.xlsx", b"\xd0\xcf\x11\xe0", ".xls"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TableError, match=f"give it the ending {ending}"):
            open_table(tmp_path / name)


def test_blank_cells_beside_marks_in_python():
    marks = pd.DataFrame({"elm": ["x", "", " ", "x"] * 20, "oak": ["", "x", "", ""] * 20})
    weak = read_weak_labels(marks)
    assert weak.recorded.sum() == 60
    assert weak.candidates.sum() == 100


def test_new_categories_are_said_in_python():
    X = pd.DataFrame({"site": ["north", "south"] * 20, "size": range(40)})
    model = auto(5, max_layers=1, random_state=0).fit(X, np.column_stack([[0, 1] * 20, [1, 1, 0, 0] * 10]))
    with pytest.warns(UserWarning, match="'site' has values that the model has not seen, taken as missing: 'west'"):
        model.predict(X.assign(site="west"))


def test_a_completed_workbook_is_recognised(tmp_path):
    with pd.ExcelWriter(tmp_path / "done.xlsx") as book:
        pd.DataFrame({"x": range(20), "t": [0, 1] * 10}).to_excel(book, sheet_name="data", index=False)
        pd.DataFrame({"row": [1], "label": ["t"]}).to_excel(book, sheet_name="suggestions", index=False)
    notes = read_training_table(tmp_path / "done.xlsx", "t").notes
    assert any("take the one that it was completed from" in note for note in notes)


def test_lists_go_with_the_table(tmp_path):
    """Semicolons and a mark of the encoding, where the table came from a program that wants these."""
    text = "größe;x;tag\n" + rows(40, lambda at: f"n{at};{at % 7}.5;{int(at % 7 > 3 and at % 3 > 0)}\n")
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
    listing = ("-l", "tag", "-o", "b.csv", "--suggestions", "s.csv", "--min-proba", "0.1")
    done(call(tmp_path, "impute", "a.csv", *listing, *TINY))
    found = (tmp_path / "s.csv").read_bytes()
    assert found.startswith("\ufeffgröße;label;".encode())
    done(call(tmp_path, "audit", "a.csv", "-l", "tag", "-n", "5", "-o", "audit.xlsx", *TINY))
    assert load_workbook(tmp_path / "audit.xlsx").active.max_row == 6
