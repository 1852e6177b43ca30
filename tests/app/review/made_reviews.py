"""A small table, a fit of it, and sessions on it."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pandas as pd

import sylvan
from sylvan.app.review.cells import Viewer
from sylvan.app.review.ledger import Ledger
from sylvan.app.review.session import Session, refitting
from sylvan.app.review.store import DecisionStore
from sylvan.labels.decisions import read_decisions

LABELS = ["happy", "calm", "loud"]


def table_of(n=60, seed=0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 3)).round(3), columns=["tempo", "energy", "depth"])
    true = np.column_stack([X["tempo"] > 0, X["energy"] > 0, X["tempo"] + X["depth"] > 0])
    Y = pd.DataFrame((true & (random.random(true.shape) < 0.6)).astype(int), columns=LABELS)
    X.index = Y.index = [f"song {at}" for at in range(n)]
    return X, Y, true


@lru_cache
def fitted():
    """X, Y, what is true, and a model; they are shared by all tests and not changed."""
    X, Y, true = table_of()
    model = sylvan.auto(5, max_layers=2, random_state=0, n_jobs=1).fit(X, Y)
    return SimpleNamespace(X=X, Y=Y, true=true, model=model, findings=model.labels_)


def session_of(path, user="ana", *, findings=None, others=(), model=None, refit=None, X=True, **options):
    made = fitted()
    found = made.findings if findings is None else findings
    names = [str(name) for name in made.X]
    shown = (made.X, names) if X and findings is None else ()
    store = DecisionStore(path, user)
    try:
        viewer = Viewer(model, found.rows, found.label_names, *shown)
        ledger = Ledger(store, found.rows, found.label_names, others)
        return Session(found, ledger, viewer, **({"audit": 6, "random_state": 0} | options), refit=refit)
    except BaseException:
        store.close()
        raise


def refit_made():
    made = fitted()
    return refitting(made.model, made.X, made.Y)


def decided_in(path):
    """What a file says, as everybody else reads it: {(row, label): decision}."""
    found, made = fitted().findings, fitted()
    read = read_decisions(path, found.rows, found.label_names, found.recorded, found.state.candidates)
    words = {1: "confirmed", -1: "rejected", 0: "unsure"}
    return {
        (made.Y.index[row], LABELS[label]): words[value]
        for row, label, value in zip(read.row.tolist(), read.label.tolist(), read.decision.tolist())
    }
