"""A file, or two, become features and labels; what was decided is done again with new rows."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from sylvan.app.tables import TableError, TableSchema, open_table, read_training_table
from sylvan.app.tables.training import read_labels

SONGS = """id,tempo,mode,zone,tag_a,tag_b
007,120,major,1,1,0
08,,minor,2,0,yes
9,60.5,minor,1,no,TRUE
10,61,minor,2,0,
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="songs.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return write


def refused(*args, **options):
    with pytest.raises(TableError) as found:
        read_training_table(*args, **options)
    assert "\n" not in str(found.value).strip()
    return str(found.value)


def test_features_labels_names_and_notes(write):
    table = read_training_table(write(SONGS), "tag_*")
    assert table.X.index.tolist() == ["007", "08", "9", "10"]
    assert table.X.columns.tolist() == ["tempo", "mode", "zone"]
    expected = [[120, 0, 1], [np.nan, 1, 2], [60.5, 1, 1], [61, 1, 2]]
    np.testing.assert_array_equal(table.X.to_numpy(), expected)
    np.testing.assert_array_equal(table.Y.to_numpy(), [[1, 0], [0, 1], [0, 1], [0, np.nan]])
    assert table.Y.index.equals(table.X.index)
    assert table.schema.id == "id"
    assert table.schema.categories == {"mode": ["major", "minor"]}
    assert [note.split("(")[0].strip() for note in table.notes] == [
        "Column 'id' names the rows",
        "1 label cell is empty: labels are suggested only there, so none in 'tag_a', and 4 zeros taken for absent",
        "Column 'mode': categories.",
    ]
    assert table.source_rows.tolist() == [0, 1, 2, 3]


MANY = "x,a,b\n" + "1,1,0\n2,0,1\n" * 20 + "3,1,\n"  # 1 of 41 cells that are not recorded is empty


ONE_EMPTY = "1 label cell is empty: labels are suggested"
KNOWN = "1 label cell is known to be absent: no label is suggested there."
NUMBERS = {"id": "-", "drop": "id", "categorical": "mode"}


@pytest.mark.parametrize(
    ("text", "options", "notes"),
    [
        (MANY, {}, []),  # the fit will warn
        (MANY, {"blank": "zero"}, []),
        (MANY, {"zeros": "absent"}, [f"{ONE_EMPTY} only there, so none in 'a', and 40 zeros taken for absent"]),
        (SONGS, {"zeros": "unrecorded"} | NUMBERS, [f"{ONE_EMPTY} there, and in 4 zeros taken for unrecorded"]),
        (SONGS, {"absent": ["no"]} | NUMBERS, [KNOWN, f"{ONE_EMPTY} there, and in 3 zeros taken for unrecorded"]),
    ],
)
def test_notes_say_what_zeros_mean(write, text, options, notes):
    labels = "tag_*" if text is SONGS else "a,b"
    found = read_training_table(write(text), labels, **options).notes
    assert [note.partition(" (zeros=")[0] for note in found] == notes
    for note in found[-1:]:
        other = "unrecorded" if "only" in note else "absent"
        assert note.endswith(f" (zeros='{other}' says that zeros are not; blank='zero': empty means 0).")


def test_words_for_labels_known_to_be_absent(write):
    table = read_training_table(write(SONGS), "tag_*", absent=["No"])
    np.testing.assert_array_equal(table.Y.to_numpy(), [[1, 0], [0, 1], [-1, 1], [0, np.nan]])
    schema = TableSchema.from_json(table.schema.to_json())
    assert schema.labels == table.schema.labels
    frame = table.source.whole(text=["tag_a", "tag_b"])
    np.testing.assert_array_equal(schema.labels.read(frame), table.Y)
    known = read_labels(write(SONGS), schema, frame, None)  # of a test: what is absent is 0
    np.testing.assert_array_equal(known.fillna(9), [[1, 0], [0, 1], [0, 1], [0, 9]])
    numbers = read_training_table(write("x,t\n1,1\n2,-1\n3,0\n"), "t", absent=["-1"])
    assert numbers.Y["t"].tolist() == [1, -1, 0]
    assert "absent=... names words in columns of 0/1" in refused(
        write("x,t\n1,a\n2,b\n"), "t", classes=True, absent=["a"]
    )


def test_blank_cells_are_zero_if_the_user_says_so(write):
    table = read_training_table(write(SONGS), "tag_*", blank="zero")
    assert table.Y["tag_b"].tolist() == [0, 1, 1, 0]


def test_all_ways_to_name_labels(write):
    path = write(SONGS)
    for labels in ("tag_*", "tag_a,tag_b", ["tag_b", "tag_a"], "tag_a:tag_b", "5:6", "-2:", "5:"):
        assert read_training_table(path, labels).Y.columns.tolist() == ["tag_a", "tag_b"]
    path = write(SONGS.replace("tag_", "label:"))
    assert read_training_table(path).Y.columns.tolist() == ["label:a", "label:b"]
    assert "Which columns of" in refused(write(SONGS))


def test_positions_are_those_of_the_file(write):
    """Also if columns before them are left out: who counts columns looks at the file."""
    path = write(SONGS)
    assert read_training_table(path, "5:6", drop="tempo,mode").Y.columns.tolist() == ["tag_a", "tag_b"]
    assert read_training_table(path, "5:6", drop="2:2").X.columns.tolist() == ["mode", "zone"]
    assert list(read_training_table(path, "5:6", categorical="4:4").schema.categories) == ["mode", "zone"]


def test_a_label_that_is_left_out_is_refused(write):
    assert "tag_a" in refused(write(SONGS), "tag_a", drop="tag_a")
    assert read_training_table(write(SONGS), "tag_*", drop="tag_b").Y.columns.tolist() == ["tag_a"]


def test_the_id_column(write):
    path = write(SONGS)
    table = read_training_table(path, "tag_*", id="-")
    assert table.X["id"].tolist() == [7, 8, 9, 10]
    assert table.X.index.tolist() == [1, 2, 3, 4]
    table = read_training_table(write(SONGS.replace("id,", "song,")), "tag_*", id="song")
    assert table.X.index.tolist() == ["007", "08", "9", "10"]
    table = read_training_table(write(SONGS.replace("id,", ",")), "tag_*")
    assert table.X.index.tolist() == ["007", "08", "9", "10"]  # the index that pandas writes
    path = write(SONGS)
    assert "did you mean 'id'?" in refused(path, "tag_*", id="idd")
    assert "the id '9' in column 'id' occurs twice, again in row 3" in refused(
        write(SONGS.replace("08", "9")), "tag_*", id="id"
    )
    assert "names the rows (id='id') and is a label, too" in refused(write(SONGS), "id,tag_a", id="id")


@pytest.mark.parametrize("id", ["id", None])
def test_an_id_column_with_an_empty_cell_stays_an_id(write, id):
    path = write(SONGS.replace("08", ""))
    table = read_training_table(path, "tag_*", id=id)
    assert table.X.index.tolist() == ["007", "row 2", "9", "10"]
    assert table.X.columns.tolist() == ["tempo", "mode", "zone"]
    assert table.schema.id == "id"
    said = "Column 'id' has 1 empty cells, the first in row 2: such rows are called by their numbers, as 'row 7'."
    assert (said in table.notes) == (id is None)
    found = refused(write(SONGS.replace("08", "").replace("9,", "row 2,")), "tag_*", id="id")
    assert "the id 'row 2' in column 'id' occurs twice" in found
    labels = write("id,t\n007,1\n9,0\n10,1\n,0\n", "labels.csv")
    assert "is empty in row 2, but rows of two files are matched by it" in refused(
        write(SONGS.replace("08", "")), label_file=labels, id=id, drop="tag_*"
    )


def test_an_id_column_with_equal_values_is_a_feature(write):
    table = read_training_table(write(SONGS.replace("08", "9")), "tag_*")
    assert table.X["id"].tolist() == [7, 9, 9, 10]
    assert "Column 'id' has equal values and is taken as a feature; drop='id' leaves it out." in table.notes


def test_an_index_in_parquet_names_the_rows(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2, 3], "t": [1, 0, 1], "u": [0, 1, 1]}, index=["p", "q", "r"])
    frame.rename_axis("id").to_parquet(tmp_path / "named.parquet")
    assert read_training_table(tmp_path / "named.parquet", "t,u").X.index.tolist() == ["p", "q", "r"]
    frame.to_parquet(tmp_path / "unnamed.parquet")
    assert read_training_table(tmp_path / "unnamed.parquet", "t,u").X.index.tolist() == ["p", "q", "r"]


FEATURES = "song,tempo\na,1\nb,2\nc,3\n"


def test_labels_in_a_second_file_by_name(write):
    other = write("tag_x,song,tag_y\n0,c,1\n1,zzz,1\n1,a,0\n0,b,\n", "labels.csv")
    table = read_training_table(write(FEATURES), label_file=other, id="song")
    assert table.X.index.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(table.Y.to_numpy(), [[1, 0], [0, np.nan], [0, 1]])
    assert table.source_rows.tolist() == [2, 3, 0]
    assert table.source.path == other
    table = read_training_table(write(FEATURES), "tag_x", label_file=other, id="song")
    assert table.Y.columns.tolist() == ["tag_x"]


def test_labels_in_a_second_file_by_order(write):
    other = write("tag_x,tag_y\n1,0\n0,1\n0,1\n", "labels.csv")
    table = read_training_table(write(FEATURES), label_file=other, drop="song")
    assert table.Y.to_numpy().tolist() == [[1, 0], [0, 1], [0, 1]]
    short = write("tag_x,tag_y\n1,0\n0,1\n", "short.csv")
    assert "songs.csv has 3 rows," in refused(write(FEATURES), label_file=short, drop="song")


def test_a_second_file_with_one_column_may_have_empty_cells(write):
    """An empty line is a cell there, not nothing."""
    other = write("tag\n1\n\n0\n", "labels.csv")
    table = read_training_table(write(FEATURES), label_file=other, drop="song")
    np.testing.assert_array_equal(table.Y["tag"].to_numpy(), [1, np.nan, 0])
    other = write("tags\nred;big\n\nbig\n", "lists.csv")
    table = read_training_table(write(FEATURES), label_file=other, drop="song", separator=";")
    assert table.Y.to_numpy().tolist() == [[1, 1], [0, 0], [0, 1]]


def test_ids_that_overlap_but_differ_are_refused_with_both_counts(write):
    other = write("id,tag\na,1\nc,0\nd,1\ne,1\n", "labels.csv")
    found = refused(write("id,x\na,1\nb,2\nc,3\n"), label_file=other)
    assert "labels.csv has no row for 1 of 3 ids of" in found
    assert "has none for 2 of 4 ids of" in found
    assert found.endswith("labels.csv: 'd', 'e'.")


def test_further_ids_of_the_label_file_are_named(write):
    other = write("id,tag\nc,1\nb,0\nzzz,1\na,0\n", "labels.csv")
    table = read_training_table(write("id,x\na,1\nb,2\nc,3\n"), label_file=other)
    assert table.Y["tag"].tolist() == [0, 0, 1]  # by name, whatever their order
    (note,) = [note for note in table.notes if "labels.csv" in note]
    assert note.endswith("has none for 1 of 4 ids of " + str(other) + ": 'zzz'. Their labels are not used.")


@pytest.mark.parametrize("first", ["id", "ID", ""])
def test_ids_of_the_label_file_are_not_ignored(write, first):
    """Rows are never matched by their order if one of the files has ids, unless they are row numbers."""
    path = write("song,x\na,1\nb,2\nc,3\n")
    other = write(f"{first},tag\nc,1\nb,0\na,0\n", "labels.csv")
    found = refused(path, label_file=other, categorical="song")
    assert f"labels.csv has ids in column {first or 'unnamed'!r}" in found
    assert "id='-' to match them by their order" in found
    table = read_training_table(path, label_file=other, id="-", categorical="song")
    assert table.Y["tag"].tolist() == [1, 0, 0]
    other = write(f"{first},tag\n0,1\n1,0\n2,0\n", "labels.csv")
    assert read_training_table(path, label_file=other, categorical="song").Y["tag"].tolist() == [1, 0, 0]


def test_messages_name_parameters_of_python(write):
    """What the command line calls them is its own affair."""
    text = "x,title,when,tag\n" + "".join(f"{at},song {at},{at}x,{at % 2}\n" for at in range(12))
    for path, options in [
        (write(text), {"labels": "tag"}),
        (write(text), {}),
        (write(SONGS), {"labels": "tag_*", "id": "idd"}),
        (write("x,t\n1,maybe\n2,0\n"), {"labels": "t"}),
        (write(SONGS), {"labels": "tag_*", "classes": True}),
        (write(SONGS), {"labels": "tag_*", "delimiter": "xx"}),
    ]:
        assert "--" not in refused(path, **options)
    notes = " ".join(read_training_table(write(SONGS), "tag_*").notes)
    assert "--" not in notes
    assert "id='-'" in notes
    assert "blank='zero'" in notes


def test_second_files_that_do_not_fit(write):
    other = write("song,tag_x\na,1\nb,0\n", "labels.csv")
    assert "has no row for 1 of 3 ids of" in refused(write(FEATURES), label_file=other, id="song")
    other = write("song,tag_x\na,1\nb,0\na,0\nc,1\n", "labels.csv")
    assert "the id 'a' in column 'song' occurs twice, again in row 3" in refused(
        write(FEATURES), label_file=other, id="song"
    )
    other = write("song,tempo\na,1\nb,0\nc,0\n", "labels.csv")
    assert "has columns of the same name as labels" in refused(write(FEATURES), label_file=other, id="song")
    assert "There is no file" in refused(write(FEATURES), label_file="none.csv")


def test_lists_and_classes(write):
    path = write("x,tags\n1,red;big\n2,\n3,big\n")
    table = read_training_table(path, "tags", separator=";")
    assert table.Y.to_numpy().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert table.schema.labels.names == ["red", "big"]
    assert read_training_table(path, "tags", separator=";", blank="unknown").Y.isna().sum().tolist() == [1, 1]
    path = write("x,kind\n1,01\n2,1\n3,01\n")
    table = read_training_table(path, "kind", classes=True)
    assert table.Y.tolist() == ["01", "1", "01"]
    assert "not both" in refused(path, "kind", classes=True, separator=";")
    assert "classes=True needs one label column, but 2 were chosen" in refused(path, "x,kind", classes=True)
    assert "has one class only" in refused(write("x,kind\n1,a\n2,a\n"), "kind", classes=True)


def test_categories_that_the_user_names(write):
    table = read_training_table(write(SONGS), "tag_*", categorical="zone")
    assert table.schema.categories == {"mode": ["major", "minor"], "zone": ["1", "2"]}
    assert table.X["zone"].tolist() == [0, 1, 0, 1]
    assert "categorical='zoone' matches no column; did you mean 'zone'?" in refused(
        write(SONGS), "tag_*", categorical="zoone"
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("values", "mark", "expected"),
    [
        ([1.5, -999, 2.5], "-999", [1.5, np.nan, 2.5]),
        ([1, -999, 2], "-999", [1, np.nan, 2]),
        ([1.5, -9.5, 2.5], "-9.5", [1.5, np.nan, 2.5]),
        ([1e300, 2e300, -1], "-1", [1e300, 2e300, np.nan]),
        (["5", "-", "7"], "-", [5, np.nan, 7]),
        (["5", "n.d.", None], "n.d.", [5, np.nan, np.nan]),
    ],
)
def test_marks_of_missing_values(tmp_path, kind, values, mark, expected):
    frame = pd.DataFrame({"x": values, "y": [1, 2, 3], "tag": [1, 0, 1]})
    path = tmp_path / f"table.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    table = read_training_table(path, "tag", missing=[mark])
    np.testing.assert_array_equal(table.X["x"].to_numpy(), expected)
    again = table.schema.features_of(next(open_table(path).chunks(None)))
    np.testing.assert_array_equal(again["x"].to_numpy(), expected)


def test_marks_of_missing_values_with_decimal_commas(write):
    path = write("x;tag\n1,5;1\n-;0\n2,5;1\n")
    table = read_training_table(path, "tag", missing=["-"], decimal=",")
    np.testing.assert_array_equal(table.X["x"].to_numpy(), [1.5, np.nan, 2.5])


def test_marks_of_missing_values_hold_for_labels_too(write):
    table = read_training_table(write("x,t,u\n1,1,0\n2,-,1\n3,0,1\n"), "t,u", missing=["-"])
    np.testing.assert_array_equal(table.Y.to_numpy(), [[1, 0], [np.nan, 1], [0, 1]])


def test_infinite_values_are_refused(write, tmp_path):
    path = write("x,t,u\n1,1,0\ninf,0,1\n")
    assert "Column 'x' has an infinite value in row 2" in refused(path, "t,u")
    assert "Column 'x' has an infinite value in row 2" in refused(path, "t,u", missing=["-"])
    pd.DataFrame({"x": [1.0, 2], "t": [1.0, np.inf], "u": [0, 1]}).to_parquet(tmp_path / "t.parquet")
    assert "Label 't' has the value 'inf' in row 2" in refused(tmp_path / "t.parquet", "t,u")


def test_text_that_is_no_category(write):
    text = "x,title,code,tag\n" + "".join(f"{at**2},song {at},k{at}-{at % 5},{at % 2}\n" for at in range(12))
    table = read_training_table(write(text), "tag")
    assert table.X.columns.tolist() == ["x"]
    assert table.X.index.tolist() == [f"song {at}" for at in range(12)]
    assert table.notes[0] == "Column 'title' names the rows (id='-': it does not)."
    left = "Column 'code': left out: text of 12 different values, such as 'k0-0'"
    assert table.notes[1].startswith(left)
    assert "categorical='code'" in table.notes[1]
    assert table.schema.new_columns(["x", "title", "code", "more"]) == ["more"]
    found = refused(write("x,y,tag\n1,5,1\n2,six,0\n3,7,1\n"), "tag")
    assert "Column 'y' holds numbers, but 'six' in row 2 (1 such cells)" in found
    assert "missing='six'" in found
    assert "categorical='y'" in found


def test_all_questions_are_asked_at_once(write):
    rows = "".join(f'{at},"{at + 1},{100 + at}",{at % 7} mg,{at % 2}\n' for at in range(9))
    path = write("x,amount,dose,tag\n" + rows + '9,"5,600",five g,1\n10,"5,600",6 g,1\n')
    with pytest.raises(TableError) as found:
        read_training_table(path, "tag")
    first, *others = str(found.value).split("\n")
    assert first == "2 columns need a word from you:"
    assert "'amount' has numbers with commas, such as '1,100': say decimal=','" in others[0]
    assert "'dose' has numbers with 'g' and 'mg'" in others[1]
    table = read_training_table(path, "tag", decimal=",", drop="dose")
    assert table.X["amount"].iloc[0] == 1.1


def test_decimal_commas_are_read(write):
    text = "x;tag\n" + "".join(f"{at},5;{at % 2}\n" for at in range(12))
    table = read_training_table(write(text), "tag")
    np.testing.assert_array_equal(table.X["x"], np.arange(12) + 0.5)
    assert "Column 'x': numbers with decimal commas." in table.notes
    assert read_training_table(write("x;tag\n1;1\n2;0\n1,5;0\n"), "tag").X["x"].tolist() == [1, 2, 1.5]


def test_dates_become_numbers_and_lists_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": pd.to_datetime(["2020-01-01", None, "2021-01-01"]), "tag": [1, 0, 1]}).to_parquet(path)
    table = read_training_table(path, "tag")
    assert table.X.columns.tolist() == ["x (days)", "x (year)", "x (weekday)"]
    np.testing.assert_array_equal(table.X["x (year)"], [2020, np.nan, 2021])
    pd.DataFrame({"x": [[1, 2], [3]], "tag": [1, 0]}).to_parquet(path)
    assert "leave it out (drop='x')" in refused(path, "tag")


def test_labels_that_nothing_can_be_learned_from(write):
    assert "No label is positive in any row: 't'" in refused(write("x,t\n1,0\n2,0\n"), "t")
    assert "has no feature column beside labels" in refused(write("t,u\n1,0\n0,1\n"), "t,u")
    assert "Label 't' has the value '3' in row 2" in refused(write("x,t,u\n1,0,1\n2,3,1\n"), "t,u")


# New rows


def features_of(schema, path, **options):
    unseen = {}
    frame = next(open_table(path, **options).chunks(None, text=schema.text_columns))
    return schema.features_of(frame, unseen), unseen


def test_a_schema_does_the_same_with_new_rows(write):
    path = write(SONGS)
    table = read_training_table(path, "tag_*", categorical="zone")
    schema = TableSchema.from_json(json.loads(json.dumps(table.schema.to_json())))
    assert schema.to_json() == table.schema.to_json()
    again, unseen = features_of(schema, path)
    pd.testing.assert_frame_equal(again.set_axis(table.X.index), table.X)
    assert unseen == {}
    new = write("zone,extra,mode,tempo\n2,x,minor,5\n3,y,dorian,6\n1,z,,7\n", "new.csv")
    again, unseen = features_of(schema, new)
    np.testing.assert_array_equal(again.to_numpy(), [[5, 1, 1], [6, np.nan, np.nan], [7, np.nan, 0]])
    assert again.columns.tolist() == ["tempo", "mode", "zone"]
    assert unseen == {"zone": ["3"], "mode": ["dorian"]}
    assert schema.new_columns(open_table(new).columns) == ["extra"]


def test_columns_that_are_missing_in_new_rows(write):
    schema = read_training_table(write(SONGS), "tag_*").schema
    with pytest.raises(TableError) as found:
        schema.cleaner.check_columns(["Tempo", "mode", "zone"], "new.csv")
    expected = "new.csv lacks columns that the model was fitted with: 'tempo'. Is 'tempo' now called 'Tempo'?"
    assert str(found.value) == expected
    with pytest.raises(TableError, match="'mode', 'zone'"):
        schema.cleaner.check_columns(["tempo"], "new.csv")


def test_text_among_the_numbers_of_new_rows(write):
    schema = read_training_table(write(SONGS), "tag_*").schema
    new = write("tempo,mode,zone\n1,major,1\nfast,major,1\n", "new.csv")
    with pytest.raises(TableError, match="Column 'tempo' holds numbers, but 'fast' in row 2"):
        features_of(schema, new)


@pytest.mark.parametrize("words", [("True", "False"), ("TRUE", "FALSE"), ("yes", "no")])
def test_truth_values_as_features_with_and_without_holes(write, words):
    """Whether the table of the fit, or that of new rows, has holes must not matter."""
    one, zero = words
    full = write(f"x,f,tag\n1,{one},1\n2,{zero},0\n3,{one},1\n4,{zero},0\n", "full.csv")
    holes = write(f"x,f,tag\n1,{one},1\n2,,0\n3,{zero},1\n4,{one},0\n", "holes.csv")
    for first, second in ((full, holes), (holes, full)):
        schema = read_training_table(first, "tag").schema
        found, unseen = features_of(schema, second)
        values = dict(zip([1, 0, 1, 0] if second == full else [1, None, 0, 1], found["f"]))
        assert values[1] > values[0]
        assert second == full or np.isnan(values[None])
        assert unseen == {}


def test_labels_of_test_tables(write):
    schema = read_training_table(write(SONGS), "tag_*").schema
    path = write("id,tag_b,tag_a\nx,1,0\ny,0,1\n", "test.csv")
    frame = next(open_table(path).chunks(None, text=["id", "tag_a", "tag_b"]))
    assert read_labels(path, schema, frame, None).to_numpy().tolist() == [[0, 1], [1, 0]]
    other = write("tag_a,id,tag_b\n1,y,0\n0,x,1\n", "labels.csv")
    found = read_labels(path, schema, frame[["id"]], other)
    assert found.to_numpy().tolist() == [[0, 1], [1, 0]]
    assert found.index.tolist() == [1, 2]
    for more, where in ((None, "test.csv"), (write("id,tag_a\nx,1\ny,0\n", "few.csv"), "few.csv")):
        with pytest.raises(TableError, match=f"{where} lacks label columns of the model: 'tag_b'"):
            read_labels(path, schema, frame[["id", "tag_a"]], more)


def test_labels_of_test_tables_by_id_only(write):
    """What `evaluate` reads: ids that differ are refused, and ids are never ignored."""
    schema = read_training_table(write(SONGS), "tag_*").schema
    path = write("id,tempo\nx,1\ny,2\n", "test.csv")
    frame = next(open_table(path).chunks(None, text=["id"]))
    other = write("id,tag_a,tag_b\ny,1,0\nz,0,1\n", "labels.csv")
    with pytest.raises(TableError, match=r"no row for 1 of 2 ids of .* has none for 1 of 2 ids of .*: 'z'"):
        read_labels(path, schema, frame, other)
    path = write("tempo\n1\n2\n", "test.csv")
    with pytest.raises(TableError, match="has ids in column 'id'"):
        read_labels(path, schema, next(open_table(path).chunks(None)), other)


def test_labels_of_test_tables_by_order_if_there_is_no_id(write):
    schema = read_training_table(write(SONGS), "tag_*").schema
    path = write("tempo\n1\n2\n", "test.csv")
    frame = next(open_table(path).chunks(None))
    other = write("tag_a,tag_b\n1,0\n0,1\n", "labels.csv")
    assert read_labels(path, schema, frame, other).to_numpy().tolist() == [[1, 0], [0, 1]]


CELLS = st.one_of(st.floats(-1e6, 1e6).map(lambda value: round(value, 3)), st.integers(-5, 5), st.none())


@given(st.lists(st.tuples(CELLS, st.sampled_from(["u", "v", "w", None]), st.sampled_from([0, 1, None])), min_size=6))
@examples(40)
def test_numbers_and_categories_survive(tmp_path_factory, rows):
    """The table that was written is the table that is read, by a plain reading of the cells."""
    path = tmp_path_factory.mktemp("any") / "table.csv"
    frame = pd.DataFrame(rows, columns=["x", "c", "t"], dtype=object)
    frame.loc[0, "t"] = 1
    frame.loc[:5, "c"] = list("uvwuvw")
    frame.to_csv(path, index=False)
    blank = frame.isna().all(axis=1)
    if not (frame["t"] == 0).any():  # where nobody says no, an empty cell does not mean that nothing is known
        frame["t"] = frame["t"].where(frame["t"].notna(), 0)
    frame = frame[~blank]  # rows of nothing are left out
    table = read_training_table(path, "t", categorical="c")
    plain = {name: position for position, name in enumerate(sorted(set(frame["c"].dropna())))}
    for at in range(len(frame)):
        x, c, t = frame.iloc[at]
        found = [*table.X.iloc[at], table.Y["t"].iloc[at]]
        for value, expected in zip(found, (x, None if pd.isna(c) else plain[c], t)):
            assert np.isnan(value) if pd.isna(expected) else value == float(expected)


def test_an_id_that_the_label_file_lacks(tmp_path):
    (tmp_path / "x.csv").write_text("song,x\na,1\nb,2\nc,3\n")
    (tmp_path / "y.csv").write_text("name,t\na,1\nb,0\nc,1\n")
    with pytest.raises(TableError, match=r"y\.csv has no column 'song' \(id='song'\); its columns are 'name', 't'"):
        read_training_table(tmp_path / "x.csv", "t", label_file=tmp_path / "y.csv", id="song")
    (tmp_path / "x.csv").write_text("id,x\na,1\nb,2\nc,3\n")
    table = read_training_table(tmp_path / "x.csv", "t", label_file=tmp_path / "y.csv")
    assert "Labels are matched to rows by their order." in table.notes


def test_shared_columns_are_not_ignored(tmp_path):
    """Rows are matched by their order only if the files have no column in common that may name them."""
    (tmp_path / "x.csv").write_text("song,x\na,1\nb,2\nc,3\n")
    (tmp_path / "y.csv").write_text("Song,t\nc,1\nb,0\na,0\n")
    for labels in (None, "t"):
        with pytest.raises(TableError, match=r"both have a column 'song': say id='song' .* or id='-'"):
            read_training_table(tmp_path / "x.csv", labels, label_file=tmp_path / "y.csv")
    (tmp_path / "y.csv").write_text("song,t\nc,1\nb,0\na,0\n")
    table = read_training_table(tmp_path / "x.csv", label_file=tmp_path / "y.csv", id="song")
    assert table.Y["t"].to_dict() == {"a": 0, "b": 0, "c": 1}
    assert table.X.columns.tolist() == ["x"]
    table = read_training_table(tmp_path / "x.csv", "t", label_file=tmp_path / "y.csv", id="-", categorical="song")
    assert table.Y["t"].tolist() == [1, 0, 0]


def test_marks_of_missing_features_are_no_marks_of_labels(tmp_path):
    (tmp_path / "x.csv").write_text("x,k,t\n0,a,0\n1,0,1\n2,b,unk\n3,a,0\n4,b,1\n5,a,0\n")
    table = read_training_table(tmp_path / "x.csv", "t", missing=["0", "unk"])
    assert np.isnan(table.X["x"].iloc[0])
    assert np.isnan(table.X["k"].iloc[1])
    assert table.schema.categories == {"k": ["a", "b"]}
    np.testing.assert_array_equal(table.Y["t"], [0, 1, np.nan, 0, 1, 0])


@pytest.mark.parametrize("value", ["1,5", "1,234", "12,5"])
def test_numbers_with_commas_are_no_categories(tmp_path, value):
    (tmp_path / "x.csv").write_text("x;t\n" + f"{value};1\n10,5;0\n" * 20)
    assert read_training_table(tmp_path / "x.csv", "t").X["x"].iloc[0] == float(value.replace(",", "."))
    assert read_training_table(tmp_path / "x.csv", "t", decimal=",").X["x"].iloc[1] == 10.5


def test_names_that_look_missing(tmp_path):
    """NA is a country, a label and a class; it is missing among features."""
    (tmp_path / "x.csv").write_text("id,x,tags\nNA,1,NA\nEU,2,NA;EU\nUS,NA,\n")
    table = read_training_table(tmp_path / "x.csv", "tags", separator=";")
    assert table.X.index.tolist() == ["NA", "EU", "US"]
    assert np.isnan(table.X.loc["US", "x"])
    assert table.Y.to_dict("list") == {"NA": [1, 1, 0], "EU": [0, 1, 0]}


def test_categories_are_the_same_from_all_files(tmp_path):
    """1.0 in a text file is the 1.0 of a Parquet file, and of a column of whole numbers."""
    values = [1.0, 2.5, 1.0, 2.5, 3.0]
    frame = pd.DataFrame({"k": values, "t": [0, 1, 0, 1, 1]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    text = read_training_table(tmp_path / "a.csv", "t", categorical="k")
    assert text.schema.categories == {"k": ["1", "2.5", "3"]}
    assert read_training_table(tmp_path / "a.parquet", "t", categorical="k").schema.categories == text.schema.categories
    for rows in (frame[["k"]], frame[["k"]].iloc[:1], frame[["k"]].iloc[:1].astype(int)):
        found = text.schema.features_of(rows)
        np.testing.assert_array_equal(found["k"], [text.schema.categories["k"].index(f"{v:g}") for v in rows["k"]])


def test_other_words_for_yes_and_no(tmp_path):
    (tmp_path / "x.csv").write_text("x,t\n1,aye\n2,Nay\n3,\n")
    with pytest.raises(TableError, match="'aye' in row 1"):
        read_training_table(tmp_path / "x.csv", "t")
    table = read_training_table(tmp_path / "x.csv", "t", positive=["Aye"], negative=["nay"])
    np.testing.assert_array_equal(table.Y["t"], [1, 0, np.nan])
    assert TableSchema.from_json(table.schema.to_json()).labels == table.schema.labels


def test_wide_tables_are_read_in_linear_time(tmp_path):
    """Names are looked up in sets: with lists, this would take minutes."""
    names = [f"c{j}" for j in range(20_000)]
    (tmp_path / "x.csv").write_text(
        ",".join([*names, "t"]) + "\n" + "\n".join(",".join(["1"] * 20_001) for _ in range(2))
    )
    table = read_training_table(tmp_path / "x.csv", "t")
    assert table.X.shape == (2, 20_000)


def test_odd_notes_about_a_table(tmp_path):
    (tmp_path / "x.csv").write_text("x,k,t\n1,a,1\n2,b,0\n3,a,0\n4,b,1\n")
    good = read_training_table(tmp_path / "x.csv", "t").schema.to_json()
    assert TableSchema.from_json(good).to_json() == good
    labels = good["labels"]
    for change in (
        {"columns": 5}, {"columns": {"readings": 5, "missing": []}}, {"id": ["a"]}, {"left_out": "a"},
        {"columns": {"readings": {"k": {"is": "categories", "values": ["a", "a"], "more": False}}, "missing": []}},
        {"columns": {"readings": {"k": {"is": "numbers", "decimal": 5}}, "missing": []}},
        {"columns": {"readings": {"k": {"is": "dates", "form": "%Y", "parts": ["age"]}}, "missing": []}},
        {"columns": {"readings": {"k": {"is": "magic"}}, "missing": []}},
        {"columns": good["columns"] | {"missing": 5}}, {"labels": 3},
        {"labels": labels | {"kind": "zzz"}}, {"labels": labels | {"columns": []}},
        {"labels": labels | {"separator": ""}}, {"labels": labels | {"own_words": {"x": 7}}},
    ):  # fmt: skip
        with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
            TableSchema.from_json(good | change)
