"""People's columns become numbers: dates, categories, remarks, numbers in disguise.

A `Cleaner` guesses how each column is to be read, says what it guessed, and reads new rows in the same way.
"""

from sylvan._lazy import lazy

_NAMES = {
    "Categories": "readings",
    "Cleaner": "cleaner",
    "Dates": "readings",
    "Guess": "guess",
    "Numbers": "readings",
    "Words": "readings",
    "guess_column": "guess",
}
__all__ = list(_NAMES)
__getattr__, __dir__ = lazy(__name__, names=_NAMES)
