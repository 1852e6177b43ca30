"""Labels that are probably missing: a ranked list, how to apply it, and how to check that it can be trusted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from sylvan._validation import check_integer, check_number
from sylvan.labels.lists import row_names
from sylvan.labels.table import lists_labels
from sylvan.labels.words import WORDS, opposite

ALL = "all labels"


def list_cells(
    wanted: np.ndarray,
    probability: np.ndarray,
    since: np.ndarray,
    rows: pd.Index,
    labels: Sequence[Any],
    *,
    top: int | None = None,
    min_proba: float | None = None,
    max_per_label: int | None = None,
) -> pd.DataFrame:
    """List cells by falling probability, equal ones by row and label; `since` is the layer that first imputed each."""
    if min_proba is not None:
        wanted = wanted & (probability >= check_number("min_proba", min_proba, 0.0, 1.0))
    row, label = np.nonzero(wanted)
    order = np.argsort(-probability[row, label], kind="stable")
    if max_per_label is not None:
        check_integer("max_per_label", max_per_label, 0)
        rank = pd.Series(label[order]).groupby(label[order]).cumcount().to_numpy()
        order = order[rank < max_per_label]
    if top is not None:
        if isinstance(top, float):
            raise ValueError(f"top must be an integer, got {top!r}. Did you mean min_proba={top!r}?")
        order = order[: check_integer("top", top, 0)]
    row, label = row[order], label[order]
    layer = pd.Series(since[row, label], dtype="Int64").where(since[row, label] > 0)
    numbered = all(isinstance(name, int | np.integer) for name in labels)  # these index an array
    names = {"row": rows[row], "label": pd.Index(labels, dtype=np.int64 if numbered else object)[label]}
    return pd.DataFrame(names | {"probability": probability[row, label], "layer": layer})


def apply_suggestions(Y: Any, suggestions: pd.DataFrame) -> Any:
    """Return a copy of Y with 1 in the suggested cells.

    Parameters
    ----------
    Y : array, DataFrame or sparse matrix (n, n_labels), or lists of labels by row
        The table the suggestions were made for. A DataFrame's rows are found by its index (by position if index values
        occur twice) and labels by its columns; those of arrays by number.
    suggestions : DataFrame
        As `suggest_labels` returns it, or a part of it: the columns "row" and "label" are used.

    Returns
    -------
    Y of the same type; unknown cells that were not suggested stay unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> from sylvan import apply_suggestions
    >>> Y = pd.DataFrame({"cat": [1, 0], "dog": [0, 0]}, index=["a", "b"])
    >>> apply_suggestions(Y, pd.DataFrame({"row": ["b"], "label": ["dog"]}))
       cat  dog
    a    1    0
    b    0    1
    """
    for column in ("row", "label"):
        if column not in getattr(suggestions, "columns", ()):
            raise ValueError(f"suggestions must be a table with columns 'row' and 'label'; {column!r} is missing.")
    row, label = pd.Index(suggestions["row"]), pd.Index(suggestions["label"])
    if lists_labels(Y):
        return _apply_to_lists(Y, row, label)
    if isinstance(Y, pd.DataFrame):
        return _apply_to_table(Y, _find(row_names(Y.index, len(Y)), row, "row"), _find(Y.columns, label, "label"))
    done: Any = sparse.lil_array(Y, copy=True) if sparse.issparse(Y) else np.array(Y)
    if done.ndim != 2:
        raise ValueError(f"Y must have shape (n, n_labels), got {done.shape}.")
    n, n_labels = done.shape
    done[_find(pd.RangeIndex(n), row, "row"), _find(pd.RangeIndex(n_labels), label, "label")] = 1
    return type(Y)(done) if sparse.issparse(Y) else done


def _apply_to_table(Y: pd.DataFrame, rows: np.ndarray, columns: np.ndarray) -> pd.DataFrame:
    done = Y.copy()
    for column in np.unique(columns):
        dtype = Y.dtypes.iloc[column]
        one = pd.api.types.is_bool_dtype(dtype) or _word_for_one(Y, int(column)) or 1
        values = done.iloc[:, column].array
        values = values.to_dense() if isinstance(dtype, pd.SparseDtype) else values.copy()
        values[rows[columns == column]] = one
        done.isetitem(int(column), pd.array(values, dtype=dtype))
    return done


def _word_for_one(Y: pd.DataFrame, column: int) -> Any:
    """Return how a table of words writes 1: as the column does, or the table, or as its word for 0 suggests."""
    own, others = Y.iloc[:, column], Y.to_numpy(dtype=object).ravel()
    words = [word for word in (*own.unique(), *pd.unique(others)) if isinstance(word, str)]
    known = {word: WORDS.get(word.strip().lower()) for word in words}
    ones = [word for word, bit in known.items() if bit == 1]
    ones += [word for word, bit in ((opposite(word), bit) for word, bit in known.items()) if bit == 0 and word]
    return ones[0] if ones else None


def _apply_to_lists(Y: Any, row: pd.Index, label: pd.Index) -> Any:
    """Return lists of labels with suggested ones at their end; a list of none becomes one."""
    index = Y.index if isinstance(Y, pd.Series) else None
    done = [[] if isinstance(labels, float) or labels is None else list(labels) for labels in Y]
    for at, name in zip(_find(row_names(index, len(done)), row, "row"), label):
        done[at].append(name)
    return pd.Series(done, index=index) if isinstance(Y, pd.Series) else done


def _find(names: pd.Index, wanted: pd.Index, what: str) -> np.ndarray:
    if not names.is_unique:
        raise ValueError(f"Y has the {what} name {names[names.duplicated()][0]!r} twice; names must be unique.")
    at = names.get_indexer(wanted)
    if (at < 0).any():
        name = wanted.tolist()[int(np.argmax(at < 0))]
        raise ValueError(f"Y has no {what} {name!r}, which a suggestion names.")
    return at


def hide_some(recorded: np.ndarray, rate: float, random_state: np.random.RandomState) -> np.ndarray:
    """Return which recorded positives to hide: a share of each label's, at least one where two or more are there."""
    check_number("rate", rate, 0.0, 1.0, open_low=True)
    hidden = np.zeros_like(recorded)
    for j in range(recorded.shape[1]):
        positives = random_state.permutation(np.flatnonzero(recorded[:, j]))
        n_hidden = min(max(round(rate * len(positives)), 1), len(positives) - 1)
        hidden[positives[: max(n_hidden, 0)], j] = True
    return hidden


def report_recovery(
    hidden: np.ndarray, candidates: np.ndarray, imputed: np.ndarray, probability: np.ndarray, labels: Sequence[Any]
) -> pd.DataFrame:
    """Say for each label how many hidden positives came back, and how they rank among all candidates."""
    columns = [(candidates[:, j], j) for j in range(hidden.shape[1])]
    cells: list[Any] = [*columns, candidates]  # each label, then all together
    table = pd.DataFrame([_recovery(hidden[at], imputed[at], probability[at]) for at in cells])
    table.index = pd.Index([*labels, ALL], dtype=object, tupleize_cols=False, name="label")
    return table.astype(dict.fromkeys(("hidden", "recovered", "imputed", "candidates"), int))


def _recovery(hidden: np.ndarray, imputed: np.ndarray, probability: np.ndarray) -> dict[str, float]:
    n, n_hidden, recovered = len(hidden), int(hidden.sum()), int((hidden & imputed).sum())
    rank = pd.Series(-probability).rank(method="average").to_numpy()
    return {
        "hidden": n_hidden,
        "recovered": recovered,
        "recall": recovered / n_hidden if n_hidden else np.nan,
        "imputed": int(imputed.sum()),
        "candidates": n,
        "median_rank": float(np.median(rank[hidden])) if n_hidden else np.nan,
        "expected_by_chance": imputed.sum() / n if n else np.nan,
    }
