"""Tables that people have: files of features and labels become what a model learns from, and are written back.

`read_training_table` finds label columns by name, pattern or range, encodes text columns and remembers how
(`TableSchema`). What is wrong in a file is said in one line (`TableError`), with row and column.
"""

from sylvan._lazy import lazy

_NAMES = {
    "LabelCells": "labels",
    "TableError": "files",
    "TableSchema": "schema",
    "TableWriter": "output",
    "TrainingTable": "training",
    "choose_columns": "columns",
    "format_like": "output",
    "open_table": "files",
    "read_training_table": "training",
    "share_seen": "seen",
    "sketch_rows": "seen",
    "write_completed": "output",
}
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
__all__ = list(_NAMES)
__getattr__, __dir__ = lazy(__name__, _MODULES, _NAMES)
