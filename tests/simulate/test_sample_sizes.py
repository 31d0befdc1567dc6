"""Sample sizes and power, against published numbers and simulated validations."""

import json
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from calibrant.inference import Inversion
from calibrant.results import estimates
from calibrant.simulate import BetaScores, LogitMixtureScores, ShiftCurve, TemperatureCurve, World
from calibrant.simulate.sample_sizes import _SpreadScores, rows_to_rule_out


def normal(mean, sd):
    return LogitMixtureScores((mean,), (sd,), (1.0,))


@pytest.mark.parametrize(
    ("estimator", "scores", "width", "printed", "tolerance"),
    [
        # Numbers of the tests of R's pmvalsampsize 0.1.0 (its Python port for a million simulated rows). It raises the
        # standard error in steps of 0.0001 and simulates the scores; these are formulas and quadrature.
        (cal.observed_expected, [0.018], 1.0, 905, 0.002),
        (cal.calibration_slope, normal(-5, 2.5), 0.2, 4544, 0.005),
        (cal.calibration_slope, BetaScores(0.5, 0.5), 0.2, 1644, 0.001),
        # Its output for a prevalence of 0.2 and scores that agree with it.
        (cal.observed_expected, [0.2], 0.2, 1538, 0.004),
        (cal.calibration_slope, normal(-1.75, 1.22), 0.2, 2958, 0.001),
    ],
)
def test_printed_numbers_of_pmvalsampsize(estimator, scores, width, printed, tolerance):
    assert cal.sample_size(estimator, scores, width=width).n == pytest.approx(printed, rel=tolerance)


def test_standardized_net_benefit_has_the_published_variance():
    """Riley et al. (2021): sensitivity, specificity and prevalence give the standard error."""
    scores, t = normal(-1.75, 1.22), 0.2
    rate = scores.expect(lambda z: 1 / (1 + np.exp(-z)))
    treated = scores.expect(lambda z: (1 / (1 + np.exp(-z)) >= t) / (1 + np.exp(-z)))
    sensitivity = treated / rate
    specificity = 1 - scores.expect(lambda z: (1 / (1 + np.exp(-z)) >= t) / (1 + np.exp(z))) / (1 - rate)
    w = (1 - rate) / rate * t / (1 - t)
    unit = (
        sensitivity * (1 - sensitivity) / rate
        + w**2 * specificity * (1 - specificity) / (1 - rate)
        + w**2 * (1 - specificity) ** 2 / (rate * (1 - rate))
    )
    wanted = unit / (0.2 / (2 * 1.959964)) ** 2
    found = cal.sample_size(cal.net_benefit, scores, width=0.2, threshold=t, standardized=True)
    assert found.n == pytest.approx(wanted, abs=1.5)


@pytest.mark.no_cover
@pytest.mark.parametrize("estimator", [cal.observed_expected, cal.calibration_slope, cal.calibration_intercept])
def test_intervals_of_that_many_rows_are_as_wide_as_asked(estimator):
    world = World(normal(-1.0, 1.3))
    n = cal.sample_size(estimator, world, width=0.3).n
    found = [cal.interval(estimator, world.sample(n, seed=k)).interval for k in range(30)]
    width = np.mean([one.high - one.low for one in found])
    # The interval of O:E knows the scores, and is narrower than the formula, which only knows the rate of events.
    assert 0.2 < width < 0.33
    assert estimator is cal.observed_expected or width > 0.27


@pytest.mark.parametrize(
    ("estimator", "curve", "null"),
    [
        (cal.observed_expected, ShiftCurve(0.05), 1.0),
        (cal.calibration_slope, TemperatureCurve(1.4), 1.0),
        (cal.calibration_intercept, ShiftCurve(-0.05), 0.0),
    ],
)
def test_intervals_of_that_many_rows_exclude_no_error_as_often_as_asked(estimator, curve, null):
    world = World(normal(-1.0, 1.3), curve)
    size = cal.sample_size(estimator, world, power=0.8)
    seen = [null not in cal.interval(estimator, world.sample(size.n, seed=k)).interval for k in range(150)]
    assert np.mean(seen) > 0.8 - 3 * np.sqrt(0.16 / 150)
    assert size.null_value == null
    assert size.events == pytest.approx(size.n * world.expect(lambda p, c: c), abs=1)


def test_power_of_net_benefit_is_that_of_seeing_that_the_model_is_of_use():
    world = World(normal(-1.0, 1.3))
    size = cal.sample_size(cal.net_benefit, world, power=0.8, threshold=0.4)
    assert size.null_value == 0  # at 0.4, treating no one is better than treating all
    curves = [cal.net_benefit(world.sample(size.n, seed=k), thresholds=[0.4]) for k in range(200)]
    assert np.mean([curve.low[0] > 0 for curve in curves]) == pytest.approx(0.8, abs=0.12)


def test_calibration_errors_are_simulated():
    world = World(normal(-1.0, 1.3), ShiftCurve(0.15))
    size = cal.sample_size(cal.ece, world, power=0.7, runs=30)
    assert size.true_value == pytest.approx(world.true_error(1))
    assert "simulations" in size.method
    seen = [cal.calibration_test(world.sample(size.n, seed=1000 + k)).p_value <= 0.05 for k in range(40)]
    assert np.mean(seen) > 0.45
    wide = cal.sample_size(cal.ece, world, width=0.25, runs=30)
    assert 50 <= wide.n < 400
    assert json.loads(json.dumps(wide.to_dict()))["n"] == wide.n


@pytest.mark.no_cover
def test_power_of_the_interval_is_that_of_excluding_zero():
    """At the size for `calibration_test` the interval excludes zero less often; `by` asks for its own size."""
    world = World(normal(-1.0, 1.3), ShiftCurve(0.12))
    sizes = {by: cal.sample_size(cal.ece, world, power=0.8, by=by, runs=30).n for by in ("test", "interval")}
    assert sizes["interval"] > 1.2 * sizes["test"]
    seen = [cal.interval(cal.ece, world.sample(sizes["interval"], seed=k)).interval.low > 0 for k in range(60)]
    assert np.mean(seen) > 0.8 - 3 * np.sqrt(0.16 / 60 + 0.16 / 30)


@pytest.mark.no_cover
def test_an_error_is_ruled_out_as_often_as_asked():
    size = cal.sample_size(cal.ece, normal(-1.0, 1.3), power=0.8, below=0.12, runs=30)
    fresh = World(normal(-1.0, 1.3))
    seen = [cal.interval(cal.ece, fresh.sample(size.n, seed=k)).interval.high < 0.12 for k in range(60)]
    assert np.mean(seen) == pytest.approx(0.8, abs=3 * np.sqrt(0.16 / 60 + 0.16 / 30))
    assert "below 0.12" in size.wanted


RULED_OUT = {
    "beta": lambda rng, n: rng.beta(0.6, 1.4, n),
    "one mode": lambda rng, n: rng.beta(2.0, 2.0, n),
    "levels": lambda rng, n: rng.choice([0.1, 0.3, 0.5, 0.8, 0.95], n),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("law", RULED_OUT)
def test_rows_that_rule_out_an_error_do_so_as_often_as_promised(law):
    """Of fresh samples of that many rows 80% have an interval that ends below the error, from 300 rows on or 3,000."""
    rng = np.random.default_rng(4)
    reached, upper = [], Inversion(side="upper")
    for k in range(20):
        p = RULED_OUT[law](rng, (300, 3000)[k % 2])
        n = rows_to_rule_out(0.15, cal.Binary(rng.random(len(p)) < p, p), seed=k)
        for _ in range(20):
            q = RULED_OUT[law](rng, n)
            reached.append(upper.interval(cal.Binary(rng.random(n) < q, q), level=0.975).high < 0.15)
    assert np.mean(reached) == pytest.approx(0.8, abs=3 * np.sqrt(0.16 / 400 + 0.01 / 20))


@pytest.mark.parametrize("law", ["beta", "levels"])
def test_rows_that_rule_out_an_error_are_many_if_small(law):
    rng = np.random.default_rng(4)
    p = RULED_OUT[law](rng, 3000)
    few, many = (rows_to_rule_out(error, cal.Binary(rng.random(len(p)) < p, p)) for error in (0.04, 0.004))
    # of an error a tenth as large, about 100 times the rows, and more where larger samples are looked at more closely
    assert 70 < many / few < (500 if law == "beta" else 200)


def test_rows_that_rule_out_an_error_know_weights_tables_and_clusters():
    rng = np.random.default_rng(2)
    p = rng.beta(2, 2, 2000)
    data = cal.Binary(rng.random(2000) < p, p)
    n = rows_to_rule_out(0.06, data)
    assert rows_to_rule_out(0.06, cal.table.BinTable.of(data, cal.table.Distinct())) == n
    weighted = cal.Binary(data.y_true, p, weight=rng.choice([1.0, 9.0], 2000))  # an effective size of 25 / 41
    with_weights, without = (
        np.mean([rows_to_rule_out(0.06, one, seed=k) for k in range(8)]) for one in (weighted, data)
    )
    assert with_weights == pytest.approx(without * 41 / 25, rel=0.3)
    assert rows_to_rule_out(0.02, data) > 7 * n
    assert rows_to_rule_out(0.06, cal.Binary(data.y_true, p, group=np.arange(2000) // 10)) is None


def test_scores_that_occur_once_are_spread_and_levels_stay():
    drawn = World(_SpreadScores([0.1, 0.2, 0.2, 0.2, 0.6])).sample(4000, seed=1).y_prob
    assert np.mean(np.isclose(drawn, 0.2)) == pytest.approx(0.6, abs=0.03)
    low, high = drawn[drawn < 0.2 - 1e-9], drawn[drawn > 0.2 + 1e-9]
    assert len(np.unique(low)) > 500
    assert [low.min(), low.max(), high.min(), high.max()] == pytest.approx([0.1, 0.15, 0.4, 0.6], abs=0.01)


def test_what_cannot_be_answered_is_said():
    calibrated = World(normal(-1.0, 1.3))
    with pytest.raises(ValueError, match="by must be"):
        cal.sample_size(cal.ece, calibrated, power=0.8, by="t")
    with pytest.raises(ValueError, match="goes with power"):
        cal.sample_size(cal.ece, calibrated, width=0.8, below=0.1)
    with pytest.raises(ValueError, match=r"is not below 0\.01"):
        cal.sample_size(cal.ece, World(normal(-1.0, 1.3), ShiftCurve(0.05)), power=0.8, below=0.01)
    with pytest.raises(ValueError, match="are for calibration errors"):
        cal.sample_size(cal.calibration_slope, calibrated, power=0.8, below=0.01)
    for estimator in (cal.calibration_slope, cal.ece):
        with pytest.raises(ValueError, match="no error to see"):
            cal.sample_size(estimator, calibrated, power=0.8)
    with pytest.raises(ValueError, match="either width"):
        cal.sample_size(cal.ece, calibrated)
    with pytest.raises(ValueError, match="width must be"):
        cal.sample_size(cal.ece, calibrated, width=0.0)
    with pytest.raises(ValueError, match="needs threshold"):
        cal.sample_size(cal.net_benefit, calibrated, width=0.1)
    with pytest.raises(TypeError, match="no sample size for brier"):
        cal.sample_size(cal.brier, calibrated, width=0.1)
    with pytest.raises(ValueError, match="do not vary"):
        cal.sample_size(cal.calibration_slope, [0.3, 0.3], width=0.1)
    with pytest.raises(ValueError, match="with events"):
        cal.sample_size(cal.observed_expected, [0.0, 0.0], width=0.1)
    with pytest.raises(ValueError, match="with events"):
        cal.sample_size(cal.net_benefit, [0.0, 0.0], width=0.1, threshold=0.2, standardized=True)


SWEEP = partial(cal.sweep_ece, norm=2)
WIDTH = partial(cal.ece, bins=cal.EqualWidth(15), norm=2)


def world_of_error(percent):
    from scipy.optimize import brentq

    d = brentq(lambda d: 100 * sim.World(sim.UniformScores(), sim.PowerCurve(d)).true_error(2) - percent, 1.0001, 5)
    return sim.World(sim.UniformScores(), sim.PowerCurve(d))


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("n", "percent", "estimator", "miss"),
    [(500, 5, WIDTH, 0.725), (500, 5, SWEEP, 0.555), (500, 10, WIDTH, 0.087), (1000, 5, SWEEP, 0.160)],
)
def test_miss_rates_of_figure_5(n, percent, estimator, miss):
    found = sim.power(estimator, world_of_error(percent), n, repeats=1000)
    # the anchor's own 400 repeats, and the threshold, which both have only estimated
    spread = np.sqrt(miss * (1 - miss) * (1 / 400 + 1 / 1000) + 2 * 0.05**2 * miss * (1 - miss))
    assert found.type_two == pytest.approx(miss, abs=3 * spread)
    assert 100 * found.true_error == pytest.approx(percent)


def test_false_alarms_come_at_the_level_that_was_asked_for():
    found = sim.power(cal.ece, sim.World(sim.UniformScores(), sim.PowerCurve(2)), 200, alpha=0.1, repeats=2000)
    assert found.type_one == pytest.approx(0.1, abs=4 * np.sqrt(2) * found.type_one_se)
    assert found.power == 1 - found.type_two


def test_a_calibrated_world_is_called_miscalibrated_at_the_level():
    found = sim.power(cal.sweep_ece, sim.World(sim.UniformScores(), sim.PowerCurve(1)), 100, repeats=1000)
    assert 1 - found.type_two == pytest.approx(0.05, abs=0.03)


def test_an_alpha_outside_0_and_1_is_refused():
    with pytest.raises(ValueError, match="alpha must lie in"):
        sim.power(cal.ece, sim.World(sim.UniformScores()), 100, alpha=5)


def test_the_sizes_that_are_simulated():
    """50 rows first; for widths a fifth of the runs."""
    seen = {}

    @estimates("true error")
    def counted(data):
        seen.setdefault(len(data), set()).add(data.y_true.tobytes() + data.y_prob.tobytes())
        return cal.ece(data)

    world = World(sim.UniformScores(), ShiftCurve(0.3))
    assert cal.sample_size(cal.ece, world, power=0.5, runs=10).n == 50
    cal.sample_size(counted, world, width=0.2, runs=100)
    assert {len(samples) for samples in seen.values()} == {20}
    assert min(seen) == 50
    assert {round(50 * 1.1**step) for step in range(40)} >= set(seen)
