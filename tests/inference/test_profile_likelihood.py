"""The interval of the calibration slope."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import calibrant as cal
from calibrant.inference import ProfileLikelihood

RNG = np.random.default_rng(8)
Z = RNG.normal(-1, 1.2, 200)
P = 1 / (1 + np.exp(-Z))
Y = (RNG.random(200) < 1 / (1 + np.exp(-0.7 * Z))).astype(int)
DATA = cal.Binary(Y, P)


def profile(b):
    """Minus the log likelihood with this slope and the best intercept."""
    eta = b * Z
    return minimize_scalar(lambda a: np.sum(np.logaddexp(0, a + eta) - Y * (a + eta)), bracket=(-3, 3)).fun


def ends(data, **options):
    found = cal.interval(cal.calibration_slope, data, **options).interval
    return found.low, found.high


def sandwich():
    """The robust variance of the slope over that of the likelihood, written out."""
    b = cal.calibration_slope(DATA)
    design = np.stack([np.ones(200), Z], axis=1)
    chance = 1 / (1 + np.exp(-(b.details["intercept"] + b * Z)))
    inverse = np.linalg.inv(design.T @ (design * (chance * (1 - chance))[:, None]))
    scores = design * (Y - chance)[:, None]
    return (inverse @ scores.T @ scores @ inverse)[1, 1] / inverse[1, 1] * 200 / 199


def test_at_the_ends_the_deviance_is_the_quantile():
    found = cal.interval(cal.calibration_slope, DATA)
    assert found.interval.low < found < found.interval.high
    rise = 1.9207294 * max(1.0, sandwich())
    for end in (found.interval.low, found.interval.high):
        assert profile(end) - profile(float(found)) == pytest.approx(rise, rel=1e-5)


def test_clusters_weights_and_tables():
    rows = np.repeat(np.arange(200), 3)
    alone = ends(cal.Binary(Y, P, group=np.arange(200)))
    assert ends(cal.Binary(Y[rows], P[rows], group=rows)) == pytest.approx(alone, rel=0.02)
    assert ends(cal.Binary(Y, P, weight=np.full(200, 5.0))) == pytest.approx(ends(DATA))
    assert ends(cal.BinTable.of(DATA, cal.table.Distinct())) == pytest.approx(ends(DATA))
    heavy = ends(cal.Binary(Y, P, weight=np.where(np.arange(200) < 20, 20.0, 1.0)))
    assert heavy[1] - heavy[0] > 1.5 * (ends(DATA)[1] - ends(DATA)[0])


def test_rows_of_0_and_1_do_not_move_the_slope():
    y, p = np.append(Y, [0, 1, 1]), np.append(P, [0.0, 1.0, 0.0])
    assert ends(cal.Binary(y, p)) == pytest.approx(ends(DATA), rel=1e-3)


@pytest.mark.parametrize("up", [True, False])
def test_separated_outcomes_have_one_end(up):
    y = np.array([0, 0, 0, 1, 1])
    found = cal.interval(cal.calibration_slope, [*y] if up else [*(1 - y)], [0.1, 0.3, 0.4, 0.6, 0.8]).interval
    assert found.side == ("lower" if up else "upper")
    assert np.isinf(found.high if up else found.low)
    assert np.isfinite(found.low if up else found.high)
    assert "separated" in found.assumption


def test_one_outcome_or_one_score_allow_every_slope():
    for data in (cal.Binary(np.zeros(9), P[:9]), cal.Binary(Y[:50], np.full(50, 0.3))):
        found = cal.interval(cal.calibration_slope, data)
        assert (found.interval.low, found.interval.high) == (-np.inf, np.inf)
        assert "every slope" in found.interval.assumption
        assert found.note == ""


def test_other_estimates_are_refused():
    with pytest.raises(TypeError, match="calibration_slope"):
        cal.interval(cal.ece, DATA, method=ProfileLikelihood())
