"""Model files that were tampered with: does any of them do harm?

Files of all kinds of models are changed in thousands of ways, given a right checksum, and handed to a process of their
own, which loads them and uses what comes back. Allowed are a `ModelFileError`, or a model whose predictions are finite
and in range. Signals, hangs, other errors, and wild predictions are counted and listed.

    python benchmarks/fuzz_model_files.py --files 20000 --seed 0
"""

import argparse
import hashlib
import io
import json
import multiprocessing
import random
import resource
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

HEADER = struct.Struct("<8sIQ32s")
SECONDS = 20.0  # for one file
MEMORY = 6 << 30  # address space of the process
N, D, L = 70, 6, 3
BAD = ("signal", "hang", "error on load", "error in use", "wild prediction", "memory")


# ------------------------------------------------------------------------------------------------ models


def make_data() -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    """Return features, labels of which some are missing, and classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).round(2)
    truth = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0, X[:, 3] > 0.5])
    Y = pd.DataFrame((truth & (rng.random(truth.shape) < 0.7)).astype(int), columns=["a", "b", "c"])
    return X, Y, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def make_models() -> dict[str, Any]:
    """Return small fitted models of all kinds: each algorithm, the forests, weights, pairs, windows."""
    import sylvan
    from sylvan.cascade.augment import Interactions
    from sylvan.cascade.length import FixedLength
    from sylvan.cascade.scanning import MultiGrainedScanning
    from sylvan.forests import (
        CompletelyRandomForest,
        ExtraTrees,
        KFold,
        OutOfBag,
        RandomForest,
        WeightedForest,
    )
    from sylvan.pairs import draw_pairs

    X, Y, y = make_data()
    made = {}
    for name in sylvan.ALGORITHMS:
        options: dict[str, Any] = {"max_layers": 2, "random_state": 0, "length": FixedLength()}
        if name == "mldf":
            options |= {"n_trees_max": 4, "n_folds": 2}
        elif name == "imldf":
            options |= {"score_folds": None, "max_layers": 3}
        made[name] = getattr(sylvan, name)(n_trees=3, **options).fit(X, Y)
    made["auto, no findings"] = made["auto"]
    rules = Interactions(4, labels="svd", n_bootstraps=2, min_support=2)
    made["imldf, svd"] = sylvan.imldf(
        3, max_layers=2, augment=rules, length=FixedLength(), score_folds=None, random_state=0
    ).fit(X, Y)
    rules = Interactions(4, labels="full", score="importance", n_bootstraps=2, min_support=2)
    made["imldf, full"] = sylvan.imldf(
        3, max_layers=3, augment=rules, length=FixedLength(), score_folds=None, random_state=0
    ).fit(X, Y)
    rows = [f"row {i}" for i in range(N)]
    table = pd.DataFrame(X, columns=[f"f{j}" for j in range(D)], index=rows)
    made["cafe_os, names"] = sylvan.cafe_os(
        3, max_layers=2, separate_forests=True, length=FixedLength(), random_state=0
    ).fit(table, Y.set_axis(rows))
    made["rf"] = RandomForest(3, random_state=np.random.RandomState(0), out_of_sample=KFold(2)).fit(X, Y)
    made["et, classes"] = ExtraTrees(3, random_state=0).fit(X, y)
    made["crf, weights"] = CompletelyRandomForest(3, bootstrap=True, out_of_sample=OutOfBag(), random_state=0).fit(
        X, y > 0, sample_weight=np.linspace(0, 1, N)
    )
    made["weighted"] = WeightedForest(RandomForest(4, out_of_sample=KFold(2)), lam=0.001, random_state=0).fit(X, y > 0)
    pairs, similar = draw_pairs(y, 40, random_state=0)
    made["siamese"] = sylvan.SiameseDeepForest(
        2, n_folds=2, max_layers=2, lam="auto", lambda_decay=2.0, preprocessor=X, random_state=0
    ).fit(pairs, similar)
    made["siamese, classes"] = sylvan.SiameseDeepForest(2, n_folds=2, preprocessor=X, random_state=0).fit_from_labels(
        X, y, 40
    )
    made["siamese, sparse"] = sylvan.SiameseDeepForest(
        2, n_folds=2, max_layers=1, preprocessor=sparse.csr_array(X), pair_features="difference", random_state=0
    ).fit(pairs, similar)
    made["gcforest, windows"] = sylvan.gcforest(
        2, n_folds=2, scanning=MultiGrainedScanning(D, windows=[2, 3], grain_cycle=True, n_trees=2), max_layers=2,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    made["windows"] = MultiGrainedScanning((2, 3), windows=[2], n_trees=2, passthrough=True, random_state=0).fit(X, y)
    return made


def use(model: Any) -> None:
    """Use a loaded model in all ways that its kind has; raise AssertionError if an answer is wild."""
    from sklearn.base import clone

    X, Y, _ = make_data()
    repr(model)
    clone(model)
    if hasattr(model, "pair_distance"):
        _in_range(model.pair_distance(np.stack([X[:5], X[5:10]], axis=1)))
        model.pair_distance([[0, 1], [2, 3]])
        return
    if not hasattr(model, "predict_proba"):
        assert np.isfinite(model.transform(X)).all()
        return
    _in_range(model.predict_proba(X))
    model.predict(X[:3])
    if hasattr(model, "tree_proba"):
        _in_range(model.tree_proba(X))
        model.apply(X)
        for tree in model.trees_:
            assert np.isfinite(tree.value.data).all()
        if hasattr(model, "bag_counts"):
            model.bag_counts()
            model.held_rows()
            model.decision_path(X[:5])
        return
    model.transform(X[:5])
    model.feature_importances_.sum()
    model.get_feature_names_out()
    if hasattr(model, "labels_"):  # it was stored with findings
        model.suggest_labels(top=5)
        _in_range(model.oos_proba_)
        model.imputed_labels_.sum()
        str(model.summary())
    if not isinstance(model.classes_, np.ndarray):
        model.complete(X, Y.to_numpy())
    if hasattr(model, "explain"):
        rules = model.interactions_
        model.explain(X[:5])
        if len(rules):
            model.expand_interaction(rules.index[-1])


def _in_range(proba: np.ndarray) -> None:
    assert np.isfinite(proba).all(), "not finite"
    assert proba.min() >= -1e-6, "below 0"
    assert proba.max() <= 1 + 1e-6, "above 1"


# ------------------------------------------------------------------------------------------------ mutations


class Parts:
    """A model file taken apart: its document, and its arrays as bytes of `.npy` files."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data[HEADER.size :])) as archive:
            self.document = json.loads(archive.read("model.json"))
            self.arrays = [archive.read(entry) for entry in archive.filelist[:-1]]

    def array(self, at: int) -> np.ndarray:
        """Return an array, to be changed."""
        return np.array(np.load(io.BytesIO(self.arrays[at])))

    def put(self, at: int, value: np.ndarray) -> None:
        """Put an array back."""
        file = io.BytesIO()
        np.lib.format.write_array(file, value, version=(1, 0))
        self.arrays[at] = file.getvalue()

    def pack(self) -> bytes:
        """Put the file together."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for at, data in enumerate(self.arrays):
                archive.writestr(f"arrays/{at}.npy", data)
            archive.writestr("model.json", json.dumps(self.document))
        return sealed(file.getvalue())


def sealed(payload: bytes, number: int = 3) -> bytes:
    """Return an archive with a header whose checksum is right."""
    return HEADER.pack(b"\x89sylvan\n", number, len(payload), hashlib.sha256(payload).digest()) + payload


WILD = [
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 65536, 2**31 - 1, -(2**31), 2**62, 2**64, 10**30, 0.0, -0.5, 0.5, 1.5,
    1e-300, 1e308, "", "none", "full", "row", "multilabel", "multiclass", "binary", "scaled", "batch", "importance",
    "sylvan.io:load", [], {}, [0], {"float": "nan"}, {"float": "-inf"}, {"float": "1"}, {"node": -1}, {"node": 10**9},
    {"node": "0"}, {"node": True}, "a\ud800",
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 3, 5, 127, 255, 256, 65535, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63)]
FLOATS = [0.0, -1.0, 1.0, 2.0, 0.5, np.nan, np.inf, -np.inf, 1e-40, 1e30, 1e308, -1e308]
TYPES = ["<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "<f8", "<f4", "<f2", "|b1", "<U3", ">i8", "<c16"]


TREE_ARRAYS = ["packed_child"] * 3 + ["column"] * 3 + ["label", "label", "n_nodes", "n_values", "share", "cut", "cut"]


def change_elements(parts: Parts, rng: random.Random) -> None:
    """Set a few elements to wild values."""
    at = rng.randrange(len(parts.arrays))
    array = parts.array(at)
    flat = array.reshape(-1)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if not flat.size:
            return
        i = rng.randrange(flat.size)
        if array.dtype.kind == "f":
            flat[i] = rng.choice([*FLOATS, float(flat[rng.randrange(flat.size)]), float(flat[i]) * 1.01])
        elif array.dtype.kind in "iu":
            value = rng.choice([*NUMBERS, int(flat[i]) + 1, int(flat[i]) - 1, flat.size, int(flat.max()) + 1])
            flat[i] = np.array([value % 2**64], np.uint64).astype(array.dtype)[0]
        elif array.dtype.kind == "b":
            flat.view(np.uint8)[i] = rng.choice([0, 1, 2, 255])
        else:
            raw = array.reshape(-1).view(np.uint8)
            raw[rng.randrange(len(raw))] = rng.randrange(256)
    parts.put(at, array)


def rearrange(parts: Parts, rng: random.Random) -> None:
    """Cut, lengthen, turn, shuffle or retype an array."""
    at = rng.randrange(len(parts.arrays))
    array = parts.array(at)
    kind = rng.randrange(14)
    with np.errstate(all="ignore"):
        if kind == 0:
            array = array[: rng.randrange(len(array) + 1)] if array.ndim else array
        elif kind == 1:
            array = np.concatenate([array, array[: rng.randrange(1, 4)]]) if array.ndim else array
        elif kind == 2:
            array = array[:0] if array.ndim else array
        elif kind == 3:
            array = np.tile(array, 2)
        elif kind == 4:
            array = array[::-1].copy() if array.ndim else array
        elif kind == 5:
            np.random.default_rng(rng.randrange(2**32)).shuffle(array.reshape(-1))
        elif kind == 6:
            array = array.reshape(-1, 1) if array.ndim == 1 else array.reshape(-1)
        elif kind == 7:
            array = np.asfortranarray(array.T)
        elif kind in (8, 9):
            try:
                array = array.astype(rng.choice(TYPES))
            except (TypeError, ValueError):
                return
        elif kind == 10:
            array = np.full_like(array, array.reshape(-1)[0]) if array.size else array
        elif kind == 11:
            array = np.zeros_like(array)
        elif kind == 12:
            array = np.sort(array, axis=None).reshape(array.shape)
        else:
            array = np.array(rng.choice([0, 1.5, -1]))
    parts.put(at, array)


def swap_arrays(parts: Parts, rng: random.Random) -> None:
    """Let two arrays change places, or one stand for another."""
    a, b = (rng.randrange(len(parts.arrays)) for _ in range(2))
    first, second = parts.arrays[a], parts.arrays[b]
    parts.arrays[a], parts.arrays[b] = second, first if rng.random() < 0.6 else second


def lie_in_header(parts: Parts, rng: random.Random) -> None:
    """Change the header of an array alone."""
    at = rng.randrange(len(parts.arrays))
    data = parts.arrays[at]
    size = int.from_bytes(data[8:10], "little")
    text = data[10 : 10 + size].decode("latin-1")
    shape = text[text.index("(") : text.index(")") + 1]
    lies = [
        (shape, f"({10 ** rng.randrange(3, 18)},)"), (shape, f"({2**40}, {2**30})"), (shape, "(-1,)"),
        (shape, "(3, 2)"), (shape, "(0, 9999999999999)"), (shape, "()"), (shape, "(" + "1, " * 70 + ")"), ("'<", "'>"),
        ("'descr'", "'deskr'"), ("False", "True"), ("'<i8'", "'|O'"), ("'<f8'", "[('a', '<f8')]"), ("'<f8'", "'<f4'"),
        ("'<i4'", "'<U1'"), ("False", "__import__('os').abort()"), (text, "(" * 500), (text, "9" * 900),
        (text, "\x00" * 60), (shape, "(2**9,)"),
    ]  # fmt: skip
    text = text.replace(*rng.choice(lies))
    header = text.encode("latin-1")
    version = rng.choice([b"\x01\x00"] * 4 + [b"\x02\x00", b"\x09\x00"])
    length = len(header) if rng.random() < 0.8 else rng.randrange(2**16)
    parts.arrays[at] = data[:6] + version + length.to_bytes(2, "little") + header + data[10 + size :]


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """List all places of a JSON value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        _places(value[key], found)
    return found


def change_json(parts: Parts, rng: random.Random) -> None:
    """Set a place of the document to something wild, or to what stands at another place."""
    for _ in range(rng.choice([1, 1, 1, 2])):
        places = _places(parts.document["nodes"], [])
        holder, key = rng.choice(places)
        old = holder[key]
        other = rng.choice(places)
        choice = rng.random()
        if choice < 0.5:
            holder[key] = deepcopy(rng.choice(WILD))
        elif choice < 0.7 and type(old) is int:
            holder[key] = rng.choice([old + 1, old - 1, -old, old * 2, *NUMBERS])
        elif choice < 0.85:
            holder[key] = deepcopy(other[0][other[1]])
        elif isinstance(holder, list) and choice < 0.93:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, deepcopy(old))
        else:
            del holder[key]


def change_scalars(parts: Parts, rng: random.Random) -> None:
    """Change a plain value of an object: fields are where harm would be."""
    fields = [(field, 1) for node in parts.document["nodes"] for field in node.get("state", ())]
    fields += [(node["items"], at) for node in parts.document["nodes"] for at in range(len(node.get("items", ())))]
    holder, key = rng.choice(fields)
    old = holder[key]
    if type(old) is int and rng.random() < 0.7:
        holder[key] = rng.choice([old + 1, old - 1, old * 2, 0, -1, 2**31, 2**62])
    else:
        holder[key] = deepcopy(rng.choice(WILD))


def change_reference(parts: Parts, rng: random.Random) -> None:
    """Let a part refer to another node, before or behind it."""
    places = [at for at in _places(parts.document["nodes"], []) if at[1] == "node"]
    for _ in range(rng.choice([1, 1, 2])):
        holder, key = rng.choice(places)
        near = holder[key] + rng.choice([-2, -1, 1, 2])
        holder[key] = near if rng.random() < 0.4 else rng.randrange(len(parts.document["nodes"]))


def change_fields(parts: Parts, rng: random.Random) -> None:
    """Rename, drop, repeat or exchange the fields of an object; or change its class."""
    objects = [node for node in parts.document["nodes"] if node["is"] == "object"]
    node = rng.choice(objects)
    if rng.random() < 0.25:
        names = [*{other["class"] for other in objects}, "RandomForest", "WeightedForest", "Union", "NoFeatures", "Bag"]
        node["class"] = rng.choice([*names, "os:system", "sylvan.io:load", "", 5, None, "Known", "x" * 10000])
        return
    state = node.get("state") or node.get("items")
    if not state:
        return
    a, b = (rng.randrange(len(state)) for _ in range(2))
    kind = rng.randrange(4)
    if kind == 0:
        del state[a]
    elif kind == 1:
        state.append(deepcopy(state[a]))
    elif kind == 2 and "state" in node:
        state[a][1], state[b][1] = state[b][1], state[a][1]
    elif "state" in node:
        names = ["__class__", "__dict__", "_check_stored", "predict_proba", "trees_", "x", "", state[b][0]]
        state[a][0] = rng.choice(names)
    else:
        state[a], state[b] = state[b], state[a]


def change_everywhere(parts: Parts, rng: random.Random) -> None:
    """Change a number wherever it stands, so that fields still fit each other, and arrays do not."""
    places = [at for at in _places(parts.document["nodes"], []) if at[1] != "node" and type(at[0][at[1]]) is int]
    holder, key = rng.choice(places)
    old = holder[key]
    new = rng.choice([old + 1, max(old - 1, 0), 2 * old, 10**6, 2**31])
    for where, at in places:
        if where[at] == old and type(where[at]) is int and where[at] is not True:
            where[at] = new


def resize_together(parts: Parts, rng: random.Random) -> None:
    """Cut or lengthen all arrays of one length alike."""
    arrays = [parts.array(at) for at in range(len(parts.arrays))]
    lengths = [len(array) for array in arrays if array.ndim and len(array)]
    length = rng.choice(lengths)
    for at, array in enumerate(arrays):
        if array.ndim and len(array) == length:
            parts.put(at, array[:-1] if length % 2 else np.concatenate([array, array[-1:]]))


def change_trees(parts: Parts, rng: random.Random) -> None:
    """Change what a kernel walks along: children, features, leaves, labels."""
    nodes = parts.document["nodes"]
    trees = rng.choice([node for node in nodes if node.get("class") == "TreeArrays"])
    for _ in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(TREE_ARRAYS)
        at = nodes[dict(trees["state"])[name]["node"]]["array"]
        array = parts.array(at)
        if not array.size:
            continue
        i, j = rng.randrange(array.size), rng.randrange(array.size)
        kind = rng.randrange(4)
        if kind == 0:
            array[i], array[j] = array[j], array[i]
        elif kind == 1:
            array[i] = array[j]
        elif array.dtype.kind == "f":
            array[i] = rng.choice(FLOATS)
        else:
            low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
            array[i] = min(max(rng.choice([int(array[i]) + rng.choice([-2, -1, 1, 2]), *NUMBERS]), low), high)
        parts.put(at, array)


def nest(parts: Parts, rng: random.Random) -> None:
    """Put lists into lists, deep or so that there are very many."""
    nodes = parts.document["nodes"]
    first = len(nodes)
    root = nodes.pop()
    nodes.append({"is": rng.choice(["list", "tuple"]), "items": []})
    for _ in range(rng.choice([20, 100, 1000, 5000])):
        nodes.append({"is": rng.choice(["list", "tuple"]), "items": [{"node": len(nodes) - 1}] * rng.choice([1, 2, 3])})
    if "state" in root:
        rng.choice(root["state"])[1] = {"node": len(nodes) - 1}
    nodes.append(root)
    assert first <= len(nodes)


MUTATIONS: list[Callable[[Parts, random.Random], None]] = [
    *3 * [change_elements, change_trees],
    *2 * [rearrange, change_json, change_scalars],
    *(swap_arrays, lie_in_header, change_reference, change_fields, change_everywhere, resize_together, nest),
]


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Change bytes of the archive, and make the checksum right again."""
    payload = bytearray(data[HEADER.size :])
    kind = rng.randrange(6)
    at = rng.choice([rng.randrange(len(payload)), len(payload) - 1 - rng.randrange(min(len(payload), 4000))])
    if kind < 2:
        for _ in range(rng.choice([1, 4, 30])):
            payload[min(max(at + rng.randrange(-40, 40), 0), len(payload) - 1)] = rng.randrange(256)
    elif kind == 2:
        del payload[at:]
    elif kind == 3:
        payload[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40)))
    elif kind == 4:
        payload[at : at + 8] = rng.choice([b"\xff" * 8, b"\x00" * 8, b"PK\x01\x02PK\x05"])
    else:
        payload = payload[at:] + payload[:at]
    return sealed(bytes(payload), rng.choice([2] * 20 + [0, 1, 3, 2**32 - 1]))


def change_archive(data: bytes, rng: random.Random) -> bytes:
    """Write another archive of the same entries: repeated, renamed, missing, packed, or far too large."""
    parts = Parts(data)
    entries = [(f"arrays/{at}.npy", value) for at, value in enumerate(parts.arrays)]
    entries.append(("model.json", json.dumps(parts.document).encode()))
    kind, method, level = rng.randrange(9), zipfile.ZIP_DEFLATED, 9
    at = rng.randrange(len(entries))
    if kind == 0:
        entries.insert(at, rng.choice(entries))
    elif kind == 1:
        entries[at] = (rng.choice(["../x", "/etc/x", "arrays/00.npy", "x", "model.json"]), entries[at][1])
    elif kind == 2:
        del entries[at]
    elif kind == 3:
        rng.shuffle(entries)
    elif kind == 4:
        entries[at] = (entries[at][0], b"")
    elif kind == 5:
        method = rng.choice([zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    elif kind == 6:
        entries += [(f"arrays/{k}.npy", b"") for k in range(len(entries) - 1, rng.choice([200, 5000]))]
    elif kind == 7:
        entries[-1] = ("model.json", b"[" * rng.choice([100, 10**6]))
    else:  # a bomb: an array of zeros where another was
        size = rng.choice([10**6, 3 * 10**7, 3 * 10**8])
        file = io.BytesIO()
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (size,)})
        entries[min(at, len(entries) - 2)] = (f"arrays/{min(at, len(entries) - 2)}.npy", file.getvalue() + bytes(size))
    target = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(target, "w") as archive:
            for name, content in entries:
                how = method if name != "model.json" or kind == 5 else zipfile.ZIP_STORED
                archive.writestr(name, content, how, None if how == zipfile.ZIP_LZMA else level)
    return sealed(target.getvalue())


def mutant(data: bytes, seed: str) -> tuple[str, bytes]:
    """Return the name of a mutation and the file it makes."""
    np.seterr(all="ignore")
    rng = random.Random(seed)
    choice = rng.random()
    if choice < 0.08:
        return "change_bytes", change_bytes(data, rng)
    if choice < 0.12:
        return "change_archive", change_archive(data, rng)
    parts = Parts(data)
    mutation = rng.choice(MUTATIONS)
    mutation(parts, rng)
    if rng.random() < 0.15:
        with suppress(Exception):  # what the first left may be too wild for the second
            rng.choice(MUTATIONS)(parts, rng)
    return mutation.__name__, parts.pack()


# ------------------------------------------------------------------------------------------------ the process


def suffer(pipe: Any) -> None:
    """Load and use the files that come through a pipe, and send back what happened."""
    import sylvan
    from sylvan.exceptions import ModelFileError

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.sylvan")
        while (data := pipe.recv_bytes()) != b"":
            path.write_bytes(data)
            before = _forget_peak()
            loading = True
            try:
                model = sylvan.load(path)
                loading = False
                use(model)
                outcome, said = "harmless", ""
            except ModelFileError as error:
                outcome, said = "refused", str(error)
            except AssertionError as error:
                outcome, said = "wild prediction", repr(error)
            except BaseException as error:
                outcome, said = "error on load" if loading else "error in use", f"{type(error).__name__}: {error}"
            pipe.send((outcome, said[:300], max(0, _peak() - before)))
            model = None


def _forget_peak() -> int:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    """Return the most memory since it was last forgotten, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


class Sufferer:
    """A process that is started again whenever it dies or hangs."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self.start()

    def start(self) -> None:
        """Start the process."""
        self.pipe, other = self.context.Pipe()
        self.process = self.context.Process(target=suffer, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def ask(self, data: bytes, seconds: float = SECONDS) -> tuple[str, str, int]:
        """Return what happens to a file, what was said, and the memory that it took."""
        try:
            self.pipe.send_bytes(data)
            if self.pipe.poll(seconds):
                return self.pipe.recv()
            outcome = "hang", f"no answer in {seconds:g} s", 0
            self.process.kill()
            self.process.join()
        except (EOFError, OSError):
            self.process.join()
            outcome = "signal", f"exit code {self.process.exitcode}", 0
        self.start()
        return outcome

    def stop(self) -> None:
        """End the process."""
        self.pipe.send_bytes(b"")
        self.process.join(10)


def run(n_files: int, seed: int, say: Callable[[str], None] = print) -> tuple[Counter, list[str]]:
    """Try so many files; return the outcomes by mutation, and a line for each that is bad."""
    from sylvan.io import save

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.sylvan")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stored = {
                name: save(model, path, findings="no findings" not in name).read_bytes()
                for name, model in make_models().items()
            }
    sufferer = Sufferer()
    counts: Counter = Counter()
    bad, began, most = [], time.perf_counter(), 0
    for name, data in stored.items():
        outcome, said, _ = sufferer.ask(data, 300.0)  # kernels are compiled
        assert outcome == "harmless", (name, outcome, said)
    names = list(stored)
    for number in range(n_files):
        name = names[number % len(names)]
        mutation, data = mutant(stored[name], f"{seed} {number}")
        outcome, said, memory = sufferer.ask(data)
        most = max(most, memory)
        if memory > (256 << 20) + 4 * len(data):
            outcome, said = "memory", f"{memory >> 20} MB for a file of {len(data)} bytes; {outcome}: {said}"
        counts[mutation, outcome] += 1
        if outcome in BAD:
            bad.append(f"{number} {name}, {mutation}: {outcome}: {said}")
            say(bad[-1])
        if number % 1000 == 999:
            say(f"{number + 1} files, {time.perf_counter() - began:.0f} s, peak {most >> 20} MB")
    sufferer.stop()
    counts["peak memory in MB", "harmless"] = most >> 20
    return counts, bad


def table(counts: Counter) -> pd.DataFrame:
    """Return outcomes by mutation."""
    plain = {key: value for key, value in counts.items() if not key[0].startswith("peak")}
    found = pd.Series(plain).unstack(fill_value=0)
    found = found.reindex(columns=["refused", "harmless", *BAD], fill_value=0)
    found.loc["all"] = found.sum()
    return found


def main() -> int:
    """Run the programme."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, bad = run(options.files, options.seed, lambda line: print(line, flush=True))
    print(table(counts).to_string())
    print(f"peak memory beyond that before the file: {counts['peak memory in MB', 'harmless']} MB")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
