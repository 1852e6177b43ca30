"""Tables that people have: files of features and labels become what a model learns from, and are written back.

`read_training_table` finds label columns by name, pattern or range, encodes text columns and remembers how
(`TableSchema`). What is wrong in a file is said in one line (`TableError`), with row and column.
"""

from typing import TYPE_CHECKING

from sylvan._lazy import lazy

if TYPE_CHECKING:  # imported when they are used: a first look at a table needs little of it
    from sylvan.app.tables.columns import choose_columns
    from sylvan.app.tables.files import open_table
    from sylvan.app.tables.labels import LabelCells
    from sylvan.app.tables.output import TableWriter, format_like, write_completed
    from sylvan.app.tables.schema import TableSchema
    from sylvan.app.tables.seen import share_seen, sketch_rows
    from sylvan.app.tables.training import TrainingTable, read_training_table
    from sylvan.exceptions import TableError

__all__ = [
    "LabelCells", "TableError", "TableSchema", "TableWriter", "TrainingTable", "choose_columns", "format_like",
    "open_table", "read_training_table", "share_seen", "sketch_rows", "write_completed",
]  # fmt: skip
_MODULES = (
    "columns",
    "files",
    "labels",
    "output",
    "records",
    "schema",
    "seen",
    "table",
    "text",
    "training",
    "workbook",
)
_WHERE = {
    "columns": ("choose_columns",), "files": ("TableError", "open_table"), "labels": ("LabelCells",),
    "output": ("TableWriter", "format_like", "write_completed"), "schema": ("TableSchema",),
    "seen": ("share_seen", "sketch_rows"), "training": ("TrainingTable", "read_training_table"),
}  # fmt: skip
_NAMES = {name: module for module, names in _WHERE.items() for name in names}
__getattr__, __dir__ = lazy(__name__, _MODULES, _NAMES)
