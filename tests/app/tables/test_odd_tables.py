"""What people who tried to break the reading of tables found."""

import numpy as np
import pandas as pd
import pytest

from sylvan.app.tables import TableError, open_table, read_training_table, write_completed
from sylvan.tables import Cleaner, Numbers, guess_column

DAYS = [f"{day:02d}.05.2004" for day in range(1, 21)]


def column(values, **options):
    return guess_column(pd.Series(values, name="c"), **options)


@pytest.mark.parametrize(
    "values",
    [["192.168.0.1", "10.0.0.7", "8.8.8.8"], ["1.2.3", "1.10.0", "2.0.1"], ["12.05.", "13.05."], ["1A2", "1B3", "1C4"]],
)
def test_codes_with_points_are_no_numbers(values):
    assert not isinstance(column(values * 3).reading, Numbers)


@pytest.mark.parametrize(
    ("values", "bad"),
    [
        (["1,234.5", "1,5", "2,000.1"], "1,5"), (["1 234", "12 5", "3 456"], "12 5"),
        ([*DAYS, "31.02.2004"], "31.02.2004"),
        ([*DAYS, "2002"], "2002"), (["1", "2", "true", "4"], "true"),
    ],
)  # fmt: skip
def test_odd_cells_are_asked_about(values, bad):
    found = column(values)
    assert found.reading is None
    assert repr(bad) in found.question


def test_numbers_of_new_rows_have_their_signs_where_they_belong():
    german = column(["1.234,5", "2,5"]).reading
    for text in ("1.5", "2,000.5", "1.23.4"):
        with pytest.raises(TableError, match="fitted to numbers with ',' as decimal sign"):
            german.read(pd.Series([text], name="c"))
    assert german.read(pd.Series(["12.345.678,25"])).item() == 12345678.25
    with pytest.raises(TableError):
        column(["1,234.5", "2.5"]).reading.read(pd.Series(["1,5"], name="c"))


def test_negative_numbers_of_accountants_and_typesetters():
    found = column(["(46,81)", "\u20135", "\u22122", "3"])
    assert found.reading.read(pd.Series(["(46,81)", "\u20135", "\u22122", "3"])).ravel().tolist() == [-46.81, -5, -2, 3]


@pytest.mark.parametrize("as_category", [False, True])
def test_blanks_around_categories_do_not_count(as_category):
    values = pd.Series(["a ", "b", "a", "b\u00a0", " b"] * 4, name="c", dtype="category" if as_category else object)
    cleaner = Cleaner(categorical=["c"] if as_category else ())
    assert cleaner.fit_transform(values.to_frame())["c"].tolist() == [0, 1, 0, 1, 1] * 4


def test_times_of_day_and_two_digit_years():
    found = column(["18:43", "07:15", "12:00"])
    assert found.reading.parts == ["hour"]
    assert found.reading.read(pd.Series(["18:30"])).item() == 18.5
    assert "two-digit years are those from 1969 to 2068" in column(["01.02.60", "05.06.99", "23.01.12"]).note


def test_dates_of_new_rows_may_be_written_otherwise():
    reading = column(DAYS).reading
    import datetime

    new = pd.Series(["2004-05-03", datetime.date(2004, 5, 3), pd.Timestamp("2004-05-03"), "03.05.2004"], dtype=object)
    assert len(np.unique(reading.read(new), axis=0)) == 1


def test_columns_that_number_the_rows_are_left_out(tmp_path):
    text = "Nr,x,t\n" + "".join(f"{at + 1},{at**2 % 17},{int(at > 9)}\n" for at in range(20))
    (tmp_path / "a.csv").write_text(text)
    table = read_training_table(tmp_path / "a.csv", "t")
    assert list(table.X) == ["x"]
    assert any("it numbers the rows" in note for note in table.notes)
    assert list(Cleaner().fit_transform(pd.DataFrame({"n": range(30)}))) == ["n"]  # better than nothing


def test_a_separator_at_the_end_of_rows_shifts_nothing(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c\n1,1,3,\n4,0,6,\n7,1,2,\n")
    table = read_training_table(tmp_path / "a.csv", "b")
    assert table.X["a"].tolist() == [1, 4, 7]
    assert table.Y["b"].tolist() == [1, 0, 1]
    write_completed(tmp_path / "b.csv", table.source, table.schema.labels, [1], ["b"])
    assert (tmp_path / "b.csv").read_text() == "a,b,c\n1,1,3,\n4,1,6,\n7,1,2,\n"


def test_quotes_within_cells_are_signs_like_others(tmp_path):
    text = 'w,h,l1,l2,l3\n5",7",0,0,0\n3,4,1,1,1\n"a ""b""",5"x,0,0,1\n 12",6,1,0,0\n'
    (tmp_path / "a.csv").write_text(text)
    table = read_training_table(tmp_path / "a.csv", "l1,l2,l3", categorical="w,h")
    assert len(table.X) == 4
    write_completed(tmp_path / "b.csv", table.source, table.schema.labels, [0, 0, 2], ["l1", "l3", "l2"])
    expected = text.replace('5",7",0,0,0', '5",7",1,0,1').replace('5"x,0,0,1', '5"x,0,1,1')
    assert (tmp_path / "b.csv").read_text() == expected


def test_lists_as_numpy_writes_them_and_names_with_quotes(tmp_path):
    cells = ["['rock' 'pop']", "['pop']", "[None, 'rock']", "('rock')", "[]", '["it\'s", "pop"]']
    pd.DataFrame({"x": [3, 1, 4, 1, 5, 9], "t": cells}).to_csv(tmp_path / "a.csv", index=False)
    table = read_training_table(tmp_path / "a.csv", "t")
    assert sorted(table.Y) == ["it's", "pop", "rock"]
    assert table.Y["rock"].tolist() == [1, 0, 1, 1, 0, 0]
    write_completed(tmp_path / "b.csv", table.source, table.schema.labels, [1, 4], ["it's", "rock"])
    again = read_training_table(tmp_path / "b.csv", "t")
    assert again.Y["it's"].tolist() == [0, 1, 0, 0, 0, 1]
    assert again.Y["rock"].tolist() == [1, 0, 1, 1, 1, 0]


def test_an_empty_cell_means_the_same_in_a_second_file(tmp_path):
    X = pd.DataFrame({"id": [f"s{at}" for at in range(9)], "x": [3, 1, 4, 1, 5, 9, 2, 6, 5]})
    Y = pd.DataFrame({"id": X["id"], "t": ["1", "", "1", "", "", "1", "", "", "1"]})
    X.to_csv(tmp_path / "x.csv", index=False)
    Y.to_csv(tmp_path / "y.csv", index=False)
    X.merge(Y).to_csv(tmp_path / "both.csv", index=False)
    one = read_training_table(tmp_path / "both.csv", "t")
    two = read_training_table(tmp_path / "x.csv", label_file=tmp_path / "y.csv")
    for table in (one, two):
        assert table.schema.labels.blank == "zero"
        assert table.Y["t"].tolist() == [1, 0, 1, 0, 0, 1, 0, 0, 1]
    X.merge(Y.replace("", "?")).to_csv(tmp_path / "asked.csv", index=False)
    assert read_training_table(tmp_path / "asked.csv", "t").Y["t"].isna().sum() == 5  # somebody says: unknown


def test_blank_rows_are_left_out_and_stay_in_the_file(tmp_path):
    (tmp_path / "a.csv").write_text("x,t\n5,1\n,\n3,0\n4,0\n,\n")
    table = read_training_table(tmp_path / "a.csv", "t")
    assert table.X["x"].tolist() == [5, 3, 4]
    assert table.Y["t"].tolist() == [1, 0, 0]
    assert "2 empty rows are left out." in table.notes
    write_completed(tmp_path / "b.csv", table.source, table.schema.labels, table.source_rows[[2]], ["t"])
    assert (tmp_path / "b.csv").read_text() == "x,t\n5,1\n,\n3,0\n4,1\n,\n"


def test_a_total_below_the_rows_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("place,x,t\nnorth,5,1\nsouth,3,0\nnorth,2,0\nsouth,2,1\nTotal,12,1\n")
    assert any("Row 5 looks like a total" in note for note in read_training_table(tmp_path / "a.csv", "t").notes)


def test_names_of_columns_that_are_numbers_or_equal():
    frame = pd.DataFrame({0: pd.to_datetime(["2020-01-01", "2021-02-03"]), 1: ["a", "b"]})
    assert list(Cleaner().fit_transform(frame))[-1] == "1"
    with pytest.raises(TableError, match="Two columns are called 'a'"):
        Cleaner().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    both = pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2021-02-03"]), "t (year)": [1, 3]})
    names = list(Cleaner().fit_transform(both))
    assert len(set(names)) == len(names)


def test_types_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    times = pd.to_datetime(["2020-01-01", None, "2021-02-03"])
    frame = pd.DataFrame(
        {
            "zone": pd.Series(times.tz_localize("UTC")).astype(pd.ArrowDtype(pa.timestamp("us", tz="Europe/Berlin"))),
            "long": pd.Series(pd.to_timedelta([1, 2, 3], unit="D")).astype(pd.ArrowDtype(pa.duration("us"))),
            "text": pd.Series(["a", "b", "a"]).astype(pd.ArrowDtype(pa.string())),
        }
    )
    made = Cleaner().fit_transform(frame)
    assert made["zone (year)"].tolist()[::2] == [2020, 2021]
    assert made["long"].tolist() == [1, 2, 3]
    assert made["text"].tolist() == [0, 1, 0]


def test_marks_of_missing_values_are_numbers_too():
    cleaner = Cleaner(missing=["-999"]).fit(pd.DataFrame({"x": [1.0, -999.0, 2.0]}))
    found = cleaner.transform(pd.DataFrame({"x": ["-999", "-999.0", "2"]}))["x"]
    assert found.isna().tolist() == [True, True, False]


def test_lists_in_parquet_are_named(tmp_path):
    pd.DataFrame({"x": [1, 2, 3], "l": [["a"], ["b"], []], "t": [1, 0, 1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(TableError, match=r"Column 'l' holds a ndarray in a cell.*drop='l'"):
        read_training_table(tmp_path / "a.parquet", "t")


def test_cells_of_workbooks_of_several_kinds(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["x", "t", 2020], [5, True, 1.5], [3, None, 2.5], [4, False, 3.5], [4.5, False, 3]):
        sheet.append(row)
    sheet.merge_cells("B4:B5")
    book.save(tmp_path / "a.xlsx")
    table = read_training_table(tmp_path / "a.xlsx", "t")
    assert list(table.X) == ["x", "2020"]
    write_completed(tmp_path / "b.xlsx", table.source, table.schema.labels, [1, 3], ["t", "t"])
    again = openpyxl.load_workbook(tmp_path / "b.xlsx").active
    assert [again[f"B{at}"].value for at in range(2, 6)] == [True, True, False, True]


def test_the_first_sheet_row_of_names_may_have_a_title_above(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame([["x", "t"], [1, 0], [2, 1]], columns=["Ponds", ""])
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    assert open_table(tmp_path / "a.xlsx").columns == ["x", "t"]
