"""People's columns become numbers: dates, categories, remarks, numbers in disguise.

A `Cleaner` guesses how each column is to be read, says what it guessed, and reads new rows in the same way.
"""

from sylvan.tables.cleaner import Cleaner
from sylvan.tables.guess import Guess, guess_column
from sylvan.tables.readings import Categories, Dates, Numbers, Words

__all__ = ["Categories", "Cleaner", "Dates", "Guess", "Numbers", "Words", "guess_column"]
