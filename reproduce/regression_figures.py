"""Figures 1 to 5 of the regression paper, from forecasts of the synthetic and of the box experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import calibrant as cal
from reproduce.regression_boxes import OUTPUTS
from reproduce.variational_figures import pyplot

BINS = cal.EqualMass(20)
#: Of boxes, as in their table.
BOX_BINS = cal.EqualMass(10)


def synthetic_figures(sets: dict[str, list[cal.Gaussian]], out: Path) -> list[str]:
    """Figures 2 (random spread) and 3 (learned spread); the names of the files."""
    names = []
    for number, name in ((2, "random"), (3, "learned")):
        train, test = sets[name]
        figure, axes = pyplot().subplots(1, 4, figsize=(15, 3.8), layout="constrained")
        true = sets["true"][1].std  # the three sets are made from the same draws
        axes[0].scatter(true[:2000], test.std[:2000], s=2, alpha=0.4)
        axes[0].plot([0, 1], [0, 1], color="0.5", linestyle="--")
        axes[0].set(xlabel="true standard deviation", ylabel="predicted", title="a sample of rows")
        _before_and_after(axes[1:3], train, test)
        _quantiles(axes[3], train, test)
        names.append(_saved(figure, out / f"regression_figure_{number}.png"))
    return names


def box_figures(boxes: dict[str, list[cal.Gaussian]], out: Path, name: str = "figure") -> list[str]:
    """Figures 1, 4 and 5 on the boxes, in the bins of their table; the names of the files."""
    names, stem = [], f"regression_{name}"
    recalibration, test = boxes["random"]
    figure, axes = pyplot().subplots(1, 2, figsize=(8, 3.8), layout="constrained")
    first, judged = recalibration.outputs[0], test.outputs[0]
    _quantiles(axes[0], first, judged)
    cal.spread_curve(judged, bins=BOX_BINS).plot(ax=axes[1])
    axes[1].set_title(f"the same random spread: ENCE {cal.ence(judged, bins=BOX_BINS):.0%}")
    names.append(_saved(figure, out / f"{stem}_1.png"))
    for number, kind in ((4, "trained"), (5, "random")):
        recalibration, test = boxes[kind]
        figure, axes = pyplot().subplots(2, 4, figsize=(15, 7), layout="constrained")
        for column, (name, train, judged) in enumerate(zip(OUTPUTS, recalibration.outputs, test.outputs, strict=True)):
            _before_and_after(axes[:, column], train, judged, f"{name}, ", BOX_BINS)
        names.append(_saved(figure, out / f"{stem}_{number}.png"))
    return names


def _before_and_after(
    axes: Any, train: cal.Gaussian, test: cal.Gaussian, prefix: str = "", bins: cal.EqualMass = BINS
) -> None:
    scaled = cal.recalibrate.StdScaling().fit(train).transform(test)
    for ax, data, title in zip(axes, (test, scaled), ("before", "after STD scaling"), strict=True):
        cal.spread_curve(data, bins=bins).plot(ax=ax)
        ax.set_title(f"{prefix}{title}: ENCE {cal.ence(data, bins=bins):.1%}")


def _quantiles(ax: Any, train: cal.Gaussian, test: cal.Gaussian) -> None:
    kuleshov = cal.recalibrate.CdfIsotonic().fit(train).transform(test)
    cal.interval_curve(kuleshov, central=False).plot(ax=ax, label="after the isotonic map")
    before = cal.interval_curve(test, central=False)
    ax.plot(before.x, before.observed, color="#D55E00", label="before")
    ax.legend()
    ax.set_title("quantile calibration")


def _saved(figure: Any, path: Path) -> str:
    figure.savefig(path, dpi=70, metadata={"Software": None})
    pyplot().close(figure)
    return path.name
