"""Tables in memory: which columns are no numbers, and a cleaner for those tables that have some."""

from typing import Any

import pandas as pd
from sklearn.base import clone

from sylvan._validation import check_choice, odd_columns
from sylvan.tables.cells import as_frame
from sylvan.tables.cleaner import Cleaner


def clean_frame(X: Any, cleaner: Any) -> tuple[Any, Cleaner | None]:
    """Return X as numbers, and the fitted cleaner that made them; X as it is and None if nothing is to be cleaned.

    `cleaner`: "auto" cleans tables that have columns which are no numbers; a `Cleaner` cleans all tables; None none.
    """
    if not isinstance(cleaner, Cleaner):
        check_choice("cleaner", cleaner, ("auto", None))
    X = as_frame(X)
    wanted = isinstance(X, pd.DataFrame) and cleaner is not None
    if not wanted or (cleaner == "auto" and not odd_columns(X)):
        return X, None
    fitted = (Cleaner() if cleaner == "auto" else clone(cleaner)).fit(X)
    return fitted.transform(X), fitted
