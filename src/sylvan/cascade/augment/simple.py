"""Simple augmenters: a forest's probabilities are the features, or there are none, or those of several augmenters."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.extmath import randomized_svd

from sylvan._validation import check_integer
from sylvan.cascade.contracts import Augmenter, Handover, LayerView, Refiner
from sylvan.io import stored
from sylvan.io.checks import check_array, require
from sylvan.kernels.embedding import multiply

_FINE = 1 << 16  # steps of a probability, and of a loading, whose products are added up
_ENOUGH_ROWS = 10_000  # of which components are found
_TINY = 1e-12


@stored("Squeeze")
class Squeeze(NamedTuple):
    """A projection of a forest's probabilities, in whole numbers: sums are exact, whatever rows are taken together."""

    mean: np.ndarray  # (n_labels,), of the training rows
    loading: np.ndarray  # (n_labels, n_components) int32, multiples of 1 / _FINE

    @classmethod
    def fit(cls, proba: np.ndarray, n_components: int, seed: int | None) -> "Squeeze":
        """Find the principal components of probabilities (n, n_labels)."""
        rows = np.random.RandomState(seed).permutation(len(proba))[:_ENOUGH_ROWS]
        some = proba[np.sort(rows)]
        mean = some.mean(axis=0)
        _, _, axes = randomized_svd(some - mean, min(n_components, len(some)), random_state=seed)
        return cls(mean, np.rint(axes.T * _FINE).astype(np.int32))

    def apply(self, proba: np.ndarray) -> np.ndarray:
        """Return the scores, (n, n_components)."""
        whole = np.rint(np.clip(proba, 0.0, 1.0) * _FINE).astype(np.int32)
        scores = np.zeros((len(proba), self.loading.shape[1]), np.int64)
        multiply(np.ascontiguousarray(whole), self.loading, scores)
        return scores / float(_FINE * _FINE)

    def hand_back(self, proba: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        """Share the relevance of scores out among the labels, by how much each moves the score of the row."""
        away = np.abs(proba - self.mean) + _TINY
        handed = np.zeros(proba.shape)
        for axis, amount in zip(np.abs(self.loading.T.astype(float)) + _TINY, relevance.T):
            part = away * axis
            handed += part * (amount / part.sum(axis=1))[:, None]
        return handed

    def _check_stored(self) -> None:
        (n_labels,) = check_array("mean", self.mean, float, (None,), 0.0, 1.0).shape
        check_array("loading", self.loading, np.int32, (n_labels, None), -2 * _FINE, 2 * _FINE, contiguous=True)


@stored("OutputSpace", _squeezed=list[Squeeze])
class OutputSpace(BaseEstimator):
    """The block of a forest is its probabilities, one column for each label, or what is left of very many.

    Parameters
    ----------
    in_sample : bool, default=False
        False: training rows get out-of-sample probabilities, as new rows do. True: they get what the forest says about
        rows it has seen, as in the published runs of CaFE; only for reproduction, since such features promise more
        than they keep.
    n_components : int or None, default=None
        Where there are more than three times as many labels, that many principal components of a forest's
        probabilities stand for them. None: one column for each label, however many.

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

    def __init__(self, *, in_sample: bool = False, n_components: int | None = None) -> None:
        self.in_sample, self.n_components = in_sample, n_components

    @property
    def flatters(self) -> bool:
        """Forests know the training rows that they have seen."""
        return self.in_sample

    def check_parameters(self) -> None:
        """Raise an error for parameters that cannot work."""
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1)

    def fit_transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the probabilities of the training rows, or their components."""
        blocks = self._said(view, in_sample=self.in_sample)
        self._squeezed = []
        if self.n_components is not None and blocks[0].shape[1] > 3 * self.n_components:
            used = slice(None) if view.used is None else view.used
            self._squeezed = [Squeeze.fit(block[used], self.n_components, view.random_state) for block in blocks]
        return self._made_of(blocks)

    def transform(self, view: LayerView) -> list[np.ndarray]:
        """Return the probabilities of new rows, or their components."""
        return self._made_of(self._said(view, in_sample=self.in_sample and view.rows is not None))

    def _said(self, view: LayerView, in_sample: bool) -> list[np.ndarray]:
        if in_sample:
            return [forest.predict_proba(view.input_of(slot)) for slot, forest in enumerate(view.forests)]
        return list(view.probas)

    def _made_of(self, blocks: list[np.ndarray]) -> list[np.ndarray]:
        squeezed = getattr(self, "_squeezed", [])
        return [squeeze.apply(block) for squeeze, block in zip(squeezed, blocks)] if squeezed else blocks

    def hand_on(self, handover: Handover, relevance: list[np.ndarray]) -> None:
        """Hand relevance on to the forests' probabilities, or to all their trees, if these made the block."""
        squeezed = getattr(self, "_squeezed", [])
        for slot, own in enumerate(relevance):
            if squeezed:
                own = squeezed[slot].hand_back(handover.answers(slot), own)
            if self.in_sample and handover.rows is not None:
                handover.along_paths(slot, None, own)
            else:
                handover.to_answers(slot, own)

    def column_names(self, slot: int, labels: Sequence[str]) -> list[str]:
        """Return the names of the labels, or "component0", "component1" and so on."""
        squeezed = getattr(self, "_squeezed", [])
        return [f"component{i}" for i in range(squeezed[slot].loading.shape[1])] if squeezed else list(labels)

    def check_layer(self, forests: Sequence[Any], n_slots: int, n_columns: int, n_labels: int) -> list[int]:
        """Return the widths of the blocks."""
        self.check_parameters()
        squeezed = getattr(self, "_squeezed", [])
        require(not squeezed or len(squeezed) == n_slots, "There are other forests than components.")
        require(all(len(squeeze.mean) == n_labels for squeeze in squeezed), "Components are of other labels.")
        return [squeeze.loading.shape[1] for squeeze in squeezed] or [n_labels] * n_slots

    @property
    def nbytes(self) -> int:
        """Memory of the components."""
        return sum(part.nbytes for squeeze in getattr(self, "_squeezed", []) for part in squeeze)


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
