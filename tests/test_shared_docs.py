"""Shared docstrings: every parameter is told of, once, with the default that it has."""

import doctest
import inspect
import re

import pytest

import sylvan
from sylvan import algorithms, forests
from sylvan._docs import documented
from sylvan.bench.baselines import RFPCT

COMPLETED = [getattr(sylvan, name) for name in algorithms.__all__]
COMPLETED += [forests.RandomForest, forests.ExtraTrees, forests.CompletelyRandomForest, RFPCT]


def entries(thing):
    """Return names and default of each entry of the section about parameters."""
    section = inspect.getdoc(thing).split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = [line for line in section.splitlines() if not line.startswith(" ")]
    return [(head.split(" : ")[0].split(", "), head.partition("default=")[2]) for head in heads]


@pytest.mark.parametrize("thing", COMPLETED, ids=lambda thing: thing.__name__)
def test_every_parameter_is_documented_with_its_default(thing):
    parameters = inspect.signature(thing).parameters
    names = [name.lstrip("*") for group, _ in entries(thing) for name in group]
    assert sorted(names) == sorted(parameters)
    for group, default in entries(thing):
        if not group[0].startswith("**"):
            expected = [parameters[name].default for name in group]
            assert list(eval(f"({default},)") if len(group) > 1 else [eval(default)]) == expected


@pytest.mark.parametrize("thing", COMPLETED, ids=lambda thing: thing.__name__)
def test_docstrings_have_an_example_under_their_own_name(thing):
    found = doctest.DocTestParser().get_examples(thing.__doc__)
    assert any(f"{thing.__name__}(" in example.source for example in found)
    assert not re.search(r"[{}]name[{}]", thing.__doc__)
    titles = re.findall(r"^(\w+)\n-+$", thing.__doc__, flags=re.MULTILINE)
    order = ["Parameters", "Attributes", "Notes", "References", "Examples"]
    assert titles == [title for title in order if title in titles]


def test_own_entries_win_and_one_entry_may_tell_of_several():
    @documented({"b": "int\n    Shared.", "d": "str\n    Another.", "more": "anything"}, example=">>> {name}(1)")
    def some(a, b=1, c=2, d="x", **more):
        """Do it.

        Parameters
        ----------
        a, c : int
            Own.

        Notes
        -----
        None.
        """

    assert some.__doc__ == (
        "Do it.\n\nParameters\n----------\na, c : int\n    Own.\nb : int, default=1\n    Shared.\n"
        'd : str, default="x"\n    Another.\n**more : anything\n\nNotes\n-----\nNone.\n\n'
        "Examples\n--------\n>>> some(1)"
    )


def test_a_parameter_that_nobody_documents_is_an_error():
    with pytest.raises(KeyError, match="b"):

        @documented({})
        def some(b):
            """Do it."""


def test_without_docstrings():
    def some(b):
        pass

    assert documented({})(some).__doc__ is None
