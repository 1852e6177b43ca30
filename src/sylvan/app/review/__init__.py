"""The review page: people decide about single cells in a browser, and see what that says of all others."""

from sylvan._lazy import lazy

_MODULES = ("cells", "exchange", "finish", "ledger", "server", "session", "start", "store")
__getattr__, __dir__ = lazy(__name__, _MODULES, {"Review": "start", "review": "start"})
