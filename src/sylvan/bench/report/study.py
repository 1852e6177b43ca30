"""What the parts of the report share: the results with what is computed from them, and words for them."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sylvan.bench.protocol import QUICK
from sylvan.bench.statistics import CompleteBlocks, Ranks, complete_blocks, dataset_means, ranks, wilcoxon_pairs
from sylvan.measures import measure_name
from sylvan.pages.page import Picture, write_whole
from sylvan.pages.words import NotHere, slug
from sylvan.plotting.style import Style, method_styles, to_png, to_svg

ALPHA = 0.05
Level = tuple[Any, ...] | None  # of the factors; None: all levels together
# Larger pictures are smaller as PNG.
LARGEST_SVG = 110_000
MOST_PANELS = 48
COSTS = {
    "seconds": ("Fit, CPU s", 2), "predict_seconds": ("Predict, CPU s", 3), "peak_mib": ("Peak memory, MiB", 0),
    "model_mb": ("Pickled model, MB", 2), "n_layers": ("Layers", 1),
}  # fmt: skip


class Study:
    """Results with printed names of methods, and what several sections compute from them.

    `published` are figures to compare with (None: those of the protocol), `folder` is where files of plots go, if any.
    A `narrow` page has pictures that can be read at 800 pixels, all of them PNG.
    """

    def __init__(
        self, results: Any, published: pd.DataFrame | None = None, folder: Path | None = None, *, narrow: bool = False
    ) -> None:
        self.results, self.protocol, self.published, self.folder = results, results.protocol, published, folder
        self.narrow, self.quick = narrow, str(self.protocol.title).endswith(QUICK)
        self.factors, self.repeat = list(self.protocol.factors), self.protocol.repeat_name
        self.scores, self.layers = self._named(results.scores), self._named(results.layers)
        self.cells, self.planned = self._named(results.cells), self._named(results.planned)

    @cached_property
    def names(self) -> dict[str, str]:
        """Printed names by id, made unique."""
        names = self.protocol.method_names
        twice = {name for name in names.values() if list(names.values()).count(name) > 1}
        return {key: f"{name} ({key})" if name in twice else name for key, name in names.items()}

    @cached_property
    def styles(self) -> dict[str, Style]:
        """Colour and marker of each method."""
        return method_styles(list(self.names.values()))

    def _named(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A table with printed names of methods, without scores that are not finite: an infinite one is none either."""
        frame = frame.assign(method=frame["method"].map(self.names))
        return frame[np.isfinite(frame["value"].astype(float))].astype({"value": float}) if "value" in frame else frame

    @cached_property
    def methods(self) -> list[str]:
        """Printed names, in the order of the protocol."""
        return [name for name in self.names.values() if name in set(self.planned["method"])]

    @cached_property
    def measures(self) -> list[str]:
        """Measures with scores."""
        return [name for name in self.protocol.measures if name in set(self.scores["measure"])]

    @cached_property
    def datasets(self) -> list[str]:
        """Data sets, in the order of the protocol."""
        return [name for name in self.protocol.datasets if name in set(self.planned["dataset"])]

    @cached_property
    def levels(self) -> list[tuple[Any, ...]]:
        """Values of the factors that occur together, numbers before words; one empty tuple without factors."""
        if not self.factors:
            return [()]
        found = self.scores[self.factors].drop_duplicates().itertuples(index=False, name=None)
        return sorted(found, key=lambda row: [(isinstance(level, str), level) for level in row])

    @cached_property
    def blocks(self) -> dict[str, CompleteBlocks]:
        """Per measure, the blocks in which all methods that have any score of it have one."""
        return {name: complete_blocks(self.scores[self.scores["measure"] == name]) for name in self.measures}

    @cached_property
    def ranks(self) -> dict[str, Ranks]:
        """Ranks by measure."""
        return {name: ranks(blocks.scores) for name, blocks in self.blocks.items() if blocks.n_kept}

    @cached_property
    def order(self) -> list[str]:
        """Methods from best to worst by mean rank: the order of all plots."""
        mean: Any = self.mean_ranks if self.ranks else {}
        return sorted(self.methods, key=lambda name: (mean.get(name, np.inf), self.methods.index(name)))

    @cached_property
    def mean_ranks(self) -> pd.Series:
        """Mean rank of each method over all measures and levels."""
        return pd.concat([part.overall for part in self.ranks.values()]).groupby("method")["rank"].mean()

    @cached_property
    def wide(self) -> dict[tuple[str, Level], pd.DataFrame]:
        """Data sets x methods of each measure at each level; at None, of means over repeats and then over levels."""
        found: dict[tuple[str, Level], pd.DataFrame] = {}
        for measure, blocks in self.blocks.items():
            rows = blocks.scores
            for level in self.levels:
                found[measure, level] = dataset_means(rows, measure, **dict(zip(self.factors, level)))
            means = rows.groupby(["dataset", *self.factors, "method"], sort=False)["value"].mean()
            pooled: Any = means.groupby(["dataset", "method"], sort=False).mean().unstack("method")
            found[measure, None] = pooled.reindex(columns=list(blocks.methods))
        return found

    @cached_property
    def places(self) -> dict[Level, list[str]]:
        """Words of each level, and of None, all together, if there are several."""
        words: dict[Level, list[str]] = {level: list(map(plain, level)) for level in self.levels}
        return words | ({None: ["all"] * len(self.factors)} if len(words) > 1 else {})

    def level_name(self, level: Level) -> str:
        """Levels of the factors in words, of those that have several."""
        several = [(name, value) for name, value in zip(self.factors, level or ()) if self.scores[name].nunique() > 1]
        return ", ".join(f"{measure_name(name)} {plain(value)}" for name, value in several)

    def head(self, first: str, *columns: str) -> list[str]:
        """Heads of a table with a column for each factor."""
        return [first, *map(measure_name, self.factors), *columns]

    def need_two(self) -> None:
        """Refuse a comparison of fewer than two methods."""
        if not self.ranks:
            raise NotHere("No block has a score of every method, so methods cannot be compared.")
        if len(set(self.scores["method"])) < 2:
            raise NotHere("Only one method has scores: there is nothing to rank.")

    def need_two_datasets(self) -> None:
        """Refuse what compares over data sets where there are none to compare over."""
        self.need_two()
        if max(map(len, self.wide.values())) < 2:
            raise NotHere("Box plots, critical differences and tests need two data sets or more; here is one.")

    @cached_property
    def tests(self) -> dict[tuple[str, Level], pd.DataFrame]:
        """Wilcoxon's tests of each measure at each level, and at None."""
        return {place: wilcoxon_pairs(wide) for place, wide in self.wide.items()}

    def at(self, frame: pd.DataFrame, level: Level) -> pd.DataFrame:
        """Rows at a level; all at None."""
        for name, value in zip(self.factors, level or ()):
            frame = frame[frame[name] == value]
        return frame

    def picture(self, name: str, figure: Figure, *, png: bool = False, dpi: int = 120) -> Picture:
        """Return a figure for the page, as SVG if that is not too long, else as PNG; write its files."""
        png, dpi = (True, 100) if self.narrow else (png, dpi)
        svg = to_svg(figure) if self.folder is not None or not png else ""
        if self.folder is not None:
            write_whole(self.folder / f"{slug(name)}.svg", svg.encode())
            write_whole(self.folder / f"{slug(name)}.png", to_png(figure, dpi=150))
        data = to_png(figure, dpi=dpi) if png or len(svg) > LARGEST_SVG else svg
        return Picture(data, figure.get_figwidth() * 104)


def plain(value: Any) -> str:
    """A level without needless digits."""
    return f"{value:g}" if isinstance(value, float) else str(value)
