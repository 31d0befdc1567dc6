"""Do the intervals of the numbers for validations and decisions cover? Measured in worlds of known truth.

``python -m reproduce.decisions_coverage`` writes reproduce/results/decisions_coverage.csv; what the file holds already
is not measured again. Truths are population values by quadrature. Student's quantile of clusters was chosen after the
first measurement of clusters of 5, so clusters of 20 are its check. The high end of the cost of miscalibration was at
first that of the maps alone, which covered in 0.84 of the samples where the true curve jumps; the present one was
measured in samples of other seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.numerics.arrays import Floats
from calibrant.numerics.logistic_line import LogisticLine
from calibrant.numerics.special import expit
from reproduce.resumable import Row, coverage, markdown, measured

RESULTS = Path(__file__).with_name("results")
SIZES, RATES = (100, 1000), (0.02, 0.3)
#: The true log odds of the event at predicted log odds z, up to the constant that gives the wanted rate of events.
CURVES: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda z: z,
    "too extreme": lambda z: 0.5 * z,
    "jump": lambda z: z + np.where(z > z.mean(), 0.8, -0.4),
    "too low": lambda z: z,
}
#: By how much predicted log odds are shifted after the true probabilities were set.
SHIFTS = {"too low": -0.7}
#: Rows per cluster (with a common random effect), and whether rows have random weights.
DESIGNS = {"rows": (1, False), "weighted": (1, True), "clusters of 5": (5, False), "clusters of 20": (20, False)}
#: Net benefits, by the threshold as a multiple of the rate of events.
NET_BENEFITS = {
    "net_benefit at 0.5": 0.5,
    "net_benefit at 2": 2.0,
    "net_benefit at 0.5, standardized": 0.5,
    "net_benefit at 2, standardized": 2.0,
}
#: What miscalibration costs, by the threshold as a multiple of the rate of events; and what selective prediction risks.
COSTS = {"miscalibration_cost at 0.5": 0.5, "miscalibration_cost at 2": 2.0}
AREAS = ("aurc", "excess")
#: These take longer, and are measured in fewer samples.
SLOW = (*COSTS, "decision_loss", *AREAS)
NODES = 100_000


@lru_cache
def population(curve: str, rate: float) -> tuple[Floats, Floats]:
    """Predicted log odds at equally likely quantiles, and the true probabilities there, which average to `rate`."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    z = 1.2 * ndtri((np.arange(NODES) + 0.5) / NODES)
    z += brentq(lambda shift: float(expit(z + shift).mean()) - rate, -20, 20)
    true = CURVES[curve](z)
    q = expit(true + brentq(lambda shift: float(expit(true + shift).mean()) - rate, -20, 20))
    return z + SHIFTS.get(curve, 0.0), q


def sample(rng: np.random.Generator, n: int, curve: str, rate: float, design: str) -> cal.Binary:
    """Rows of a world. Clusters share most of their score and of the noise of their outcomes."""
    from scipy.special import ndtr

    size, weighted = DESIGNS[design]
    z, q = population(curve, rate)
    count = n // size
    if size == 1:
        at, u = rng.random(n), rng.random(n)
    else:  # Gaussian copulas, so that each row by itself is one of the population
        at, u = (
            ndtr(np.sqrt(0.5) * np.repeat(rng.normal(size=count), size) + np.sqrt(0.5) * rng.normal(size=n))
            for _ in range(2)
        )
    rows = np.minimum((at * NODES).astype(np.intp), NODES - 1)
    weight = rng.gamma(1.0, size=n) + 0.1 if weighted else None
    group = np.repeat(np.arange(count), size) if size > 1 else None
    return cal.Binary(u < q[rows], expit(z[rows]), weight=weight, group=group)


def threshold(quantity: str, rate: float) -> float:
    """Where the net benefit of this name is taken."""
    return NET_BENEFITS[quantity] * rate


def measured_interval(quantity: str, data: cal.Binary, rate: float) -> cal.Interval:
    """The default interval."""
    if quantity in COSTS:
        cost = cal.inference.miscalibration_cost(data, thresholds=[COSTS[quantity] * rate])
        return cal.Interval(float(cost.low[0]), float(cost.high[0]), level=cost.level, method="MOVER")
    if quantity == "decision_loss" or quantity in AREAS:
        whole = cal.inference.miscalibration_cost(data) if quantity == "decision_loss" else cal.risk_coverage(data)
        between = getattr(whole, quantity).interval
        if between is None:
            raise RuntimeError(quantity)
        return between
    if quantity not in NET_BENEFITS:
        found = cal.interval(getattr(cal, quantity), data).interval
        if found is None:
            raise RuntimeError(quantity)
        return found
    standardized = "standardized" in quantity
    if standardized and not data.y_true.any():  # refused: nothing is claimed
        return cal.Interval(-np.inf, np.inf, level=0.95, method="none")
    curve = cal.net_benefit(data, thresholds=[threshold(quantity, rate)], standardized=standardized)
    return cal.Interval(float(curve.low[0]), float(curve.high[0]), level=curve.level, method="MOVER")


def truth(quantity: str, curve: str, rate: float) -> float:
    """The population value."""
    z, q = population(curve, rate)
    if quantity == "observed_expected":
        return float(q.mean() / expit(z).mean())
    if quantity in NET_BENEFITS:
        at, standardized = threshold(quantity, rate), "standardized" in quantity
        treated = expit(z) >= at
        worth = float(np.mean(treated * (q - at / (1 - at) * (1 - q))))
        return worth / rate if standardized else worth
    if quantity in COSTS:
        return cost_of(expit(z), q, COSTS[quantity] * rate)
    if quantity == "decision_loss":
        return max(cost_of(expit(z), q, t) * min(1.0, (1 - t) / t) for t in np.arange(1, 200) / 200)
    if quantity in AREAS:
        return area_of(expit(z), q, excess=quantity == "excess")
    line = LogisticLine(z, np.ones(NODES), q)
    return line.intercept(1.0) if quantity == "calibration_intercept" else line.fit()[1]


def cost_of(p: Floats, q: Floats, t: float) -> float:
    """What treating by p instead of by q costs at a threshold."""
    return float(np.mean(np.abs(q - t) / (1 - t) * ((p >= t) != (q >= t))))


def area_of(p: Floats, q: Floats, *, excess: bool) -> float:
    """Area under the risk-coverage curve of the population, or what it exceeds the ideal by."""
    wrong = np.where(p >= 0.5, 1 - q, q)[np.argsort(-np.maximum(p, 1 - p), kind="stable")]
    area = float(np.mean(np.cumsum(wrong) / np.arange(1, len(p) + 1)))
    rate = float(wrong.mean())
    return area - (rate + (1 - rate) * np.log1p(-rate)) if excess else area


def cell(quantity: str, curve: str, rate: float, n: int, design: str, samples: int) -> Row:
    """Coverage over the samples of one world."""
    found = []
    for k in range(samples):
        seed = 22 if quantity in COSTS else 20
        data = sample(np.random.default_rng([seed, n, round(1000 * rate), k]), n, curve, rate, design)
        found.append(measured_interval(quantity, data, rate))
    return coverage(truth(quantity, curve, rate), found)


def main(samples: int) -> str:
    """Measure what is missing; the rows as a table."""
    quantities = ("observed_expected", "calibration_intercept", "calibration_slope", *NET_BENEFITS, *SLOW)
    tasks = [
        (*task, samples // 4 if task[0] in SLOW else samples)
        for task in product(quantities, CURVES, RATES, SIZES, DESIGNS)
        if task[-1] == "rows" or (task[-2] == 1000 and task[0] not in (*NET_BENEFITS, *SLOW))
    ]
    keys = ("quantity", "curve", "rate", "n", "design", "samples")
    rows = measured(RESULTS / "decisions_coverage.csv", tasks, keys, cell)
    return markdown(rows, (*keys, "truth", "covered", "low_above", "high_below", "width"), "covered")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    print(main(parser.parse_args().samples))
