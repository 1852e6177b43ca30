"""What people use without Python: the command line, tables as they come, reports."""

from sylvan._lazy import lazy

__getattr__, __dir__ = lazy(__name__, ("cli", "demo", "memory", "report", "review", "tables"))
