"""One layer of a cascade: its forests, which columns each of them sees, and the features it makes for the next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from sylvan.base import Forest, LayerView

MAX_SEED = np.iinfo(np.int32).max


def visible_blocks(n_slots: int, n_blocks: int, crossover: bool) -> list[list[int]]:
    """Say which blocks of the layers before each slot sees: all, or with crossover all but its own."""
    return [
        [block for block in range(n_blocks) if not (crossover and block % n_slots == slot)] for slot in range(n_slots)
    ]


def side_by_side(blocks: Sequence[np.ndarray], visible: Sequence[int], X: Any) -> Any:
    """Put the visible blocks in front of X."""
    parts = [blocks[block] for block in visible if blocks[block].shape[1]]
    if not parts:
        return X
    if X is None:
        return np.hstack(parts)
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([*(sparse.csr_array(part) for part in parts), X], format="csr"))
    return np.hstack([*parts, X])


@dataclass(frozen=True)
class TrainingRows:
    """The rows a cascade learns from. Columns of X are encoded once for all layers, in `_encoded`."""

    X: Any
    sample_weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    _encoded: dict = field(default_factory=dict)

    def encode(self, forest: Forest) -> Any:
        """Return X in the form the forest likes."""
        if forest.encoding not in self._encoded:
            self._encoded[forest.encoding] = forest.encode(self.X, self.used)
        return self._encoded[forest.encoding]

    @property
    def used(self) -> np.ndarray | None:
        """Rows of positive weight; None for all."""
        if self.sample_weight is None or (self.sample_weight > 0).all():
            return None
        return self.sample_weight > 0

    def select(self, values: np.ndarray) -> np.ndarray:
        """Return the used rows of (..., n, n_labels) values."""
        return values if self.used is None else values[..., self.used, :]

    def expand(self, labels: np.ndarray) -> np.ndarray:
        """Return labels of the used rows as labels of all; what the others get has no say."""
        if self.used is None:
            return labels
        everything = np.repeat(labels[:1], len(self.used), axis=0)  # some row's labels, so that classes stay classes
        everything[self.used] = labels
        return everything


@dataclass(frozen=True)
class Layer:
    """Fitted forests, and the augmenter that makes the next layer's features of them (None in the last layer).

    Attributes
    ----------
    number : from 1
    forests : one for each slot; they make the features of the next layer
    visible : blocks of the layer before that each of them sees
    widths : number of columns of each of those blocks
    judges : forests that predict: the same, or others that see all blocks (`separate_forests`)
    judge_visible : blocks that each judge sees
    cumulative : whether blocks of earlier layers are passed on with the new ones
    augment : fitted augmenter or None
    """

    number: int
    forests: list[Any]
    visible: list[list[int]]
    widths: list[int]
    judges: list[Any]
    judge_visible: list[list[int]]
    cumulative: bool = False
    augment: Any = None

    def probas(self, blocks: Sequence[np.ndarray], X: Any) -> np.ndarray:
        """Return what each judge says about new rows, (n_forests, n, n_labels)."""
        return _ask(self.judges, self.judge_visible, blocks, X)

    def make_blocks(self, blocks: Sequence[np.ndarray], X: Any, probas: np.ndarray) -> list[np.ndarray]:
        """Return the features of new rows for the next layer; `probas` are the judges'."""
        if self.judges is not self.forests:
            probas = _ask(self.forests, self.visible, blocks, X)
        view = LayerView(self.forests, lambda slot: side_by_side(blocks, self.visible[slot], X), probas)
        made = self.augment.transform(view)
        return [*blocks, *made] if self.cumulative else made

    def importances(self, before: list[np.ndarray], n_features: int, judges: bool = False) -> list[np.ndarray]:
        """Return each forest's importance of the input features.

        The importance of a block goes to the features of the forest that made it: `before` has those of the blocks.
        """
        forests = self.judges if judges else self.forests
        mapped = []
        for forest, visible in zip(forests, self.judge_visible if judges else self.visible):
            raw = np.asarray(forest.feature_importances_)
            total = raw[len(raw) - n_features :].copy()
            at = 0
            for block in visible:
                total += raw[at : at + self.widths[block]].sum() * before[block]
                at += self.widths[block]
            mapped.append(total)
        return mapped if judges or not self.cumulative else [*before, *mapped]

    @property
    def nbytes(self) -> int:
        """Memory of the forests and of what the augmenter keeps."""
        forests = self.forests if self.judges is self.forests else [*self.forests, *self.judges]
        return sum(getattr(part, "nbytes", 0) for part in [*forests, self.augment])


def _ask(forests: Sequence[Any], visible: Sequence[Sequence[int]], blocks: Sequence[np.ndarray], X: Any) -> np.ndarray:
    return np.stack([forest.predict_proba(side_by_side(blocks, seen, X)) for forest, seen in zip(forests, visible)])


def fit_forests(
    templates: Sequence[Any],
    rows: TrainingRows,
    blocks: Sequence[np.ndarray],
    visible: Sequence[Sequence[int]],
    labels: np.ndarray,
    seeds: Sequence[int],
    n_jobs: int | None,
    with_X: bool = True,
) -> tuple[list[Any], np.ndarray]:
    """Fit a clone of each template on the blocks it sees and X; return them and their out-of-sample probabilities."""
    encoded: dict[tuple[Any, int], Any] = {}
    forests, probas = [], []
    for template, seen, seed in zip(templates, visible, seeds):
        forest = _prepared(template, seed, n_jobs)
        parts = []
        for block in seen:
            if not blocks[block].shape[1]:
                continue
            key = (forest.encoding, block)
            if key not in encoded:
                encoded[key] = forest.encode(blocks[block], rows.used)
            parts.append(encoded[key])
        if with_X:
            parts.append(rows.encode(forest))
        forest.fit(forest.join(parts), labels, sample_weight=rows.sample_weight, groups=rows.groups)
        proba = np.array(forest.oos_proba_).reshape(labels.shape)
        if rows.used is not None:  # these rows belong to no bin
            unused = ~rows.used
            shown = [block[unused] for block in blocks]
            proba[unused] = forest.predict_proba(side_by_side(shown, seen, rows.X[unused] if with_X else None))
        probas.append(proba)
        del forest.oos_proba_  # of use for the next layer only, and as large as the labels
        forests.append(forest)
    return forests, np.stack(probas)


def _prepared(template: Any, seed: int, n_jobs: int | None) -> Any:
    forest = clone(template)
    params = forest.get_params(deep=False)
    wanted = {"random_state": seed} if "random_state" in params else {}
    if n_jobs is not None and "n_jobs" in params:
        wanted["n_jobs"] = n_jobs
    return forest.set_params(**wanted)
