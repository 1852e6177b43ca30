"""The page from Python: `model.labels_.review(X, Y)`."""

import getpass
import os
import webbrowser
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sylvan.app.review.cells import Viewer
from sylvan.app.review.ledger import Ledger
from sylvan.app.review.session import Session, check_reviewable, refitting
from sylvan.app.review.store import DecisionStore
from sylvan.labels.decisions import COLUMNS
from sylvan.labels.table import read_labels

try:
    from sylvan.app.review.finish import Results, write_labels
    from sylvan.app.review.server import Server
except ImportError as error:
    raise ImportError(f'The review page needs {error.name}: pip install "sylvan[review]"') from error


class Review:
    """A running review page.

    Attributes
    ----------
    url : the link, with the token that lets its owner in
    session, server : what it is made of
    """

    def __init__(
        self, session: Session, port: int = 0, results: Results | None = None, *, open_browser: bool = True
    ) -> None:
        self.session = session
        try:
            self.server = Server(session, port, None if results is None else lambda: results.write(session))
        except BaseException:
            session.close()
            raise
        self.url = self.server.url
        if open_browser:
            webbrowser.open(self.url)

    @property
    def decisions(self) -> pd.DataFrame:
        """What is in the file of decisions."""
        with self.session.lock:
            return pd.DataFrame(self.session.ledger.store.lines, columns=pd.Index(COLUMNS))

    def wait(self) -> None:
        """Return when the server has ended."""
        self.server.wait()

    def stop(self) -> None:
        """End the server. All decisions are stored."""
        self.server.stop()

    def __repr__(self) -> str:
        return f"Review at {self.url}, {self.session.n_decided} in {self.session.ledger.store.path}"

    def _repr_html_(self) -> str:
        what = f"{self.session.n_decided} in {self.session.ledger.store.path}"
        return f'<a href="{escape(self.url)}" target="_blank" rel="noopener">Review</a>: {escape(what)}'


def review(
    findings: Any, X: Any = None, Y: Any = None, *, decisions: str | os.PathLike[str] = "decisions.csv",
    others: Any = (), audit: int = 100, precision: float = 0.8, confidence: float = 0.9, user: str | None = None,
    port: int = 0, open_browser: bool = True, images: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None, random_state: Any = None,
) -> Review:  # fmt: skip
    """Start the review page of a fit, in the background; `sylvan.labels.findings.Findings.review` says how."""
    check_reviewable(findings)
    _check_tables(findings, X, Y)
    model, path = getattr(findings, "model", None), Path(decisions)
    others = [others] if isinstance(others, (str, os.PathLike, pd.DataFrame)) else list(others)
    folder = Path(f"{path.stem}-review") if out is None else Path(out)
    title = "table" if path.stem == "decisions" else path.stem.removesuffix("-decisions")
    results = Results(folder, "completed.csv", write_labels(findings, Y), [path, *_paths(others)])
    pictures = folder_of(images)
    store = DecisionStore(path, user or login())
    try:
        shown = _values(model, findings.X if X is None else X)
        viewer = Viewer(model, findings.rows, findings.label_names, *shown, images=pictures)
        session = Session(
            findings, Ledger(store, findings.rows, findings.label_names, others), viewer, title=title, audit=audit,
            precision=precision, confidence=confidence, refit=refitting(model, X, Y), random_state=random_state,
        )  # fmt: skip
    except BaseException:
        store.close()
        raise
    return Review(session, port, results, open_browser=open_browser)


def _check_tables(findings: Any, X: Any, Y: Any) -> None:
    """Refuse tables that are not those of the fit: another one's values beside a question would mislead."""
    for name, table in (("X", X), ("Y", Y)):
        n = len(findings.rows) if table is None else table.shape[0] if hasattr(table, "shape") else len(table)
        same = findings.index is None or not hasattr(table, "iloc") or table.index.equals(findings.index)
        if n != len(findings.rows) or not same:
            raise ValueError(f"{name} must have the {len(findings.rows)} rows of the fit, in their order.")
    d = None if findings.X is None else findings.X.shape[1]
    width = d if X is None else X.shape[1] if len(getattr(X, "shape", ())) == 2 else np.shape(X)[-1]
    if width != d and d is not None:
        raise ValueError(f"X must have the {d} features of the fit, got {width} columns: review(X, Y).")
    if Y is not None and not np.array_equal(read_labels(Y).recorded, findings.recorded):
        raise ValueError("Y has other labels on record than in the fit: review(X, Y), with Y as it was fitted.")


def _values(model: Any, X: Any) -> tuple[Any, Sequence[str]]:
    """Return what can be shown of X, with names of its columns."""
    if X is None:
        return None, ()
    X = X if hasattr(X, "shape") else np.asarray(X)
    names = list(X.columns) if hasattr(X, "columns") else getattr(model, "feature_names_in_", None)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    return X, [f"x{at}" for at in range(X.shape[1])] if names is None else [str(name) for name in names]


def _paths(tables: Sequence[Any]) -> list[Path]:
    return [Path(each) for each in tables if isinstance(each, (str, os.PathLike))]


def folder_of(images: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of pictures, which must be there."""
    if images is None:
        return None
    if not Path(images).is_dir():
        raise NotADirectoryError(f"{images} is not a folder of images.")
    return Path(images)


def login() -> str:
    """Return the name of whoever is logged in."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
