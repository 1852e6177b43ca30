"""Files of every kind are read alike, as a whole and in parts; what is wrong with one is said in a line."""

import csv
import gzip
import io
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from strategies import examples
from sylvan.app.tables import TableError, open_table, text
from sylvan.app.tables.table import Table

FRAME = pd.DataFrame(
    {"id": ["007", "x,y", "1e5"], "size": [1.5, np.nan, -2.0], "name": ["a", "b c", "ü"], "tag": [1, 0, 1]}
)


def whole(path, text=("id",), **options):
    """All rows, in one piece."""
    parts = list(open_table(path, **options).chunks(None, text=text))
    assert len(parts) == 1
    return parts[0]


def same(found, expected=FRAME):
    assert found.columns.tolist() == expected.columns.tolist()
    assert found.index.tolist() == list(range(1, len(expected) + 1))
    for name in expected.columns:
        for a, b in zip(found[name], expected[name]):
            assert (a == b) or (pd.isna(a) and pd.isna(b)), name


def write(folder, text, name="table.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("table.csv", {}),
        ("table.CSV", {}),
        ("table.csv.gz", {}),
        ("table.txt", {"sep": ";"}),
        ("table.csv", {"sep": ";"}),
        ("table.csv", {"sep": "|"}),
        ("table.csv", {"sep": "\t"}),
        ("table.tsv", {"sep": "\t"}),
        ("table.tab", {"sep": "\t"}),
        ("table.tsv.gz", {"sep": "\t"}),
        ("table.tsv", {"sep": ","}),  # the ending lies
        ("table.csv", {"lineterminator": "\r\n"}),
        ("table.csv", {"encoding": "utf-8-sig"}),
        ("table.csv", {"quoting": 1}),
        ("table.csv", {"na_rep": "NA"}),
        ("table.csv", {"na_rep": "?"}),
    ],
)
def test_text_is_read_whatever_its_form(tmp_path, name, options):
    FRAME.to_csv(tmp_path / name, index=False, **options)
    same(whole(tmp_path / name))


def test_decimal_commas_and_other_encodings(tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    same(whole(tmp_path / "table.csv", decimal=",", encoding="latin-1"))
    FRAME.to_csv(tmp_path / "wide.csv", index=False, encoding="utf-16")
    same(whole(tmp_path / "wide.csv", encoding="utf-16"))
    same(whole(tmp_path / "table.csv", decimal=",", encoding="cp1252", delimiter=";"))


def test_parquet(tmp_path):
    FRAME.to_parquet(tmp_path / "table.parquet")
    same(whole(tmp_path / "table.parquet"))
    FRAME.to_parquet(tmp_path / "table.pq", row_group_size=1)
    same(whole(tmp_path / "table.pq"))  # all row groups


def test_an_index_in_parquet_is_a_column(tmp_path):
    """A name that pandas keeps as the index is a column of the file like any other."""
    FRAME.set_index("id").to_parquet(tmp_path / "named.parquet")
    table = open_table(tmp_path / "named.parquet")
    assert sorted(table.columns) == sorted(FRAME.columns)
    frame = next(table.chunks(None, text=["id"]))
    assert frame["id"].tolist() == FRAME["id"].tolist()
    assert frame["size"].tolist()[0] == 1.5


ARFF = """% made by hand
@relation 'songs'
@attribute tempo numeric
@attribute mode {minor, 'very major'}
@attribute happy {0, 1}
@attribute calm {0, 1}
@data
120, 'very major', 1, 0
?, minor, 0, 1
60.5, ?, 0, 1
"""
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="calm"/><label name="happy"/></labels>'


def test_arff_with_the_labels_of_mulan(tmp_path):
    write(tmp_path, ARFF, "songs.arff")
    table = open_table(tmp_path / "songs.arff")
    assert table.columns == ["tempo", "mode", "happy", "calm"]
    assert table.n_rows == 3
    assert table.known_labels == []
    frame = next(table.chunks(None, text=["happy"]))
    expected = pd.DataFrame({"tempo": [120, np.nan, 60.5], "mode": ["very major", "minor", np.nan]})
    same(frame[["tempo", "mode"]], expected)
    assert frame["happy"].tolist() == ["1", "0", "0"]
    write(tmp_path, XML, "songs.xml")
    assert open_table(tmp_path / "songs.arff").known_labels == ["happy", "calm"]
    with gzip.open(tmp_path / "songs.arff.gz", "wt") as file:
        file.write(ARFF)
    same(next(open_table(tmp_path / "songs.arff.gz").chunks(None))[["tempo", "mode"]], expected)


def test_quoted_cells_hold_anything(tmp_path):
    text = 'id,note,tag\n1,"two\nlines, and a ""quote""",1\n2,"x\r\ny",0\n3,plain "quote,1\n'
    frame = whole(write(tmp_path, text), text=["id", "note"])
    assert frame["note"].tolist() == ['two\nlines, and a "quote"', "x\r\ny", 'plain "quote']
    assert frame["tag"].tolist() == [1, 0, 1]


def test_spaces_after_delimiters_and_blank_lines(tmp_path):
    frame = whole(write(tmp_path, '\na, b, tag\n\n1, "x, y", 1\n2, z, 0\n\n\n'), text=["b"])
    assert frame.columns.tolist() == ["a", "b", "tag"]
    assert frame["b"].tolist() == ["x, y", "z"]
    assert frame["a"].tolist() == [1, 2]


def test_the_delimiter_is_found_below_blank_lines_and_in_long_names(tmp_path):
    assert open_table(write(tmp_path, "\n\na;b;tag\n1;2;1\n")).columns == ["a", "b", "tag"]
    assert open_table(write(tmp_path, '"a\nb";c;tag\n1;2;1\n')).columns == ["a\nb", "c", "tag"]
    assert open_table(write(tmp_path, '"a,b,c,d";"e";f\n1;2;1\n')).columns == ["a,b,c,d", "e", "f"]


def test_thousands_of_columns_with_long_names(tmp_path):
    names = [f"expression_of_gene_{at:06d}" for at in range(8000)]
    path = write(tmp_path, ",".join(names) + "\n" + ",".join(["1"] * 8000) + "\n")
    assert open_table(path).columns == names


def test_a_long_cell(tmp_path):
    path = write(tmp_path, 'note,tag\n"' + "x" * 200_000 + '",1\ny,0\n')
    assert whole(path)["note"].str.len().tolist() == [200_000, 1]


def test_the_index_that_pandas_writes(tmp_path):
    FRAME.drop(columns="id").to_csv(tmp_path / "table.csv")
    table = open_table(tmp_path / "table.csv")
    assert len(table.columns) == 4
    assert table.columns[1:] == ["size", "name", "tag"]


def test_missing_marks(tmp_path):
    marks = ["", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]
    frame = whole(write(tmp_path, "a,b\n" + "".join(f"{mark},1\n" for mark in marks) + "2,1\n"))
    assert frame["a"].isna().tolist() == [True] * len(marks) + [False]
    raw = next(open_table(tmp_path / "table.csv").chunks(None, raw=True))
    assert raw["a"].tolist() == [*marks, "2"]  # as written


@given(st.integers(1, 8), st.sampled_from(["csv", "parquet", "arff"]), st.permutations(["b", "a", "c"]))
@examples(20)
def test_parts_together_are_the_whole(tmp_path_factory, size, kind, names):
    folder = tmp_path_factory.mktemp("parts")
    frame = pd.DataFrame({"a": np.arange(7.0), "b": list("xyxyxyx"), "c": np.arange(7.0) / 2})
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path, row_group_size=3)
    else:
        rows = "\n".join(f"{a}, {b}, {c}" for a, b, c in frame.itertuples(index=False))
        head = "@attribute a numeric\n@attribute b {x,y}\n@attribute c numeric\n"
        path.write_text(f"@relation r\n{head}@data\n{rows}\n")
    table = open_table(path)
    assert table.n_rows == 7
    parts = list(table.chunks(size, names[:2]))
    assert max(map(len, parts)) <= size
    wanted = [name for name in "abc" if name in names[:2]]  # in the order of the file
    same(pd.concat(parts), frame[wanted])


def refused(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TableError) as found:
            whole(path, **options)
    assert "\n" not in str(found.value).strip()
    return str(found.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "the first line has no names of columns"),
        ("a,b\n", "has no rows below its first line"),
        ("a,b", "has no rows below its first line"),
        ("a,b,a\n1,2,3\n", "columns 1 and 3 have the same name 'a'"),
        ("a,a ,b\n1,2,3\n", "columns 1 and 2 have the same name 'a'"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cell, the first line 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, the first line 2"),
        ('a,b\n1,"x\ny"\n3,4,5\n', "line 4 has 3 cells, the first line 2"),
        ('a,b\n1,"x\n3,4\n5,6\n', "EOF inside string"),
        ("a,b\n1,\x002\n", "NUL"),
    ],
)
def test_text_that_is_no_table(tmp_path, text, message):
    path = write(tmp_path, text)
    found = refused(path)
    assert str(path) in found
    assert message in found


def test_a_wrong_delimiter(tmp_path):
    path = write(tmp_path, "a;b\n1;2\n")
    assert "the first line has no ','; its cells seem to be separated by ';'" in refused(path, delimiter=",")
    assert "delimiter='::' is not one character (or tab)" in refused(path, delimiter="::")
    assert "delimiter='' is not one character (or tab)" in refused(path, delimiter="")
    tabs = write(tmp_path, "a\tb\n1\t2\n")
    for name in ("tab", "\\t", "\t"):
        assert open_table(tabs, delimiter=name).columns == ["a", "b"]


@pytest.mark.parametrize("delimiter", ['"', "\n", "\r", "é", "§"])
def test_odd_delimiters_work_or_are_refused(tmp_path, delimiter):
    path = write(tmp_path, f"a{delimiter}b\n1{delimiter}2\n3{delimiter}4\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            frame = whole(path, delimiter=delimiter)
        except TableError:
            return
    assert frame.to_numpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("decimal", ["", "ab"])
def test_a_decimal_sign_is_one_character(tmp_path, decimal):
    assert "decimal=" in refused(write(tmp_path, "a,b\n1,2\n"), decimal=decimal)


def test_a_wrong_encoding(tmp_path):
    path = write(tmp_path, "a,b\nü,2\n", encoding="latin-1")
    assert "is not in utf-8: say encoding='latin-1'" in refused(path, encoding="utf-8")
    assert "There is no encoding 'klingon'" in refused(path, encoding="klingon")
    assert "is not in utf-16" in refused(path, encoding="utf-16")
    assert "is not in ascii" in refused(path, encoding="ascii")
    assert "no encoding 'hex'" in refused(path, encoding="hex")


def test_files_that_are_not_there_or_not_tables(tmp_path):
    path = write(tmp_path, "a,b\n1,2\n", "songs.csv")
    assert f"There is no file {tmp_path / 'song.csv'}; did you mean" in refused(tmp_path / "song.csv")
    assert "songs.csv" in refused(tmp_path / "song.csv")
    assert refused(tmp_path / "no" / "x.csv") == f"There is no file {tmp_path / 'no' / 'x.csv'}."
    assert "is a folder; a file is needed" in refused(tmp_path)
    assert "unknown kind of file; tables end in .csv" in refused(path.rename(tmp_path / "songs.doc"))
    for name in ("rubbish.csv", "rubbish.csv.gz", "rubbish.parquet", "rubbish.arff", "rubbish.arff.gz", "rubbish.tsv"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 4)
        assert name in refused(tmp_path / name)
    (tmp_path / "plain.csv.gz").write_text("a,b\n1,2\n")
    assert "is not a complete gzip file" in refused(tmp_path / "plain.csv.gz")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = write(tmp_path, "a,b\n1,2\n")
    monkeypatch.setattr(os, "access", lambda *args: False)  # root may read everything
    assert "cannot be read: permission denied" in refused(path)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("name", ["table.csv.gz", "table.parquet", "table.arff.gz"])
def test_files_that_were_cut_off(tmp_path, name, kept):
    if name.startswith("table.arff"):
        with gzip.open(tmp_path / name, "wt") as file:
            file.write(ARFF)
    elif name.endswith("parquet"):
        FRAME.to_parquet(tmp_path / name)
    else:
        FRAME.to_csv(tmp_path / name, index=False)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(len(content) * kept)])
    assert name in refused(tmp_path / name)


def test_parquet_whose_pages_are_damaged(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": np.arange(1000.0)}).to_parquet(path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[100:600] = bytes(500)
    path.write_bytes(content)
    assert "table.parquet" in refused(path)


def test_parquet_without_rows_and_with_names_twice(tmp_path):
    FRAME.head(0).to_parquet(tmp_path / "none.parquet")
    assert "has no rows" in refused(tmp_path / "none.parquet")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    assert "columns 1 and 2 have the same name 'a'" in refused(tmp_path / "twice.parquet")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation r\n@attribute a numeric\n1\n", "there is no @data line"),
        ("@relation r\n@data\n1\n", "no attribute is declared"),
        ("@relation r\n@attribute a numeric\n@data\n", "there are no rows after @data"),
        ("@relation r\n@attribute a date\n@data\n1\n", "only numeric and nominal attributes can be read"),
        ("@relation r\n@attribute a numeric\n@attribute a numeric\n@data\n1,2\n", "two attributes have the name 'a'"),
        ("@relation r\n@attribute a numeric\n@data\nx\n", "line 4"),
        ("@relation r\n@attribute a {x,y}\n@data\nz\n", "line 4"),
        ("@relation r\n@attribute a numeric\n@data\n1,2\n", "line 4"),
    ],
)
def test_arff_that_is_none(tmp_path, text, message):
    found = refused(write(tmp_path, text, "songs.arff"))
    assert "songs.arff" in found
    assert message in found


def test_a_broken_list_of_labels_beside_arff(tmp_path):
    write(tmp_path, ARFF, "songs.arff")
    write(tmp_path, "<labels><label", "songs.xml")
    assert open_table(tmp_path / "songs.arff").known_labels == []  # as if there were none


def test_paths_may_be_text(tmp_path):
    path = write(tmp_path, "a,b\n1,2\n")
    assert open_table(str(path)).columns == open_table(Path(path)).columns


@pytest.mark.parametrize("at_once", [1, 7, 60, 1000])
def test_parts_are_read_as_if_at_once(tmp_path, monkeypatch, at_once):
    """What a column holds may show late: text after numbers, fractions after whole numbers, the first cell at all."""
    n = 120
    late = np.arange(n) >= 90
    columns = {
        "whole": np.arange(n), "fraction late": np.where(late, "1.5", "2"), "text late": np.where(late, "x7", "007"),
        "number late": np.where(late, "7", "x"), "truth": np.where(late, "True", "False"),
        "truth late": np.where(late, "True", ""), "word, then truth": np.where(late, "True", "maybe"), "empty": "",
        "text after nothing": np.where(late, "w", ""), "long": 2**60 + np.arange(n),
        "unsigned": np.uint64(2**63) + np.arange(n, dtype=np.uint64),
        "unsigned late": np.where(late, str(2**63 + 5), "2"), "zeros": np.where(late, "12", "012"), "é": "ü",
    }  # fmt: skip
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    table = open_table(tmp_path / "t.csv")
    for as_text in ([], ["zeros", "whole"]):
        expected = Table.whole(table, None, as_text)
        monkeypatch.setattr(text, "_AT_ONCE", at_once)
        pd.testing.assert_frame_equal(table.whole(None, as_text), expected)
        pd.testing.assert_frame_equal(table.whole(["text late", "empty"]), expected[["text late", "empty"]])
    pd.testing.assert_frame_equal(table.head(50), next(table.chunks(50)))


def test_parquet_whose_text_is_none(tmp_path):
    offsets, data = pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes()), pa.py_buffer(b"a\xff\xfe")
    text = pa.StringArray.from_buffers(2, offsets, data)
    parquet.write_table(pa.table({"name": text, "tag": [1, 0]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"damaged: .*UTF8"):
        whole(tmp_path / "t.parquet")


TITLES = {
    "a title": ("Field data 2021\n", 1),
    "filled up": ("Field data 2021;;;\n", 1),
    "remarks": ("# taken by A. B.\n# lead; in mg\n", 2),
    "a title, a blank line": ("Field data 2021\n\n", 2),
    "one word": ("Fields\n", 1),
    "blank cells": ("Fields;;\n;;\n", 2),
}


@pytest.mark.parametrize("title", TITLES)
def test_lines_above_the_names(tmp_path, title):
    above, skipped = TITLES[title]
    path = tmp_path / "t.csv"
    path.write_text(above + "name;lead;tag\na;1,5;1\nb;2,5;0\n", encoding="utf-8")
    table = open_table(path)
    assert table.columns == ["name", "lead", "tag"]
    assert (table.n_rows, table.skip) == (2, skipped)
    assert "stands above the names of columns and is left out" in table.notes[0]


@pytest.mark.parametrize(
    "content",
    [
        '"a name,\nlong",y,z\n1,2,3\n',
        "#id,size,tag\n7,1.5,1\n8,2.5,0\n",
        "my name\n1\n2\n",
        "first name,tag\nann,1\nbob,0\n",
    ],
)
def test_first_lines_that_are_no_titles(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    table = open_table(path)
    assert table.skip == 0
    assert not table.notes
    assert table.columns == next(csv.reader(io.StringIO(content)))


@pytest.mark.parametrize(
    ("begin", "ending"),
    [(b"PK\x03\x04", ".xlsx"), (b"PAR1\x15", ".parquet"), (b"\x1f\x8b", ".gz"), (b"\xd0\xcf\x11\xe0", ".xls")],
)
def test_files_that_are_no_text(tmp_path, begin, ending):
    (tmp_path / "t.csv").write_bytes(begin + b" and so on, 1")
    with pytest.raises(TableError, match=f"files that end in {ending} hold: give it that ending"):
        open_table(tmp_path / "t.csv")
