"""Tables are written whole or not at all, and completed tables differ by the added labels only."""

import csv
import errno
import gzip
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from strategies import examples
from sylvan.app.tables import TableError, TableWriter, open_table, read_training_table, write_completed
from sylvan.app.tables import output as output_module

FRAME = pd.DataFrame({"a": [1, 2, 3], "b": ["x", 'y "z"', "ü;,\t"]})
READ = {"parquet": pd.read_parquet, "tsv": lambda path: pd.read_csv(path, sep="\t"), "csv": pd.read_csv}


@pytest.mark.parametrize("name", ["out.csv", "out.CSV", "out.tsv", "out.csv.gz", "out.tsv.gz", "out.parquet", "out.pq"])
def test_parts_become_one_file(tmp_path, name):
    with TableWriter(tmp_path / name) as out:
        out.write(FRAME.head(1))
        assert not (tmp_path / name).exists()
        out.write(FRAME.tail(2))
    kind = "parquet" if name.endswith(("parquet", "pq")) else "tsv" if "tsv" in name else "csv"
    pd.testing.assert_frame_equal(READ[kind](tmp_path / name), FRAME)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("one.csv.gz", "two.csv.gz"):
        with TableWriter(tmp_path / name) as out:
            out.write(FRAME)
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


@pytest.mark.parametrize("name", ["out.ods", "out", "out.xlsx.gz", "out.arff", "out.parquet.gz", "out.json", "csv"])
def test_names_that_no_table_can_have(tmp_path, name):
    with pytest.raises(TableError, match=r"tables can be written as \.csv"):
        TableWriter(tmp_path / name)


NAMES = ["out.csv", "out.csv.gz", "out.parquet"]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", NAMES)
def test_an_error_leaves_the_old_file_and_no_part(tmp_path, name):
    (tmp_path / name).write_text("old")

    def write_a_part():
        with TableWriter(tmp_path / name) as out:
            out.write(FRAME)
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        write_a_part()
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_at_the_end(tmp_path, name, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / name).write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), TableWriter(tmp_path / name) as out:
        out.write(FRAME)
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


class _Full:
    """A file on a disk that is full after some bytes."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def write(self, data):
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("room", [0, 20, 600])
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_on_the_way(tmp_path, name, room, monkeypatch):
    """Also when the last bytes do not fit: those that a gzip or Parquet file gets when it is closed."""
    (tmp_path / name).write_text("old")
    opened = os.fdopen
    monkeypatch.setattr(os, "fdopen", lambda *args: _Context(_Full(opened(*args), room)))
    random = np.random.default_rng(0).random(300)  # does not become small
    with pytest.raises(OSError, match="No space left"), TableWriter(tmp_path / name) as out:
        out.write(pd.DataFrame({"a": random}))
    monkeypatch.undo()
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


class _Context:
    """`with` for a file that is not quite one."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self._file

    def __exit__(self, *error):
        self._file.close()


# Completed tables


def cells_of(path, **options):
    """Every cell as text, by the csv module."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, **options))


def complete(path, out, labels, added, **options):
    """Read, and write with (row position, label) added."""
    table = read_training_table(path, labels, **options)
    rows = table.source_rows.to_numpy()[[row for row, _ in added]] if added else np.array([], dtype=int)
    write_completed(out, table.source, table.schema.labels, rows, [label for _, label in added])


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
ROWS = st.lists(
    st.tuples(TEXT, TEXT, st.sampled_from("01"), st.sampled_from(["yes", "no", ""])), min_size=2, max_size=6
)
POSITIVE = {"t": "1", "u": "yes"}


@given(ROWS, st.sampled_from([(",", "csv"), (";", "csv"), ("\t", "tsv"), ("|", "txt")]), st.booleans(), st.data())
@settings(examples(80), derandomize=True)
def test_every_other_cell_stays_as_it_was(tmp_path_factory, rows, form, quoted, data):
    delimiter, ending = form
    folder = tmp_path_factory.mktemp("cells")
    path, out = folder / f"in.{ending}", folder / f"out.{ending}"
    lines = [["note", "x", "t", "u", "other"]]
    for at, (note, other, t, u) in enumerate(rows):
        # Blanks between a delimiter and a cell are no part of the cell; in quotes they are.
        note, other = (note, other) if quoted else (note.lstrip(), other.lstrip())
        lines.append([note, str(at / 4), "1" if at == 0 else t, "yes" if at == 0 else u, other])
    path.write_bytes("".join(write_line(line, delimiter, quoted) for line in lines).encode())
    where = {name: lines[0].index(name) for name in "tu"}
    free = [(at, name) for at in range(len(rows)) for name in "tu" if lines[at + 1][where[name]] != POSITIVE[name]]
    added = data.draw(st.lists(st.sampled_from(free), unique=True)) if free else []
    complete(path, out, "t,u", added, drop="note,other")
    for at, name in added:
        lines[at + 1][where[name]] = POSITIVE[name]
    assert cells_of(out, delimiter=delimiter) == lines


def write_line(cells, delimiter, quoted):
    """A line of text, with quotes around each cell or around those that need them."""
    cells = [
        f'"{cell.replace(chr(34), chr(34) * 2)}"' if quoted or set(cell) & set('\r\n"' + delimiter) else cell
        for cell in cells
    ]
    return delimiter.join(cells) + ("\r\n" if quoted else "\n")


def test_line_ends_in_cells_stay_in_them(tmp_path):
    (tmp_path / "in.csv").write_bytes(b'note,x,t,u\n"a\rb",1,1,0\n"a\r\nb",2,0,1\n"a\nb",2,0,1\n')
    complete(tmp_path / "in.csv", tmp_path / "out.csv", "t,u", [(1, "t")], drop="note")
    assert [line[0] for line in cells_of(tmp_path / "out.csv")] == ["note", "a\rb", "a\r\nb", "a\nb"]


def test_files_of_other_kinds_are_separated_as_their_names_say(tmp_path):
    (tmp_path / "in.tsv").write_text("x\tt\tu\n1,5\t1\t0\n2\t0\t1\n")
    complete(tmp_path / "in.tsv", tmp_path / "out.csv", "t,u", [(1, "t")], decimal=",")
    assert cells_of(tmp_path / "out.csv") == [["x", "t", "u"], ["1,5", "1", "0"], ["2", "1", "1"]]
    (tmp_path / "in.csv").write_text("x;t;u\n1;1;0\n2;0;1\n")
    complete(tmp_path / "in.csv", tmp_path / "out.csv", "t,u", [(1, "t")])
    assert (tmp_path / "out.csv").read_text() == "x;t;u\n1;1;0\n2;1;1\n"
    complete(tmp_path / "in.csv", tmp_path / "out.tsv", "t,u", [(1, "t")])
    assert (tmp_path / "out.tsv").read_text() == "x\tt\tu\n1\t1\t0\n2\t1\t1\n"
    pd.read_csv(tmp_path / "out.tsv", sep="\t").to_csv(tmp_path / "in.tsv.gz", sep="\t", index=False)
    complete(tmp_path / "in.tsv.gz", tmp_path / "out.csv.gz", "t,u", [])
    assert open_table(tmp_path / "out.csv.gz", delimiter=",").columns == ["x", "t", "u"]


def test_names_of_columns_stay(tmp_path):
    for head in (",x,t,u", "unnamed,x,t,u", 'id,"a, b",t,u', "ID,größe,t,u"):
        (tmp_path / "in.csv").write_text(f"{head}\nr,1,1,0\ns,2,0,1\n")
        complete(tmp_path / "in.csv", tmp_path / "out.csv", "t,u", [(1, "t")])
        assert cells_of(tmp_path / "out.csv") == [*csv.reader([head]), ["r", "1", "1", "0"], ["s", "2", "1", "1"]]


def test_a_second_file_is_the_one_that_is_completed(tmp_path):
    (tmp_path / "x.csv").write_text("song,x\na,1\nb,2\n")
    (tmp_path / "y.csv").write_text("song,t,u,more\nz,0,0,q\nb,0,1,r\na,1,0,s\n")
    complete(tmp_path / "x.csv", tmp_path / "out.csv", "t,u", [(1, "t")], label_file=tmp_path / "y.csv", id="song")
    assert (tmp_path / "out.csv").read_text() == "song,t,u,more\nz,0,0,q\nb,1,1,r\na,1,0,s\n"


def test_large_files_are_completed_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(output_module, "_ROWS", 3)
    frame = pd.DataFrame({"x": np.arange(10), "late": [np.nan] * 8 + ["p", "q"], "t": [1] + [0] * 9, "u": [0, 1] * 5})
    frame.to_csv(tmp_path / "in.csv", index=False)
    frame.to_parquet(tmp_path / "in.parquet")
    for ending in ("csv", "parquet"):
        added = [(9, "t"), (3, "t"), (4, "u"), (2, "t")]
        complete(tmp_path / f"in.{ending}", tmp_path / f"out.{ending}", "t,u", added, drop="late")
        found = READ[ending](tmp_path / f"out.{ending}")
        assert np.flatnonzero(found["t"] == 1).tolist() == [0, 2, 3, 9]
        assert np.flatnonzero(found["u"] == 1).tolist() == [1, 3, 4, 5, 7, 9]
        assert found["late"].tolist()[8:] == ["p", "q"]
        assert found["x"].tolist() == list(range(10))


@pytest.mark.parametrize("dtype", [pa.bool_(), pa.int8(), pa.int64(), pa.float64(), pa.string()])
@pytest.mark.parametrize("hole", [False, True])
def test_parquet_keeps_types_and_values(tmp_path, dtype, hole):
    """A whole number that no float can hold stays what it is, with and without holes."""
    big = 2**60 + 1
    bits = [True, False, True, None if hole else False]
    bits = pa.array([None if bit is None else str(bit).lower() if dtype == pa.string() else bit for bit in bits])
    table = pa.table({
        "x": [0.5, 1.5, 2.5, 3.5],
        "big": pa.array([big, None if hole else 5, 3, 4]),
        "small": pa.array([1.5, 2.5, None, 4.5], type=pa.float32()),
        "when": pa.array([1, 2, 3, None], type=pa.timestamp("ms")),
        "kind": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "t": bits.cast(dtype),
        "u": pa.array([1, 1, 0, 0]),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "in.parquet")
    complete(tmp_path / "in.parquet", tmp_path / "out.parquet", "t,u", [(3, "t"), (2, "u")], drop="big,when,small")
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.schema.names == table.schema.names
    for name in table.schema.names:
        values = table[name].to_pylist()
        if name == "t":
            values[3] = values[0]
        if name == "u":
            values[2] = 1
        assert found[name].to_pylist() == values, name
        assert kind_of(found.schema.field(name).type) == kind_of(table.schema.field(name).type)


def kind_of(dtype):
    """A type; text is text, however it is packed."""
    dtype = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    return "text" if pa.types.is_string(dtype) or pa.types.is_large_string(dtype) else dtype


def test_parquet_becomes_text(tmp_path):
    table = pa.table({"x": [0.5, 1.5], "big": pa.array([2**60 + 1, None]), "t": pa.array([1, None]), "u": [0, 1]})
    parquet.write_table(table, tmp_path / "in.parquet")
    complete(tmp_path / "in.parquet", tmp_path / "out.csv", "t,u", [(1, "t")], drop="big")
    assert cells_of(tmp_path / "out.csv") == [
        ["x", "big", "t", "u"],
        ["0.5", str(2**60 + 1), "1", "0"],
        ["1.5", "", "1", "1"],
    ]


def test_a_source_that_changed_is_not_completed(tmp_path):
    (tmp_path / "a.csv").write_text("x,t\n1,0\n2,1\n3,0\n")
    table = read_training_table(tmp_path / "a.csv", "t")
    (tmp_path / "a.csv").write_text("x,t\n0,0\n1,0\n2,1\n3,0\n")
    with pytest.raises(TableError, match="was changed while"):
        write_completed(tmp_path / "out.csv", table.source, table.schema.labels, np.array([0]), ["t"])
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_the_encoding_is_kept(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes("größe,t\n1,0\n2,1\n3,0\n".encode(encoding))
    table = read_training_table(tmp_path / "a.csv", "t", encoding=encoding)
    write_completed(tmp_path / "out.csv", table.source, table.schema.labels, np.array([0]), ["t"])
    assert (tmp_path / "out.csv").read_text(encoding=encoding) == "größe,t\n1,1\n2,1\n3,0\n"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("order", ["be", "le"])
def test_the_order_of_bytes_is_kept(tmp_path, order, name):
    def encoded(text):
        content = f"\ufeff{text}".encode(f"utf-16-{order}")
        return gzip.compress(content, mtime=0) if name.endswith(".gz") else content

    (tmp_path / name).write_bytes(encoded("größe,t\n1,0\n2,1\n3,0\n"))
    table = read_training_table(tmp_path / name, "t")
    write_completed(tmp_path / f"out_{name}", table.source, table.schema.labels, np.array([0]), ["t"])
    written = (tmp_path / f"out_{name}").read_bytes()
    written = gzip.decompress(written) if name.endswith(".gz") else written
    assert written == "\ufeffgröße,t\n1,1\n2,1\n3,0\n".encode(f"utf-16-{order}")


def test_links_stay_and_devices_are_not_replaced(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "real.csv").chmod(0o640)
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    with TableWriter(tmp_path / "link.csv") as out:
        out.write(pd.DataFrame({"a": [1]}))
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "a\n1\n"
    assert (tmp_path / "real.csv").stat().st_mode & 0o777 == 0o640
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(OSError, match="not a regular file"), TableWriter(tmp_path / "pipe.csv") as out:
        out.write(pd.DataFrame({"a": [1]}))


# Spreadsheets

RISKY = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\r=x", "-", "=", "--1", "-1e"]
NUMBERS = ["-5", "+49", "-1.5e-3", "-inf", "0", ""]


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_text_is_no_formula_and_numbers_are_untouched(tmp_path, dtype):
    texts = [*RISKY, *NUMBERS, "plain", "'=old", " =x"]
    frame = pd.DataFrame({"=name": pd.Series(texts, dtype=dtype), "x": [-1.5] * len(texts), "-5": [True] * len(texts)})
    with TableWriter(tmp_path / "out.csv") as out:
        out.write(frame)
        out.write(frame)
    found = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert found.columns.tolist() == ["'=name", "x", "-5"]
    assert found["'=name"].tolist() == 2 * (["'" + text for text in RISKY] + texts[len(RISKY) :])
    assert set(found["x"]) == {"-1.5"}
    assert frame["=name"].tolist() == texts  # the table itself stays
    with TableWriter(tmp_path / "exact.csv", safe=False) as out:
        out.write(frame)
    assert pd.read_csv(tmp_path / "exact.csv", dtype=str, keep_default_na=False)["=name"].tolist() == texts


def test_missing_cells_stay_empty_where_text_is_made_safe(tmp_path):
    with TableWriter(tmp_path / "out.csv") as out:
        out.write(pd.DataFrame({"a": ["=1", None, float("nan")], "b": [1, 2, 3]}))
    assert (tmp_path / "out.csv").read_text() == "a,b\n'=1,1\n,2\n,3\n"


def test_a_completed_table_is_made_safe_if_asked(tmp_path):
    text = "id,=x,k,t\n=1+1,-1,@a,1\nb,-2,b,0\nc,-3,@a,0\nd,4,b,1\n"
    (tmp_path / "in.csv").write_text(text)
    table = read_training_table(tmp_path / "in.csv", "t")
    arguments = (table.source, table.schema.labels, np.array([1]), ["t"])
    write_completed(tmp_path / "same.csv", *arguments)
    assert (tmp_path / "same.csv").read_text() == text.replace("b,-2,b,0", "b,-2,b,1")
    write_completed(tmp_path / "safe.csv", *arguments, safe=True)
    expected = "id,'=x,k,t\n'=1+1,-1,'@a,1\nb,-2,b,1\nc,-3,'@a,0\nd,4,b,1\n"
    assert (tmp_path / "safe.csv").read_text() == expected
