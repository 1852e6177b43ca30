"""Which cell is looked at next, and what the decisions say of all others. No request waits for a count or a fit."""

import logging
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from sylvan._messages import many, once_each
from sylvan.app.review.cells import Viewer
from sylvan.app.review.ledger import Ledger
from sylvan.exceptions import DecisionError
from sylvan.labels.audit import Audit
from sylvan.labels.decisions import COLUMNS, text_of
from sylvan.labels.recalibrate import Recalibration

_LOG = logging.getLogger(__name__)
_BATCH, _READY, _QUEUED = 200, 50, 500  # cells that are prepared at a time, that are to be ready, that are put in order
_QUIET = 0.3  # seconds after a decision, in which another one may come, before they are counted
_LONGEST_REST = 3.0
_RECENT = 10
_ENOUGH = 20  # answers of an audit
_REMEMBERED = 1000  # requests and orders
DECISIONS = ("confirmed", "rejected", "unsure")
NO_MODEL = "The model is not here, so there are no reasons."
NO_REFIT = "To fit again, the page needs the model, X and Y: model.labels_.review(X, Y)."


class Order(NamedTuple):
    """What comes first, and whether only cells of one label or row come at all."""

    by: str = "value"
    label: int | None = None
    row: int | None = None


class Current(NamedTuple):
    """A cell that is looked at, and what was known when it came up: its probability does not change meanwhile."""

    cell: int
    recalibration: Recalibration


class Conflict(Exception):
    """A cell was decided elsewhere meanwhile; nothing was written."""

    def __init__(self, cell: int) -> None:
        super().__init__("This cell was decided elsewhere meanwhile. Here it is again; nothing was written.")
        self.cell = cell


class Count(NamedTuple):
    """What was counted last."""

    audit: Audit
    bar: dict[str, Any]
    queues: dict[Order, list[int]]


class Background:
    """A thread that does one thing whenever it is asked to; asked twice while it is busy, it does it once more."""

    def __init__(self, work: Callable[[], None], quiet: float = 0.0) -> None:
        self.work, self.quiet, self._working = work, quiet, False
        self._wanted, self._stopped = threading.Event(), False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def busy(self) -> bool:
        """Whether something is still to be done."""
        return self._wanted.is_set() or self._working

    def ask(self) -> None:
        """Have it done soon."""
        self._wanted.set()

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        self._wanted.set()

    def _run(self) -> None:
        with once_each():  # what it warns of, it says once
            while True:
                self._wanted.wait()
                if self._stopped:
                    return
                self._working = True
                time.sleep(self.quiet)
                self._wanted.clear()
                began = time.monotonic()
                try:
                    self.work()
                except Exception:
                    _LOG.exception("Work in the background failed")
                self._working = False
                time.sleep(min(time.monotonic() - began, _LONGEST_REST))  # answers come first


class Session:
    """One person's review of one table.

    Parameters
    ----------
    findings : what a fit found (`model.labels_`)
    ledger : what was decided, and where decisions go
    viewer : what is shown of cells
    audit : number of cells that are drawn at random first, unless the file has an audit already; 0: none
    precision, confidence : what a list is to promise
    refit : function of a table of decisions that returns new findings, or None if nothing can be fitted
    random_state : of draws
    """

    def __init__(
        self, findings: Any, ledger: Ledger, viewer: Viewer, *, title: str = "", audit: int = 100,
        precision: float = 0.8, confidence: float = 0.9, refit: Callable[[Any], Any] | None = None,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        check_reviewable(findings)
        self.ledger, self.viewer, self.title, self._fit = ledger, viewer, title, refit
        self.precision, self.confidence, self.random_state = precision, confidence, random_state
        self.lock = threading.RLock()
        self.rows, self.labels = findings.rows, findings.label_names
        self.notice = " ".join(filter(None, [ledger.store.note, "" if viewer.model else NO_MODEL])) or None
        self.refit_state = {"state": "idle", "message": "" if refit else NO_REFIT}
        self.finished: dict[str, Any] | None = None
        self._ids: OrderedDict[str, bool] = OrderedDict()
        self._current: OrderedDict[Order, Current] = OrderedDict()
        self._order = Order()
        self._begin(findings)
        if audit and not self._planned:
            self._draw(audit, None)
        self._preparer, self._counter = Background(self._prepare), Background(self._recount, _QUIET)
        self._preparer.ask()

    def _begin(self, findings: Any) -> None:
        """Start from what a fit found: order all cells, and count what was decided before."""
        mark = findings.audit().ranking.fingerprint  # their order is kept by all later counts
        with self.lock:
            self.ledger.learn(findings.decisions)
            lines = self.ledger.frame()
        count, planned = self._counted(findings, lines), self.ledger.planned(mark)
        with self.lock:
            self.findings, self._mark, self.count, self._planned = findings, mark, count, planned
            self._current.clear()

    # -- in the background -------------------------------------------------------------------------------------------

    def _counted(self, findings: Any, lines: pd.DataFrame) -> Count:
        """Count what decisions say; seconds, for the largest tables."""
        audit = findings.audit(lines if len(lines) else None)
        total = audit.n_missing(self.confidence).loc["all labels"]
        found = audit.certify(self.precision, self.confidence)
        bar = {
            "missing": float(total["missing"]), "low": float(total["low"]), "high": float(total["high"]),
            "audited": audit.is_audited, "certified": len(found.cells) if found.certified else 0, "note": found.note,
        }  # fmt: skip
        queues = {Order(by): self._queued(audit, Order(by)) for by in ("value", "probability")}
        return Count(audit, bar, queues)

    def _recount(self) -> None:
        with self.lock:
            findings, lines = self.findings, self.ledger.frame()
        count = self._counted(findings, lines)
        with self.lock:
            if self.findings is findings:
                self.count = count
        self._preparer.ask()

    def latest(self) -> tuple[Audit, pd.DataFrame]:
        """Return what all decisions up to now say, and the decisions."""
        with self.lock:
            findings, lines = self.findings, self.ledger.frame()
        return findings.audit(lines if len(lines) else None), lines

    def _queued(self, audit: Audit, order: Order) -> list[int]:
        """Return the first undecided cells in an order."""
        n_labels = len(self.labels)
        with self.lock:  # drawn cells come by themselves; only some of them answered would be no sample any more
            decided = np.array([*self.ledger.said, *self.ledger.draws], np.int64)
        if order == Order("value"):
            cells = np.array(self.ledger.numbers(audit.next_cells(_QUEUED + len(self.ledger.draws))), np.int64)
            return cells[~np.isin(cells, decided)][:_QUEUED].tolist()
        if order.row is None and order.label is None:
            cells = audit.ranking.cells[: 10 * _QUEUED + len(decided)]
        else:
            row = np.arange(len(self.rows)) if order.row is None else np.array([order.row])
            label = np.arange(n_labels) if order.label is None else np.array([order.label])
            cells = (row[:, None] * n_labels + label).ravel()
        cells = cells[audit.candidates[np.divmod(cells, n_labels)]]
        cells = cells[~np.isin(cells, decided)]
        p = audit.missing[np.divmod(cells, n_labels)]
        value = np.minimum(p, 1.0 - p) if order.by == "value" else p
        return cells[np.argsort(-value, kind="stable")[:_QUEUED]].tolist()

    def _prepare(self) -> None:
        """Make the next cells ready, those of the order that was asked for last."""
        with self.lock:
            order, current = self._order, self._current.get(self._order)
            waiting, queue = self._waiting(order), self._queue(order)
        now = [] if current is None else [current.cell]
        for cells, reasons in ((waiting, False), ([cell for cell in [*now, *queue] if cell not in waiting], True)):
            if self.viewer.lacks([*now, *cells[:_READY]], reasons):
                step = _BATCH if not reasons or not self.viewer.explains else _READY
                self.viewer.prepare(self.viewer.lacks(cells[:_BATCH], reasons)[:step], reasons)

    # -- what is asked -----------------------------------------------------------------------------------------------

    def _waiting(self, order: Order) -> list[int]:
        """Return the drawn cells that nobody has answered; they come first, unless a label or row is asked for."""
        return [cell for cell in self._planned if cell not in self.ledger.said] if order[1:] == (None, None) else []

    def _queue(self, order: Order) -> list[int]:
        """Return the next undecided cells."""
        queues, said, draws = self.count.queues, self.ledger.said, self.ledger.draws
        left = [cell for cell in queues.get(order, []) if cell not in said and cell not in draws]
        if not left and (order not in queues or queues[order]):  # not put in order yet, or all of them decided
            if len(queues) > _REMEMBERED:
                queues.clear()
            queues[order] = left = self._queued(self.count.audit, order)
        return left

    def _next(self, order: Order) -> tuple[str, Current | None]:
        """Return the phase and the cell that is looked at now: the same until it is decided."""
        waiting = self._waiting(order)
        if order not in self._current:
            self._keep_current(order, next(iter(waiting or self._queue(order)), None))
        current = self._current.get(order)
        return ("done" if current is None else "audit" if waiting else "queue"), current

    def _keep_current(self, order: Order, cell: int | None) -> None:
        self._current.pop(order, None)
        if cell is not None:
            self._current[order] = Current(cell, self.count.audit.recalibration)
        while len(self._current) > _REMEMBERED:
            self._current.popitem(last=False)

    @property
    def progress(self) -> dict[str, int]:
        """How many cells were drawn, and how many of them are answered."""
        return {"planned": len(self._planned), "answered": sum(cell in self.ledger.said for cell in self._planned)}

    @property
    def n_wanted(self) -> int:
        """How many more answers an audit needs before there is something to count: the first say next to nothing."""
        planned, answered = self.progress.values()
        return max(min(_ENOUGH, planned) - answered, 0)

    def state(self, order: Order, notice: str | None = None) -> dict[str, Any]:
        """Return all that the page shows."""
        with self.lock:
            self._order = order
            phase, current = self._next(order)
            shown = None if current is None else self._shown(*current)
            ledger = self.ledger
            bar = {"decided": len(ledger.said)} | {word: ledger.counts[word] for word in DECISIONS} | self.count.bar
            bar |= {"precision": self.precision, "confidence": self.confidence, "counting": self._counter.busy}
            bar["wanted"] = self.n_wanted
            found = {
                "title": self.title, "user": ledger.store.user, "file": ledger.store.path.name,
                "n_rows": len(self.rows), "labels": list(map(text_of, self.labels)), "order": order._asdict(),
                "phase": phase, "audit": self.progress, "bar": bar,
                "refit": dict(self.refit_state), "cell": shown,
                "recent": [self._brief(each) for each in islice(reversed(ledger.mine), _RECENT)],
                "finished": self.finished, "notice": notice or self.notice,
            }  # fmt: skip
        if shown is not None and shown["pending"]:
            self._preparer.ask()
        return found

    def _shown(self, cell: int, recalibration: Recalibration) -> dict[str, Any]:
        row, label = divmod(cell, len(self.labels))
        audited, said = cell in self.ledger.draws, self.ledger.said
        # Of a decided cell, too, what the model thinks of it: its decision is another thing.
        p = None if audited else float(recalibration.of_cells(self.count.audit.proba[row, label], label))
        shown = self.viewer.show(cell, p, recalibration)
        names: dict[str, list[str]] = {"recorded": [], "confirmed": [], "rejected": []}
        for at, name in enumerate(self.labels):
            word = "recorded" if self.findings.recorded[row, at] else said.get(cell - label + at)
            if word in names and at != label:
                names[word].append(text_of(name))
        how = "audited" if audited else "reviewed"
        return shown | {"how": how, "decision": self.ledger.mine.get(cell), "labels": names}

    def _brief(self, cell: int) -> dict[str, Any]:
        row, label = divmod(cell, len(self.labels))
        how = "audited" if cell in self.ledger.draws else "reviewed"
        names = {"row": text_of(self.rows[row]), "label": text_of(self.labels[label])}
        return {"cell": f"{row}.{label}", **names, "decision": self.ledger.mine[cell], "how": how}

    def find(self, name: Any) -> int:
        """Return the cell of a name such as "17.3"; another one is a ValueError."""
        parts = name.split(".") if isinstance(name, str) and len(name) < 30 else []
        if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
            row, label = map(int, parts)
            if row < len(self.rows) and label < len(self.labels) and self.count.audit.candidates[row, label]:
                return row * len(self.labels) + label
        raise ValueError("There is no such cell to decide.")

    def decide(self, name: Any, decision: str, was: Any) -> None:
        """Store a decision, or "withdrawn"; `was` is what the page showed, and must be what is stored."""
        with self.lock:
            cell = self.find(name)
            now = self.ledger.mine.get(cell)
            if was != now:
                raise Conflict(cell)
            if decision != (now or "withdrawn"):
                self.ledger.decide(cell, decision)
                self._counter.ask()
            self.notice = None
            for order in [order for order, current in self._current.items() if current.cell == cell]:
                del self._current[order]

    def show(self, order: Order, cell: int | None) -> None:
        """Make a cell the current one, decided or not; None: back to the queue."""
        with self.lock:
            self._keep_current(order, cell)

    def once(self, name: Any, work: Callable[[], None]) -> None:
        """Do something once, however often a request with this name comes."""
        with self.lock:
            if name is not None and (not isinstance(name, str) or len(name) > 100):
                raise ValueError("id must be a short text.")
            if name is not None and name in self._ids:
                return
            work()
            if name is not None:
                self._ids[name] = True
                while len(self._ids) > _REMEMBERED:
                    self._ids.popitem(last=False)

    def draw(self, n: int, precision: float | None) -> None:
        """Draw more cells at random."""
        with self.lock:
            self.notice = None
            self._draw(n, precision)
            self._current.clear()
            self._preparer.ask()

    def _draw(self, n: int, precision: float | None) -> None:
        audit, _ = self.latest()
        seed, self.random_state = self.random_state, None  # the same seed would draw the same cells again
        if isinstance(seed, int):  # and for other people other ones
            seed = zlib.crc32(self.ledger.store.user.encode(), seed) & 0x7FFFFFFF
        try:
            plan = audit.plan(n, precision=precision, confidence=self.confidence, random_state=seed)
        except ValueError as error:
            self.notice = str(error)
            return
        self.ledger.plan(plan)
        self._planned = self.ledger.planned(self._mark)

    # -- refit -------------------------------------------------------------------------------------------------------

    def refit(self) -> None:
        """Fit again with what was decided, in the background; the queue goes on meanwhile."""
        with self.lock:
            if self._fit is None:
                raise ValueError(NO_REFIT)
            if self.refit_state["state"] == "running":
                return
            self.refit_state = {"state": "running", "message": ""}
            lines = self.ledger.frame()
        threading.Thread(target=self._refit, args=(lines,), daemon=True).start()

    def _refit(self, lines: pd.DataFrame) -> None:
        try:
            findings = self._fit(lines)  # type: ignore[misc]
            self._begin(findings)
        except Exception as error:
            _LOG.warning("The fit failed", exc_info=True)
            text = " ".join(str(error).split()) or type(error).__name__
            self.refit_state = {"state": "failed", "message": f"The fit failed, and nothing has changed: {text}"}
            return
        with self.lock:
            self.viewer.use(getattr(findings, "model", None))
            self.refit_state = {"state": "done", "message": "The model has learnt from what was decided."}
        self._counter.ask()  # what was decided meanwhile

    def to_ask(self, n: int) -> pd.DataFrame:
        """Return the cells that wait: drawn ones, and the first n of the queue; with the values of their rows."""
        with self.lock:
            drawn, draws = self._waiting(Order()), self.ledger.draws
            cells = [*drawn, *[cell for cell in self._queue(Order()) if cell not in draws][:n]]
            row, label = np.divmod(np.array(cells, dtype=np.int64), len(self.labels))
            found = pd.DataFrame({"row": self.rows[row], "label": self.ledger.labels[label]})
            found["probability"] = np.where(
                np.arange(len(row)) < len(drawn), np.nan, self.count.audit.missing[row, label]
            )
            for name in ("how", "chance", "stratum", "audit"):
                other = "reviewed" if name == "how" else ""
                found[name] = [draws[cell][0][name] if cell in draws else other for cell in cells]
        values = self.viewer.table(row)
        return found.join(values[[name for name in values if name not in found and name not in COLUMNS]])

    def close(self) -> None:
        """Stop what runs in the background, and let others write the file."""
        self._preparer.stop()
        self._counter.stop()
        with self.lock:
            self.ledger.store.close()

    @property
    def n_decided(self) -> str:
        """How many decisions the user has made, in words."""
        return many(len(self.ledger.mine), "decision")


def check_reviewable(findings: Any) -> None:
    """Refuse findings in which there is nothing to decide."""
    if not findings.form.has_labels:
        raise DecisionError("A review is about labels that may be missing; classes have none.")
    if not findings.state.candidates.any():
        raise DecisionError("Nothing may be missing here, so there is nothing to review.")


def refitting(model: Any, X: Any, Y: Any) -> Callable[[Any], Any] | None:
    """Return what fits a model again with decisions, if all is there that a fit needs."""
    if model is None or X is None or Y is None:
        return None

    def fit(lines: pd.DataFrame) -> Any:
        return clone(model).fit(X, Y, decisions=lines).labels_

    return fit
