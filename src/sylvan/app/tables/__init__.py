"""Tables that people have: files of features and labels become what a model learns from, and are written back.

`read_training_table` finds label columns by name, pattern or range, encodes text columns and remembers how
(`TableSchema`). What is wrong in a file is said in one line (`TableError`), with row and column.
"""

from sylvan.app.tables.columns import choose_columns
from sylvan.app.tables.files import open_table
from sylvan.app.tables.labels import LabelCells
from sylvan.app.tables.output import TableWriter, write_completed
from sylvan.app.tables.schema import TableSchema
from sylvan.app.tables.training import TrainingTable, read_training_table
from sylvan.exceptions import TableError
from sylvan.tables.seen import share_seen, sketch_rows

__all__ = [
    "LabelCells", "TableError", "TableSchema", "TableWriter", "TrainingTable", "choose_columns", "open_table",
    "read_training_table", "share_seen", "sketch_rows", "write_completed",
]  # fmt: skip
