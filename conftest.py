"""Examples in docstrings that need an extra are skipped without it."""

import pytest

_NEEDS = {
    "sylvan.bench.baselines.siamese_network.SiameseNetwork": "torch",
    "sylvan.bench.baselines.mahalanobis.MahalanobisDistance": "metric_learn",
}


@pytest.fixture(autouse=True)
def _extra_of_the_example(request):
    if request.node.name in _NEEDS:
        pytest.importorskip(_NEEDS[request.node.name])
