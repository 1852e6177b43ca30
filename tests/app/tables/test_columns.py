"""Columns chosen by names, patterns, ranges and positions."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples
from sylvan.app.tables import TableError, choose_columns

COLUMNS = ["id", "age", "tag_a", "tag_b", "Tag_c", "note, long", "label:x", "q[1]"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("age", ["age"]),
        (" age ", ["age"]),
        ("tag_*", ["tag_a", "tag_b"]),
        ("?ag_?", ["tag_a", "tag_b", "Tag_c"]),
        ("tag_[ab]", ["tag_a", "tag_b"]),
        ("age:tag_b", ["age", "tag_a", "tag_b"]),
        ("tag_b,age", ["age", "tag_b"]),  # in the order of the file
        (["tag_b", "age,id"], ["id", "age", "tag_b"]),
        ("note, long", ["note, long"]),  # a name with a comma is a name
        ("label:x", ["label:x"]),  # one with a colon, too
        ("Tag_c:label:x", ["Tag_c", "note, long", "label:x"]),
        ("q[1]", ["q[1]"]),  # and one with brackets
        ("2:3", ["age", "tag_a"]),
        ("2:2", ["age"]),
        ("7:", ["label:x", "q[1]"]),
        (":2", ["id", "age"]),
        ("-2:", ["label:x", "q[1]"]),
        ("-3:-2", ["note, long", "label:x"]),
        ("tag_*,tag_a", ["tag_a", "tag_b"]),
        ("", []),
        ([], []),
    ],
)
def test_columns_are_chosen(patterns, expected):
    assert choose_columns(COLUMNS, patterns) == expected


def test_a_name_goes_before_a_position():
    assert choose_columns(["b", "1:2", "c"], "1:2") == ["1:2"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("TAG_A", "labels='TAG_A' matches no column; did you mean 'tag_a'"),
        ("tags_*", "labels='tags_*' matches no column; did you mean 'tag_b', 'tag_a'"),
        ("agee", "did you mean 'age'?"),
        ("zzz", "matches no column; the columns are 'id', 'age', 'tag_a', 'tag_b', 'Tag_c', 'note, long', 'label:x', "),
        ("tag_b:age", "matches no column"),  # the wrong way round
        ("0:3", "matches no column"),
        ("5:99", "matches no column"),
        ("-99:", "matches no column"),
        ("age,nothing", "labels='nothing' matches no column"),
        (":", "matches no column"),
    ],
)  # fmt: skip
def test_what_matches_nothing_is_refused(pattern, message):
    with pytest.raises(TableError) as found:
        choose_columns(COLUMNS, pattern)
    assert message in str(found.value)


def test_the_option_is_named():
    with pytest.raises(TableError, match="drop='x' matches no column"):
        choose_columns(["a"], "x", "drop")


NAMES = st.lists(st.text("abc_", min_size=1, max_size=4), min_size=1, max_size=8, unique=True)


@given(NAMES, st.text("abc_*?", min_size=1, max_size=4))
@examples(100)
def test_patterns_agree_with_the_shell(columns, pattern):
    expected = [name for name in columns if name == pattern or fnmatchcase(name, pattern)]
    if expected:
        assert choose_columns(columns, pattern) == expected
    else:
        with pytest.raises(TableError):
            choose_columns(columns, pattern)


@given(NAMES, st.integers(-9, 9), st.integers(-9, 9))
@examples(100)
def test_positions_count_from_one_and_from_the_end(columns, first, last):
    numbered = list(range(1, len(columns) + 1))
    low, high = (at if at >= 0 else len(columns) + 1 + at for at in (first, last))
    if low in numbered and high in numbered and low <= high:
        expected = [columns[at - 1] for at in numbered if low <= at <= high]
        assert choose_columns(columns, f"{first}:{last}") == expected
    else:
        with pytest.raises(TableError):
            choose_columns(columns, f"{first}:{last}")


def test_names_go_before_positions():
    assert choose_columns(["0", "1", "2", "3", "4"], "1:3") == ["1", "2", "3"]
