"""The cascade: layer after layer of forests, each learning from X and from what the layer before it found out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils import Tags, check_random_state, compute_sample_weight, get_tags
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import once_each, warn_user
from sylvan._validation import check_features, check_groups, check_integer, check_weights
from sylvan.cascade.checkpoints import Checkpoints, NoCheckpoints, fingerprint
from sylvan.cascade.explain import Explaining
from sylvan.cascade.growth import NO_FREQUENCY, Plan, Stage, grow, make_plan, representation
from sylvan.cascade.layer import MAX_SEED, TrainingRows
from sylvan.cascade.missing_labels import MissingLabels
from sylvan.cascade.progress import CallbackSupportMixin, Progress, with_callbacks
from sylvan.io import Savable
from sylvan.labels import suggestions
from sylvan.labels.findings import Fitted, like
from sylvan.labels.state import LabelState, known_frequency, mean_of
from sylvan.labels.summary import Summary, summarise
from sylvan.labels.table import WeakLabels, check_rows, check_same_order, check_weak_labels

_BLOCK_NUMBERS = 1 << 24  # feature values that are predicted at a time
_NOT_HASHED = ("n_jobs", "verbose", "callbacks", "random_state", "decision_threshold")
_NOTHING_IMPUTED = (
    "No label was imputed: no unobserved cell passed the imputer's threshold. suggest_labels(top=...) ranks them all "
    "the same; a lower threshold, or StrictLabelComplement(threshold_on='scaled'), fills more, with less certainty."
)


class DeepForestClassifier(
    MissingLabels, Explaining, Savable, TransformerMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """A deep forest of exchangeable parts: forests, augmenter, imputer, length control, crossover.

    Layer 1 learns the labels from X. Every further layer learns them from X and from the features that the augmenter
    makes of the layer before; between two layers the imputer may add labels that were probably missed. Training rows
    get out-of-sample features throughout. The published algorithms are ready-made: `sylvan.cafe_slc()` and others.

    Parameters
    ----------
    forests : list of forests, or function of the layer number that returns one
        Each keeps out-of-sample probabilities: `out_of_sample=OutOfBag()` or `KFold(k)`. Other estimators may stand
        in through `sylvan.forests.from_sklearn`. The cascade sets their `random_state`.
    augment : augmenter or None, default=None
        `OutputSpace`, `TreeEmbedding`, `Interactions`, `MeasureAwareReuse`, `Union` of `sylvan.cascade.augment`; None:
        layers see X only.
    impute : imputer or None, default=None
        `StrictLabelComplement`, `FluidLabelAddition`, `LabelComplement` of `sylvan.labels.impute`; None:
        `KeepLabels()`.
    length : length control or None, default=None
        `BestLayer`, `Patience`, `ScoreDrop`, ... of `sylvan.cascade.length`; None: `FixedLength()`, all layers are
        kept.
    crossover : bool, default=False
        Whether a forest sees only the features made by the other forests of the layer before.
    cumulative : bool, default=False
        Whether a layer sees the features made by all layers before, or by the one before.
    average_layers : bool, default=False
        Whether predictions, and scores of layers, are made of the mean of all layers up to there, or of the last one.
    calibrate : Calibration or None, default=None
        Turns probabilities that a label is recorded into probabilities that it is present (`sylvan.labels.calibrate`),
        given the label frequency that the imputer estimates (`KeepLabels(frequency=...)` if nothing is to be imputed).
    max_layers : int, default=11
        Most layers to grow, up to 10000.
    scanning : MultiGrainedScanning or None, default=None
        Turns X, images or sequences, into features that all layers see instead of X (`sylvan.cascade.scanning`). It
        learns from the observed labels. The cascade sets its `random_state`.
    scoring : str, Measure or None, default=None
        Measure of a layer's out-of-sample probabilities against the observed labels (`sylvan.measures`). Unknown
        cells are left out where zeros are trusted (measures by row take them for negatives). None: the share of wrong
        predictions for classes, micro AUROC for labels, whose order survives missing positives.
    decision_threshold : float, "calibrated" or "learned", default=0.5
        A label is predicted where its probability is greater. "calibrated": than 0.5 times the share c of a label's
        positives that the last layer was told of, which needs an imputer with a frequency estimate. "learned": than
        what `calibrate` found; of two classes that are complete, the more probable one. Taken as it is when `fit` is
        called.
    separate_forests : bool, default=False
        The authors' variant of CaFE, for reproduction: in each layer, further forests that see all blocks (no
        crossover) predict, and others that see the new blocks alone guide the imputer. Twice to three times the work.
    score_folds : int or None, default=None
        How layers are scored. None: by the forests' out-of-sample probabilities, which is honest where features of
        training rows are out-of-sample too. k: the cascade is also grown k times without a k-th of the rows (or
        groups), which it judges as new ones; scores and `oos_proba_` come from there, at k + 1 times the work. For
        augmenters whose features are not out-of-sample, such as `Interactions`. (`scanning` is fitted once, on all
        rows: its features are out-of-sample, but their forests have seen other rows of the fold.)
    unknown_label : default=NaN
        Marks cells of Y that are unknown; NaN always does.
    trust_zeros : "auto", "classes", True or False, default="auto"
        Whether a 0 is known to be negative; only cells that are not may be imputed. "auto": True if Y has unknown
        cells, False otherwise. "classes": the same for a table of labels, but True if y has two classes.
    class_weight : dict, list of dicts, "balanced" or None, default=None
        Weights of classes, as in scikit-learn's forests.
    n_jobs : int or None, default=None
        Blocks of trees that are worked on at a time; None leaves it to the forests.
    random_state : int, RandomState or None, default=None
        The same number gives the same model bit for bit, whatever `n_jobs` and joblib backend.
    verbose : int, default=0
        1 logs a line for each layer, with a progress bar on terminals (if tqdm is installed).
    callbacks : list of callables or None, default=None
        Each is called with a `sylvan.cascade.progress.LayerEvent` after every layer; one that returns True stops the
        growth.

    Attributes
    ----------
    layers_ : list of fitted layers
    n_layers_ : number of layers kept
    history_ : DataFrame with layer, score, imputed, active, seconds; one line for each layer grown
    classes_, n_labels_, n_features_in_, feature_names_in_, label_names_in_ : as found in fit
    oos_proba_ : out-of-sample probabilities of the training rows
    imputed_labels_ : (n, n_labels) of 0/1, observed positives and imputed ones; a DataFrame if Y was one
    label_frequency_, label_bound_ : estimates of P(observed | positive) and of the number of positives, or None;
        Series if Y was a DataFrame. Those of labels with a few observed positives are hardly more than a guess.
    feature_importances_ : importance of the input features, block importances traced back through the layers
    model_size_ : bytes that the layers take, and the forests of `scanning_`
    scanning_ : the fitted `scanning`, or None
    tree_weights_ : learned weights of trees by layer and forest; if all forests are a `WeightedForest`
    interactions_, mining_report_ : rules in words, and how they were found; with `Interactions`
    calibration_ : the fitted `calibrate`, or None
    thresholds_ : confidence below which each layer gives way to the one before; with `MeasureAwareReuse`

    Examples
    --------
    >>> from sylvan import DeepForestClassifier
    >>> from sylvan.cascade.augment import OutputSpace
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> from sylvan.forests import ExtraTrees, OutOfBag, RandomForest
    >>> from sylvan.labels.impute import StrictLabelComplement
    >>> from sylvan.cascade.length import BestLayer
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> Y_observed = hide_positives(Y, 0.5, random_state=0)
    >>> forests = [
    ...     RandomForest(30, out_of_sample=OutOfBag()),
    ...     ExtraTrees(30, bootstrap=True, out_of_sample=OutOfBag()),
    ... ]
    >>> model = DeepForestClassifier(
    ...     forests,
    ...     augment=OutputSpace(),
    ...     impute=StrictLabelComplement(threshold_on="scaled"),
    ...     length=BestLayer(first=2),
    ...     crossover=True,
    ...     max_layers=3,
    ...     random_state=0,
    ... ).fit(X, Y_observed)
    >>> model.suggest_labels(top=3).columns.tolist()
    ['row', 'label', 'probability', 'layer']
    """

    def __init__(
        self,
        forests: Any,
        *,
        augment: Any = None,
        impute: Any = None,
        length: Any = None,
        crossover: bool = False,
        cumulative: bool = False,
        average_layers: bool = False,
        calibrate: Any = None,
        max_layers: int = 11,
        scanning: Any = None,
        scoring: Any = None,
        decision_threshold: Any = 0.5,
        separate_forests: bool = False,
        score_folds: int | None = None,
        unknown_label: Any = np.nan,
        trust_zeros: Any = "auto",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable] | None = None,
    ) -> None:
        self.forests = forests
        self.augment = augment
        self.impute = impute
        self.length = length
        self.crossover = crossover
        self.cumulative = cumulative
        self.average_layers = average_layers
        self.calibrate = calibrate
        self.max_layers = max_layers
        self.scanning = scanning
        self.scoring = scoring
        self.decision_threshold = decision_threshold
        self.separate_forests = separate_forests
        self.score_folds = score_folds
        self.unknown_label = unknown_label
        self.trust_zeros = trust_zeros
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = [get_tags(forest) for forest in self._first_forests()]
        tags.input_tags.allow_nan = bool(inner) and all(tag.input_tags.allow_nan for tag in inner)
        tags.input_tags.sparse = bool(inner) and all(tag.input_tags.sparse for tag in inner)
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def _first_forests(self) -> Sequence[Any]:
        """Return the forests of layer 1, none if they cannot be had: `fit` says why."""
        try:
            forests = self.forests(1) if callable(self.forests) else self.forests
        except Exception:
            return []
        return forests if isinstance(forests, (list, tuple)) else []

    # ------------------------------------------------------------------------------------------------ fit

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, checkpoint_dir: Any = None
    ) -> "DeepForestClassifier":
        """Grow the cascade.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n, n_features)
            NaN stands for a missing value.
        y : (n, n_labels) of 0/1, with NaN (or `unknown_label`) for unknown cells; or (n,) classes
            1 is an observed positive. 0 is "not observed", and may be imputed, unless zeros are trusted. Unknown cells
            count as 0 until they are imputed. Of two classes, the second is the positive one, which may be
            missing unless `trust_zeros` says otherwise.
        sample_weight : (n,), optional
            As the forests understand it. Rows of weight 0 have no say in anything, and nothing is imputed there.
        groups : (n,), optional
            Rows of a group stay together in the folds of forests with `KFold` out-of-sample probabilities.
        checkpoint_dir : path, optional
            Folder in which every finished layer is stored. A fit that was stopped goes on after the last finished
            layer if it is started again with the same data and parameters, and ends with the same model. (`scanning`
            is fitted again.)

        Returns
        -------
        self
        """
        self._forget()
        self._fit(X, self._read(y), sample_weight, groups, checkpoint_dir)
        return self

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit, and return the out-of-sample representation of the training rows.

        **`fit(X, y).transform(X)` differs**: it takes the training rows for new ones, though the forests have seen
        them, and looks better than it is.
        """
        seen: list[np.ndarray] = []
        self._forget()
        self._fit(X, self._read(y), sample_weight, groups, seen=seen)
        return seen[self.n_layers_ - 1]

    def _read(self, y: Any) -> WeakLabels:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        return check_weak_labels(y, self.unknown_label, self.trust_zeros)

    @with_callbacks
    def _fit(
        self,
        X: Any,
        weak: WeakLabels,
        sample_weight: Any = None,
        groups: Any = None,
        checkpoint_dir: Any = None,
        seen: list[np.ndarray] | None = None,
    ) -> None:
        """Grow the cascade and keep it; put the training rows' representation in each layer into `seen`, if given."""
        try:
            plan = make_plan(self, weak.targets.kind)
            drawn = check_random_state(self.random_state).randint(MAX_SEED, size=plan.max_layers)
            check_same_order(X, weak.index)
            X = check_features(self, X, reset=True)
            check_rows(X.shape[0], weak.targets)
            weights = self._weights(sample_weight, weak)
            groups = check_groups(groups, X.shape[0])
            checkpoints: NoCheckpoints = NoCheckpoints()
            if checkpoint_dir is not None:
                params = {k: v for k, v in self.get_params(deep=False).items() if k not in _NOT_HASHED}
                if callable(self.forests):  # what it returns says more than how it is written
                    params["forests"] = [plan.forests(number) for number in range(1, min(plan.max_layers, 30) + 1)]
                seed = int(self.random_state) if isinstance(self.random_state, Integral) else None
                data = (X, weak.observed, weak.candidates, weights, groups)
                checkpoints = Checkpoints(checkpoint_dir, fingerprint(params, seed, *data))
            seeds = checkpoints.seeds([int(seed) for seed in drawn])
            progress = Progress(self, self.callbacks, self.verbose, plan.max_layers, plan.measure.name)
            with once_each(), progress:
                rows = self._scan(X, weak, weights, groups, seeds[0])
                stages = grow(
                    plan,
                    rows,
                    lambda some: self._begin(plan.impute, some, weak, seeds[0]),
                    seeds,
                    checkpoints,
                    progress,
                    seen,
                )
                n_layers = plan.length.n_layers([stage.record for stage in stages])
                check_integer("The number of layers that the length control keeps", n_layers, 1, len(stages))
                self._keep(stages, n_layers, plan, weak, rows.used)
                progress.finished(n_layers, len(stages), stages[n_layers - 1])
                if stages[0].trained.active.any() and not stages[n_layers - 1].after.imputed.any():
                    warn_user(_NOTHING_IMPUTED, "nothing imputed")
        except BaseException:
            self._forget()  # an interrupted fit leaves nothing half done
            raise

    def _forget(self) -> None:
        """Drop what an earlier fit left."""
        for name in [name for name in vars(self) if name.endswith("_") or name == "_fitted"]:
            del self.__dict__[name]

    def _weights(self, sample_weight: Any, weak: WeakLabels) -> np.ndarray | None:
        """Return the weights of rows, those of their classes multiplied in."""
        n = weak.targets.n_rows
        weights, scale = check_weights(sample_weight, n)
        weights = None if weights is None else weights * scale
        if self.class_weight is None:
            return weights
        y = weak.observed.astype(int)
        if weak.targets.kind != "multilabel":
            code = y.argmax(axis=1) if weak.targets.kind == "multiclass" else y[:, 0]
            y = weak.targets.classes[code]
        return compute_sample_weight(self.class_weight, y) * (1.0 if weights is None else weights)

    def _scan(
        self, X: Any, weak: WeakLabels, weights: np.ndarray | None, groups: np.ndarray | None, seed: int
    ) -> TrainingRows:
        """Return the rows as the layers see them: X, or what scanning makes of it."""
        self.scanning_ = None
        if self.scanning is None:
            return TrainingRows(X, weights, groups)
        scanning = clone(self.scanning).set_params(random_state=seed)
        if self.n_jobs is not None:
            scanning.set_params(n_jobs=self.n_jobs)
        labels = pd.DataFrame(weak.observed)
        unused = np.zeros(X.shape[0], bool) if weights is None else weights == 0
        if unused.any():  # their labels have no say in how folds are drawn
            labels[unused] = labels[~unused].iloc[0].to_numpy()
        labels.columns = pd.Index([str(name) for name in weak.targets.label_names], tupleize_cols=False)
        scanned = np.asarray(scanning.fit_transform(X, labels, sample_weight=weights, groups=groups))
        if unused.any():
            scanned[unused] = np.asarray(scanning.transform(X[unused]))  # they are judged as new rows
        self.scanning_ = scanning
        return TrainingRows(scanned, weights, groups, scanning.layer_columns_)

    def _begin(self, impute: Any, rows: TrainingRows, weak: WeakLabels, seed: int) -> LabelState:
        """Return the labels of the used rows before layer 1."""
        X = rows.X if rows.used is None else rows.X[rows.used]
        observed, candidates = rows.select(weak.observed), rows.select(weak.candidates)
        return impute.begin(X, observed, candidates, seed, weak.targets.label_names)

    def _keep(
        self,
        stages: list[Stage],
        n_layers: int,
        plan: Plan,
        weak: WeakLabels,
        used: np.ndarray | None,
    ) -> None:
        """Keep the chosen layers and what they found."""
        last = stages[n_layers - 1]
        labels = last.after if used is None else last.after.of_all_rows(used, weak.observed, weak.candidates)
        if self.decision_threshold == "calibrated" and last.after.frequency is None:
            raise ValueError(NO_FREQUENCY)
        targets = weak.targets
        frequency = plan.impute.frequency_in(last.trained, last.after)
        proba = last.proba
        calibration = plan.calibrate
        if calibration is not None:
            seen = proba if used is None else proba[used]
            details = last.after.details
            interval = None if details is None else (np.nan_to_num(details.low), np.nan_to_num(details.high, nan=1.0))
            calibration.fit(last.trained.observed, seen, known_frequency(last.after), interval)
        thresholds = self.decision_threshold
        if isinstance(thresholds, str):
            thresholds = 0.5 * frequency if thresholds == "calibrated" else calibration.threshold_
            if targets.kind == "binary" and not weak.candidates.any():
                thresholds = 0.5  # of two complete classes, the more probable one
        self.classes_, self.n_labels_ = targets.classes, targets.n_labels
        if targets.names is not None:
            self.label_names_in_ = targets.names
        inner, wanted = [], None
        for stage in reversed(stages[: n_layers - 1]):
            layer = stage.layer if plan.average_layers else stage.layer.without_forests()
            layer, wanted = layer.narrowed(wanted)
            inner.append(layer)
        self.layers_ = inner[::-1]
        self.layers_.append(last.layer.as_last())
        self.n_layers_ = n_layers
        self.history_ = pd.DataFrame([stage.record for stage in stages]).drop(columns="greater_is_better")
        self.label_frequency_ = _by_label(last.after.frequency, weak)
        self.label_bound_ = _by_label(last.after.bound, weak)
        fitted = Fitted(
            kind=targets.kind,
            thresholds=np.broadcast_to(np.asarray(thresholds, dtype=float), (targets.n_labels,)),
            labels=labels,
            probability=_present(proba, frequency, last.trained.observed.sum(axis=0)),
            impute=plan.impute,
            rows=suggestions.row_names(weak.index, targets.n_rows),
            label_names=targets.label_names,
            used=used,
            measure=_in_words(plan.measure),
        )
        current = labels.current
        if calibration is not None:
            present = calibration.transform(proba)
            fitted = replace(fitted, calibration=calibration, said=proba)
            fitted = replace(fitted, probability=fitted.unrecorded(present))
            proba, current = present, labels.observed | fitted.filled()
        self.calibration_ = calibration
        self.imputed_labels_ = like(weak, current.astype(np.int8))
        self._fitted = fitted
        self.oos_proba_ = np.array(self._as_proba(proba))

    # ------------------------------------------------------------------------------------------------ predict

    def _stages(self, X: Any, narrow: bool = True) -> Iterator[tuple[list[np.ndarray], Any]]:
        """Send new rows through the layers: the blocks that each sees, and what its forests say.

        If `narrow`, columns that no later layer reads need not be made.
        """
        blocks: list[np.ndarray] = []
        probas = None
        for layer in self.layers_:
            probas = layer.probas(blocks, X, probas)
            yield blocks, probas
            if layer is not self.layers_[-1]:
                blocks = layer.make_blocks(blocks, X, probas, narrow)

    def _row_blocks(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Check X and cut it into dense blocks of rows."""
        check_is_fitted(self, "layers_")
        X = check_features(self, X, reset=False)
        width = X.shape[1] if self.scanning_ is None else max(X.shape[1], self.scanning_.n_features_out_)
        step = max(1, _BLOCK_NUMBERS // width)
        for first in range(0, X.shape[0], step):
            part = X[first : first + step]
            part = part.toarray() if sparse.issparse(part) else part
            yield (
                slice(first, first + step),
                part if self.scanning_ is None else np.asarray(self.scanning_.transform(part)),
            )

    def _label_proba(self, X: Any) -> np.ndarray:
        """Return what each forest of the last layer says, (n_forests, n, n_labels), or each layer, if averaged."""
        parts = []
        for _, block in self._row_blocks(X):
            said: list[np.ndarray] = []
            for _, probas in self._stages(block):
                said = [*said, mean_of(probas)] if self.average_layers else probas
            parts.append(np.stack(said))
        return np.concatenate(parts, axis=1)

    def _presence(self, proba: np.ndarray) -> np.ndarray:
        """Return label probabilities, calibrated if they are to be."""
        return proba if self.calibration_ is None else self.calibration_.transform(proba)

    def _as_proba(self, label_proba: np.ndarray) -> np.ndarray:
        """Turn label probabilities into those of classes where the target had classes."""
        if self._fitted.kind == "binary":
            return np.column_stack([1.0 - label_proba[:, 0], label_proba[:, 0]])
        if self._fitted.kind == "multiclass":
            total = label_proba.sum(axis=1, keepdims=True)
            equal = np.full(label_proba.shape, 1.0 / label_proba.shape[1])  # a refiner may leave a row without a class
            return np.divide(label_proba, total, out=equal, where=total > 0)
        return label_proba

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities: of each label (n, n_labels) for multi-label targets, else of each class."""
        return self._as_proba(self._presence(mean_of(self._label_proba(X))))

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities after each layer, the last being those of `predict_proba`."""
        check_is_fitted(self, "layers_")
        if not all(layer.judges for layer in self.layers_):
            raise ValueError(
                "staged_predict_proba needs the forests of every layer, but this model keeps those of the last layer "
                "only: fit it with keep_forests=True (in Interactions, or imldf)."
            )
        return self._staged_proba(X)

    def _staged_proba(self, X: Any) -> Iterator[np.ndarray]:
        parts = [[mean_of(probas) for _, probas in self._stages(block)] for _, block in self._row_blocks(X)]
        said = [np.concatenate(stage) for stage in zip(*parts)]
        for number, stage in enumerate(said, start=1):
            yield self._as_proba(self._presence(mean_of(said[:number]) if self.average_layers else stage))

    def predict(self, X: Any) -> np.ndarray:
        """Return 0/1 labels (probability above the decision threshold) for multi-label targets, else classes."""
        proba = self._presence(mean_of(self._label_proba(X)))
        if self._fitted.kind == "multiclass":
            return self.classes_[proba.argmax(axis=1)]
        labels = (proba > self._fitted.thresholds).astype(np.int64)
        return labels if self._fitted.kind == "multilabel" else self.classes_[labels[:, 0]]

    @property
    def decision_threshold_(self) -> Any:
        """What `predict` compares probabilities with: a number, or one for each label."""
        check_is_fitted(self, "layers_")
        return self._fitted.thresholds

    def summary(self) -> Summary:
        """Say what was found out: layers, label frequency and why labels share it or not, thresholds by label.

        Returns
        -------
        Summary
            `print` shows it; its `labels` is a DataFrame, its `notes` a list of sentences.
        """
        check_is_fitted(self, "layers_")
        return summarise(self, self._fitted)

    def transform(self, X: Any) -> np.ndarray:
        """Return the last layer's representation of new rows: the features it was given and what its forests say.

        Without X. Of training rows, `fit_transform` gives the out-of-sample representation; this does not.
        """
        parts = []
        for _, block in self._row_blocks(X):
            for blocks, probas in self._stages(block):
                last = blocks, probas
            parts.append(representation(*last))
        return np.concatenate(parts)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the columns of `transform`."""
        check_is_fitted(self, "layers_")
        labels = [str(name) for name in self._fitted.label_names]
        names = []
        for before in self.layers_[:-1] if self.cumulative else self.layers_[-2:-1]:
            names += [name for block in before.block_names(labels) for name in block]
        last = self.layers_[-1]
        names += [f"layer{last.number}_forest{slot}_{label}" for slot in range(len(last.judges)) for label in labels]
        return np.asarray(names, dtype=object)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of the input features, sums to 1 (0 if no forest ever split)."""
        check_is_fitted(self, "layers_")
        before: list[np.ndarray] = []
        n_inputs = self.n_features_in_ if self.scanning_ is None else self.scanning_.n_features_out_
        means = []
        for layer in self.layers_:
            if self.average_layers or layer is self.layers_[-1]:
                means.append(np.mean(layer.importances(before, n_inputs, judges=True), axis=0))
            if layer is not self.layers_[-1]:
                before = layer.importances(before, n_inputs)
        mean = np.mean(means, axis=0)
        if self.scanning_ is not None:
            mean = self.scanning_.trace_importances(mean)
        return mean / mean.sum() if mean.sum() > 0 else mean

    @property
    def model_size_(self) -> int:
        """Bytes that the layers take."""
        check_is_fitted(self, "layers_")
        return sum(part.nbytes for part in [*self.layers_, *([] if self.scanning_ is None else [self.scanning_])])

    def _input_names(self) -> np.ndarray:
        """Return names of the columns that the first layer sees."""
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if names is None else [str(name) for name in names]
        if self.scanning_ is not None:
            return self.scanning_.get_feature_names_out(names)
        return np.asarray(names, dtype=object)


def _present(proba: np.ndarray, frequency: np.ndarray, n_observed: np.ndarray) -> np.ndarray:
    """Return the probability that labels are present: p / c, bent so that it keeps its order where it would pass 1.

    c is the labels' mean, each counting by its positives: that of a label with a handful of them is mostly noise, and
    would put such labels on top of every list.
    """
    c = np.average(frequency, weights=n_observed) if n_observed.any() else 1.0
    return 1.0 - (1.0 - np.clip(proba, 0.0, 1.0)) ** (1.0 / c)


def _in_words(measure: Any) -> str:
    """Return the name of a measure and its direction."""
    return f"{measure.name.replace('_', ' ')} ({'greater' if measure.greater_is_better else 'smaller'} is better)"


def _by_label(values: np.ndarray | None, weak: WeakLabels) -> Any:
    """Return values by label name if labels have names."""
    return values if values is None or weak.columns is None else pd.Series(values, index=weak.columns)
