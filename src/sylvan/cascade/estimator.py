"""The cascade: layer after layer of forests, each learning from X and from what the layer before it found out."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import once_each, warn_user
from sylvan._validation import check_features, check_groups, check_rows, check_same_order, forget, keep
from sylvan._validation import warn_suspicious_features as warn_of_features
from sylvan.cascade.consistency import FITTED, check_cascade
from sylvan.cascade.contracts import MAX_SEED, flatters
from sylvan.cascade.growth import Stage, count_missing, grow, kept_apart, kept_layers, make_decider, make_findings
from sylvan.cascade.plan import Plan, begin_labels, make_plan, open_checkpoints, row_weights, scan_rows, size_forests
from sylvan.cascade.predictor import CascadePredictor
from sylvan.cascade.progress import CallbackSupportMixin, Progress, with_callbacks
from sylvan.exceptions import NothingImputedWarning
from sylvan.forests.tasks import prepare_kernels
from sylvan.io import stored
from sylvan.labels.findings import Findings
from sylvan.labels.suggestions import apply_suggestions, hide_some, report_recovery
from sylvan.labels.summary import Grown, Summary
from sylvan.labels.weak import WeakLabels, read_weak_labels
from sylvan.tables.frames import clean_frame

_NOTHING_IMPUTED = (
    "No label was imputed: no unrecorded cell passed the imputer's threshold. suggest_labels(top=...) ranks them all "
    "the same; a lower threshold, or StrictLabelComplement(threshold_on='scaled'), imputes more, with less certainty."
)


@stored("DeepForestClassifier", forests=list | tuple | Callable, **FITTED)
class DeepForestClassifier(CallbackSupportMixin, CascadePredictor):
    """A deep forest of exchangeable parts: forests, augmenter, imputer, length control, crossover.

    Layer 1 learns the labels from X. Every further layer learns them from X and from the features that the augmenter
    makes of the layer before; between two layers the imputer may impute labels that were probably missed. Training rows
    get out-of-sample features throughout. The published algorithms are ready-made: `sylvan.cafe_slc()` and others.

    Parameters
    ----------
    forests : list of forests, or function of the layer number that returns one
        Each keeps out-of-sample probabilities: `out_of_sample=OutOfBag()` or `KFold(k)`. Other estimators may stand
        in through `sylvan.forests.from_sklearn`. The cascade sets their `random_state`.
    augment : augmenter or None, default=None
        One of `sylvan.cascade.augment`; None: layers see X only.
    impute : imputer or None, default=None
        One of `sylvan.labels.impute`; None: `KeepLabels()`.
    length : length control or None, default=None
        One of `sylvan.cascade.length`; None: `FixedLength()`, all layers are kept.
    crossover : bool, default=False
        Whether a forest sees only the features made by the other forests of the layer before.
    cumulative : bool, default=False
        Whether a layer sees the features made by all layers before, or by the one before.
    average_layers : bool, default=False
        Whether predictions, and scores of layers, are made of the mean of all layers up to there, or of the last one.
    calibrate : Calibration or None, default=None
        Turns probabilities that a label is recorded into probabilities that it is present (`sylvan.labels.calibrate`),
        given the label frequency that the imputer estimates (`KeepLabels(frequency=...)` if nothing is to be imputed).
        Suggested is then what is probably present, whatever was imputed between the layers.
    max_layers : int, default=11
        Most layers to grow, up to 10000.
    scanning : MultiGrainedScanning or None, default=None
        Turns X, images or sequences, into features that all layers see instead of X (`sylvan.cascade.scanning`). It
        learns from the recorded labels. The cascade sets its `random_state`.
    scoring : str, Measure or None, default=None
        Measure of a layer's out-of-sample probabilities against the recorded labels (`sylvan.measures`). Unknown
        cells are left out where zeros are absent (measures by row take them for negatives). None: the share of wrong
        predictions for classes, micro AUROC for labels, whose order survives missing positives.
    decision_threshold : float, "learned", "hamming", "mcc", "f1", "count" or "calibrated", default=0.5
        A label is predicted where its probability is greater, as set when `fit` is called. "calibrated": than 0.5 times
        the share c of a label's positives that the last layer learnt, which needs an imputer with a frequency estimate.
        "learned": than what `calibrate` found; of two classes that are complete, the more probable one. "hamming",
        "mcc", "f1": than what is expected to be best for the measure; "count": so that as many are predicted as are
        expected to be present (`sylvan.labels.calibrate.best_threshold`).
    separate_forests : bool, default=False
        The authors' variant of CaFE, for reproduction: in each layer, further forests that see all blocks (no
        crossover) predict, and others that see the new blocks alone guide the imputer. Twice to three times the work.
    score_folds : int or None, default=None
        How layers are scored. None: by the forests' out-of-sample probabilities. k: the cascade (but for `scanning`) is
        also grown k times without a k-th of the rows (or groups), which it judges as new ones; scores and `oos_proba_`
        come from there, at k + 1 times the work. For augmenters whose features of training rows are not out-of-sample,
        such as `Interactions`. `labels_` keeps the k cascades, which reasons for training rows are taken from.
    unknown_label : default=NaN
        Marks cells of Y that are unknown; NaN always does.
    absent_label : default=None
        Marks cells of Y that are known to be absent, such as -1 or "not found", where zeros are unrecorded.
    zeros : "auto", "classes", "absent" or "unrecorded", default="auto"
        What a 0 means: known to be absent, or not recorded, so that it may be imputed or suggested as unknown cells
        may. "auto": absent, if at least 5 % of the cells that are not recorded are unknown (fewer are slips of the pen
        rather than a habit of leaving cells open; there is a warning), and absent ones have no mark of their own.
        "classes": as "auto" for a table of labels, but absent if y has two classes. Where zeros are absent, the forests
        of `sylvan.forests` leave unknown cells out, unless you know the label frequency (`KnownFrequency`, a range) or
        a label has no absent cell at all: then they learn 0 there.
    class_weight : dict, list of dicts, "balanced" or None, default=None
        Weights of classes, as in scikit-learn's forests.
    cleaner : "auto", Cleaner or None, default="auto"
        Makes numbers of the columns of tables: dates, categories, text (`sylvan.tables.Cleaner`, fitted with the
        cascade). "auto": if a table has columns that are no numbers. None: such tables are refused.
    n_jobs : int or None, default=None
        Blocks of trees that are worked on at a time; None leaves it to the forests.
    random_state : int, RandomState or None, default=None
        The same number gives the same model bit for bit, whatever `n_jobs` and joblib backend.
    verbose : int, default=0
        1 logs a line for each layer, with a progress bar on terminals (if tqdm is installed).
    callbacks : list of callables or None, default=None
        Each is called with a `LayerEvent` (`sylvan.cascade.progress`) after every layer; True stops the growth.

    Attributes
    ----------
    layers_, n_layers_ : the fitted layers that are kept, and their number
    history_ : DataFrame with layer, score, imputed, active, seconds; one line for each layer grown
    classes_, n_labels_, n_features_in_, feature_names_in_, label_names_in_ : as found in fit
    labels_ : Findings, all that is known of the labels of the training rows; not stored by `save` unless asked for
    decider_ : what turns probabilities into labels: form of the target, thresholds, numbers by label
    measure_ : Measure that judged the layers
    oos_proba_ : what `predict_proba` says of the training rows, out of sample
    imputed_labels_ : (n, n_labels) of 0/1, recorded positives and imputed ones; a DataFrame if Y was one
    label_frequency_, label_bound_ : estimates of P(recorded | present) and of the number of positives, or None;
        Series if Y was a DataFrame. Those of labels with a few recorded positives are hardly more than a guess.
    feature_importances_ : importance of the input features, block importances traced back through the layers
    model_size_ : bytes of the predictor, with who drew which row, which `save` leaves out (`labels_.nbytes`: findings)
    scanning_, calibration_ : the fitted `scanning` and `calibrate`, or None
    cleaner_ : the fitted `cleaner`, if one was needed; features are then the columns that it makes
    tree_weights_, thresholds_ : of cascades with `WeightedForest`, with `MeasureAwareReuse`
    interactions_, mining_report_, label_links_ : of cascades with `Interactions`, with `LabelLinks`

    Examples
    --------
    >>> from sylvan import DeepForestClassifier
    >>> from sylvan.cascade.augment import OutputSpace
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> from sylvan.forests import ExtraTrees, OutOfBag, RandomForest
    >>> from sylvan.labels.impute import StrictLabelComplement
    >>> from sylvan.cascade.length import BestLayer
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> Y_recorded = hide_positives(Y, 0.5, random_state=0)
    >>> oob = {"bootstrap": True, "out_of_sample": OutOfBag()}
    >>> forests = [RandomForest(30, **oob), ExtraTrees(30, **oob)]
    >>> parts = {"augment": OutputSpace(), "impute": StrictLabelComplement(threshold_on="scaled")}
    >>> model = DeepForestClassifier(forests, **parts, length=BestLayer(first=2), crossover=True, max_layers=3)
    >>> model.set_params(random_state=0).fit(X, Y_recorded).suggest_labels(top=3).columns.tolist()
    ['row', 'label', 'probability', 'layer']
    """

    _fitted_names = ("_findings",)

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
        absent_label: Any = None,
        zeros: str = "auto",
        class_weight: Any = None,
        cleaner: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> None:
        keep(self, locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            inner = [get_tags(forest) for forest in (self.forests(1) if callable(self.forests) else self.forests)]
        except Exception:  # `fit` says what is wrong
            inner = []
        tags.input_tags.allow_nan = bool(inner) and all(tag.input_tags.allow_nan for tag in inner)
        tags.input_tags.sparse = bool(inner) and all(tag.input_tags.sparse for tag in inner)
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        checkpoint_dir: Any = None,
        decisions: Any = None,
    ) -> "DeepForestClassifier":
        """Grow the cascade.

        Parameters
        ----------
        X : array, table or sparse matrix of shape (n, n_features)
            NaN stands for a missing value. Tables may have dates, text and categories (`cleaner`).
        y : (n, n_labels) of 0/1 (yes/no, true/false in tables), or lists of labels by row; or (n,) classes
            1 is a recorded positive. 0 is "not recorded", and may be imputed, or known to be absent (`zeros`). NaN, or
            `unknown_label`, is unknown. Of two classes, the second is the positive one, which may be missing unless
            `zeros` says otherwise.
        sample_weight : (n,), optional
            As the forests understand it. Rows of weight 0 are ignored, and nothing is imputed there.
        groups : (n,), optional
            Rows of a group stay together in the folds of forests with `KFold` out-of-sample probabilities.
        checkpoint_dir : path, optional
            Folder in which every finished layer is stored. A fit that was stopped goes on after it (but for `scanning`)
            if it is started again with the same data and parameters, and ends with the same model.
        decisions : DataFrame, path of a CSV file or list of these, optional
            What people said of single cells: row, label, decision (`sylvan.labels.decisions.read_decisions`). Rejected
            cells are known to be absent, confirmed ones to be present; neither is suggested again. They correct
            probabilities of the others, and never count as records, so that the label frequency stays what it was.

        Returns
        -------
        self
        """
        return self._fit(X, self._read(y).decide(decisions), sample_weight, groups, checkpoint_dir)

    def fit_transform(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit, and return the out-of-sample representation of the training rows.

        **`fit(X, y).transform(X)` differs**: it takes the training rows for new ones, though the forests have seen
        them, and looks better than it is.
        """
        seen: list[np.ndarray] = []
        self._fit(X, self._read(y), sample_weight, groups, seen=seen)
        return seen[self.n_layers_ - 1]

    def _read(self, y: Any) -> WeakLabels:
        forget(self)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        return read_weak_labels(y, self.unknown_label, self.zeros, absent_label=self.absent_label)

    _check_stored = check_cascade

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(
        self,
        X: Any,
        weak: WeakLabels,
        sample_weight: Any = None,
        groups: Any = None,
        checkpoint_dir: Any = None,
        seen: list[np.ndarray] | None = None,
    ) -> "DeepForestClassifier":
        """Grow the cascade and keep it; put the training rows' representation in each layer into `seen`, if given."""
        labels = weak.targets.form.label_names
        try:
            plan = make_plan(self, weak.targets.form)
            seeds = check_random_state(self.random_state).randint(MAX_SEED, size=plan.max_layers).tolist()
            check_same_order(X, weak.targets.index)
            X, cleaner = clean_frame(X, self.cleaner)
            if cleaner is not None:
                self.cleaner_ = cleaner
            X = check_features(self, X, reset=True)
            check_rows(X.shape[0], weak.targets.n_rows)
            weights = row_weights(sample_weight, self.class_weight, weak)
            groups = check_groups(groups, X.shape[0])
            used = np.ones(X.shape[0], bool) if weights is None else weights > 0
            plan = size_forests(plan, self, used, groups)
            data = [X, weak.recorded, weak.candidates, weights, groups, list(map(str, labels))]
            data += [] if weak.decided is None else [weak.decided]
            data += ["leaves out"] if weak.leaves_out else []
            checkpoints = open_checkpoints(checkpoint_dir, self, plan, *data)
            seeds = seeds if checkpoints is None else checkpoints.seeds(seeds)
            progress = Progress(self, self.callbacks, self.verbose, plan.max_layers, plan.measure.name)
            with once_each(), progress:
                warn_of_features(X, getattr(self, "feature_names_in_", None), weak.recorded, labels)
                rows, self.scanning_ = scan_rows(self.scanning, X, weak, weights, groups, seeds[0], self.n_jobs)
                prepare_kernels(plan.forests(1), weak.leaves_out)
                begin = partial(begin_labels, plan, weak, seeds[0])
                stages = grow(plan, rows, begin, seeds, checkpoints, progress, seen)
                last = self._keep(plan, stages, weak, rows.used, X)
                progress.finished(self.n_layers_, len(stages), last)
                if stages[0].trained.active.any() and not last.after.imputed.any():
                    warn_user(_NOTHING_IMPUTED, NothingImputedWarning)
        except BaseException:
            forget(self)  # an interrupted fit leaves nothing half done
            raise
        return self

    def _keep(self, plan: Plan, stages: list[Stage], weak: WeakLabels, used: np.ndarray | None, X: Any) -> Stage:
        """Keep the layers that the length control wants, and apart from them what they found; return the last."""
        self.layers_, self.measure_ = kept_layers(plan, stages), plan.measure
        self.n_layers_ = len(self.layers_)
        last, targets = stages[self.n_layers_ - 1], weak.targets
        self.decider_ = make_decider(plan, last, weak, used, self.decision_threshold)
        last = count_missing(plan, last, used)
        self.decider_ = self.decider_._replace(counts=last.after.counts)
        self.calibration_ = plan.calibrate
        self.classes_, self.n_labels_ = targets.form.classes, targets.n_labels
        if targets.form.names is not None:
            self.label_names_in_ = targets.form.names
        self.history_ = pd.DataFrame([stage.record for stage in stages]).drop(columns="greater_is_better")
        self.label_frequency_ = targets.by_label(None if last.after.frequency is None else last.after.frequency.value)
        self.label_bound_ = targets.by_label(last.after.bound)
        grown = Grown(
            self.n_features_in_, self.n_layers_, len(stages), plan.average_layers, last.record.score,
            plan.measure.in_words, plan.calibrate is not None, getattr(plan.impute, "reestimates", False),
            targets.n_unknown, 0 if targets.absent is None else int(targets.absent.sum()),
            plan.score_folds is None and any(flatters(layer.augment) for layer in self.layers_[:-1]),
        )  # fmt: skip
        told = plan.impute.frequency_in(last.trained, last.after)
        apart = kept_apart(plan, stages[: self.n_layers_])
        self._findings = make_findings(self.decider_, last, weak, used, told, grown, X, apart)
        self.decider_ = self.decider_._replace(recalibration=self._findings.recalibration)
        return last

    @property
    def labels_(self) -> Findings:
        """What was found of the labels of the training rows."""
        check_is_fitted(self, "layers_")
        if not hasattr(self, "_findings"):
            raise AttributeError(
                "This model was stored without the findings about its training rows. Fit it again to have them, and "
                "keep them with save(path, findings=True)."
            )
        object.__setattr__(self._findings, "model", self)  # not stored: findings give reasons, and can be fitted again
        return self._findings

    @property
    def oos_proba_(self) -> np.ndarray:
        """What `predict_proba` says of training rows, out of sample: `labels_.present` if calibrated, else `proba`."""
        return self.labels_.oos_proba

    @property
    def imputed_labels_(self) -> Any:
        """Recorded labels and imputed ones (suggested ones, if calibrated), in the form of Y."""
        return self.labels_.completed

    def suggest_labels(
        self, top: int | None = None, min_proba: float | None = None, max_per_label: int | None = None, *,
        precision: float | None = None, confidence: float = 0.9, reasons: int = 0, similar: int = 0,
    ) -> pd.DataFrame:  # fmt: skip
        """List labels of the training rows that are probably missing, most likely first.

        Without arguments: the imputed cells (without an imputer, those with probability above 0.5). With arguments: the
        most probable of all cells that may be missing. Look at some before you trust them, and at `check_recovery`.
        `Findings.suggest` says what the probability means. With `precision`: the longest list of which so much is
        right, certified by audited cells if there are enough (`labels_.plan_audit`), or else expected to be.

        Parameters
        ----------
        top, min_proba, max_per_label : optional
            Length of the list, least probability, most suggestions for one label.
        precision : float, optional
            Least share of the list that is right; alone, without other limits.
        confidence : float, default=0.9
            How sure a certified list is to be as good.
        reasons : int, default=0
            Say so many reasons for each cell, features that speak most for the label or against it (`explain_cells`).
        similar : int, default=0
            Name so many rows that are like the cell's and have the label recorded.

        Returns
        -------
        DataFrame
            row (its name in the index of Y if that has unique names, else its position), label, probability that it is
            present, layer at which it was first imputed (missing if it was not). With `precision`: confirmed, whether a
            person has confirmed it; promise, "certified" or "expected". `attrs["note"]` says it in a sentence. With
            `reasons` and `similar`, columns of these names, texts such as "no3 = 4.1 (high) +.12; ph = 6.2 -.03".
        """
        if precision is None:
            found = self.labels_.suggest(top, min_proba, max_per_label)
        elif (top, min_proba, max_per_label) != (None, None, None):
            raise ValueError("precision says how long the list is; use it without top, min_proba and max_per_label.")
        else:
            found = self.labels_.audit().certify(precision, confidence).as_frame()
        return self._with_reasons(found, reasons, similar)

    def apply_suggestions(self, Y: Any, suggestions: pd.DataFrame) -> Any:
        """Return a copy of Y with 1 in the suggested cells; see `sylvan.apply_suggestions`."""
        return apply_suggestions(Y, suggestions)

    def summary(self) -> Summary:
        """Say what was found: layers, label frequency and why labels share it, thresholds; `print` shows it."""
        return self.labels_.summary()

    def complete(self, X: Any, Y: Any, decisions: Any = None) -> Any:
        """Return labels of new rows in the form of Y: what is recorded, and what the imputer would accept.

        Y is (n, n_labels) as in `fit`: zeros, or only unknown cells if there are many or zeros of the fit were absent,
        may become 1. Cells that people decided are as they said; `decisions` is as in `fit`.
        """
        check_is_fitted(self, "layers_")
        form = self.decider_.form
        zeros = "absent" if self.decider_.counts.trusts_zeros and self.absent_label is None else self.zeros
        weak = read_weak_labels(Y, self.unknown_label, zeros, form.names, self.absent_label)
        if not form.has_labels:
            raise ValueError("complete() needs a model of multi-label targets; classes are predicted by predict(X).")
        weak.targets.check_labels(form)
        decided = weak.decide(decisions, form.label_names).decided
        check_same_order(X, weak.targets.index)
        probas = self._ask(X)
        check_rows(probas.shape[1], weak.targets.n_rows)
        accepted = self.decider_.accept(probas) & weak.candidates
        accepted = accepted if decided is None else (accepted & (decided == 0)) | (decided > 0)
        completed = weak.targets.like(weak.recorded | accepted)
        return type(Y)(completed) if sparse.issparse(Y) else completed

    def check_recovery(
        self, X: Any, Y: Any, rate: float = 0.1, *, min_proba: float | None = None, max_per_label: int | None = None,
        random_state: Any = None, decisions: Any = None, **fit_params: Any,
    ) -> pd.DataFrame:  # fmt: skip
        """Hide a further share of the recorded positives, fit a clone, and say how many came back.

        Hidden positives are known to be true; how many other suggestions are wrong cannot be known from the data.

        Parameters
        ----------
        X, Y : as in `fit`
        rate : float, default=0.1
            Share of each label's recorded positives to hide, at least one if there are two.
        min_proba, max_per_label : optional
            Count what is at least so probable instead of what is imputed, at most so many cells of a label.
        random_state : int, RandomState or None, default=None
            Draws what is hidden; None: the model's own `random_state`.
        decisions : as in `fit`
        **fit_params : further arguments of `fit`

        Returns
        -------
        DataFrame, a line for each label and one for all
            hidden: positives that were hidden; recovered: of them, imputed; recall: their share; imputed: all imputed
            cells; candidates: cells that were neither recorded nor decided; median_rank: of the hidden among the
            candidates by probability, 1 is best; expected_by_chance: recall of as many cells picked at random.
        """
        weak = read_weak_labels(Y, self.unknown_label, self.zeros, absent_label=self.absent_label).decide(decisions)
        drawn = check_random_state(self.random_state if random_state is None else random_state)
        # A hidden positive would be looked for nowhere if nothing may be missing, as in classes.
        hidden = hide_some(weak.recorded, rate, drawn) & weak.candidates.any()
        masked = weak._replace(recorded=weak.recorded & ~hidden, candidates=weak.candidates | hidden)
        found = clone(self)._fit(X, masked, **fit_params).labels_  # noqa: SLF001 (the same class)
        asked = masked.candidates if weak.decided is None else masked.candidates & (weak.decided == 0)
        suggested = found.chosen(min_proba, max_per_label) & asked
        return report_recovery(hidden, asked, suggested, found.missing, found.label_names)

    def save(self, path: str | os.PathLike[str], *, findings: bool = False) -> Path:
        """Store the model in one file, from which `sylvan.load` makes it again; see `sylvan.io.save`.

        The file holds what is needed to predict and, with `findings=True`, `labels_`: recorded labels, suggestions and
        names of the training rows.
        """
        if findings:
            _ = self.labels_  # says that there are none, if so
        return super().save(path, findings=findings)
