"""Comparisons that anyone can repeat: protocols, a runner that survives, statistics and a report.

A protocol is data (TOML): data sets, splits, masks, methods, measures. Four ship, one for each paper whose methods are
here: A (weak labels, CaFE paper), B (LCForest paper), C (multi-label, iMLDF paper), D (pairs, Siamese deep forest
paper). Folds, masks and pairs follow from one seed and are shared by all methods. On the command line:
`sylvan bench --help`.
"""

from typing import TYPE_CHECKING

from sylvan._lazy import lazy
from sylvan.bench.protocol import Protocol, load_protocol, make_protocol, protocol_names
from sylvan.bench.runner import run
from sylvan.bench.store import Results, read_results

if TYPE_CHECKING:
    from sylvan.bench.report import write_report

__all__ = [
    "Protocol", "Results", "load_protocol", "make_protocol", "protocol_names", "read_results", "run", "write_report",
]  # fmt: skip

# The report draws with matplotlib, which is slow to import.
__getattr__, __dir__ = lazy(__name__, ("baselines", "published", "statistics"), {"write_report": "report"})
