"""Bias by construction: against the published simulations, by hand, and the same on any number of processes."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from calibrant.simulate import estimation_bias
from tests.simulate.published import L2


@pytest.mark.no_cover
def test_figure_1_of_the_paper():
    found = sim.bias(L2["ew_bin"], sim.World(sim.BetaScores(2.8, 0.05)), 200, repeats=20_000)
    assert 100 * found.mean == pytest.approx(6.703, abs=3 * np.sqrt(2) * 100 * found.bias_se)
    assert 100 * found.sd == pytest.approx(1.871, abs=3 * np.sqrt(2) * 100 * found.sd_se)


def test_bias_is_mean_less_truth_and_errors_add_up():
    world = sim.World(sim.UniformScores(), sim.PowerCurve(2))
    found = sim.bias(cal.ece, world, 100, repeats=500, seed=3)
    values = sim.estimates({"": cal.ece}, world, 100, repeats=500, seed=3)[""]
    assert found.truth == pytest.approx(1 / 2 - 1 / 3)
    assert found.bias == pytest.approx(values.mean() - found.truth)
    assert found.sd == pytest.approx(values.std(ddof=1))
    assert found.bias_se == pytest.approx(found.sd / np.sqrt(500))
    assert found.rmse**2 == pytest.approx(found.bias**2 + values.var())


def test_standard_errors_are_the_spread_of_repeated_simulations():
    runs = [sim.bias(cal.ece, sim.World(sim.UniformScores()), 50, repeats=100, seed=seed) for seed in range(200)]
    for name in ("bias", "sd", "rmse"):
        spread = np.std([getattr(run, name) for run in runs])
        claimed = np.mean([getattr(run, f"{name}_se") for run in runs])
        assert claimed == pytest.approx(spread, rel=0.2), name


def test_any_callable_is_an_estimator_and_sees_the_same_samples():
    world = sim.PAPER_WORLDS["resnet152_imgnet"]
    both = sim.estimates({"at once": cal.ece, "one by one": lambda data: cal.ece(data)}, world, 150, repeats=30)
    assert both["one by one"] == pytest.approx(both["at once"], abs=1e-12)


def test_nonsense_is_refused():
    world = sim.World(sim.UniformScores())
    with pytest.raises(ValueError, match="n must be a whole number"):
        sim.bias(cal.ece, world, 0)
    with pytest.raises(ValueError, match="repeats must be a whole number"):
        sim.bias(cal.ece, world, 10, repeats=2.5)
    with pytest.raises(ValueError, match="different names"):
        sim.bias_table({"e": cal.ece}, [world, world], [10])


def test_the_number_of_samples_measured_at_once_changes_nothing(monkeypatch):
    monkeypatch.setattr(estimation_bias, "_CHUNK", 600)
    world = sim.World(sim.UniformScores(), sim.PowerCurve(2))
    measures = {
        "ECE": cal.ece,
        "sweep": cal.sweep_ece,
        "signed": lambda data: float(np.mean(data.y_prob - data.y_true)),
    }
    found = {}
    for batch in (1, 600, 1500, 1 << 22):
        monkeypatch.setattr(estimation_bias, "_BATCH", batch)
        found[batch] = sim.estimates(measures, world, 100, repeats=40, seed=3)
    for one in found.values():
        for name, values in one.items():
            np.testing.assert_array_equal(values, found[1][name])
