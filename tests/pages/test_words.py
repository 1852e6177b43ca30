"""Numbers and names as a reader wants them."""

import re

from hypothesis import given as given_values
from hypothesis import strategies as st

from sylvan._messages import printable
from sylvan.measures import measure_name
from sylvan.pages.words import brief, direction, fixed, listing, percent, slug


@given_values(st.floats(0, 1))
def test_percent_is_never_0_or_100_by_rounding(share):
    text = percent(share).replace("\xa0", " ")
    assert (text == "0 %") == (share == 0)
    assert (text == "100 %") == (share == 1)
    assert text != "100.0 %"
    number = float(re.search(r"[\d.]+", text).group())
    assert abs(number - 100 * share) <= (0.51 if 0.1 <= share < 0.99 else 0.1)


@given_values(st.text(st.characters(exclude_characters="…")), st.integers(3, 30))
def test_brief_names_keep_both_ends(name, longest):
    text = brief(name, longest)
    assert text.strip()
    name = printable(name)
    if len(name) <= longest:
        assert text == (name if name.strip() else "(no name)")
    else:
        assert len(text) <= longest
        assert name.startswith(text[: text.rindex("…")])
        assert name.endswith(text.split("…")[-1])


def test_numbers():
    values = [1, 0.12345, -0.0004, -2.5, float("nan"), None, float("inf")]
    assert [fixed(v) for v in values] == ["1.000", "0.123", "0.000", "\u22122.500", "\u2013", "\u2013", "∞"]


def test_lists_of_words():
    assert [listing(items) for items in ([], ["a"], ["a", "b"], ["a", "b", 3])] == ["", "a", "a and b", "a, b and 3"]


def test_slug():
    assert [slug(text) for text in ("CHD_49", "ILR 0.3", "é", "")] == ["chd-49", "ilr-0-3", "x", "x"]


def test_measures():
    names = ("macro_f1", "micro_mcc", "one_error", "ilr")
    assert [measure_name(name) for name in names] == ["macro F1", "micro MCC", "one error", "ILR"]
    assert [direction(what) for what in (False, "micro_f1", "weight")] == ["smaller is better", "greater is better", ""]
