"""Advice on which estimator to believe: it must agree with the world the data came from."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant import simulate as sim
from calibrant.simulate.advice import _worse_and_worse


@pytest.fixture(scope="module")
def advice():
    return sim.advise(sim.PAPER_WORLDS["resnet110_c100"].sample(800, seed=3), norm=2)


def test_the_fitted_world_is_near_the_true_one_and_the_interval_holds_it(advice):
    truth = sim.PAPER_WORLDS["resnet110_c100"].true_error(2)
    assert advice.world_error == pytest.approx(truth, abs=0.05)
    assert truth in advice.true_error
    assert advice.n == advice.simulated_n == 800
    assert advice.rows[0].name == "averaged"


def test_a_wavy_world_is_not_claimed_to_be_smooth():
    """Its true error is 4.2 %; of the parametric curves that were fitted, 1 to 2 %."""
    few = {"ECE": cal.ece}
    world = sim.World(sim.UniformScores(), sim.WavyCurve())
    seen = sim.advise(world.sample(2000, seed=2), estimators=few, repeats=10)
    assert not seen.fit.fits
    assert "no parametric curve fits" in str(seen)
    assert seen.world_error == pytest.approx(world.true_error(1), rel=0.3)
    unseen = sim.advise(world.sample(2000, seed=0), estimators=few, repeats=10)
    assert unseen.fit.fits
    first = str(unseen).splitlines()[0]
    assert first.startswith("The true L1 error lies between")
    assert f"{100 * unseen.true_error.high:.2f} % (95% interval from 2,000 rows)" in first


def test_a_fitted_error_outside_the_interval_is_pointed_out(advice):
    narrow = replace(advice, true_error=replace(advice.true_error, low=0.9, high=0.95))
    assert "outside the interval" in str(narrow)
    assert "outside the interval" not in str(advice)
    bound = replace(advice, true_error=replace(advice.true_error, side="lower"))
    assert str(bound).startswith("The true L2 error is at least")


def test_biases_are_those_of_a_simulation_of_the_true_world(advice):
    truth = sim.bias(
        partial(cal.ece, bins=cal.EqualWidth(15), norm=2), sim.PAPER_WORLDS["resnet110_c100"], 800, repeats=200
    )
    (row,) = (row for row in advice.rows if row.name == "ECE, equal width")
    assert row.fitted.bias == pytest.approx(truth.bias, abs=0.012)
    assert row.estimate == pytest.approx(cal.ece(advice.fit.data, bins=cal.EqualWidth(15), norm=2))


def test_the_winners_win(advice):
    assert abs(advice.least_bias.fitted.bias) == min(abs(row.fitted.bias) for row in advice.rows)
    assert advice.least_rmse.fitted.rmse == min(row.fitted.rmse for row in advice.rows)
    assert advice.detectable == min(row.detectable for row in advice.rows)


@pytest.mark.no_cover
def test_more_rows_detect_smaller_errors_by_the_root_of_their_number():
    world, one = sim.World(sim.BetaScores(2, 2), sim.PowerCurve(1.5)), {"ECE": cal.ece}
    few, many = (sim.advise(world.sample(n), estimators=one, repeats=200).detectable for n in (250, 4000))
    assert few / many == pytest.approx(4, rel=0.35)


def test_the_detectable_error_is_detected_as_often_as_promised():
    world = sim.World(sim.UniformScores(), sim.PowerCurve(1.3))
    sweep = partial(cal.sweep_ece, norm=2)
    found = sim.advise(world.sample(2000, seed=1), estimators={"sweep": sweep}, repeats=400)
    there = replace(found.world, curve=sim.Blend(found.world.curve, found.detectable / found.world_error), name="there")
    assert there.true_error(2) == pytest.approx(found.detectable, rel=0.02)
    assert sim.power(sweep, there, 2000, repeats=500).power == pytest.approx(0.8, abs=0.1)


@pytest.mark.no_cover
def test_a_calibrated_model_gets_advice_too():
    found = sim.advise(sim.World(sim.UniformScores()).sample(400, seed=0), repeats=40)
    assert 0.01 < found.detectable < 0.2


def test_large_data_are_simulated_small_and_the_text_says_so():
    found = sim.advise(
        sim.World(sim.UniformScores()).sample(3000), repeats=20, largest=500, estimators={"ECE": cal.ece}
    )
    assert (found.n, found.simulated_n) == (3000, 500)
    assert "Simulated with 500 rows" in str(found)


def test_it_prints_readably_and_goes_into_json(advice):
    lines = str(advice).splitlines()
    assert lines[0].startswith("The true L2 error lies between")
    assert lines[0].endswith("(95% interval from 800 rows).")
    assert "&lt;" not in advice._repr_html_()
    assert sum(line.startswith(row.name) for row in advice.rows for line in lines) == len(advice.rows)
    assert any(line.startswith("Least bias: ") for line in lines)
    assert any(line.startswith("Detectable: a true error above") for line in lines)
    assert json.loads(json.dumps(advice.to_dict()))["least_bias"] == advice.least_bias.name


@pytest.mark.no_cover
def test_the_same_seed_gives_the_same_advice():
    data = sim.World(sim.BetaScores(3, 1), sim.PowerCurve(2)).sample(200)
    first, again = (str(sim.advise(data, repeats=20, seed=5)) for _ in range(2))
    assert first == again


def test_an_error_that_is_never_detected_is_none():
    found = sim.advise(
        sim.World(sim.UniformScores()).sample(100),
        repeats=20,
        estimators={"blind": lambda data: float(np.mean(data.y_prob) * 0)},
    )
    assert found.detectable is None
    assert "No estimator detects" in str(found)


def test_a_power_outside_0_and_1_is_refused():
    with pytest.raises(ValueError, match="power must lie in"):
        sim.advise([0, 1, 1], [0.2, 0.5, 0.7], power=80)


def test_the_errors_that_are_tried_and_their_shape():
    """From 0.3 to 12 times 1/sqrt(n), of the fitted shape; a power curve, where the fitted one is calibrated."""
    scores = sim.UniformScores()
    whole = sim.World(scores, sim.PowerCurve(1.5)).true_error()
    flat, bent = (
        _worse_and_worse(sim.World(scores, sim.Blend(sim.PowerCurve(1.5), error / whole)), 1, 10_000)
        for error in (8e-4, 1.5e-3)
    )
    errors = [world.true_error() for world in (bent[0], bent[-1])]
    np.testing.assert_allclose(errors, [0.003, 0.12], rtol=1e-3)
    assert isinstance(flat[0].curve.curve, sim.PowerCurve)
    assert isinstance(bent[0].curve.curve, sim.Blend)
