import pytest


@pytest.fixture(autouse=True)
def _data_home(tmp_path_factory, monkeypatch, request):
    """Keep tests away from the user's data folder."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("home")))
    if request.node.get_closest_marker("real_data") is None:
        monkeypatch.delenv("SYLVAN_DATA", raising=False)
