"""Warnings come at the caller's line, each class once; names are not too long."""

import warnings

import pytest

import sylvan.exceptions
from sylvan._messages import did_you_mean, many, once_each, printable, shorten, some, warn_user
from sylvan.exceptions import FrequencyWarning, OutOfBagWarning, SylvanWarning


def test_all_classes_are_user_warnings():
    for name, kind in vars(sylvan.exceptions).items():
        if isinstance(kind, type) and issubclass(kind, Warning):
            assert name.endswith("Warning")
            assert issubclass(kind, SylvanWarning)
            assert issubclass(kind, UserWarning)


def test_each_class_once_in_the_outermost_block():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with once_each():
            warn_user("first", OutOfBagWarning)
            warn_user("again", OutOfBagWarning)
            with once_each():
                warn_user("inside", OutOfBagWarning)
                warn_user("other", FrequencyWarning)
            warn_user("other again", FrequencyWarning)
        warn_user("later", OutOfBagWarning)
        warn_user("plain")
    assert [str(each.message) for each in caught] == ["first", "other", "later", "plain"]
    assert caught[-1].category is SylvanWarning
    assert {each.filename for each in caught} == {__file__}


def test_a_fit_that_imputes_nothing_warns_by_class(recwarn):
    import numpy as np

    random = np.random.default_rng(0)
    X, Y = random.normal(size=(40, 3)), (random.random((40, 2)) < 0.3).astype(int)
    sylvan.slcforest(3, max_layers=2, threshold=1.0, random_state=0).fit(X, Y)
    found = [each for each in recwarn if issubclass(each.category, sylvan.exceptions.NothingImputedWarning)]
    assert len(found) == 1
    assert found[0].filename == __file__
    with pytest.warns(OutOfBagWarning):
        sylvan.slcforest(1, max_layers=1, random_state=0).fit(X, Y)


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


def test_nouns():
    assert [many(n, "class", "classes") for n in (0, 1, 2345)] == ["0 classes", "1 class", "2,345 classes"]


def test_some_names_and_the_nearest():
    assert some(["a", "b", "c"], at_most=2) == "'a', 'b', ... (3 in all)"
    assert some([1, 2]) == "1, 2"
    assert did_you_mean("slcforrest", ["auto", "slcforest"]) == "; did you mean 'slcforest'?"
    assert did_you_mean("x", ["auto"]) == "."
    assert did_you_mean("x", [], "; there are none") == "; there are none"
