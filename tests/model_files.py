"""Model files made by hand: right checksums around any content."""

import hashlib
import io
import json
import struct
import zipfile

import numpy as np

HEADER = struct.Struct("<8sIQ32s")


def sealed(payload, number=3):
    """An archive with a header that fits it."""
    return HEADER.pack(b"\x89sylvan\n", number, len(payload), hashlib.sha256(payload).digest()) + payload


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version=(1, 0), allow_pickle=True)
    return file.getvalue()


def zipped(entries, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "model.json" else method)
    return file.getvalue()


def forged(nodes, arrays=(), about=None):
    """A file of these nodes and arrays (or the bytes of `.npy` files)."""
    contents = [array if isinstance(array, bytes) else npy(array) for array in arrays]
    entries = [(f"arrays/{at}.npy", content) for at, content in enumerate(contents)]
    entries.append(("model.json", json.dumps({"about": about or {}, "nodes": nodes})))
    return sealed(zipped(entries))


def parts_of(data):
    """The document and the arrays of a file."""
    with zipfile.ZipFile(io.BytesIO(data[HEADER.size :])) as archive:
        document = json.loads(archive.read("model.json"))
        return document, [np.load(io.BytesIO(archive.read(entry))) for entry in archive.filelist[:-1]]
