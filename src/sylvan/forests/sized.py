"""Forests as large as the rows ask for."""

from typing import Any

from sklearn.base import BaseEstimator

from sylvan._validation import check_choice, check_integer, check_share
from sylvan.forests.forest import ExtraTrees, RandomForest
from sylvan.forests.out_of_sample import KFold, OutOfBag
from sylvan.io import stored

_EFFORTS = {"quick": (0.5, 0.5), "normal": (1.0, 1.0), "thorough": (2.0, 2.0)}  # times the trees, times the draws
_TREES, _FEWEST_TREES, _SMALL_ROWS = 300, 160, 1000
_DRAWS = 4000  # rows that each tree draws; of more rows, as many as a power of them asks for
_FINE_LEAVES = 3000  # rows from which the leaves of extra trees are as fine as those of the random forest
_FOLDS = 5  # of groups, at most
_KINDS = (RandomForest, ExtraTrees)


@stored("SizedForests")
class SizedForests(BaseEstimator):
    """A random forest and extra trees, as large as the rows ask for: in each layer of a cascade, as `auto` has them.

    Few rows have many trees that each draw as many rows as there are. More rows need fewer trees, and beyond 4,000 rows
    a tree draws only some, so that neither time nor memory of the trees grows as fast as the rows. Out-of-sample
    probabilities are out-of-bag; groups of rows that belong together have folds.

    Parameters
    ----------
    n_trees : int or None, default=None
        Trees of each forest. None: 300 up to 1,000 rows, then as the power -0.4 of the rows, but at least 160.
    min_samples_leaf : None, int, float or pair of these, default=None
        Rows that leaves must have: of the random forest, and of the extra trees. None: 3 and 5, or 3 beyond 3,000 rows.
    effort : {"quick", "normal", "thorough"}, default="normal"
        Half or twice the trees, of half or twice the draws.

    Examples
    --------
    >>> from sylvan.forests import SizedForests
    >>> for n_rows in (1000, 10_000, 1_000_000):
    ...     forest = SizedForests().for_rows(n_rows)[0]
    ...     print(forest.n_trees, round(n_rows * (forest.max_samples or 1.0)))
    300 1000
    160 6041
    160 47988
    """

    def __init__(self, n_trees: int | None = None, min_samples_leaf: Any = None, effort: str = "normal") -> None:
        self.n_trees, self.min_samples_leaf, self.effort = n_trees, min_samples_leaf, effort

    def for_rows(self, n_rows: int, n_groups: int | None = None) -> list[Any]:
        """Return the forests of each layer for so many rows, which may be in groups."""
        check_choice("effort", self.effort, tuple(_EFFORTS))
        more_trees, more_draws = _EFFORTS[self.effort]
        n_trees = self.n_trees
        if n_trees is None:
            n_trees = round(more_trees * max(_FEWEST_TREES, _TREES * min(1.0, (_SMALL_ROWS / n_rows) ** 0.4)))
        check_integer("n_trees", n_trees, 1)
        # A share, as folds and rows without weight leave fewer rows than there are.
        share = min(1.0, more_draws, more_draws * min(1.0, (_DRAWS / n_rows) ** 0.55))
        settings: dict[str, Any] = {"bootstrap": True, "max_samples": share if share < 1.0 else None}
        settings["out_of_sample"] = OutOfBag()
        if n_groups is not None:
            n_folds = max(2, min(_FOLDS, n_groups))
            n_trees = -(-n_trees // n_folds)
            settings["out_of_sample"] = KFold(n_folds)
        leaves = self._leaves(n_rows)
        for leaf in leaves:
            check_share("min_samples_leaf", leaf, n_rows, 1)
        return [kind(n_trees, min_samples_leaf=leaf, **settings) for kind, leaf in zip(_KINDS, leaves, strict=True)]

    def __call__(self, number: int) -> list[Any]:
        """Return the forests of a layer if nobody knows how many rows there are."""
        return self.for_rows(_SMALL_ROWS)

    def _leaves(self, n_rows: int) -> tuple[Any, ...]:
        leaf = self.min_samples_leaf
        if leaf is None:
            return 3, 3 if n_rows > _FINE_LEAVES else 5
        if not isinstance(leaf, tuple | list):
            return leaf, leaf
        if len(leaf) != 2:
            raise ValueError(
                "min_samples_leaf must be a number, or one for the random forest and one for the extra trees; "
                f"got {leaf!r}."
            )
        return tuple(leaf)

    def search_space(self) -> dict[str, list[Any]]:
        """Return what is worth a search: how fine leaves are."""
        return {"min_samples_leaf": [(3, 5), (1, 2), (5, 10)]}
