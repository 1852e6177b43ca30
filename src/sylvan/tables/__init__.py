"""People's columns become numbers: dates, categories, remarks, numbers in disguise.

A `Cleaner` guesses how each column is to be read, says what it guessed, and reads new rows in the same way.
"""

from typing import TYPE_CHECKING

from sylvan._lazy import lazy

if TYPE_CHECKING:  # imported when they are used: the cleaner needs scikit-learn, a guess does not
    from sylvan.tables.cleaner import Cleaner
    from sylvan.tables.guess import Guess, guess_column
    from sylvan.tables.readings import Categories, Dates, Numbers, Words

__all__ = ["Categories", "Cleaner", "Dates", "Guess", "Numbers", "Words", "guess_column"]
_NAMES = dict.fromkeys(__all__, "readings") | {"Cleaner": "cleaner", "Guess": "guess", "guess_column": "guess"}
__getattr__, __dir__ = lazy(__name__, names=_NAMES)
