"""Methods to compare with: multi-label, weak-label and pair classifiers of other families.

`RFPCT`, `MLkNN`, `RAkEL`, `MLARAM` and `DBPNN` learn labels as they are given; `WELL` completes weak labels, and
`WELLkNN` learns from what it completed. `ConcatenatedPairs`, `MahalanobisDistance` and `SiameseNetwork` learn from
pairs of points.
"""

from typing import TYPE_CHECKING

from sylvan._lazy import lazy
from sylvan.bench.baselines.dbpnn import DBPNN
from sylvan.bench.baselines.mlaram import MLARAM
from sylvan.bench.baselines.mlknn import MLkNN
from sylvan.bench.baselines.rakel import RAkEL
from sylvan.bench.baselines.rf_pct import RFPCT
from sylvan.bench.baselines.well import WELL, WELLkNN

if TYPE_CHECKING:
    from sylvan.bench.baselines.mahalanobis import MahalanobisDistance
    from sylvan.bench.baselines.pairs import ConcatenatedPairs
    from sylvan.bench.baselines.siamese_network import SiameseNetwork

__all__ = [
    "DBPNN", "MLARAM", "RFPCT", "WELL", "ConcatenatedPairs", "MLkNN", "MahalanobisDistance", "RAkEL", "SiameseNetwork",
    "WELLkNN",
]  # fmt: skip

# The methods on pairs may need packages that are slow to import.
__getattr__, __dir__ = lazy(__name__, names={
    "ConcatenatedPairs": "pairs", "MahalanobisDistance": "mahalanobis", "SiameseNetwork": "siamese_network",
})  # fmt: skip
