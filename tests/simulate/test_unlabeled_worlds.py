"""Worlds of positive and unlabeled rows."""

import numpy as np
import pytest

from calibrant import simulate as sim


@pytest.mark.parametrize(("b0", "b1", "error"), [(-0.5, 1.5, 0.0744), (-0.2, 1.9, 0.0235)])
def test_the_synthetic_models_of_the_positive_unlabeled_paper(b0, b1, error):
    scores = sim.LogitMixtureScores([b0 + b1, b0 - b1], [b1, b1], [0.5, 0.5])
    world = sim.PUWorld(sim.World(scores, sim.Glm("logit_logit", -2 * b0 / b1, 2 / b1)))
    assert world.prior == pytest.approx(0.5, abs=1e-9)
    assert world.true_error(1) == pytest.approx(error, abs=5e-5)
    data = world.sample(40_000, seed=0)
    log_odds = np.log(data.positive / (1 - data.positive))
    assert log_odds.mean() == pytest.approx(b0 + b1, abs=0.05)
    assert np.std(log_odds) == pytest.approx(b1, abs=0.05)


def test_a_positive_unlabeled_sample_has_its_share_of_positives():
    data = sim.PUWorld(sim.World(sim.UniformScores()), labelled=0.2).sample(500)
    assert (len(data.positive), len(data.unlabeled), data.prior) == (100, 400, pytest.approx(0.5))


def test_the_share_of_labelled_rows_lies_inside_0_and_1():
    with pytest.raises(ValueError, match="labelled must lie in"):
        sim.PUWorld(sim.World(sim.UniformScores()), labelled=1)
