"""Figures of the page: one that fails costs only itself, and drawing leaves nothing behind."""

from page_reader import read
from sylvan.app.report import figures, write_report


def test_a_figure_that_fails_costs_only_itself(empty, tmp_path, monkeypatch):
    def fail(display, model, options):
        raise {"LayerScoreDisplay": ImportError("no matplotlib")}.get(display, RuntimeError("<no>"))

    monkeypatch.setattr(figures, "_draw", fail)
    page = read(write_report(empty, tmp_path / "p.html"))
    assert "A figure was left out: no matplotlib" in page.sections["Layers"]
    assert "A figure could not be drawn (RuntimeError: <no>)." in page.sections["Calibration"]
    assert "<figure" not in page.text
    assert page.rows("layers")


def test_drawing_leaves_no_figure_open_and_no_style_behind(empty, tmp_path, drawn):
    import matplotlib as mpl
    from matplotlib import pyplot

    mine = pyplot.figure()
    try:
        with mpl.rc_context({"axes.facecolor": "black", "font.size": 40}):
            styled = read(write_report(empty, tmp_path / "p.html"))
            assert mpl.rcParams["font.size"] == 40
        assert styled.text == read(write_report(empty, tmp_path / "q.html")).text
        assert pyplot.get_fignums() == [mine.number]
    finally:
        pyplot.close(mine)
