"""What a review has brought: the completed table, all decisions, what is promised, and a page to send on."""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from sylvan._messages import many
from sylvan.app.review.session import Session
from sylvan.app.tables.output import TableWriter, check_output, write_completed
from sylvan.app.tables.training import TrainingTable
from sylvan.exceptions import TableError
from sylvan.labels.decisions import COLUMNS, word_of
from sylvan.labels.suggestions import apply_suggestions
from sylvan.pages.page import Page, Table, write_whole

_LISTED = 300  # cells of the list that the page shows
Writer = Callable[[Path, pd.DataFrame], None]


class Results:
    """Writes the results of a review into a folder; what is there from before is replaced.

    Parameters
    ----------
    folder : made if it is not there
    completed : name of the completed table
    write_table : writes the table of labels with further cells (row, label) to a path
    inputs : files that are read or written by the review, which must stay as they are
    """

    def __init__(self, folder: Path, completed: str, write_table: Writer, inputs: Sequence[Path | None] = ()) -> None:
        self.folder, self.completed, self._write_table = folder, completed, write_table
        self.files = [completed, "decisions.csv", "certificate.txt", "report.html"]
        check_output(folder / completed)
        taken = {path.resolve() for path in inputs if path is not None}
        for name in self.files:
            if (folder / name).resolve() in taken:
                raise TableError(f"{folder / name} is read or written by the review; let results go to another folder.")
        self._lock = threading.Lock()

    def write(self, session: Session) -> dict[str, Any]:
        """Write all files, each as a whole, and say where."""
        with self._lock:
            audit, lines = session.latest()
            found = audit.certify(session.precision, session.confidence)
            cells = audit.decisions
            names = audit.ranking.frame(cells.row * len(audit.labels) + cells.label)
            confirmed = pd.DataFrame(names)[cells.decision == 1]
            suggested = found.cells[~found.cells["confirmed"]]
            self.folder.mkdir(exist_ok=True, parents=True)
            added = pd.concat([confirmed, suggested[["row", "label"]]], ignore_index=True)
            self._write_table(self.folder / self.completed, added)
            with TableWriter(self.folder / "decisions.csv") as out:
                out.write(lines[list(COLUMNS)])
            notes = self._promises(session, audit, found, len(confirmed), len(suggested))
            text = f"Review of {session.title}\n\n" + "\n".join(notes) + "\n"
            write_whole(self.folder / "certificate.txt", text.encode(errors="replace"))
            self._page(session, audit, lines, found, notes).write(self.folder / "report.html")
        return {"folder": str(self.folder.resolve()), "files": self.files, "notes": notes}

    def _promises(self, session: Session, audit: Any, found: Any, n_confirmed: int, n_suggested: int) -> list[str]:
        """Return what is known of the completed table, in sentences."""
        total = audit.n_missing(session.confidence).loc["all labels"]
        right = round(float(found.cells["probability"][~found.cells["confirmed"]].sum()))
        whose = "counted from cells that were drawn at random" if audit.is_audited else "the model's word, not audited"
        among = f", {many(n_confirmed, 'confirmed one')} included" if n_confirmed else ""
        missing = (
            f"About {many(round(total['missing']), 'label was', 'labels were')} missing{among}: between "
            f"{total['low']:,.0f} and {total['high']:,.0f} with {session.confidence:.0%} confidence, {whose}."
        )
        if audit.is_audited and session.n_wanted:
            planned, answered = session.progress.values()
            missing = f"It is too early to count what was missing: {answered} of {planned} drawn cells are answered."
        said = [sum(audit.decisions.decision == value) for value in (1, -1, 0)]
        suggested = f"{many(n_suggested, 'suggested one')}, of which about {right:,} should be right"
        return [
            f"{session.title or 'The table'}: {many(len(session.rows), 'row')}, {many(len(session.labels), 'label')}. "
            f"Written on {datetime.now(UTC):%Y-%m-%d at %H:%M} UTC. Asked for: {session.precision:.0%} right, with "
            f"{session.confidence:.0%} confidence.",
            f"{many(len(audit.decisions), 'cell is', 'cells are')} decided: {said[0]:,} confirmed, {said[1]:,} "
            f"rejected, {said[2]:,} unsure.",
            missing,
            found.note,
            f"{self.completed} has {many(n_confirmed, 'confirmed cell')} and "
            f"{suggested if n_suggested else 'no suggested one'}. No rejected cell is in it.",
        ]  # fmt: skip

    def _page(self, session: Session, audit: Any, lines: pd.DataFrame, found: Any, notes: list[str]) -> Page:
        page = Page(f"Review of {session.title}", notes[0], Path(__file__).parent / "templates")
        missing = audit.n_missing(session.confidence)
        counts = [
            (str(name), int(n), int(line["confirmed"]), *(round(line[end]) for end in ("missing", "low", "high")))
            for n, (name, line) in zip([*audit.n_recorded, audit.n_recorded.sum()], missing.iterrows())
        ]
        words = lines["decision"].map(word_of)
        people = pd.crosstab(lines["who"][words != ""], words[words != ""])
        columns = [word for word in ("confirmed", "rejected", "unsure", "withdrawn") if word in people]
        by_person = [
            (str(who) or "(no name)", *map(int, line)) for who, line in zip(people.index, people[columns].to_numpy())
        ]
        shown = found.cells.sort_values("confirmed", kind="stable").head(_LISTED)  # suggested cells are to be judged
        cells = [
            (str(line.row), str(line.label), float(line.probability), "confirmed" if line.confirmed else "suggested")
            for line in shown.itertuples(index=False)
        ]
        facts = {
            "counts": Table(["Label", "Recorded", "Confirmed", "Missing", "Low", "High"], counts),
            "people": Table(["Who", *columns], by_person), "confidence": session.confidence,
            "cells": Table(["Row", "Label", "Probability", "Kind"], cells), "n_cells": len(found.cells),
            "listed": _LISTED,
        }  # fmt: skip
        page.section("What is known", page.render("known.html", notes=notes[1:]))
        page.section("How many labels were missing", page.render("counts.html", **facts))
        page.section("The list", page.render("list.html", **facts))
        page.section("Who decided", page.render("people.html", **facts))
        return page


def completed_name(path: Path) -> str:
    """Return what the completed table is called: as the table, if it can be written so, or else a CSV file."""
    name = "completed" + "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:])
    try:
        check_output(Path(name))
    except TableError:
        return "completed.csv"
    return name


def write_file(table: TrainingTable) -> Writer:
    """Return what writes the file of a table with further labels; all other cells stay as they are."""

    def write(path: Path, added: pd.DataFrame) -> None:
        rows = table.source_rows.to_numpy()[table.X.index.get_indexer(pd.Index(added["row"]))]
        write_completed(path, table.source, table.schema.labels, rows, added["label"].tolist())

    return write


def write_labels(findings: Any, Y: Any) -> Writer:
    """Return what writes labels that came from Python, with the names of the rows in the first column."""

    def write(path: Path, added: pd.DataFrame) -> None:
        if isinstance(Y, pd.DataFrame) and Y.columns.is_unique:
            names = Y.set_axis(findings.rows)
        else:
            names = pd.DataFrame(findings.recorded, index=findings.rows, columns=findings.label_names).astype("Int64")
            if findings.trusts_zeros:
                names = names.mask(findings.state.candidates)  # unknown, and not absent
        done = apply_suggestions(names, added)
        done.columns = [str(name) for name in done.columns]
        done.insert(0, "row" if "row" not in done.columns else "row name", findings.rows.astype(object))
        with TableWriter(path) as out:
            out.write(done)

    return write
