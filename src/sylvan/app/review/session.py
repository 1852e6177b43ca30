"""Which cell is looked at next, and what the decisions say of all others. No request waits for a count or a fit."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from sylvan._messages import many, once_each
from sylvan.app.review.cells import Viewer
from sylvan.app.review.store import DecisionStore
from sylvan.app.tables.output import without_defence
from sylvan.exceptions import DecisionError
from sylvan.labels.audit import Audit
from sylvan.labels.decisions import COLUMNS, as_table, check_columns, find_names, word_of

_LOG = logging.getLogger(__name__)
_BATCH, _READY, _QUEUED = 200, 50, 500  # cells that are prepared at a time, that are to be ready, that are put in order
_QUIET = 0.3  # seconds after a decision, in which another one may come, before they are counted
_RECENT = 10
_REMEMBERED = 1000  # requests and orders
DECISIONS = ("confirmed", "rejected", "unsure")
NO_MODEL = "The model is not here: there are no reasons, and nothing can be fitted again."


class Order(NamedTuple):
    """What comes first, and whether only cells of one label or row come at all."""

    by: str = "value"
    label: int | None = None
    row: int | None = None


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
        self.work, self.quiet, self.busy = work, quiet, False
        self._wanted, self._stopped = threading.Event(), False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def ask(self) -> None:
        self.busy = True
        self._wanted.set()

    def stop(self) -> None:
        self._stopped = True
        self._wanted.set()

    def _run(self) -> None:
        with once_each():  # what it warns of, it says once
            while True:
                self._wanted.wait()
                if self._stopped:
                    return
                time.sleep(self.quiet)
                self._wanted.clear()
                try:
                    self.work()
                except Exception:
                    _LOG.exception("Work in the background failed")
                self.busy = self._wanted.is_set()


class Session:
    """One person's review of one table.

    Parameters
    ----------
    findings : what a fit found (`model.labels_`)
    store : where decisions go
    viewer : what is shown of cells
    others : tables or files of decisions of other people, which are read along
    audit : number of cells that are drawn at random first, unless the file has an audit already; 0: none
    precision, confidence : what a list is to promise
    refit : function of a table of decisions that returns new findings, or None if nothing can be fitted
    random_state : of draws
    """

    def __init__(
        self, findings: Any, store: DecisionStore, viewer: Viewer, *, title: str = "", others: Sequence[Any] = (),
        audit: int = 100, precision: float = 0.8, confidence: float = 0.9, refit: Callable[[Any], Any] | None = None,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        check_reviewable(findings)
        self.store, self.viewer, self.title, self._fit = store, viewer, title, refit
        self.precision, self.confidence, self.random_state = precision, confidence, random_state
        self.lock = threading.RLock()
        self.rows, self.labels = findings.rows, findings.label_names
        self._check_names()
        self.notice = " ".join(filter(None, [store.note, "" if viewer.explains or refit else NO_MODEL])) or None
        self.refit_state = {"state": "idle" if refit else "none", "message": "" if refit else NO_MODEL}
        self.finished: dict[str, Any] | None = None
        self._ids: OrderedDict[str, bool] = OrderedDict()
        self._current: OrderedDict[Order, int] = OrderedDict()
        self._order = Order()
        self._begin(findings, others)
        self._preparer, self._counter = Background(self._prepare), Background(self._recount, _QUIET)
        if audit and not self._planned():
            self._draw(audit, None)
        self._preparer.ask()

    def _check_names(self) -> None:
        """Refuse names that cannot be told apart once they are text in a file."""
        for what, names in (("row", self.rows), ("label", self.labels)):
            text = pd.Index([str(name) for name in names], dtype=object)
            if not text.is_unique:
                raise DecisionError(f"Two {what}s are called {text[text.duplicated()][0]!r} in a file; rename one.")
            wrong = next((name for name in text if "\0" in name or not _is_unicode(name)), None)
            if wrong is not None:
                raise DecisionError(f"The {what} {wrong!r} has characters in its name that no text file can hold.")

    # -- what was decided --------------------------------------------------------------------------------------------

    def _begin(self, findings: Any, others: Sequence[Any]) -> None:
        """Read what was decided before, and count it."""
        own = self._named(pd.DataFrame(self.store.lines, columns=pd.Index(COLUMNS)))
        frames = [own]
        for each in others:
            table = as_table(each)
            check_columns(table, each)
            frames.append(self._named(table.reindex(columns=list(COLUMNS))))
        self._lines: list[dict[str, Any]] = pd.concat(frames, ignore_index=True).to_dict("records")
        self.findings = findings
        self._learn_earlier(findings)
        self.audit = findings.audit().after(None)  # of the order of cells alone
        self.mine: OrderedDict[int, str] = OrderedDict()
        self.votes: dict[int, dict[str, str]] = {}
        self._draws: dict[int, list[dict[str, Any]]] = {}
        self.count = self._counted(self._decisions())  # refuses what is no decision about this table
        lines = pd.DataFrame([*self._lines, *self._earlier], columns=pd.Index([*COLUMNS, "cell"]))
        when = pd.to_datetime(lines["when"].replace("", None), errors="coerce", utc=True, format="mixed")
        for at in when.sort_values(kind="stable").index:
            self._note_line(dict(lines.loc[at]))
        for line in self._lines[: len(own)]:
            self._note_plan(line)

    def _named(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Return lines with the names of rows and labels as the table has them, and the positions of their cells."""
        at = []
        for what, known in (("row", self.rows), ("label", pd.Index(self.labels, dtype=object, tupleize_cols=False))):
            names = {str(name) for name in known}
            there = lines[what].astype(str).isin(names)
            at.append(find_names(lines[what].where(there, without_defence(lines[what])), known, what))
            lines = lines.assign(**{what: pd.Series(list(known[at[-1]]), lines.index, dtype=object)})
        return lines.assign(cell=at[0] * len(self.labels) + at[1])

    def _learn_earlier(self, findings: Any) -> None:
        """Keep what the fit was told of cells that no file says anything about."""
        self._earlier: list[dict[str, Any]] = []
        d, n_labels = findings.decisions, len(self.labels)
        if d is None:
            return
        said = {line["cell"] for line in self._lines if word_of(line["decision"])}
        words = {1: "confirmed", -1: "rejected", 0: "unsure"}
        drawn: dict[int, list[int]] = {}
        for draw, of in enumerate(d.drawn.tolist()):
            drawn.setdefault(of, []).append(draw)
        for at, (row, label, value) in enumerate(zip(d.row.tolist(), d.label.tolist(), d.decision.tolist())):
            if (cell := row * n_labels + label) in said:
                continue
            line = dict.fromkeys(COLUMNS, "") | {
                "row": self.rows[row], "label": self.labels[label], "decision": words[value], "cell": cell,
            }  # fmt: skip
            draws = [
                {"how": "audited", "chance": d.chance[k], "audit": d.audit[k],
                 "stratum": f"ranks {d.first[k]} to {d.last[k]}, {d.size[k]} cells"}
                for k in drawn.get(at, [])
            ]  # fmt: skip
            self._earlier += [line | draw for draw in draws or [{}]]

    def _note_line(self, line: dict[str, Any]) -> None:
        """Take a line as the latest word of whoever wrote it."""
        cell, word, who = int(line["cell"]), word_of(line["decision"]), str(line["who"] or "").strip()
        if not word:
            return
        voices = self.votes.setdefault(cell, {})
        voices.pop(who, None)
        if word != "withdrawn":
            voices[who] = word
        if not voices:
            del self.votes[cell]
        if who == self.store.user:
            self.mine.pop(cell, None)
            if word != "withdrawn":
                self.mine[cell] = word

    def _note_plan(self, line: dict[str, Any]) -> None:
        """Remember for which audits a cell was drawn."""
        if line["audit"]:
            draw = {name: line[name] for name in ("how", "chance", "stratum", "audit")} | {"how": "audited"}
            known = self._draws.setdefault(int(line["cell"]), [])
            if all(draw["audit"] != other["audit"] for other in known):
                known.append(draw)

    def _decisions(self) -> pd.DataFrame:
        return pd.DataFrame([*self._lines, *self._earlier], columns=pd.Index(COLUMNS))

    def merged(self, cell: int) -> str | None:
        """Return what people say of a cell: the majority, "unsure" if there is none, None if nobody said anything."""
        voices = self.votes.get(cell)
        if not voices:
            return None
        total = sum({"confirmed": 1, "rejected": -1}.get(word, 0) for word in voices.values())
        return "confirmed" if total > 0 else "rejected" if total < 0 else "unsure"

    def _planned(self) -> list[int]:
        """Return the cells that were drawn from this ranking; an audit whose plan was not written to its end is none."""
        mark = self.count.audit.ranking.fingerprint + "-"
        drawn: dict[str, list[int]] = {}
        wanted: dict[str, dict[str, float]] = {}
        for cell, draws in self._draws.items():
            for draw in draws:
                if str(draw["audit"]).startswith(mark):
                    drawn.setdefault(draw["audit"], []).append(cell)
                    size = float(str(draw["stratum"]).split()[-2])
                    chance = float(str(draw["chance"]).replace(",", "."))
                    wanted.setdefault(draw["audit"], {})[draw["stratum"]] = round(size * chance)
        for name, cells in list(drawn.items()):
            if len(cells) < sum(wanted[name].values()) and not any(cell in self.mine for cell in cells):
                del drawn[name]
        return list(dict.fromkeys(cell for cells in drawn.values() for cell in cells))

    # -- in the background -------------------------------------------------------------------------------------------

    def _counted(self, lines: pd.DataFrame) -> Count:
        """Count what decisions say; seconds, for the largest tables."""
        with self.lock:
            findings, base = self.findings, self.audit
        audit = base.after(findings.audit(lines).decisions) if len(lines) else base
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
            lines, findings = self._decisions(), self.findings
        count = self._counted(lines)
        with self.lock:
            if self.findings is findings:
                self.count = count
        self._preparer.ask()

    def _queued(self, audit: Audit, order: Order) -> list[int]:
        """Return the first undecided cells in an order."""
        n_labels, votes = len(self.labels), getattr(self, "votes", {})
        if order.row is None and order.label is None:
            if order.by == "value":
                found = audit.next_cells(_QUEUED)
                at = self.rows.get_indexer(pd.Index(found["row"])) * n_labels
                label = pd.Index(self.labels, dtype=object, tupleize_cols=False)
                return (at + label.get_indexer(pd.Index(found["label"], dtype=object, tupleize_cols=False))).tolist()
            cells = audit.ranking.cells[: 10 * _QUEUED + len(votes)]
        elif order.label is None:
            cells = order.row * n_labels + np.arange(n_labels)
        elif order.row is None:
            cells = np.arange(len(self.rows)) * n_labels + order.label
        else:
            cells = np.array([order.row * n_labels + order.label])
        cells = cells[audit.candidates.reshape(-1)[cells]]
        cells = cells[~np.isin(cells, np.fromiter(votes, np.int64, len(votes)))]
        p = audit.missing.reshape(-1)[cells]
        value = np.minimum(p, 1.0 - p) if order.by == "value" else p
        return cells[np.argsort(-value, kind="stable")[:_QUEUED]].tolist()

    def _prepare(self) -> None:
        """Make the next cells ready, those of the order that was asked for last."""
        with self.lock:
            order, current = self._order, self._current.get(self._order)
            waiting = [] if order[1:] != (None, None) else [cell for cell in self._planned() if cell not in self.votes]
            queue = [cell for cell in self._queue(order) if cell not in self.votes]
        now = [] if current is None else [current]
        for cells, reasons in ((waiting, False), ([cell for cell in [*now, *queue] if cell not in waiting], True)):
            if self.viewer.lacks([*now, *cells[:_READY]], reasons):
                step = _BATCH if not reasons or not self.viewer.explains else _READY
                self.viewer.prepare(self.viewer.lacks(cells[:_BATCH], reasons)[:step], reasons)

    # -- what is asked -----------------------------------------------------------------------------------------------

    def _queue(self, order: Order) -> list[int]:
        queues = self.count.queues
        if order not in queues or (queues[order] and all(cell in self.votes for cell in queues[order])):
            if len(queues) > _REMEMBERED:
                queues.clear()
            queues[order] = self._queued(self.count.audit, order)
        return queues[order]

    def _next(self, order: Order) -> tuple[str, int | None]:
        """Return the phase and the cell that is looked at now: the same until it is decided."""
        waiting = [cell for cell in self._planned() if cell not in self.votes] if order[1:] == (None, None) else []
        phase = "audit" if waiting else "queue"
        cell = self._current.get(order)
        if cell is None or (cell not in waiting and waiting and cell not in self.mine):
            cell = next(iter(waiting), None)
            if cell is None:
                cell = next((each for each in self._queue(order) if each not in self.votes), None)
            self._keep_current(order, cell)
        return ("done" if cell is None else phase), cell

    def _keep_current(self, order: Order, cell: int | None) -> None:
        self._current.pop(order, None)
        if cell is not None:
            self._current[order] = cell
        while len(self._current) > _REMEMBERED:
            self._current.popitem(last=False)

    def _move_on(self, cell: int) -> None:
        for order in [order for order, current in self._current.items() if current == cell]:
            del self._current[order]

    def state(self, order: Order, notice: str | None = None) -> dict[str, Any]:
        """Return all that the page shows."""
        with self.lock:
            self._order = order
            phase, cell = self._next(order)
            shown = None if cell is None else self._shown(cell)
            planned = self._planned()
            words = [self.merged(cell) for cell in self.votes]
            bar = {"decided": len(words)} | {word: words.count(word) for word in DECISIONS} | self.count.bar
            bar |= {"precision": self.precision, "confidence": self.confidence, "counting": self._counter.busy}
            recent = [(each, self.mine[each]) for each in list(reversed(self.mine))[:_RECENT]]
            found = {
                "title": self.title, "user": self.store.user, "file": self.store.path.name, "n_rows": len(self.rows),
                "labels": [str(name) for name in self.labels], "order": order._asdict(), "phase": phase,
                "audit": {"planned": len(planned), "answered": sum(each in self.votes for each in planned)},
                "bar": bar, "refit": dict(self.refit_state), "recent": [self._brief(*each) for each in recent],
                "cell": shown, "finished": self.finished, "notice": notice or self.notice,
            }  # fmt: skip
        if cell is not None and shown is not None and shown["pending"]:
            self._preparer.ask()
        return found

    def _shown(self, cell: int) -> dict[str, Any]:
        row, label = divmod(cell, len(self.labels))
        audited = cell in self._draws
        shown = self.viewer.show(cell, None if audited else float(self.count.audit.missing[row, label]))
        first = row * len(self.labels)
        said = {at: self.merged(first + at) for at in range(len(self.labels)) if first + at in self.votes}
        recorded = np.flatnonzero(self.findings.recorded[row]).tolist()
        labels = {word: [str(self.labels[at]) for at, each in said.items() if each == word and at != label]
                  for word in ("confirmed", "rejected")}  # fmt: skip
        labels["recorded"] = [str(self.labels[at]) for at in recorded]
        how = "audited" if audited else "reviewed"
        return shown | {"how": how, "decision": self.mine.get(cell), "labels": labels}

    def _brief(self, cell: int, decision: str) -> dict[str, Any]:
        row, label = divmod(cell, len(self.labels))
        how = "audited" if cell in self._draws else "reviewed"
        names = {"row": str(self.rows[row]), "label": str(self.labels[label])}
        return {"cell": f"{row}.{label}", **names, "decision": decision, "how": how}

    def find(self, name: Any) -> int:
        """Return the cell of a name such as "17.3"; another one is a ValueError."""
        parts = name.split(".") if isinstance(name, str) and len(name) < 30 else []
        if len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
            row, label = map(int, parts)
            if row < len(self.rows) and label < len(self.labels) and self.audit.candidates[row, label]:
                return row * len(self.labels) + label
        raise ValueError("There is no such cell to decide.")

    def decide(self, name: Any, decision: str, was: Any) -> None:
        """Store a decision, or "withdrawn"; `was` is what the page showed, and must be what is stored."""
        with self.lock:
            cell = self.find(name)
            now = self.mine.get(cell)
            if was != now:
                raise Conflict(cell)
            self.notice = None
            if decision == "withdrawn" and now is None:
                raise ValueError("Nothing was decided there that could be taken back.")
            if decision != (now or "withdrawn"):
                row, label = divmod(cell, len(self.labels))
                line = {"row": str(self.rows[row]), "label": str(self.labels[label]), "decision": decision}
                draws = self._draws.get(cell) or [{"how": "reviewed"}]
                for stored in self.store.append([line | draw for draw in draws]):
                    kept = stored | {"row": self.rows[row], "label": self.labels[label], "cell": cell}
                    self._lines.append(kept)
                    self._note_line(kept)
                self._earlier = [each for each in self._earlier if each["cell"] != cell]
                self._counter.ask()
            self._move_on(cell)

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
            self._draw(n, precision)
            self._current.clear()
            self._preparer.ask()

    def _draw(self, n: int, precision: float | None) -> None:
        audit = self.count.audit
        if self._counter_is_behind():
            audit = self.audit.after(self.findings.audit(self._decisions()).decisions)
        try:
            plan = audit.plan(n, precision=precision, confidence=self.confidence, random_state=self.random_state)
        except ValueError as error:
            self.notice = str(error)
            return
        n_labels, label = len(self.labels), pd.Index(self.labels, dtype=object, tupleize_cols=False)
        cells = self.rows.get_indexer(pd.Index(plan["row"])) * n_labels + label.get_indexer(plan["label"])
        stored = self.store.append(plan.to_dict("records"), by_user=False)
        for line, row, name, cell in zip(stored, plan["row"], plan["label"], cells.tolist()):
            self._lines.append(line | {"row": row, "label": name, "cell": cell})
            self._note_plan(self._lines[-1])

    def _counter_is_behind(self) -> bool:
        return hasattr(self, "_counter") and self._counter.busy

    # -- refit -------------------------------------------------------------------------------------------------------

    def refit(self) -> None:
        """Fit again with what was decided, in the background; the queue goes on meanwhile."""
        with self.lock:
            if self._fit is None:
                raise ValueError(NO_MODEL)
            if self.refit_state["state"] == "running":
                return
            self.refit_state = {"state": "running", "message": ""}
            lines = self._decisions()
        threading.Thread(target=self._refit, args=(lines,), daemon=True).start()

    def _refit(self, lines: pd.DataFrame) -> None:
        try:
            findings = self._fit(lines)  # type: ignore[misc]
            audit = findings.audit().after(None)
            _ = audit.ranking.fingerprint
        except Exception as error:
            _LOG.warning("The fit failed", exc_info=True)
            text = " ".join(str(error).split()) or type(error).__name__
            self.refit_state = {"state": "failed", "message": f"The fit failed, and nothing has changed: {text}"}
            return
        with self.lock:
            self.findings, self.audit = findings, audit
        count = self._counted(self._decisions())
        with self.lock:
            self.count = count
            self._current.clear()
            self.viewer.use(getattr(findings, "model", None))
            self.refit_state = {"state": "done", "message": "The model has learnt from what was decided."}
            self._preparer.ask()

    def close(self) -> None:
        """Stop what runs in the background, and let others write the file."""
        self._preparer.stop()
        self._counter.stop()
        with self.lock:
            self.store.close()

    @property
    def n_decided(self) -> str:
        """How many decisions the user has made, in words."""
        return many(len(self.mine), "decision")


def check_reviewable(findings: Any) -> None:
    """Refuse findings in which there is nothing to decide."""
    if not findings.form.has_labels:
        raise DecisionError("A review is about labels that may be missing; classes have none.")
    if not findings.state.candidates.any():
        raise DecisionError("Nothing may be missing here, so that there is nothing to review.")


def refitting(model: Any, X: Any, Y: Any) -> Callable[[Any], Any] | None:
    """Return what fits a model again with decisions, if all is there that a fit needs."""
    if model is None or X is None or Y is None:
        return None

    def fit(lines: pd.DataFrame) -> Any:
        made = clone(model).fit(X, Y, decisions=lines)
        found = made.labels_
        return found

    return fit


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
