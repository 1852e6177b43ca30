"""A part of `benchmarks/fuzz_model_files.py`: files that were tampered with do no harm."""

import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_files_that_were_tampered_with(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import fuzz_model_files

    counts, bad = fuzz_model_files.run(300, seed=11, say=lambda line: None)
    assert bad == []
    outcomes = fuzz_model_files.table(counts).loc["all"]
    assert outcomes["refused"] > 150
    assert outcomes["harmless"] > 15
