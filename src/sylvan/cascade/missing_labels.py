"""What users came for: the labels that are probably missing, of training rows and of new ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sylvan.labels import suggestions
from sylvan.labels.findings import Fitted, like
from sylvan.labels.suggestions import apply_suggestions
from sylvan.labels.table import WeakLabels, check_rows, check_same_order


class MissingLabels:
    """The part of a cascade that lists, completes and checks labels. Mixed into `DeepForestClassifier`."""

    random_state: Any
    layers_: list[Any]
    n_labels_: int
    _fitted: Fitted

    def _read(self, y: Any) -> WeakLabels:
        raise NotImplementedError

    def _fit(self, X: Any, weak: WeakLabels, **fit_params: Any) -> None:
        raise NotImplementedError

    def _label_proba(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def suggest_labels(
        self, top: int | None = None, min_proba: float | None = None, max_per_label: int | None = None
    ) -> pd.DataFrame:
        """List labels of the training rows that are probably missing, most likely first.

        Without arguments: the cells that the imputer filled (without an imputer, those with probability above 0.5).
        With arguments: the most probable of all cells that may be missing, imputed or not. Look at some before you
        trust them, and at `check_recovery`.

        The probability of calibrated models, such as `auto`, is P(label present | features, not recorded), as good as
        the estimate of the label frequency c. That of others is what the last layer says, p, raised by the share c of
        positives it was told of: 1 - (1 - p)^(1/c), with one c for all labels. It ranks well, but is too high where
        labels are noisy: cells that were filled confirm each other in the next layer.

        Parameters
        ----------
        top : int, optional
            Length of the list.
        min_proba : float, optional
            Least probability.
        max_per_label : int, optional
            Most suggestions for one label.

        Returns
        -------
        DataFrame
            row (its name in the index of Y if that has unique names, else its position), label, probability that the
            label is truly present, layer at which it was first imputed (missing if it was not).
        """
        check_is_fitted(self, "layers_")
        fitted = self._fitted
        wanted = fitted.labels.candidates
        if top is None and min_proba is None and max_per_label is None:
            wanted = fitted.filled()
        return suggestions.list_cells(
            wanted,
            fitted.probability,
            fitted.labels.since,
            fitted.rows,
            fitted.label_names,
            top=top,
            min_proba=min_proba,
            max_per_label=max_per_label,
        )

    def apply_suggestions(self, Y: Any, suggestions: pd.DataFrame) -> Any:
        """Return a copy of Y with 1 in the suggested cells; see `sylvan.apply_suggestions`."""
        return apply_suggestions(Y, suggestions)

    def complete(self, X: Any, Y: Any) -> Any:
        """Complete the labels of new rows: what is observed stays, and what the imputer would accept is added.

        Parameters
        ----------
        X : (n, n_features)
        Y : (n, n_labels), labels as in `fit`: zeros, or only unknown cells if there are any, may become 1

        Returns
        -------
        (n, n_labels) of 0/1, of the type of Y
        """
        check_is_fitted(self, "layers_")
        if self._fitted.kind != "multilabel":
            raise ValueError("complete() needs a model of multi-label targets; classes are predicted by predict(X).")
        weak = self._read(Y)
        _check_same_labels(weak, self.n_labels_, getattr(self, "label_names_in_", None))
        check_same_order(X, weak.index)
        probas = self._label_proba(X)
        check_rows(probas.shape[1], weak.targets)
        accepted = self._fitted.accept(probas) & weak.candidates
        completed = like(weak, (weak.observed | accepted).astype(np.int8))
        return type(Y)(completed) if sparse.issparse(Y) else completed

    def check_recovery(
        self,
        X: Any,
        Y: Any,
        rate: float = 0.1,
        *,
        min_proba: float | None = None,
        max_per_label: int | None = None,
        random_state: Any = None,
        **fit_params: Any,
    ) -> pd.DataFrame:
        """Hide a further share of the observed positives, fit a clone, and say how many came back.

        What users can check without knowing the truth: hidden positives are known to be true. (How many of the other
        suggestions are wrong cannot be known from the data.)

        Parameters
        ----------
        X, Y : as in `fit`
        rate : float, default=0.1
            Share of each label's observed positives to hide, at least one if there are two.
        min_proba, max_per_label : optional
            Count what is at least so probable instead of what the imputer filled, and no more than so many cells of a
            label, the most probable ones.
        random_state : int, RandomState or None, default=None
            Draws what is hidden; None: the model's own `random_state`.
        **fit_params : further arguments of `fit`

        Returns
        -------
        DataFrame, a line for each label and one for all
            hidden: positives that were hidden; recovered: of them, imputed; recall: their share; imputed: all imputed
            cells; candidates: cells that were not observed; median_rank: of the hidden among the candidates by
            probability, 1 is best; expected_by_chance: recall of as many cells picked at random.
        """
        weak = self._read(Y)
        drawn = check_random_state(self.random_state if random_state is None else random_state)
        hidden = suggestions.hide_some(weak.observed, rate, drawn) & _can_be_missing(weak)
        trial = clone(self)
        masked = replace(weak, observed=weak.observed & ~hidden, candidates=weak.candidates | hidden)
        trial._fit(X, masked, **fit_params)  # noqa: SLF001 (the same class)
        fitted = trial._fitted  # noqa: SLF001
        found = fitted.chosen(min_proba, max_per_label)
        return suggestions.report_recovery(
            hidden, masked.candidates, found & masked.candidates, fitted.probability, fitted.label_names
        )


def _check_same_labels(weak: WeakLabels, n_labels: int, names: Any) -> None:
    if weak.targets.n_labels != n_labels:
        raise ValueError(f"Y has {weak.targets.n_labels} labels, but the model was fitted with {n_labels}.")
    given = weak.targets.names
    if names is not None and given is not None and list(names) != list(given):
        raise ValueError(f"The labels of Y, {list(given)}, are not those of the fit in the same order: {list(names)}.")


def _can_be_missing(weak: WeakLabels) -> np.ndarray:
    """Say where a hidden positive would be looked for: nowhere if nothing may be missing, as in classes."""
    return np.full_like(weak.observed, weak.candidates.any())
