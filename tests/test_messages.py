"""Names that are not too long. (Warnings and the logger are tested where they are given.)"""

import pytest

from sylvan._messages import printable, shorten


def test_names_are_cut_in_the_middle():
    assert shorten("short") == "short"
    assert shorten("a" * 26) == "a" * 26
    assert len(shorten("a" * 27)) == 26
    assert shorten("abcdefghij", 7) == "abcd…ij"
    assert shorten(3) == "3"


@pytest.mark.parametrize(("longest", "expected"), [(20, "ears > 3 and tail >…"), (9, "ears > 3…"), (1, "…"), (0, "")])
def test_rules_are_cut_at_the_end(longest, expected):
    assert shorten("ears > 3 and tail > 2 and more", longest, tail=0) == expected


def test_names_have_one_line():
    assert printable("a\nb\x00c") == "a b c"
