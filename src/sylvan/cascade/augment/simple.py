"""Simple augmenters: a forest's probabilities are the features, or there are none, or those of several augmenters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sylvan.cascade.contracts import Augmenter, Handover, LayerView, Refiner
from sylvan.io import stored
from sylvan.io.checks import require


@stored("OutputSpace")
class OutputSpace(BaseEstimator):
    """The block of a forest is its probabilities, one column for each label.

    Parameters
    ----------
    in_sample : bool, default=False
        False: training rows get out-of-sample probabilities, as new rows do. True: they get what the forest says about
        rows it has seen, as in the published runs of CaFE; only for reproduction, since such features promise more
        than they keep.

    References
    ----------
    Z.-H. Zhou and J. Feng, Deep forest, National Science Review 6, 2019 (class vectors); CaFE paper, Section III
    (output-space features).

    Examples
    --------
    >>> from sylvan import DeepForestClassifier
    >>> from sylvan.cascade.augment import OutputSpace
    >>> from sylvan.datasets import load_digit_attributes
    >>> from sylvan.forests import OutOfBag, RandomForest
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> forest = RandomForest(20, out_of_sample=OutOfBag())
    >>> model = DeepForestClassifier([forest, forest], augment=OutputSpace(), max_layers=2, random_state=0).fit(X, Y)
    >>> model.n_layers_
    2
    """

    def __init__(self, *, in_sample: bool = False) -> None:
        self.in_sample = in_sample

    @property
    def flatters(self) -> bool:
        """Forests know the training rows that they have seen."""
        return self.in_sample

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the probabilities of the training rows."""
        if self.in_sample:
            return [forest.predict_proba(view.input_of(slot)) for slot, forest in enumerate(view.forests)]
        return list(view.probas)

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the probabilities of new rows."""
        return list(view.probas) if view.rows is None else self.fit_transform(view)

    def hand_on(self, handover: Handover, relevance: list[np.ndarray]) -> None:
        """Hand relevance on to the forests' probabilities, or to all their trees, if these made the block."""
        for slot, own in enumerate(relevance):
            if self.in_sample and handover.rows is not None:
                handover.along_paths(slot, None, own)
            else:
                handover.to_answers(slot, own)

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return the names of the labels."""
        return list(labels)

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Return the widths of the blocks."""
        return [n_labels] * n_slots


class AroundAugmenter(BaseEstimator):
    """What refiners share that leave the features of the next layer to an inner augmenter, fitted as `augment_`."""

    augment: Augmenter | None
    augment_: Any

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the inner augmenter's blocks for new rows."""
        return self.augment_.transform(view)

    def hand_on(self, handover: Handover, relevance: list[np.ndarray]) -> None:
        """Hand relevance on as the inner augmenter does."""
        self.augment_.hand_on(handover, relevance)

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return the inner augmenter's names."""
        return self.augment_.column_names(slot, labels)

    @property
    def parts(self) -> list[Augmenter]:
        """The inner augmenter, if it is not the default."""
        return [] if self.augment is None else [self.augment]

    @property
    def parts_(self) -> list[Augmenter]:
        """The inner augmenter, fitted."""
        return [self.augment_]

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Check what came from a file against its layer, and return the widths of the blocks."""
        require(hasattr(getattr(self, "augment_", None), "check_layer"), "An augmenter is missing.")
        require(not isinstance(self.augment_, Refiner), "An augmenter is not valid.")
        return self.augment_.check_layer(forests, n_slots, n_columns, n_labels)

    def _check_inner(self) -> None:
        if isinstance(self.augment, type):
            raise TypeError(f"augment is the class {self.augment.__name__}: write {self.augment.__name__}().")
        if self.augment is not None and (isinstance(self.augment, Refiner) or not hasattr(self.augment, "transform")):
            raise TypeError(f"augment must be None or an augmenter that makes features, got {self.augment!r}.")


@stored("NoFeatures")
class NoFeatures(BaseEstimator):
    """The augmenter that makes no features: every layer sees X alone."""

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return blocks without columns."""
        return [np.empty((view.probas.shape[1], 0)) for _ in view.forests]

    fit_transform = transform

    def hand_on(self, handover: Handover, relevance: list[np.ndarray]) -> None:
        """Hand nothing on, as there are no columns."""

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return no names."""
        return []

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Return the widths of the blocks."""
        return [0] * n_slots


@stored("Union", parts_=list, _n_slots=int)
class Union(BaseEstimator):
    """The block of a forest is what several augmenters make of it, side by side; what they make for all stays apart.

    Parameters
    ----------
    parts : list of augmenters
        At least one.

    Examples
    --------
    >>> from sylvan.cascade.augment import OutputSpace, TreeEmbedding, Union
    >>> Union([TreeEmbedding(n_components=8), OutputSpace()])
    Union(parts=[TreeEmbedding(n_components=8), OutputSpace()])
    """

    def __init__(self, parts: Sequence[Augmenter]) -> None:
        self.parts = parts

    def search_space(self) -> dict[str, list[Any]]:
        """Return another union that is worth a try, if a part has another setting: parts of a list have no names."""
        spaces: list[dict[str, list[Any]]] = [getattr(part, "search_space", dict)() for part in self.parts]
        firsts = [{name: values[0] for name, values in space.items()} for space in spaces]
        other = [clone(part).set_params(**values) for part, values in zip(self.parts, firsts)]
        return {"": [Union(other)]} if any(spaces) else {}

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Fit the parts and return their blocks for the training rows, side by side."""
        self.check_parameters()
        self.parts_ = [clone(part) for part in self.parts]
        return self._beside([part.fit_transform(_reseeded(view, number)) for number, part in enumerate(self.parts_)])

    def check_parameters(self) -> None:
        """Raise an error for parts that cannot work."""
        if not isinstance(self.parts, (list, tuple)) or not self.parts:
            wanted = "a list of at least one augmenter, for example Union([TreeEmbedding(), OutputSpace()])"
            raise ValueError(f"parts must be {wanted}; got {self.parts!r}.")
        for part in self.parts:
            if isinstance(part, type):
                raise TypeError(f"A part of Union is the class {part.__name__}: write {part.__name__}().")
            if not hasattr(part, "fit_transform"):
                raise TypeError(f"A part of Union is not an augmenter: {part!r}.")
            if isinstance(part, Refiner):
                name = type(part).__name__
                raise ValueError(f"{name} cannot be inside a Union: write {name}(augment=Union([...])) instead.")

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the parts' blocks for new rows, side by side."""
        return self._beside([part.transform(view) for part in self.parts_])

    def hand_on(self, handover: Handover, relevance: list[np.ndarray]) -> None:
        """Hand each part's relevance on as it does."""
        of_parts: list[list[np.ndarray]] = [[] for _ in self.parts_]
        for slot, own in enumerate(relevance[: self._n_slots]):
            widths = [len(part.column_names(slot, [""] * handover.n_labels)) for part in self.parts_]
            for mine, columns in zip(of_parts, np.split(own, np.cumsum(widths)[:-1], axis=1)):
                mine.append(columns)
        shared = iter(relevance[self._n_slots :])
        for part, mine in zip(self.parts_, of_parts):
            part.hand_on(handover, [*mine, *(next(shared) for _ in range(_n_shared(part)))])

    def _beside(self, made: list[list[np.ndarray]]) -> list[np.ndarray]:
        n_slots = len(made[0]) - _n_shared(self.parts_[0])
        own = [np.hstack(of_slot) for of_slot in zip(*(blocks[:n_slots] for blocks in made))]
        self._n_slots = n_slots
        return own + [block for blocks in made for block in blocks[n_slots:]]

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return the parts' names."""
        if slot < self._n_slots:
            return [name for part in self.parts_ for name in part.column_names(slot, labels)]
        number = slot - self._n_slots
        several = sum(_n_shared(part) > 0 for part in self.parts_) > 1
        for place, part in enumerate(self.parts_, start=1):
            if number < _n_shared(part):
                names = part.column_names(self._n_slots + number, labels)
                return [f"part{place}_{name}" for name in names] if several else names
            number -= _n_shared(part)
        raise IndexError(f"There is no block {slot}.")

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Check parts that came from a file against their layer, and return the widths of the blocks."""
        self.check_parameters()
        require(getattr(self, "_n_slots", None) == n_slots and getattr(self, "parts_", None), "A Union is not fitted.")
        same = list(map(type, self.parts_)) == list(map(type, self.parts))
        require(same, "A Union has other parts than it was made of.")
        made = [part.check_layer(forests, n_slots, n_columns, n_labels) for part in self.parts_]
        return [sum(own) for own in zip(*(of[:n_slots] for of in made))] + [n for of in made for n in of[n_slots:]]

    @property
    def n_shared(self) -> int:
        """Blocks for all forests."""
        return sum(_n_shared(part) for part in getattr(self, "parts_", self.parts))

    @property
    def needs_forests(self) -> bool:
        """Whether a part needs the forests to make features of new rows."""
        return any(getattr(part, "needs_forests", True) for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Memory of the fitted parts."""
        return sum(getattr(part, "nbytes", 0) for part in self.parts_)


def _reseeded(view: LayerView, number: int) -> LayerView:
    """Return the view with another seed for each part, so that equal parts do not draw the same."""
    if view.random_state is None or number == 0:
        return view
    return view._replace(random_state=(view.random_state + number) % (2**31 - 1))


def _n_shared(part: Augmenter) -> int:
    return getattr(part, "n_shared", 0)
