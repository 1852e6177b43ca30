"""Damaged files: a clear error or a right reading comes out, and nothing else. All damage is the same in each run."""

import csv
import gzip
import hashlib
import io
import struct
import warnings

import numpy as np
import pandas as pd
import pytest

from app.cli.running import call, contents, error_of, make_songs
from sylvan.app.cli.steps import read_model
from sylvan.app.tables import TableError, read_training_table

TABLE = (
    'id,tempo,"the mode",remark,tag_a,tag_b\r\n'
    '007,1.5,minor,"x, ""y""",1,0\r\n'
    '008,,major,"two\nlines",0,yes\r\n'
    "009,-2e3,minor,é,no,?\r\n"
    "010,3.25,major,,1,1\r\n"
    "011,NA,minor,z,0,\r\n"
).encode()
ARFF = (
    b"% songs\n@relation 'songs: -C -2'\n@attribute tempo numeric\n@attribute 'the mode' {minor, 'very major'}\n"
    b"@attribute tag_a {0, 1}\n@attribute tag_b {0, 1}\n@data\n120, minor, 1, 0\n?, 'very major', 0, 1\n60.5, ?, 1, 1\n"
)
BYTES = np.frombuffer(b",;\t|\"'\n\r \x00\xff\xe9\xc3?01x.-e{}@%", dtype=np.uint8)


def damage(content, random):
    """The bytes after a mishap or two."""
    content = bytearray(content)
    for _ in range(random.integers(1, 3)):
        at = int(random.integers(0, len(content) + 1))
        many = int(random.integers(1, 9))
        kind = random.integers(0, 7)
        if kind == 0:
            del content[at : at + many]
        elif kind == 1:
            content[at:at] = random.choice(BYTES, many).tobytes()
        elif kind == 2 and at < len(content):
            content[at] ^= 1 << int(random.integers(0, 8))
        elif kind == 3:
            del content[at:]
        elif kind == 4:
            lines = bytes(content).split(b"\n")
            line = int(random.integers(0, len(lines)))
            lines[line:line] = [lines[int(random.integers(0, len(lines)))]]
            content = bytearray(b"\n".join(lines))
        elif kind == 5:
            content = content.replace(b",", bytes([random.choice([*b";\t| :"])]), int(random.integers(1, 40)))
        else:
            content[at : at + many] = random.integers(0, 256, many).astype(np.uint8).tobytes()
    return bytes(content)


def check(table):
    """What every table must be that was read."""
    X, Y = table.X.to_numpy(), np.asarray(table.Y)
    assert X.dtype == float
    assert not np.isinf(X).any()
    assert len(X) == len(Y) == len(table.source_rows)
    assert len(X) > 0
    if table.Y.ndim == 2:
        assert np.isin(Y[~pd.isna(Y)].astype(float), [0, 1]).all()
    assert table.X.index.is_unique


def read(path, **options):
    """Read a table, or return None if it is refused as it should be."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            table = read_training_table(path, **options)
        except TableError as error:
            text = str(error)
            assert text.strip()
            return None
    check(table)
    return table


@pytest.mark.parametrize("seed", range(8))
def test_damaged_text(tmp_path, seed):
    random = np.random.default_rng(seed)
    path = tmp_path / "table.csv"
    n_read = 0
    for _ in range(100):
        content = damage(TABLE, random)
        path.write_bytes(content)
        table = read(path, labels=["tag_*"], drop=["remark"])
        if table is None:
            read(path, labels=["2:3"], drop=["remark"], id="-")  # other ways through the reader
            read(path, labels=["-1:"], classes=True, encoding="latin-1")
            read(path, labels=["*remark"], separator=" ", encoding="latin-1")
            continue
        n_read += 1
        text = content.decode(table.source.encoding.replace("utf-8", "utf-8-sig"))
        lines = io.StringIO(text, newline="")
        for _ in range(table.source.skip):  # titles
            lines.readline()
        rows = [row for row in csv.reader(lines, delimiter=table.source.delimiter) if row]
        assert len(table.X) == len(rows) - 1
    assert n_read > 5  # not all damage is fatal


@pytest.mark.parametrize("seed", range(4))
def test_damaged_arff(tmp_path, seed):
    random = np.random.default_rng(seed)
    path = tmp_path / "table.arff"
    n_read = 0
    for _ in range(40):
        path.write_bytes(damage(ARFF, random))
        n_read += read(path) is not None
    assert n_read > 1


def test_damaged_gzip(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "table.csv.gz"
    content = gzip.compress(TABLE, mtime=0)
    for _ in range(80):
        path.write_bytes(damage(content, random))
        read(path, labels=["tag_*"], drop=["remark"])


def test_damaged_workbooks(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "table.xlsx"
    make_songs(20).to_excel(path, index=False)
    content = path.read_bytes()
    for at in range(150):
        damaged = bytearray(content)
        if at % 3 == 0:
            damaged = damaged[: int(random.integers(0, len(content)))]
        for _ in range(int(random.integers(1, 9))):
            if len(damaged):
                damaged[int(random.integers(0, len(damaged)))] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(damaged)
        read(path, labels=["tag_*"])


def test_damaged_parquet(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "table.parquet"
    make_songs(20).to_parquet(path)
    content = path.read_bytes()
    for _ in range(60):
        path.write_bytes(content[: int(random.integers(0, len(content)))])
        assert read(path, labels=["tag_*"]) is None
    for _ in range(60):
        flipped = bytearray(content)
        flipped[int(random.integers(0, len(content)))] ^= 1 << int(random.integers(0, 8))
        path.write_bytes(flipped)
        read(path, labels=["tag_*"])


@pytest.mark.parametrize("seed", range(2))
def test_damaged_tables_on_the_command_line(tmp_path, seed):
    random = np.random.default_rng(100 + seed)
    whole = make_songs(24).to_csv(index=False).encode()
    codes = []
    for _ in range(25):
        (tmp_path / "songs.csv").write_bytes(damage(whole, random))
        arguments = ("songs.csv", "-l", "tag_*", "-o", "out.csv", "--trees", "2", "--layers", "1", "--jobs", "1", "-q")
        found = call(tmp_path, "impute", *arguments)
        codes.append(found.returncode)
        if found.returncode:
            error_of(found)
        left = [path.name for path in contents(tmp_path)]
        assert left == (["songs.csv"] if found.returncode else ["out.csv", "songs.csv"])
        (tmp_path / "out.csv").unlink(missing_ok=True)
    assert set(codes) == {0, 2}


@pytest.mark.parametrize("seed", range(2))
def test_damaged_new_rows_on_the_command_line(songs, tmp_path, seed):
    random = np.random.default_rng(200 + seed)
    whole = songs.new.to_csv(index=False).encode()
    codes = []
    for _ in range(40):
        (tmp_path / "new.csv").write_bytes(damage(whole, random))
        found = call(tmp_path, "predict", songs.path, "new.csv", "-q")
        codes.append(found.returncode)
        if found.returncode:
            error_of(found)
        else:
            assert found.stdout.startswith("id,") or found.stdout.startswith("row,")
    assert set(codes) == {0, 2}


def test_damaged_models(songs, tmp_path):
    random = np.random.default_rng(0)
    whole = songs.path.read_bytes()
    path = tmp_path / "m.sylvan"
    for at in range(150):
        content = damage(whole, random)
        if content == whole:
            continue
        path.write_bytes(content)
        with pytest.raises(TableError, match=r"m\.sylvan"):
            read_model(path)
        if at % 10 == 0:
            error_of(call(tmp_path, "predict", "m.sylvan", songs.folder / "new.csv"))


def test_models_that_were_damaged_before_they_were_signed(songs, tmp_path):
    """The checksum fits, but what it is of makes no sense: refused, or read if the damage is in a number."""
    random = np.random.default_rng(0)
    mark, number, _, _ = struct.unpack("<8sIQ32s", songs.path.read_bytes()[:52])
    whole = songs.path.read_bytes()[52:]
    path = tmp_path / "m.sylvan"
    n_refused = 0
    for _ in range(60):
        content = damage(whole, random)
        path.write_bytes(
            struct.pack("<8sIQ32s", mark, number, len(content), hashlib.sha256(content).digest()) + content
        )
        n_refused += refusal_of(path)
    assert n_refused > 30


def refusal_of(path):
    """Whether a model is refused, as it should be if it is."""
    try:
        read_model(path)
    except TableError as error:
        return "m.sylvan" in str(error)
    return False
