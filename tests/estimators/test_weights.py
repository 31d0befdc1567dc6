"""Weights are importance weights: their unit changes no estimate, interval, test or map."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal

RNG = np.random.default_rng(5)
N = 120
P = np.round(RNG.beta(0.8, 0.7, N), 2).clip(0.01, 0.98) + 0.00137
Y = RNG.random(N) < P**1.4
W = RNG.gamma(2.0, size=N) + 0.05
MEAN, STD = RNG.normal(size=N), np.round(RNG.gamma(4.0, 0.3, N), 2) + 0.1
Z = MEAN + 1.3 * STD * RNG.normal(size=N)
VECTORS = RNG.dirichlet([1, 1, 2], N)
CODES = RNG.integers(0, 3, N)
SCALES = [0.1, 3.0, 1e-200, 1e200]


def of(kind, weight):
    if kind == "binary":
        return cal.Binary(Y, P, weight=weight)
    if kind == "spread":
        return cal.Gaussian(Z, MEAN, STD, weight=weight)
    if kind == "classes":
        return cal.Multiclass(CODES, VECTORS, weight=weight)
    return cal.PositiveUnlabeled(P[Y][:40], P[40:], prior=0.4, weight=None if weight is None else np.asarray(weight))


def size(kind):
    return 40 + N - 40 if kind == "unlabeled" else N


def tabled(estimator, cells):
    return lambda data: estimator(cal.BinTable.of(data, cells))


GRID, DISTINCT = cal.table.HybridGrid(256), cal.table.Distinct()
ERRORS = {
    "ece": cal.ece,
    "ece L2": partial(cal.ece, norm=2),
    "mce": cal.mce,
    "label binned": cal.estimators.label_binned_ece,
    "debiased": cal.debiased_ece,
    "debiased L2": partial(cal.debiased_ece, norm=2),
    "sweep": cal.sweep_ece,
    "ks": cal.ks_error,
    "kernel": cal.kernel_error,
    "calibration error": cal.variational_error,
    "brier": cal.brier,
    "log loss": cal.log_loss,
    "auc": cal.auc,
    "paper bins": partial(cal.ece, bins=cal.pu.PaperBins(cal.EqualMass)),
}
BINARY = ERRORS | {
    "smooth": cal.smooth_ece,
    "kde": cal.kde_ece,
    "averaged": cal.averaged_error,
    "overconfidence": cal.overconfidence,
    "underconfidence": cal.underconfidence,
    "decomposition": lambda data: cal.decompose(data).miscalibration,
    "interval": lambda data: cal.interval(cal.ece, data).interval.high,
    "interval of brier": lambda data: cal.interval(cal.brier, data).interval.high,
    "test": lambda data: cal.calibration_test(data).p_value,
    "Hosmer-Lemeshow": lambda data: cal.calibration_test(data, method=cal.inference.HosmerLemeshow()).p_value,
    "Spiegelhalter": lambda data: cal.calibration_test(data, method=cal.inference.Spiegelhalter()).p_value,
    "Cox": lambda data: cal.calibration_test(data, method=cal.inference.Cox()).p_value,
    "ici": cal.ici,
    "loess": partial(cal.ici, curve="loess"),
    "kuiper": cal.estimators.kuiper_error,
    "slope": cal.calibration_slope,
    "interval of the slope": lambda data: cal.interval(cal.calibration_slope, data).interval.high,
    "interval of the intercept": lambda data: cal.interval(cal.calibration_intercept, data).interval.high,
    "interval of O:E": lambda data: cal.interval(cal.observed_expected, data).interval.high,
    "curve": lambda data: cal.reliability_curve(data).confidence_low.sum(),
    "binned curve": lambda data: cal.reliability_curve(data, bins=10).confidence_low.sum(),
    "table": tabled(cal.debiased_ece, GRID),
    "exact table": tabled(cal.debiased_ece, DISTINCT),
    "sweep of a table": tabled(cal.sweep_ece, GRID),
    "kde of a table": tabled(cal.kde_ece, GRID),
    "bound": lambda data: cal.BinTable.of(data, GRID).error_bound(10),
}
UNLABELED = ERRORS | {
    "interval": lambda data: cal.interval(cal.ece, data).interval.high,
    "test": lambda data: cal.calibration_test(data).p_value,
    "largest prior": lambda data: cal.pu.largest_prior(cal.BinTable.of(data, 10)),
    "band": lambda data: cal.pu.prior_band(data, 0.3, 0.5).minimum,
    "bound": lambda data: cal.pu.sharp_bias_bound(data, delta=0.1),
}
SPREAD = {
    "ence": cal.ence,
    "uce": cal.uce,
    "debiased ence": cal.estimators.debiased_ence,
    "sweep ence": cal.estimators.sweep_ence,
    "mean squared z": cal.estimators.mean_squared_z,
    "dispersion": cal.estimators.std_dispersion,
    "crps": cal.crps,
    "nll": cal.nll,
    "coverage": cal.coverage,
    "interval error": cal.interval_error,
    "test": lambda data: cal.calibration_test(data).p_value,
    "spread test": lambda data: cal.calibration_test(data, method=cal.inference.SpreadChiSquare()).p_value,
    "table": tabled(cal.ence, cal.table.LogGrid(64)),
}
CLASSES = {
    "brier": cal.brier,
    "log loss": cal.log_loss,
    "kernel": cal.kernel_error,
    "calibration error": cal.variational_error,
    "classwise": lambda data: cal.classwise(cal.debiased_ece, data),
}
CASES = [
    pytest.param(kind, estimator, id=f"{kind} {name}")
    for kind, estimators in (("binary", BINARY), ("unlabeled", UNLABELED), ("spread", SPREAD), ("classes", CLASSES))
    for name, estimator in estimators.items()
]


@pytest.mark.no_cover
@pytest.mark.filterwarnings("ignore:The prior")
@pytest.mark.parametrize(("kind", "estimator"), CASES)
def test_the_unit_of_the_weights_does_not_matter(kind, estimator):
    weight = W[: size(kind)]
    expected = float(estimator(of(kind, weight)))
    for scale in SCALES:
        assert float(estimator(of(kind, scale * weight))) == pytest.approx(expected, rel=1e-9, abs=1e-10), scale


@pytest.mark.no_cover
@pytest.mark.filterwarnings("ignore:The prior")
@pytest.mark.parametrize(("kind", "estimator"), CASES)
def test_weights_that_are_all_alike_are_no_weights(kind, estimator):
    expected = float(estimator(of(kind, None)))
    for scale in [1.0, *SCALES]:
        alike = np.full(size(kind), scale)
        assert float(estimator(of(kind, alike))) == pytest.approx(expected, rel=1e-9, abs=1e-10), scale
