"""Messy files are read at the first try, as they are meant; those that need a word say which one."""

import re

import numpy as np
import pytest

from app.tables.zoo import IDS, LABELS, N, zoo
from sylvan.app.tables import TableError, read_training_table, write_completed
from sylvan.app.tables.records import cell_spans
from sylvan.app.tables.text import Delimited

ZOO = zoo()
CLEAR = [name for name, animal in ZOO.items() if not animal.asks]


def test_nine_of_ten_need_no_word():
    assert len(ZOO) >= 60
    assert len(CLEAR) >= 0.9 * len(ZOO)


def check(table, animal):
    """The table as read is the table that was meant."""
    assert len(table.X) == N
    for name, values in animal.X.items():
        np.testing.assert_allclose(table.X[name], values, rtol=1e-9, err_msg=name)
    assert sorted(table.Y) == sorted(LABELS)
    np.testing.assert_array_equal(table.Y[LABELS].to_numpy(), animal.Y)
    if isinstance(animal.ids, list):
        assert table.X.index.tolist() == animal.ids
    known = {"depth", "lead", "soil", "taken", "remark", "id", "sample"}
    assert not [name for name in table.X if not any(name.startswith(each) for each in known)]  # no id, no index


@pytest.mark.parametrize("name", CLEAR)
def test_a_messy_file_is_read_as_it_is_meant(tmp_path, name):
    animal = ZOO[name]
    check(read_training_table(animal.write(tmp_path), animal.labels), animal)


@pytest.mark.parametrize("name", [name for name in ZOO if name not in CLEAR])
def test_advice_that_is_followed_works(tmp_path, name):
    animal = ZOO[name]
    path = animal.write(tmp_path)
    with pytest.raises(TableError) as found:
        read_training_table(path, animal.labels)
    said = dict(re.findall(r"(\w+)=('[^']*'|True|\.\.\.)", str(found.value)))
    assert animal.asks in said
    options = {animal.asks: said[animal.asks].strip("'")}
    if animal.asks == "missing":
        options["missing"] = [options["missing"]]
    elif animal.asks == "positive":
        options = {"positive": ["aye"], "negative": ["nay"]}
    elif animal.asks == "classes":
        options = {"classes": True}
    table = read_training_table(path, animal.labels, **options)
    assert len(table.X) == N


@pytest.mark.parametrize("name", [name for name in CLEAR if ZOO[name].writer is None])
def test_a_completed_file_is_the_old_one_but_for_what_was_suggested(tmp_path, name):
    """Separators, decimals, encoding, marks, line ends, quotes, words and lists stay, byte for byte."""
    animal = ZOO[name]
    path = animal.write(tmp_path)
    table = read_training_table(path, animal.labels)
    assert isinstance(table.source, Delimited)
    cells = [(row, label) for row in (1, 7, N - 1) for label in LABELS if not table.Y[label].iloc[row]]
    rows, labels = [table.source_rows[row] for row, _ in cells], [label for _, label in cells]
    out = tmp_path / f"out{animal.ending}"
    write_completed(out, table.source, table.schema.labels, rows, labels)
    encoding = animal.encoding if animal.encoding != "utf-8-sig" else "utf-8"
    before, after = (each.read_bytes().decode(encoding).split("\n") for each in (path, out))
    assert len(before) == len(after)
    first = 1 + animal.head.count("\n")
    for at, (old, new) in enumerate(zip(before, after)):
        if at - first not in rows:
            assert old == new
            continue
        parts = [[line[a:b] for a, b in cell_spans(line, animal.delimiter)] for line in (old, new)]
        assert len(parts[0]) == len(parts[1])
        changed = [name for name, a, b in zip(table.source.columns, *parts) if a != b]
        wanted = {label for row, label in cells if row == at - first}
        assert set(changed) == (wanted if table.schema.labels.kind == "bits" else {"seen"})
    again = read_training_table(out, animal.labels)
    expected = table.Y.copy()
    for row, label in cells:
        expected.iloc[row, expected.columns.get_loc(label)] = 1
    np.testing.assert_array_equal(again.Y[LABELS].to_numpy(), expected[LABELS].to_numpy())
    np.testing.assert_array_equal(again.X.to_numpy(), table.X.to_numpy())


def test_ids_are_those_of_the_file():
    assert ZOO["sample_id"].ids == IDS
