"""What a cascade can say of itself: rules to read (`rules`), reasons for single cells, and rows that are like others.

`explain_cells` of a fitted cascade returns `Reasons`. `paths` hands answers back along the paths of trees, `trace`
through the layers.
"""

from sylvan.cascade.explain.reasons import Reasons
from sylvan.cascade.explain.similar import Similar
from sylvan.labels.reasons import Reason

__all__ = ["Reason", "Reasons", "Similar"]
