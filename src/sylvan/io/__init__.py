"""Model files: one `.sylvan` file that can be read without trust in whoever made it.

A file is a header and a ZIP archive. The header has a mark, the format's number, the archive's length and its SHA-256.
The archive has one `.npy` file for each array and `model.json`, the objects as data. Objects are of classes that have
signed in (`stored`), plain Python values, numpy arrays, pandas tables and sparse matrices; what is not known is refused
when it is written, by its place in the model. Reading runs nothing that is in the file, makes objects of these classes
only, and checks all that predictions rely on.
"""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sylvan._files import whole_file
from sylvan.exceptions import ModelFileError
from sylvan.io.archive import FORMAT, open_archive, write_whole
from sylvan.io.nodes import Reader, write_model
from sylvan.io.registry import find_name, stored, stored_values

__all__ = ["FORMAT", "Savable", "load", "read_about", "save", "stored", "stored_values"]


class Savable:
    """Gives an estimator `save`."""

    def save(self, path: str | os.PathLike[str], *, findings: bool = False) -> Path:
        """Store the model in one file, from which `sylvan.load` makes it again.

        The file is written under another name and then renamed: a crash leaves the old one. It holds data only, nothing
        that is run when it is read, unlike a pickle. `path` usually has the ending `.sylvan`; it is returned. The file
        has what is needed to predict; with `findings=True` that of a cascade also holds `labels_`: recorded labels,
        suggestions and names of the training rows.
        """
        return save(self, path, findings=findings)


def save(
    model: Any, path: str | os.PathLike[str], *, about: dict[str, Any] | None = None, findings: bool = False
) -> Path:
    """Store an estimator of this package in one file.

    Parameters
    ----------
    model : estimator
        Of this package, fitted or not. What it holds must be of this package too: with a scikit-learn estimator in a
        layer, or a function as a callback, use joblib.
    path : str or path
    about : dict or None, default=None
        Anything that JSON can hold, kept beside the model; `read_about` returns it without reading the model.
    findings : bool, default=False
        Whether to store what cascades found of their training rows (`labels_`), too.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> import sylvan
    >>> from sylvan.datasets import load_digit_attributes
    >>> X, Y = load_digit_attributes(return_X_y=True)
    >>> model = sylvan.rf_et(10, random_state=0).fit(X[:300], Y[:300])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = model.save(f"{folder}/digits.sylvan")
    ...     again = sylvan.load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    if not isinstance(model, Savable) or find_name(type(model)) is None:
        name = f"{type(model).__module__}.{type(model).__name__}"
        raise TypeError(f"Only estimators of sylvan can be stored, not {name}.")
    whole = findings or getattr(model, "stored_whole", False)
    with whole_file(path) as file:
        write_whole(file, lambda archive: write_model(archive, model, about or {}, whole))
    return Path(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` stored; nothing in the file is run, and all that predictions rely on is checked.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged or cut off, was made by another version's format, or has numbers in it
        that no model can have. It is a ValueError.
    FileNotFoundError
    """
    with open_archive(path) as archive:
        try:
            model = Reader(archive).read()
        except MemoryError as error:
            size = f"{archive.total / 1e9:.1f} GB"
            raise ModelFileError(f"{path} holds {size}, more than there is memory for.") from error
        except Exception as error:  # whatever wild data led to
            made = archive.about.get("sylvan", "?")
            raise ModelFileError(
                f"{path} cannot be read by this version of sylvan ({version('sylvan')}; it was made by {made}): {error}"
            ) from error
        if not isinstance(model, Savable):
            raise ModelFileError(f"{path} holds no model but a {type(model).__name__}.")
        return model


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file says about its model: class, versions, when it was made, and what `save` was told."""
    with open_archive(path) as archive:
        return archive.about
