"""What `sylvan impute` writes into the table: suggested cells, and those that people confirmed."""

from dataclasses import dataclass
from typing import Any

import sylvan
from sylvan._messages import many

PRECISION = 0.8  # so much of what is written is expected to be right, if nothing else is asked for
_NOT_AUDITED = "; that was not audited (see: sylvan audit)"
_CORRECTED = "; audited cells have corrected these numbers, and promise nothing (--precision asks for a promise)"


@dataclass
class Chosen:
    """Cells that go into the table: suggested ones, and those that people confirmed."""

    suggested: Any  # DataFrame of row, label, probability; without decided cells
    confirmed: Any  # DataFrame of row, label, probability
    note: str = ""  # what is promised of the suggested ones, if that is more than an expectation
    certified: bool = False
    held_back: int = 0  # cells that are more probably present than not, but would make the list worse than it is to be
    audited: bool = False  # whether cells that were drawn at random have corrected the probabilities

    @property
    def right(self) -> float:
        """How many of the suggested ones are expected to be right."""
        return float(self.suggested["probability"].sum())

    @property
    def promise(self) -> str:
        """What is known of all this before it is written."""
        n, right = len(self.suggested), round(self.right)
        parts = [self.note] if self.note else []
        if n:
            expected = f"{right:,} {'is' if right == 1 else 'are'} expected to be right and {n - right:,} wrong"
            known = "" if self.note else _CORRECTED if self.audited else _NOT_AUDITED
            parts.append(f"Of {many(n, 'new suggestion')}, {expected}{known}.")
        if len(self.confirmed):
            parts.append(f"Written are {many(n, 'suggestion')} and {many(len(self.confirmed), 'confirmed cell')}.")
        if self.held_back > n:
            more = many(self.held_back, "further cell is", "further cells are")
            parts.append(
                f"{more} more probably present than not, but a list with them is not expected to be right to "
                f"{PRECISION:.0%}: --min-proba 0.5 writes them, and sylvan audit finds out how good a list is."
            )
        return " ".join(parts) or "Nothing is suggested."

    def leave_out(self, recovery: Any) -> list[str]:
        """Leave out labels of which a check found nothing again, unless the list is certified; say which."""
        lost = recovery[(recovery["hidden"] > 0) & (recovery["recovered"] == 0)]
        counts = self.suggested["label"].value_counts()
        lost = lost[lost.index.isin(counts.index)]
        if len(lost) and not self.certified:
            self.suggested = self.suggested[~self.suggested["label"].isin(lost.index)]
            self.note += f" {many(counts[lost.index].sum(), 'cell is', 'cells are')} left out." if self.note else ""
        done = "kept, since the list is certified" if self.certified else "left out"
        return [
            f"{name}: of {many(line['hidden'], 'hidden label')} the check found none; "
            f"{many(counts[name], 'suggestion is', 'suggestions are')} {done}."
            for name, line in lost.iterrows()
        ]


def choose(model: Any, options: dict[str, Any]) -> Chosen:
    """Return what goes into the table."""
    labels, state = model.labels_, model.labels_.state
    confirmed = sylvan.labels.suggestions.list_cells(
        state.confirmed, labels.missing, state.since, labels.rows, labels.label_names
    )
    if options["precision"] is not None:
        found = labels.audit().certify(options["precision"], options["confidence"])
        return Chosen(found.cells[~found.cells["confirmed"]], confirmed, found.note, found.certified)
    limits = {name: options[name] for name in ("min_proba", "max_per_label")}
    added = model.suggest_labels(min_proba=options["min_proba"])  # without a limit: what the model suggests by itself
    row, label = labels.rows.get_indexer(added["row"]), labels.summary().labels.index.get_indexer(added["label"])
    added = added[labels.offered[row, label]]  # nothing of which somebody said that he cannot tell
    n_probable = len(added)
    if options["min_proba"] is None:
        added = added[: sylvan.labels.certify.n_expected(added["probability"].to_numpy(), PRECISION)]
    held_back = n_probable - len(added)
    if limits["max_per_label"] is not None:
        added = added[added.groupby("label").cumcount() < limits["max_per_label"]]
    return Chosen(
        added, confirmed, held_back=held_back, audited=labels.decisions is not None and labels.audit().is_audited
    )
