"""The data behind the page's figures, computed once so that the page only looks them up."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.estimators.norms import weighted_norm
from calibrant.numerics.arrays import Floats
from calibrant.numerics.isotonic import pool_adjacent_violators
from calibrant.table.binning import EqualMass, EqualWidth
from calibrant.table.bintable import BinTable

#: The numbers of bins the slider stops at.
STOPS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
METHODS = {"mass": EqualMass, "width": EqualWidth}
HISTOGRAM_BINS = 40


def probability_view(cells: BinTable, lines: dict[str, float]) -> dict[str, Any]:
    """Bins for every stop of the slider, the isotonic curve, the histogram, and horizontal lines for comparison."""
    binned = {name: {str(n): _bins(cells.coarsen(method(n))) for n in STOPS} for name, method in METHODS.items()}
    histogram = cells.coarsen(EqualWidth(HISTOGRAM_BINS)).share
    return {
        "n": cells.n,
        "mean_predicted": _digits(float(cells.predicted.sum() / cells.total)),
        "mean_observed": _digits(float(cells.observed.sum() / cells.total)),
        "bins": binned,
        "corp": _blocks(cells),
        "histogram": [_digits(float(share)) for share in histogram],
        "lines": {name: _digits(value) for name, value in lines.items()},
    }


def _bins(table: BinTable) -> dict[str, Any]:
    """ECE, and per bin: mean prediction, mean outcome, rows, and 95 % of what a calibrated model would show."""
    some = table.filled()
    p, observed = some.predicted_mean, some.observed_mean
    columns = (p, observed, some.count, *consistency(p, some.effective_count))
    points = [[_digits(float(value)) for value in row] for row in zip(*columns, strict=True)]
    return {"ece": _digits(weighted_norm(p - observed, some.share, 1)), "points": points}


def consistency(p: Floats, count: Floats, *, level: float = 0.95) -> tuple[Floats, Floats]:
    """Quantiles of the share of positives among `count` rows of probability `p`."""
    from scipy.stats import binom

    rows = np.maximum(np.round(count), 1)
    tail = (1 - level) / 2
    inside = np.clip(p, 0.0, 1.0)
    return binom.ppf(tail, rows, inside) / rows, binom.ppf(1 - tail, rows, inside) / rows


def _blocks(cells: BinTable) -> list[list[float]]:
    """The isotonic curve: two corners per block, lowest and highest score at its mean outcome."""
    starts, weight, observed = pool_adjacent_violators(cells.weight, cells.observed)
    ends = np.append(starts[1:], len(cells)) - 1
    rate = observed / weight
    rows = zip(cells.low[starts], cells.high[ends], rate, weight, strict=True)
    return [[_digits(float(value)) for value in row] for row in rows]


def _digits(value: float) -> float:
    """Six significant digits: enough for a screen, and a third of the bytes."""
    return float(f"{value:.6g}")
