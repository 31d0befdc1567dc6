"""`calibration_error`, the recommended number of each task, and the averaged error behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

import numpy as np

from calibrant.data.forecasts import Forecast, Quantiles
from calibrant.data.predictions import Column, Columns, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.estimators.binned import check_norm, ece, result, with_norm
from calibrant.numerics.arrays import GRID_CELLS, GRID_ROWS, Floats, expit
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import HybridGrid, PaperBins
from calibrant.table.bintable import BinTable, Data, outcome_cells
from calibrant.table.task import Spread, Unlabeled, task_of

if TYPE_CHECKING:
    from calibrant.numerics.logistic.stacked import LogisticFits
    from calibrant.numerics.smoothers import LogitBins


#: The exponent 5 below: how abruptly the result goes to zero as noise explains more of it.
#: Test: tests/estimators/test_recommended.py::test_the_square_is_the_plug_in_square_without_its_noise.
SHARPNESS = 5

#: Samples that are fitted together.
#: Speed: 256 samples take a quarter of the time that they take one by one; no result depends on it.
_STEP = 32


def of_samples(samples: SortedSamples, *, norm: float = 1) -> Floats:
    """`averaged_error` of each sample; many at once where all have the same scores."""
    norm = _check_finite_norm(norm)
    score = samples.key[0].astype(np.float64)
    if samples.n > GRID_ROWS or not (samples.key == score).all():
        pairs = zip(samples.outcome, samples.key, strict=True)
        return np.array([float(averaged_error(outcome, key, norm=norm)) for outcome, key in pairs])
    from calibrant.numerics.smoothers import LogitBins, raw_logit

    raw = raw_logit(score)
    bins = LogitBins.of(raw, np.ones(samples.n))
    index = bins.index(raw)
    positive = np.stack([np.bincount(index, outcome, len(bins)) for outcome in samples.outcome]).astype(np.float64)
    parts = [_Curves.of(bins, positive[start : start + _STEP]) for start in range(0, len(positive), _STEP)]
    return np.concatenate([part.error(norm) for part in parts])


@estimates("true error", batched=of_samples)
def averaged_error(
    data: Data = None, y_prob: Column = None, *, norm: float = 1, **columns: Unpack[Columns]
) -> Estimate:
    r"""Model-averaged calibration error: the default `calibration_error` for one probability, near zero if calibrated.

    Penalised logistic curves g_m of the score, from the identity to rough splines, are fitted to all rows. Their
    weights w_m come from the leave-one-out likelihood and from the marginal likelihood, which counts more the more it
    favours the identity. With A the average of the squared gaps and V the part of A that is due to noise alone,

    .. math:: A = \sum_m w_m \overline{(g_m - p)^2}, \qquad V = \sum_m w_m \overline{\operatorname{Var}(g_m)},
              \qquad \Bigl(\sum_m w_m \overline{\lvert g_m - p\rvert^q}\Bigr)^{1/q}
              \sqrt{\max\bigl(0, 1 - (V/A)^5\bigr)}

    where bars are means over the rows. Well above the noise, shrinkage of the curves (downward) and noise (upward)
    balance, and nothing is subtracted; as noise explains more of A, the result goes to zero.

    For calibrated predictions it is nearest to zero in all nine simulated cases (reproduce/results/choose.md). For
    miscalibrated predictions no estimator is best everywhere: in the ten published worlds it has less bias than
    `debiased_ece` and `sweep_ece` (reproduce/results/averaged.md); in 7 of 18 cases from other worlds it has a smaller
    root mean squared error than both. With few rows, and where the error changes quickly with the score, it is too low.

    Parameters
    ----------
    data : Predictions, fine BinTable, or y_true
        Binary predictions; for multiclass data take `Multiclass(...).top_label()`.
    norm : float
        The exponent q, at least 1 and finite.

    References
    ----------
    The curves are those of the default map of `variational_error`; the correction for noise is new here.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> averaged_error(rng.random(2000) < p**2, p).value  # the truth is 0.167
    0.16...
    >>> averaged_error(rng.random(2000) < p, p).value  # the truth is 0
    0.0...
    """
    norm = _check_finite_norm(norm)
    cells = _cells(data, y_prob)
    curves = _curves(cells)
    plug_in, noisy = (float(value[0]) for value in curves.squares)
    details = {"plug_in": plug_in, "noise": noisy, "identity_weight": float(curves.weight[0, 0])}
    value = float(curves.error(norm)[0])
    return result(value, with_norm("Averaged error", norm), "averaged smooth curves", cells, **details)


def _check_finite_norm(norm: float) -> float:
    norm = check_norm(norm)
    if np.isinf(norm):
        fail("averaged_error needs a finite norm; for the largest gap use mce.", ValueError)
    return norm


def _cells(data: Data, y_prob: Column) -> BinTable:
    """The exact table; for many rows a table on a grid that is finer than the curves can resolve."""
    if not isinstance(data, BinTable):
        data = binary(data, y_prob)
        if len(data) > GRID_ROWS:
            data = BinTable.of(data, HybridGrid(GRID_CELLS))
    return outcome_cells(data, needed_by="averaged_error")


@dataclass(frozen=True, eq=False)
class _Curves:
    """Curves of d sets of outcomes on m bins: `share` (m) of rows, `gap` and `noise` (d, j, m) of each curve."""

    share: Floats
    gap: Floats
    noise: Floats
    weight: Floats

    @classmethod
    def of(cls, bins: LogitBins, positive: Floats) -> _Curves:
        """From the number of positive outcomes per set and bin."""
        from calibrant.numerics.smoothers import member_curves, member_fits

        fits = member_fits(bins, positive, np.maximum(bins.mass - positive, 0.0))
        fitted, variance = member_curves(fits)
        share, noise = bins.mass / bins.mass.sum(), variance * (fitted * (1 - fitted)) ** 2
        return cls(share, fitted - expit(bins.logit), noise, _weights(fits))

    @property
    def squares(self) -> tuple[Floats, Floats]:
        """The plug-in square A of each set, and the part V of it that is due to noise."""
        return self._average(self.gap**2), self._average(self.noise)

    def error(self, norm: float) -> Floats:
        """The averaged error of each set."""
        plug_in, noisy = self.squares
        ratio = np.minimum(noisy / np.where(plug_in > 0, plug_in, 1.0), 1.0)
        kept = np.where(plug_in > 0, np.sqrt(1 - ratio**SHARPNESS), 0.0)
        return np.asarray(self._average(np.abs(self.gap) ** norm) ** (1 / norm) * kept)

    def _average(self, values: Floats) -> Floats:
        return np.einsum("dj,dj->d", self.weight, values @ self.share)


def _curves(cells: BinTable) -> _Curves:
    """The curves of the one set of outcomes of a table."""
    from calibrant.numerics.smoothers import LogitBins, raw_logit

    # Weights are scaled to add up to the effective number of rows.
    scale = cells.total / float(cells.weight_squares.sum())
    raw = raw_logit(cells.predicted_mean)
    bins = LogitBins.of(raw, cells.weight * scale)
    positive = np.bincount(bins.index(raw), cells.observed * scale, len(bins)).astype(np.float64)
    return _Curves.of(bins, positive[None])


def _weights(fits: list[LogisticFits]) -> Floats:
    """By leave-one-out likelihood, which keeps rough curves, or by marginal likelihood if that favours the identity."""
    from calibrant.numerics.smoothers import member_weights

    by_evidence, by_held_out = (member_weights(fits, by)[0] for by in ("evidence", "held_out"))
    calibrated = np.cbrt(by_evidence[:, :1])  # even a small weight of the identity counts
    return calibrated * by_evidence + (1 - calibrated) * by_held_out


Choice = Literal["averaged", "variational", "binned", "spread", "coverage"]
"""What `calibration_error` takes as `method=`."""


def _of_samples(samples: SortedSamples, *, norm: Any = 1, method: Choice | None = None, **options: Any) -> Floats:
    """`calibration_error` of each sample."""
    if recommended(None, norm) == "averaged" if method is None else method == "averaged":
        return of_samples(samples, norm=norm, **options)
    pairs = zip(samples.outcome, samples.key, strict=True)
    return np.array([float(calibration_error(y, p, norm=norm, method=method, **options)) for y, p in pairs])


@estimates("true error", batched=_of_samples)
def calibration_error(
    data: Data = None, y_prob: Column = None, *, norm: Any = 1, method: Choice | None = None, **options: Any
) -> Estimate:
    r"""The recommended calibration error for the task: the mean distance between predictions and true frequencies.

    .. math:: \bigl(\mathrm E\lvert f - \mathrm E[Y \mid f]\rvert^q\bigr)^{1/q}

    for one probability f of an outcome Y, where q is `norm`. For a vector of class probabilities it is the mean length
    of the difference. ``interval(calibration_error, data)`` adds a confidence interval for this true error.
    `Estimate.method` says how it was estimated.

    Parameters
    ----------
    data : Predictions, BinTable, or y_true (then `y_prob`)
    norm : float >= 1, inf, "squared", "kl", or Distance
        The norms that `method` supports.
    method : optional
        - "averaged": `averaged_error`, the default for one probability (binary predictions, top labels, their fine
          tables) in L1 and L2. It is nearest to zero for calibrated predictions; for others no estimator is best
          everywhere.
        - "variational": `variational_error`, the default for multiclass vectors and all other norms: a lower bound in
          expectation.
        - "binned": `ece`, the default in L1 for positive-unlabeled data, with `calibrant.pu.PaperBins`.
        - "spread": `ence`, the relative error of predicted spreads, the default for forecasts that have them.
        - "coverage": `interval_error`, the error of the coverage of central intervals, the default for quantiles.
    **options
        Options of the method: ``calibration_error(data, method="binned", bins=EqualWidth(15))``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2  # the true error is 1/6
    >>> calibration_error(y, p)
    <Calibration error (L1) 0.16..., n=2_000, averaged smooth curves>
    >>> calibration_error(y, p, method="binned", n_bins=10)
    <Calibration error (L1) 0.1..., n=2_000, binned, EqualMass(n_bins=10)>
    """
    chosen = recommended(data, norm) if method is None else method
    if chosen not in get_args(Choice):
        fail(f"method must be {', '.join(map(repr, get_args(Choice)))}, got {method!r}.", ValueError)
    if chosen == "spread":
        return _of_spread(data, norm, options)
    if chosen == "binned" and _is_unlabeled(data) and not options.keys() & {"bins", "n_bins"}:
        options = {**options, "bins": PaperBins()}
    found = _estimator(chosen)(data, y_prob, norm=norm, **options)
    _, _, words = found.name.rpartition(" (")
    if chosen == "coverage":
        return found.renamed(f"Calibration error (coverage, {words}", f"coverage, {found.method}")
    name = _NAMES.get("" if found.target is None else found.target.of, "Calibration error")
    return found.renamed(f"{name} ({words}", found.method if chosen == "averaged" else f"{chosen}, {found.method}")


#: What is estimated, by whose error it is; the calibration error of others.
_NAMES = {
    "confidence": "Confidence calibration error",
    "confidence given vector": "Confidence calibration error given the vector",
}


def recommended(data: Data, norm: Any = 1) -> Choice:
    """The method for the task of some data; that of one probability for plain arrays."""
    if isinstance(data, Quantiles):
        return "coverage"
    if isinstance(data, Forecast) or (isinstance(data, BinTable) and isinstance(data.task, Spread)):
        return "spread"
    if _is_unlabeled(data):
        return "binned" if norm == 1 else "variational"
    tables = isinstance(data, list | tuple) and len(data) > 0 and isinstance(data[0], BinTable)
    return "variational" if isinstance(data, Multiclass) or tables or norm not in (1, 2) else "averaged"


def _is_unlabeled(data: Data) -> bool:
    return isinstance(data, Predictions | BinTable) and isinstance(task_of(data), Unlabeled)


def _estimator(chosen: Choice) -> Callable[..., Estimate]:
    """The estimator, loaded only where it is needed."""
    if chosen == "coverage":
        from calibrant.estimators.regression_coverage import interval_error

        return interval_error
    if chosen == "variational":
        from calibrant.estimators.variational import variational_error

        return variational_error
    return averaged_error if chosen == "averaged" else ece


def _of_spread(data: Any, norm: Any, options: dict[str, Any]) -> Estimate:
    from calibrant.estimators.regression_spread import ence

    if norm != 1:
        message = (
            f"The error of predicted spreads has norm 1, got {norm!r}; see debiased_ence for the root mean square."
        )
        raise ValueError(message)
    found = ence(data, **options)
    return found.renamed("Calibration error (ENCE)", f"spread, {found.method}")
