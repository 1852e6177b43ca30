"""What people write for "present", "absent" and "unknown"."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

#: Cells that mean "missing" in features and 0/1 labels. In names and classes only an empty cell does: "NA" may be one.
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
_PRESENT = (
    "1 true yes y t x + present positive pos detected ja j wahr oui vrai si sí sì sim verdadero vero sant kyllä tak "
    "✓ ✔ ☑ ✅"
)
_ABSENT = (
    "0 false no n f - absent negative neg undetected nein falsch non faux não nao falso falskt nej ei nie ✗ ✘ ☐ ❌"
)
#: Words for a label that is present (1) or absent (0), in lower case.
WORDS = dict.fromkeys(_PRESENT.split(), 1) | dict.fromkeys(_ABSENT.split(), 0) | {"not detected": 0, "not present": 0}


_OPPOSITES = {
    "no": "yes", "n": "y", "f": "t", "0": "1", "false": "true", "absent": "present", "-": "+", "negative": "positive",
    "neg": "pos", "nein": "ja", "falsch": "wahr", "non": "oui", "faux": "vrai", "não": "sim", "falso": "verdadero",
    "not detected": "detected", "undetected": "detected", "not present": "present", "nej": "ja", "ei": "kyllä",
    "nie": "tak", "✗": "✓", "✘": "✔", "☐": "☑", "❌": "✅", "nao": "sim", "falskt": "sant",
}  # fmt: skip


def opposite(word: str) -> str | None:
    """Return what a table that writes this word for 0 would write for 1."""
    return _OPPOSITES.get(word.strip().lower())


ABSENT = -1  # what words for "known to be absent" stand for, where 0 is not recorded


def read_words(values: pd.Series, own_words: Mapping[str, Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return which cells of a label say that it is present, and which are unknown; all others say absent.

    `values` are numbers, truth values or text, in any mixture; their name is the label. `own_words`, in lower case, go
    before the usual ones. The error for something else names the label, the cell and its row (by the index).

    Examples
    --------
    >>> import pandas as pd
    >>> present, unknown = read_words(pd.Series(["Yes", "no", "1.0", "?", None]))
    >>> present.tolist(), unknown.tolist()
    ([True, False, True, False, False], [False, False, False, True, True])
    """
    cells = read_cells(values, own_words)
    return cells == 1, np.isnan(cells)


def read_cells(values: pd.Series, own_words: Mapping[str, Any] | None = None) -> np.ndarray:
    """Return 1, 0 and NaN for what `read_words` tells apart, and -1 for own words that stand for that.

    Examples
    --------
    >>> import pandas as pd
    >>> read_cells(pd.Series(["yes", "no", "0", "?"]), {"no": -1})
    array([ 1., -1.,  0., nan])
    """
    codes, distinct = pd.factorize(values)
    known = WORDS | dict(own_words or {})
    bits = [_bit(str(value).strip(), known) for value in distinct]
    if np.inf in bits:
        at = bits.index(np.inf)
        row = values.index[int(np.flatnonzero(codes == at)[0])]
        counts = " Numbers above 0 are counts? positive='>0' says so." if _are_counts(distinct) else ""
        raise ValueError(
            f"Label {values.name!r} has the value {str(distinct[at])[:60]!r} in row {row}; labels are 0/1, yes/no or "
            f"true/false, empty where unknown.{counts}"
        )
    return np.array([*bits, np.nan])[codes]  # factorize gives -1 to missing cells: the NaN at the end


def _are_counts(values: Any) -> bool:
    numbers = pd.to_numeric(pd.Series(list(values), dtype=object), errors="coerce")
    return bool((numbers >= 0).mean() > 0.5 and (numbers > 1).any())


def read_one(text: str) -> float:
    """Return what one cell says: 1, 0, NaN for unknown, or infinity for something else."""
    return _bit(text, WORDS)


def _bit(text: str, known: Mapping[str, Any]) -> float:
    """Return 1 and 0, NaN for unknown, or infinity for something else."""
    if text.lower() in known:
        return float(known[text.lower()])
    if text in MISSING:
        return np.nan
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return np.inf
    if f"{number:g}" in known:  # -1.0 in a column of numbers
        return float(known[f"{number:g}"])
    if ">0" in known and number >= 0:  # counts
        return float(known[">0"]) if number > 0 else 0.0
    return number if number in (0, 1) else np.inf
