"""Small long tables of scores."""

import pandas as pd


def long(rows, columns=("dataset", "repeat", "method", "measure", "value")):
    return pd.DataFrame(rows, columns=list(columns))


def grid(values, measure="micro_f1", methods="abcdefgh"):
    """Scores of values[dataset][repeat][method]."""
    return long(
        [
            (f"set{i}", r, methods[j], measure, v)
            for i, table in enumerate(values)
            for r, row in enumerate(table)
            for j, v in enumerate(row)
        ]
    )
