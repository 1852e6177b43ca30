"""One small model for each file of tests."""

from types import SimpleNamespace

import pytest

import sylvan
from app.cli.running import TINY, call, done, make_songs


@pytest.fixture(scope="module")
def songs(tmp_path_factory):
    """A folder with a table, new rows and a model: `songs.csv`, `new.csv`, `songs.sylvan`."""
    folder = tmp_path_factory.mktemp("songs")
    frame, new = make_songs(), make_songs(25, seed=1)
    frame.to_csv(folder / "songs.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    done(call(folder, "fit", "songs.csv", "--labels", "tag_*", "-o", "songs.sylvan", "--with-rows", *TINY))
    return SimpleNamespace(
        folder=folder, frame=frame, new=new, path=folder / "songs.sylvan", model=sylvan.load(folder / "songs.sylvan")
    )
