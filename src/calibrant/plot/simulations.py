"""Figures of simulations (needs matplotlib): each draws on the axes it is given and computes nothing but means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.plot.canvas import axes

if TYPE_CHECKING:
    from calibrant.simulate.estimation_bias import BiasTable
    from calibrant.simulate.world_fit import Goodness

#: One for each line, before they repeat.
MARKERS = "os^vDPX*<>"


def bias_lines(table: BiasTable, *, ax: Any = None, **style: Any) -> Any:
    """Bias in percent against sample size, one line per estimator, averaged over the worlds of the table."""
    ax = axes(ax)
    sizes = sorted({row.n for row in table})
    ax.axhline(0.0, color="0.6", linestyle="--", linewidth=1)
    for drawn, name in enumerate(dict.fromkeys(row.estimator for row in table)):
        means = [100 * np.mean([row.bias for row in table.select(estimator=name, n=n)]) for n in sizes]
        marker = MARKERS[drawn % len(MARKERS)]  # so that lines can be told apart without colour
        ax.plot(sizes, means, **{"marker": marker, "markersize": 4, "label": name, **style})
    ax.set_xscale("log")
    ax.set(xlabel="sample size", ylabel="bias, percent")
    ax.legend(fontsize="small")
    return ax


def goodness_points(fits: Sequence[Goodness], *, ax: Any = None, **style: Any) -> Any:
    """Mean simulated against real estimate in percent, a point for each fit; good fits lie on the diagonal."""
    ax = axes(ax)
    real, simulated = (100 * np.array([getattr(fit, name) for fit in fits]) for name in ("real", "simulated"))
    spread = 100 * np.array([fit.simulated_sd for fit in fits])
    limit = 1.1 * max(real.max(), (simulated + spread).max())
    ax.plot([0, limit], [0, limit], color="0.6", linestyle="--", linewidth=1)
    ax.errorbar(real, simulated, yerr=spread, **{"fmt": "o", "capsize": 3, **style})
    ax.set(xlabel="real data, percent", ylabel="simulated data, percent", xlim=(0, limit), ylim=(0, limit))
    return ax
