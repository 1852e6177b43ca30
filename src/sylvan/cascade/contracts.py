"""What the parts of a cascade promise each other."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

MAX_SEED = np.iinfo(np.int32).max  # of what random states draw


@runtime_checkable
class Forest(Protocol):
    """What a cascade needs of a forest.

    `oos_proba_` holds the probabilities of the training rows from trees that did not see them. Columns that several
    forests or layers share are encoded once: forests with the same `encoding` share them. If a forest has
    `learns_unknown = True`, it gets NaN for labels that are unknown and to be left out; otherwise 0.
    """

    oos_proba_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "Forest":
        """Learn from rows of features, as they are or encoded, and 0/1 labels (n, n_labels)."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label, (n, n_labels)."""

    @property
    def encoding(self) -> Any:
        """What tells one encoding from another: hashable."""

    def encode(self, X: Any, used: np.ndarray | None = None) -> Any:
        """Return columns in the form that `fit` likes best (bins, say); only rows in `used` may influence how."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Put encoded columns of the same rows side by side."""


class LayerRecord(NamedTuple):
    """One line of a cascade's history.

    Attributes
    ----------
    layer : number of the layer, from 1
    score : measure of its out-of-sample probabilities against the recorded labels
    greater_is_better : direction of the measure
    imputed : cells that are imputed after the layer
    active : labels that may still be imputed
    seconds : wall time of the layer
    """

    layer: int
    score: float
    greater_is_better: bool
    imputed: int
    active: int
    seconds: float

    @property
    def quality(self) -> float:
        """The score, turned so that greater is better; minus infinity where it is not defined."""
        if np.isnan(self.score):
            return -np.inf
        return self.score if self.greater_is_better else -self.score


def _unknown(asked: Any) -> Any:
    raise NotImplementedError("This view of a layer does not say.")


class LayerView(NamedTuple):
    """What an augmenter sees of a layer.

    The whole input of a layer is all blocks of features that the layers before made, then X; a forest sees some or
    all of its columns.

    Attributes
    ----------
    forests : the fitted forests, one for each slot; none if they were not kept (see `Augmenter`)
    input_of : function of the slot: the real-valued columns (n, d) that its forest learns from or is asked about
    probas : (n_forests, n, n_labels); out-of-sample on training rows; None if there are no forests
    labels : (n, n_labels) bool, what the forests learnt; None at prediction
    random_state : seed for what the augmenter draws; None at prediction
    used : (n,) bool, rows of positive weight, which alone count; None for all
    columns : function of ascending column numbers: these columns of the whole input, (n, number) of floats
    columns_of : function of the slot: which columns of the whole input its forest sees
    encoded : function of a forest: the whole input in the form that its `fit` likes; not at prediction
    sample_weight : (n,) or None; None at prediction
    unknown : (n, n_labels) bool, cells that forests may leave out; None for none, and at prediction
    groups : (n,) or None, rows of which are in the same fold; None at prediction
    rows : numbers of training rows whose features are made again, to explain them; None of new rows
    """

    forests: Sequence[Any]
    input_of: Callable[[int], Any]
    probas: Any
    labels: np.ndarray | None = None
    random_state: int | None = None
    used: np.ndarray | None = None
    columns: Callable[[np.ndarray], np.ndarray] = _unknown
    columns_of: Callable[[int], np.ndarray] = _unknown
    encoded: Callable[[Any], Any] = _unknown
    sample_weight: np.ndarray | None = None
    rows: np.ndarray | None = None
    unknown: np.ndarray | None = None
    groups: np.ndarray | None = None

    def labels_for(self, forest: Any) -> Any:
        """Return the labels that a forest is to learn: NaN where they are unknown, if it leaves such cells out."""
        if self.unknown is None or self.labels is None or not getattr(forest, "learns_unknown", False):
            return self.labels
        return np.where(self.unknown, np.nan, self.labels)


class Augmenter(Protocol):
    """Makes new features of a layer for the next one: a block of columns for each forest, then any for all of them.

    A cascade fits a clone for each layer. What an augmenter may have beside these methods:

    - `check_parameters`: raises an error for parameters that cannot work, before anything is grown;
    - `n_shared`: number of blocks for all forests, which crossover hides from none (0 if absent);
    - `flatters`: whether its features of training rows are better than those of new rows (False if absent), so that
      scores of later layers are too good;
    - `needs_forests`: whether `transform` asks the forests (True if absent). If not, layers before the last keep none;
    - `parts`, and `parts_` when it is fitted: the augmenters it is made of;
    - `narrow` and `transform_narrow`: once told which columns of its block are ever read, it makes no others;
    - `describe` and `activity`: it finds rules that people can read (see `Interactions`);
    - `fit_refine` and `refine`: see `Refiner`;
    - `search_space`: other values of its parameters that are worth a search, {name: list}; an empty name stands for
      itself. (Imputers, length controls and functions that make forests may have it, too.)
    - `hand_on`: hands the relevance of its blocks, a list of (cells, width), on to what made them (see `Handover`).
      Without it, cascades cannot give reasons for single cells;
    - `check_rows`: checks what came from a file with findings of so many training rows;
    - `shrink`: told that it will see a share of the rows, it takes the way that it would take for all of them.
    """

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Learn from the training rows and return their blocks, (n, width) arrays: one for each forest, then others."""

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the blocks of new rows, as wide as those of the training rows."""

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return a name for each column of a block; blocks for all forests count on after the slots."""


#: Gives the values of a tree's leaves, (n_leaves, number), for some of their columns.
Tables = Callable[[int, np.ndarray], np.ndarray]


class Handover(Protocol):
    """What an augmenter hands the relevance of its columns on with, to whatever it made them of.

    Relevance is what later layers made of a column in their answers about cells, of which several may be of one row.
    What is handed on sums to what came in.
    """

    n_labels: int
    rows: np.ndarray | None  # numbers of training rows, out of sample; None: new rows
    cell_row: np.ndarray  # position of each cell's row among these

    def answers(self, slot: int) -> np.ndarray:
        """Return a forest's probabilities, of which features were made, for the row of each cell: (cells, n_labels)."""

    def to_answers(self, slot: int, relevance: np.ndarray) -> None:
        """Hand relevance (cells, n_labels) on to a forest's probabilities."""

    def to_columns(self, columns: np.ndarray, relevance: np.ndarray) -> None:
        """Hand relevance (cells, number) on to columns of the layer's whole input; a column may come twice."""

    def along_paths(self, slot: int, tables_of: Callable[[Any], Tables] | None, relevance: np.ndarray) -> None:
        """Hand relevance (cells, width) on along the paths through all trees of a forest, whoever has seen the rows.

        Given its trees, `tables_of` returns who gives the values of their leaves. None: they are those of labels.
        """

    def values(self, columns: np.ndarray) -> np.ndarray:
        """Return columns (ascending) of the layer's whole input for each cell."""


class Column(NamedTuple):
    """Where a column of a layer's whole input comes from.

    Attributes
    ----------
    name : of the feature, or of a made column
    maker : the augmenter that made it for all forests; None for input features and blocks of single forests
    layer : number of the layer that made it, 0 for input features
    at : its number in the block that the maker made
    first : number of rules that other augmenters of that layer have found before the maker's
    """

    name: str
    maker: Any = None
    layer: int = 0
    at: int = 0
    first: int = 0


@runtime_checkable
class Refiner(Protocol):
    """An augmenter that also refines a layer's probabilities before they are scored, passed on and predicted.

    Reasons for single cells need one of these: `reused_cells` says what is taken from the layer before, and the forests
    answer for all else; or `hand_back` hands on what is asked of refined answers.
    """

    def fit_refine(self, view: LayerView, before: np.ndarray | None) -> np.ndarray:
        """Return refined probabilities of the training rows, given those of the layer before (None in layer 1)."""

    def refine(self, probas: np.ndarray, before: np.ndarray | None, view: LayerView) -> np.ndarray:
        """Return refined probabilities of new rows, or of the training rows that the view numbers."""

    def without_features(self) -> "Refiner":
        """Return what is needed to refine alone: the last layer makes no features."""


def parts_of(augment: Any) -> Iterator[Any]:
    """Give the augmenters that an augmenter is made of, fitted if it is: itself, or those inside it."""
    inner = getattr(augment, "parts_", getattr(augment, "parts", None))
    if inner is None:
        yield augment
    else:
        for part in inner:
            yield from parts_of(part)


def finds_rules(augment: Any) -> bool:
    """Say whether an augmenter, or a part of it, finds rules that people can read."""
    return any(hasattr(part, "describe") for part in parts_of(augment))


def flatters(augment: Any) -> bool:
    """Say whether an augmenter, or a part of it, makes features that are better on training rows than on new ones."""
    return any(getattr(part, "flatters", False) for part in parts_of(augment))


def check_trees(forest: Any, who: str) -> Any:
    """Return a forest that shows its trees, as those of `sylvan.forests`; refuse others. `who` asks."""
    if getattr(forest, "trees_", None) is None:
        found = type(forest).__name__
        raise TypeError(f"{who} needs fitted forests of sylvan.forests, which have `trees_`, got {found}.")
    return forest


class LengthControl(Protocol):
    """Says when to stop growing and how many layers to keep: pure functions of the history."""

    def should_stop(self, history: Sequence[LayerRecord]) -> bool:
        """Say whether no further layer is wanted."""

    def n_layers(self, history: Sequence[LayerRecord]) -> int:
        """Return the number of layers to keep."""
