"""Reasons for single cells: what speaks for a label in a row, and against it, in input features; and similar rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from sylvan._messages import some
from sylvan._validation import check_integer
from sylvan.cascade.explain.similar import Neighbours, Similar
from sylvan.cascade.explain.trace import Trace
from sylvan.cascade.layer import Layer
from sylvan.labels.lists import row_names
from sylvan.labels.reasons import Reason, in_words

_BLOCK_NUMBERS = 1 << 24  # leaves, and contributions, that are in hand at a time
_FEW, _MANY = 0.25, 0.75  # shares of the rows of the fit between which a value is a usual one
_CELLS_AT_ONCE = 1 << 22
_MOST_NUMBERS = 1 << 28  # contributions that are kept: two gigabytes
_SAME = 1e-6  # what rounding may change in a probability


@dataclass(frozen=True)
class Reasons:
    """Reasons for some cells, made by `explain_cells`.

    The forests' answer about a cell is their base rate, what they would say of any row, and what each feature of this
    row adds to it: `output = base + contributions + rest`. Forests say how probable it is that a label was recorded
    (that it is present, if they leave unknown cells out). `on_present` has the same contributions on the scale of
    P(present), all of a cell multiplied by one number, so that they add up to `present - base_present`.

    Attributes
    ----------
    row, label : names of the cells' rows and labels, (m,)
    features : names of the features
    feature : (m, k) numbers of the features that are kept, those that contribute most first
    contribution : (m, k) what they add, before calibration
    value : (m, k) the row's values of them
    rest : (m,) what all other features add
    base, output : (m,) what the forests would say of any row, and what they say of this one
    base_present, present : (m,) the same as P(present); of rows of the fit, given that the label was not recorded. Of
        classes, P(class): `present` is that of `predict_proba`, or of `oos_proba_`, unless positives may be missing
    similar : for each cell, similar rows of the fit that have its label recorded, (name, share); None: not asked

    Examples
    --------
    >>> from sylvan import auto
    >>> from sylvan.datasets import hide_positives, load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True, as_frame=True)
    >>> Y = hide_positives(Y, 0.5, random_state=0)
    >>> model = auto(10, random_state=0).fit(X[:300], Y[:300])
    >>> found = model.explain_cells(rows=model.suggest_labels(top=2))
    >>> bool(abs(found.base + found.contribution.sum(axis=1) - found.output).max() < 1e-9)
    True
    >>> [len(reasons) for reasons in found.top(3)]
    [3, 3]
    """

    row: Any
    label: Any
    features: list[str]
    feature: np.ndarray
    contribution: np.ndarray
    value: np.ndarray
    rest: np.ndarray
    base: np.ndarray
    output: np.ndarray
    base_present: np.ndarray
    present: np.ndarray
    slope: np.ndarray = field(repr=False)
    similar: list[list[Similar]] | None = field(default=None, repr=False)
    levels: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)  # names for their numbers

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def contributions(self) -> np.ndarray:
        """Contributions of all features in their order, (m, n_features), 0 of those that are not kept."""
        return self._spread(self.contribution)

    @property
    def on_present(self) -> np.ndarray:
        """The same on the scale of P(present)."""
        return self._spread(self.contribution * self.slope[:, None])

    def _spread(self, kept: np.ndarray) -> np.ndarray:
        out = np.zeros((len(self), len(self.features)))
        np.put_along_axis(out, self.feature, kept, axis=1)
        return out

    def top(self, k: int = 3) -> list[list[Reason]]:
        """Return the k features of each cell that contribute most, for or against, on the scale of P(present)."""
        feature, value = self.feature[:, :k], self.value[:, :k]
        added = self.contribution[:, :k] * self.slope[:, None]
        level = np.full(feature.shape, "", dtype=object) if self.levels is None else self.levels(feature, value)
        lines = zip(feature.tolist(), value.tolist(), level.tolist(), added.tolist())
        found = ([Reason(self.features[f], *rest) for f, *rest in zip(*line) if rest[-1] != 0.0] for line in lines)
        return [in_words(line, self.categories) for line in found]

    def texts(self, k: int = 3) -> list[str]:
        """Return a line for each cell: `no3 = 4.1 (high) +.12; ph = 6.2 (low) -.03`."""
        return ["; ".join(map(str, reasons)) for reasons in self.top(k)]

    def similar_texts(self) -> list[str]:
        """Return a line for each cell: `song 3 (31 %); song 9 (28 %)`, with the share of trees that agree."""
        return ["; ".join(map(str, rows)) for rows in self.similar or []]


class CellReasons:
    """The part of a cascade's predictor that gives reasons for single cells."""

    layers_: list[Any]
    scanning_: Any
    decider_: Any
    n_features_in_: int
    average_layers: bool
    _checked: Callable[[Any], Any]

    def explain_cells(
        self, X: Any = None, rows: Any = None, labels: Any = None, *, top: int | None = None, similar: int = 0
    ) -> Reasons:
        """Say what speaks for labels in rows, and against them: in input features, exact to rounding.

        Contributions follow the paths of the trees: what an answer changes by at a node is owed to the feature that it
        asks about. What later layers make of the answers of earlier ones is handed back to what made these,
        until all is in input features (pixels, with `scanning`). Contributions of correlated features are shared
        between them in whatever way the trees did; none is a cause.

        Parameters
        ----------
        X : rows as for `predict`, optional
            None, or the table of the fit as a whole: the rows of the fit, out of sample, by trees that have not seen
            the row. All else is taken for new rows.
        rows, labels : names of rows and labels of the cells, one after the other; or one of either for all
            Rows are named as in `labels_.rows`, or by the index of X if it is a table whose index is unique, or by
            number. `rows` may be a table with columns row and label, such as `suggest_labels` returns. None: all.
        top : int, optional
            Keep as many features of each cell, those that contribute most; None: all, which is much for many features.
        similar : int, default=0
            Also find as many rows of the fit that have the label recorded: those that are most often in the same leaf
            of layer 1 (of the first layer whose forests are kept).

        Returns
        -------
        Reasons
        """
        check_is_fitted(self, "layers_")
        if top is not None:
            check_integer("top", top, 1)
        check_integer("similar", similar, 0)
        source = _Source.of(self, X)
        row, label = _cells(source.names, self.decider_.form.label_names, rows, labels)
        keep = min(top or self.n_features_in_, self.n_features_in_)
        if len(row) * keep > _MOST_NUMBERS:
            raise ValueError(
                f"{len(row):,} cells with {keep:,} features each are too much for one answer; say top=10, or ask for "
                "fewer cells."
            )
        m = len(row)
        feature, contribution = np.empty((m, keep), np.int64), np.empty((m, keep))
        value, rest, base, output = np.empty((m, keep)), np.empty(m), np.empty(m), np.empty(m)
        total = np.ones(m)  # of the row's classes, which share 1
        neighbours = source.neighbours(self) if similar and m else None
        near: list[list[Similar]] = [[] for _ in range(m)]
        for cells, there, judge in source.blocks(self, row):
            at = np.searchsorted(there, row[cells])
            shown = source.dense(there)
            known = there if judge.of_fit else None
            trace = Trace(judge.layers, shown, known, self.scanning_, judge.apart)
            added, base[cells] = trace.explain(at, label[cells], self.average_layers)
            said = trace.output(self.average_layers)
            output[cells] = said[at, label[cells]]
            if self.decider_.form.has_many_classes:
                total[cells] = self.decider_.present(said).sum(axis=1)[at]
            order = np.argsort(-np.abs(added), axis=1, kind="stable")[:, :keep]
            feature[cells] = order
            contribution[cells] = np.take_along_axis(added, order, axis=1)
            value[cells] = shown[at[:, None], order]
            rest[cells] = added.sum(axis=1) - contribution[cells].sum(axis=1)
            if neighbours is not None:
                own = None if source.is_new else there
                found = neighbours.of(trace.seen, known, own, at, label[cells], source.findings.recorded, similar)
                for cell, rows_of_cell in zip(cells, found):
                    near[cell] = rows_of_cell
        if source.findings is not None and not source.is_new:
            source.check_same(row, label, output)
        to_present = source.scale(self, label, total)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        base_present, present, slope = _on_present(to_present, base, output)
        named = None
        if similar:
            known = source.findings.rows
            named = [[s._replace(row=known[[s.row]].tolist()[0]) for s in line] for line in near]  # plain values
        return Reasons(
            source.names[row], pd.Index(self.decider_.form.label_names, dtype=object, tupleize_cols=False)[label],
            [str(name) for name in names], feature, contribution, value, rest, base, output, base_present, present,
            slope, named, None if source.findings is None or source.findings.X is None else Levels(source.findings.X),
            getattr(vars(self).get("cleaner_"), "categories", {}),
        )  # fmt: skip

    def _with_reasons(self, cells: pd.DataFrame, reasons: int, similar: int) -> pd.DataFrame:
        """Return a list of cells of the fit with so many reasons and similar rows as texts."""
        check_integer("reasons", reasons, 0)
        check_integer("similar", similar, 0)
        if not reasons and not similar:
            return cells
        found = self.explain_cells(rows=cells, top=max(reasons, 1), similar=similar)
        texts = {"reasons": found.texts(reasons)} if reasons else {}
        return cells.assign(**texts, **({"similar": found.similar_texts()} if similar else {}))


class _Judge(NamedTuple):
    """The layers that judge rows: new ones, or rows of the fit (`of_fit`), out of sample.

    `apart`: the layers were grown without these rows.
    """

    layers: Sequence[Layer]
    of_fit: bool = False
    apart: bool = False


@dataclass(frozen=True)
class _Source:
    """Where the rows come from: new ones, or those of the fit."""

    X: Any
    names: pd.Index
    is_new: bool
    findings: Any

    @classmethod
    def of(cls, model: Any, X: Any) -> "_Source":
        findings = vars(model).get("_findings")
        fitted = None if findings is None else findings.X
        if X is None:
            if fitted is None:
                raise ValueError(
                    "The model does not have the rows of its fit (a model file has them with save(path, "
                    "findings=True)): pass X."
                )
            return cls(fitted, findings.rows, False, findings)
        names = row_names(X.index, len(X)) if isinstance(X, pd.DataFrame) else None
        X = model._checked(X)  # noqa: SLF001 (a part of it)
        if fitted is not None and _equal(X, fitted):
            return cls(fitted, findings.rows if names is None else names, False, findings)
        return cls(X, pd.RangeIndex(X.shape[0]) if names is None else names, True, findings)

    def dense(self, rows: np.ndarray) -> np.ndarray:
        """Return some rows."""
        some_rows = self.X[rows]
        some_rows = some_rows.toarray() if sparse.issparse(some_rows) else some_rows
        return np.ascontiguousarray(some_rows)

    def judges(self, model: Any, row: np.ndarray) -> Iterator[tuple[np.ndarray, _Judge]]:
        """Give numbers of cells, and who judges their rows: each cell once."""
        if self.is_new:
            yield np.arange(len(row)), _Judge(model.layers_)
            return
        used = np.ones(len(row), bool) if self.findings.used is None else self.findings.used[row]
        yield np.flatnonzero(~used), _Judge(model.layers_)  # rows of weight 0 are judged as new ones
        if self.findings.apart is None:
            yield np.flatnonzero(used), _Judge(model.layers_, of_fit=True)
            return
        for number, layers in enumerate(self.findings.apart.cascades):
            yield np.flatnonzero(self.findings.apart.fold[row] == number), _Judge(layers, of_fit=True, apart=True)

    def blocks(self, model: Any, row: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, _Judge]]:
        """Give numbers of cells, their rows, and who judges these."""
        n_trees = sum(f.trees_.n_trees for layer in model.layers_ for f in layer.judges if hasattr(f, "trees_"))
        scanned = 0 if model.scanning_ is None else model.scanning_.n_features_out_
        width = max(sum(layer.widths) for layer in model.layers_) + self.X.shape[1] + scanned
        numbers = n_trees + 6 * width  # of each cell
        for mine, judge in self.judges(model, row):
            cells = mine[np.argsort(row[mine], kind="stable")]
            step = max(1, _BLOCK_NUMBERS // numbers)
            for first in range(0, len(cells), step):
                here = cells[first : first + step]
                yield here, np.unique(row[here]), judge

    def neighbours(self, model: Any) -> Neighbours:
        """Return who finds similar rows of the fit."""
        if self.findings is None or self.findings.X is None:
            raise ValueError("Similar rows are rows of the fit, which this model was stored without: similar=0.")
        whole = _Source(self.findings.X, self.findings.rows, False, self.findings)

        def fitted(rows: np.ndarray) -> np.ndarray:
            shown = whole.dense(rows)
            return shown if model.scanning_ is None else np.asarray(model.scanning_.transform_held(shown, rows))

        return Neighbours(model.layers_, fitted, self.findings.X.shape[0])

    def check_same(self, row: np.ndarray, label: np.ndarray, output: np.ndarray) -> None:
        """Refuse rows that are not those of the fit any more: the forests say something else of them than they did."""
        away = np.abs(self.findings.proba[row, label] - output)
        if away.max(initial=0.0) > _SAME:
            raise ValueError(
                f"Row {self.names[row[int(away.argmax())]]!r} is not what it was when the model was fitted: the "
                "table has been changed since. Fit again, or pass a copy of it as X, for rows that are new."
            )

    def scale(self, model: Any, label: np.ndarray, total: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function from what forests say of the cells, (m,), to P(present), of which rows have `total`."""
        decider, findings = model.decider_, self.findings
        n_labels = decider.form.n_labels
        missing = not self.is_new and findings.state.candidates.any()
        recalibration = None if self.is_new else findings.recalibration
        power = 1.0
        if missing and decider.calibration is None:
            power = findings.bend

        def present(said: np.ndarray) -> np.ndarray:
            out = np.empty(len(said))
            step = max(1, _CELLS_AT_ONCE // n_labels)
            for first in range(0, len(said), step):
                part = slice(first, first + step)
                at = np.arange(len(said[part])), label[part]
                table = np.zeros((len(said[part]), n_labels))
                table[at] = said[part]
                if decider.calibration is not None:
                    table = decider.present(table)
                    table = decider.missing(table) if missing else table
                else:
                    table = 1.0 - (1.0 - np.clip(table, 0.0, 1.0)) ** power
                out[part] = (table if recalibration is None else recalibration.transform(table))[at]
            return np.divide(out, total, out=np.full(len(out), 1.0 / n_labels), where=total > 0)

        return present


def _equal(X: Any, fitted: Any) -> bool:
    if X is fitted:
        return True
    if X.shape != fitted.shape or sparse.issparse(X) != sparse.issparse(fitted):
        return False
    if sparse.issparse(X):
        return X.nnz == fitted.nnz and not (abs(X - fitted) > 0).nnz
    return bool(np.array_equal(X, fitted, equal_nan=True))


def _on_present(
    to_present: Callable[[np.ndarray], np.ndarray], base: np.ndarray, output: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return base and output as P(present), and by how much more than the forests' answer it moves between them."""
    low, high = to_present(base), to_present(output)
    away = output - base
    near = np.abs(away) < _SAME
    aside = np.where(base > 0.5, base - 1e-4, base + 1e-4)
    slope = np.where(near, (to_present(aside) - low) / (aside - base), (high - low) / np.where(near, 1.0, away))
    return low, high, slope


class Levels:
    """Says whether values are among the highest or lowest quarter of a table's rows.

    Codes of words have no level: that is for those to know who know the words.

    Examples
    --------
    >>> Levels(np.arange(20.0).reshape(10, 2))(np.array([0, 1, 1]), np.array([2.0, 19.0, 9.0])).tolist()
    ['low', 'high', 'typical']
    """

    def __init__(self, X: Any) -> None:
        self.X, self.known = X, {}  # type: ignore[var-annotated]

    def __call__(self, feature: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Return "high", "low", "typical" or "missing" for values of columns, whose numbers are `feature`."""
        out = np.full(feature.shape, "typical", dtype=object)
        for f in np.unique(feature):
            values = self._sorted(int(f))
            here = feature == f
            x = value[here]
            n = max(len(values), 1)
            rank = (np.searchsorted(values, x, "left") + np.searchsorted(values, x, "right")) / (2 * n)
            out[here] = np.select([np.isnan(x), rank >= _MANY, rank <= _FEW], ["missing", "high", "low"], "typical")
        return out

    def _sorted(self, feature: int) -> np.ndarray:
        if feature not in self.known:
            column = self.X[:, [feature]]
            column = np.asarray(column.toarray() if sparse.issparse(column) else column).ravel()
            self.known[feature] = np.sort(column[~np.isnan(column)])
        return self.known[feature]


def _cells(names: pd.Index, label_names: Sequence[Any], rows: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of the cells' rows and labels."""
    if isinstance(rows, pd.DataFrame):
        if labels is not None or not {"row", "label"} <= set(rows.columns):
            raise ValueError("A table of cells has the columns row and label, and leaves no labels to be said.")
        rows, labels = rows["row"], rows["label"]
    known = pd.Index(list(label_names), dtype=object, tupleize_cols=False)
    row = np.arange(len(names)) if rows is None else _find(names, rows, "row")
    label = np.arange(len(known)) if labels is None else _find(known, labels, "label")
    if rows is None or labels is None:
        return np.repeat(row, len(label)), np.tile(label, len(row))
    if len(row) != len(label) and 1 not in (len(row), len(label)):
        raise ValueError(f"There are {len(row)} rows and {len(label)} labels: name a row and a label for each cell.")
    row, label = np.broadcast_arrays(row, label)
    return row.copy(), label.copy()


def _find(known: pd.Index, wanted: Any, what: str) -> np.ndarray:
    """Return the positions of names; a single name is one."""
    names = [wanted] if isinstance(wanted, str) or not np.ndim(wanted) else list(wanted)
    at = known.get_indexer(pd.Index(names, dtype=known.dtype if not len(names) else None, tupleize_cols=False))
    if (at < 0).any():
        lost = [name for name, place in zip(names, at) if place < 0]
        raise ValueError(f"There is no {what} {lost[0]!r}; {what}s are called {some(list(known), 5)}.")
    return np.asarray(at, dtype=np.int64)
