"""What a fitted cascade does with new rows, and can say of itself: all that a model file needs to hold."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import some, warn_user
from sylvan._validation import check_choice, check_features
from sylvan.cascade.explain.reasons import CellReasons
from sylvan.cascade.explain.rules import ReadableRules
from sylvan.cascade.layer import Layer, ask_layers, row_blocks, through_layers, trace_importances
from sylvan.cascade.one_label import OneLabel, position
from sylvan.cascade.plan import default_measure
from sylvan.cascade.recipes import MadeByRecipe
from sylvan.exceptions import FeatureWarning
from sylvan.io import Savable
from sylvan.labels.findings import Decider
from sylvan.labels.state import mean_of
from sylvan.labels.table import read_targets
from sylvan.tables.cells import as_frame


class CascadePredictor(CellReasons, ReadableRules, Savable, TransformerMixin, ClassifierMixin, MadeByRecipe):
    """Predicts, transforms and explains with the layers of a cascade. `DeepForestClassifier` fits them."""

    # What a fit leaves, and parameters of the estimator that matter here.
    layers_: list[Layer]
    scanning_: Any
    decider_: Decider
    n_features_in_: int
    average_layers: bool
    cumulative: bool

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "layers_")
        X = as_frame(X)
        if isinstance(X, pd.DataFrame) and (cleaner := vars(self).get("cleaner_")) is not None:
            unseen: dict[str, list[str]] = {}
            X = cleaner.transform(X, unseen)
            for name, values in unseen.items():
                text = f"Column {name!r} has values that the model has not seen, taken as missing: {some(values)}."
                warn_user(text, FeatureWarning)
        return check_features(self, X, reset=False)

    def _ask(self, X: Any) -> np.ndarray:
        """Return what each forest of the last layer says, (n_forests, n, n_labels), or each layer, if averaged."""
        X = self._checked(X)  # before `layers_`, which may not be there
        return ask_layers(self.layers_, X, self.scanning_, all_layers=self.average_layers)

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities: of each label (n, n_labels) for multi-label targets, else of each class."""
        said = mean_of(self._ask(X))
        return self._as_asked(X, self.decider_.form.proba(self.decider_.present(said)))

    def predict(self, X: Any) -> Any:
        """Return 0/1 labels (probability above the decision threshold) for multi-label targets, else classes."""
        said = mean_of(self._ask(X))
        return self._as_asked(X, self.decider_.form.predict(self.decider_.present(said), self.decider_.thresholds))

    def set_output(self, *, transform: Any = None, predict: Any = None) -> Self:
        """Say in which form results come back.

        Parameters
        ----------
        transform : "default", "pandas" or "polars", optional
            Of `transform` and `fit_transform`, as everywhere in scikit-learn.
        predict : "default" or "pandas", optional
            Of `predict` and `predict_proba` of labels: arrays, or tables with the names of labels, and the index of X
            if it has one. Some tools of scikit-learn (stacking, calibration) take arrays only. Of classes it is always
            arrays.

        Returns
        -------
        self
        """
        if predict is not None:
            check_choice("predict", predict, ("default", "pandas"))
        super().set_output(transform=transform)
        if predict is not None:
            self._sklearn_output_config = vars(self).get("_sklearn_output_config", {}) | {"predict": predict}
        return self

    def _as_asked(self, X: Any, found: np.ndarray) -> Any:
        """Return what was found as `set_output` says."""
        wanted = vars(self).get("_sklearn_output_config", {}).get("predict")
        if wanted != "pandas" or not self.decider_.form.has_labels:
            return found
        index = as_frame(X).index if isinstance(as_frame(X), pd.DataFrame) else pd.RangeIndex(len(found))
        return pd.DataFrame(found, index, pd.Index(list(self.decider_.form.label_names), tupleize_cols=False))

    def for_label(self, label: Any) -> OneLabel:
        """Return one label of this model as a classifier of two classes, for tools that look at one target at a time.

        `sklearn.inspection.PartialDependenceDisplay.from_estimator(model.for_label("even"), X, ["pixel_3_4"])`.
        """
        check_is_fitted(self, "layers_")
        position(self, label)
        return OneLabel(self, label)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities after each layer, the last being those of `predict_proba`."""
        check_is_fitted(self, "layers_")
        if not all(layer.judges for layer in self.layers_):
            raise ValueError(
                "staged_predict_proba needs the forests of every layer, but this model keeps those of the last layer "
                "only: fit it with keep_forests=True (in Interactions, or imldf)."
            )
        said = ask_layers(self.layers_, self._checked(X), self.scanning_, all_layers=True)
        stages = (mean_of(said[: at + 1]) if self.average_layers else said[at] for at in range(len(said)))
        return (self.decider_.form.proba(self.decider_.present(stage)) for stage in stages)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how well X predicts y: micro AUROC for labels (`sylvan.measures.micro_auroc`), accuracy for classes.

        Missing positives lower the AUROC but keep the order of models, unlike the share of rows without any mistake.
        """
        check_is_fitted(self, "layers_")
        if not self.decider_.form.has_labels:
            return super().score(X, y, sample_weight)
        if sample_weight is not None:
            raise ValueError("score of labels takes no sample_weight; see sylvan.measures.")
        form = self.decider_.form
        targets = read_targets(y, names=form.names)
        targets.check_labels(form)
        return default_measure(form)(targets.complete().recorded, np.asarray(self.predict_proba(X)))

    @property
    def decision_threshold_(self) -> np.ndarray:
        """What `predict` compares probabilities with, (n_labels,)."""
        check_is_fitted(self, "layers_")
        return self.decider_.thresholds

    def transform(self, X: Any) -> np.ndarray:
        """Return the last layer's representation of new rows: the features it was given and what its forests say.

        Without X. Of training rows, `fit_transform` gives the out-of-sample representation; this does not.
        """
        parts = []
        for _, block in row_blocks(self._checked(X), self.scanning_):
            *_, (blocks, probas) = through_layers(self.layers_, block)
            parts.append(np.hstack([*blocks, *probas]))
        return np.concatenate(parts)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the columns of `transform`."""
        check_is_fitted(self, "layers_")
        labels, names = [str(name) for name in self.decider_.form.label_names], []
        for before in self.layers_[:-1] if self.cumulative else self.layers_[-2:-1]:
            names += [name for block in before.block_names(labels) for name in block]
        last = self.layers_[-1]
        names += [f"layer{last.number}_forest{slot}_{label}" for slot in range(len(last.judges)) for label in labels]
        return np.asarray(names, dtype=object)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of the input features, sums to 1 (0 if no forest ever split)."""
        check_is_fitted(self, "layers_")
        n_inputs = self.n_features_in_ if self.scanning_ is None else self.scanning_.n_features_out_
        mean = trace_importances(self.layers_, n_inputs, all_layers=self.average_layers)
        if self.scanning_ is not None:
            mean = self.scanning_.trace_importances(mean)
        return mean / mean.sum() if mean.sum() > 0 else mean

    @property
    def model_size_(self) -> int:
        """Bytes of the predictor: layers, scanning, numbers by label; `labels_.nbytes` has those of the findings."""
        check_is_fitted(self, "layers_")
        return sum(part.nbytes for part in [*self.layers_, self.decider_, self.scanning_] if part is not None)

    @property
    def thresholds_(self) -> list[float]:
        """The confidence below which each layer gives way to the one before it (`MeasureAwareReuse`)."""
        check_is_fitted(self, "layers_")
        refiners: list[Any] = [layer.refiner for layer in self.layers_]
        if any(not hasattr(refiner, "threshold_") for refiner in refiners):
            raise AttributeError("Only cascades with augment=MeasureAwareReuse(...), as mldf(), have thresholds_.")
        return [refiner.threshold_ for refiner in refiners]

    @property
    def tree_weights_(self) -> list[list[np.ndarray]]:
        """The learned weights of trees, by layer and forest, (n_folds, n_trees) each (`WeightedForest`)."""
        check_is_fitted(self, "layers_")
        if not all(hasattr(forest, "tree_weights_") for layer in self.layers_ for forest in layer.judges):
            raise AttributeError("Only cascades whose forests are all a WeightedForest have tree_weights_.")
        return [[forest.tree_weights_ for forest in layer.judges] for layer in self.layers_]
