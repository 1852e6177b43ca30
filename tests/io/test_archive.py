"""Archives: nothing is read or allocated that was not sized up."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import sylvan
from model_files import HEADER, forged, npy, parts_of, sealed, zipped
from sylvan.exceptions import ModelFileError
from sylvan.forests import RandomForest
from sylvan.io import archive

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, :3] > 0).astype(int)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    model = RandomForest(3, random_state=0).fit(X, Y)
    return model.save(tmp_path_factory.mktemp("stored") / "model.sylvan").read_bytes()


def refused(tmp_path, data, match="is not a model file of sylvan|cannot be read by this version"):
    path = tmp_path / "model.sylvan"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=match):
        sylvan.load(path)


def entries_of(data):
    with zipfile.ZipFile(io.BytesIO(data[HEADER.size :])) as file:
        return [(entry.filename, file.read(entry)) for entry in file.filelist]


def test_the_same_entries_make_the_same_model(tmp_path, stored):
    """The helpers of these tests change nothing by themselves."""
    path = tmp_path / "model.sylvan"
    path.write_bytes(sealed(zipped(entries_of(stored))))
    document, arrays = parts_of(stored)
    again = sylvan.load(path)
    path.write_bytes(forged(document["nodes"], arrays))
    np.testing.assert_array_equal(sylvan.load(path).predict_proba(X), again.predict_proba(X))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_are_arrays_and_a_model(tmp_path, stored):
    entries = entries_of(stored)
    for wrong in (
        entries[:-1],
        entries[1:],
        [entries[-1], *entries[:-1]],
        [*entries, ("more", b"")],
        [*entries, entries[-1]],
        [entries[0], *entries],
        [("../" + entries[0][0], entries[0][1]), *entries[1:]],
        [],
    ):
        refused(tmp_path, sealed(zipped(wrong)), "is not a model file of sylvan")
    refused(tmp_path, sealed(b""), "it has no archive")
    refused(tmp_path, sealed(zipped(entries, zipfile.ZIP_BZIP2)), "packed in another way")


def test_the_document_is_plain(tmp_path):
    for text in (b"", b"[]", b"5", b'{"about": {}}', b'{"about": [], "nodes": []}', b'{"about": {}, "nodes": {}}'):
        refused(tmp_path, sealed(zipped([("model.json", text)])), "is not a model file of sylvan")
    refused(tmp_path, sealed(zipped([("model.json", b"[" * 10**5)])), "is not a model file of sylvan")
    refused(tmp_path, sealed(zipped([("model.json", b'{"about": {"a": NaN}, "nodes": []}')])), "NaN is not a number")
    refused(tmp_path, forged([]), "it holds nothing")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("model.json", json.dumps({"about": {"a": " " * 10**6}, "nodes": []}))
    refused(tmp_path, sealed(file.getvalue()), "its model is packed or too large")


def lying(text, size=8):
    header = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(size)


@pytest.mark.parametrize(
    "content",
    [
        lying("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        lying("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"),
        lying("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 99999999999), }"),
        lying("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }"),
        lying("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"),
        lying("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
        lying("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }"),
        lying("{'descr': '<i8', 'fortran_order': __import__('os').abort(), 'shape': (1,), }"),
        lying("{'descr': '<i8', 'fortran_order': False, 'shape': (" + "1, " * 20 + "), }"),
        lying("(" * 110),
        b"\x93NUMPY\x02\x00" + npy([1])[8:],
        npy([1])[:-1],
        npy([1]) + b"\x00",
        npy(np.array([{"a": 1}], dtype=object)),
        npy(np.array([2], np.uint8)).replace(b"'|u1'", b"'|b1'"),
        npy(np.array([0x110000], np.uint32)).replace(b"'<u4'", b"'<U1'"),
        b"",
    ],
)
def test_arrays_are_plain_and_as_large_as_they_say(tmp_path, content):
    nodes = [{"is": "array", "array": 0, "writeable": True}]
    refused(tmp_path, forged(nodes, [content]), "cannot be read by this version of sylvan")


def test_small_files_do_not_become_large(tmp_path):
    """A file of 0.4 MB that would take 400 MB."""
    content = npy(np.zeros(10, np.uint8)).replace(b"(10,)", b"(400000000,)").replace(b"           \n", b"   \n", 1)
    header, size = content[:-10], 400_000_000
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        with packed.open("arrays/0.npy", "w", force_zip64=True) as entry:
            entry.write(header)
            for _ in range(size // 10**6):
                entry.write(bytes(10**6))
        packed.writestr("model.json", b'{"about": {}, "nodes": []}', zipfile.ZIP_STORED)
    assert len(file.getvalue()) < 500_000
    refused(tmp_path, sealed(file.getvalue()), "too many for a file of")


def test_a_directory_may_not_be_huge(tmp_path, monkeypatch, stored):
    monkeypatch.setattr(archive, "_MOST_DIRECTORY", 100)
    refused(tmp_path, stored, "too large a directory")


def test_models_that_pack_well_are_stored_so_that_they_can_be_read(tmp_path, monkeypatch):
    """Where packing would break the rule of sizes, arrays are stored as they are."""
    model = RandomForest(30, random_state=0).fit(X, Y)
    packed = model.save(tmp_path / "a.sylvan").stat().st_size
    monkeypatch.setattr(archive, "_FREE", 0)
    monkeypatch.setattr(archive, "_MOST_PACKED", 1)
    assert model.save(tmp_path / "b.sylvan").stat().st_size > packed
    np.testing.assert_array_equal(sylvan.load(tmp_path / "b.sylvan").predict_proba(X), model.predict_proba(X))


def test_too_many_parts_are_refused_when_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_MOST_JSON", 1000)
    with pytest.raises(ValueError, match="too many parts for a model file"):
        RandomForest(3).fit(X, Y).save(tmp_path / "model.sylvan")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_loading_takes_little_more_than_the_arrays(tmp_path):
    """In a process of its own; the arrays are mostly noise, so that they do not pack."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 5))
    model = RandomForest(60, n_jobs=2, random_state=0).fit(rows, rng.integers(0, 2, size=(20_000, 6)))
    path = model.save(tmp_path / "model.sylvan")
    code = (
        "import sylvan, sylvan.forests\n"
        "peak = lambda: next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        f"sylvan.load({str(tmp_path / 'small.sylvan')!r})\n"
        "before = peak()\n"
        f"model = sylvan.load({str(path)!r})\n"
        "print((peak() - before) * 1024)\n"
    )
    RandomForest(2, random_state=0).fit(X, Y).save(tmp_path / "small.sylvan")  # compiles what is needed
    grown = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    assert grown < 4 * model.nbytes
