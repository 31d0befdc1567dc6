"""Proper scores from positives and unlabeled rows: a score that is linear in the outcome needs no negatives."""

from __future__ import annotations

import numpy as np

from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.numerics.arrays import Floats
from calibrant.results.estimate import Estimate
from calibrant.table.bintable import BinTable


def pu_brier(table: BinTable) -> Estimate:
    """mean_U(p²) - 2 π mean_P(p) + π, from the sums of any table."""
    product, observed = (table.observed_scale * float(column.sum()) for column in (table.product, table.observed))
    value = (float(table.predicted_squares.sum()) - 2 * product + observed) / table.total
    return Estimate(value, name="Brier score", method="positive-unlabeled mean", n=table.n)


def pu_log_loss(data: PositiveUnlabeled | BinTable) -> Estimate:
    """-π mean_P(logit p) - mean_U(log(1 - p)), with scores of 0 and 1 taken together before their logs are."""
    if isinstance(data, BinTable):
        p = (data.predicted + data.product) / (data.weight + data.observed)
        population, positives = data.share, data.observed * data.observed_scale / data.total
        n = data.n
    else:
        p = np.concatenate([data.unlabeled, data.positive]).astype(np.float64, copy=False)
        split, n = len(data.unlabeled), len(data)
        population, positives = np.zeros(len(p)), np.zeros(len(p))
        population[:split] = _shares(split, data.unlabeled_weight)
        positives[split:] = data.prior * _shares(len(data.positive), data.positive_weight)
    return Estimate(_log_loss(p, population, positives), name="Log loss", method="positive-unlabeled mean", n=n)


def _log_loss(p: Floats, population: Floats, positives: Floats) -> float:
    rounding = 1e-12
    certain, excluded = p == 1, p == 0
    if positives[excluded].sum() > rounding or (population - positives)[certain].sum() > rounding:
        return float("inf")
    some = ~(certain | excluded)
    p, population, positives = p[some], population[some], positives[some]
    return float(-(positives @ np.log(p)) - (population - positives) @ np.log1p(-p))


def _shares(size: int, weight: Floats | None) -> Floats:
    return np.full(size, 1 / size) if weight is None else weight / weight.sum()
