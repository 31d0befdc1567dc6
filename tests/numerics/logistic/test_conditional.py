"""The conditional logit in shared features: its optimum, its weights, its precisions."""

import numpy as np
import pytest

from calibrant.numerics.logistic.conditional import ConditionalLogit
from calibrant.numerics.multiclass_features import Entries, SharedFeatures
from calibrant.numerics.special import softmax
from tests.numerics.worlds import class_world


def fitted(f, y, weight, rows=slice(None), updates=4):
    entries = Entries.of(f, len(f))
    features = SharedFeatures.of(entries)
    some = entries.take(rows)
    ridge = ConditionalLogit(features.design(some), some.positions(y), weight.astype(np.float32))
    return ridge, ridge.fit(some.log_mass, updates=updates), some


@pytest.mark.parametrize("k", [3, 60])
def test_the_gradient_of_the_penalised_likelihood_vanishes(k):
    rng = np.random.default_rng(0)
    f, _, y, _ = class_world(rng, 1500, k, lambda z: 0.5 * z)
    weight = rng.uniform(0.5, 1.5, 1500)
    ridge, contribution, _ = fitted(f, y, weight, updates=1)
    ridge.precision[:] = 10.0
    for _ in range(6):
        ridge._newton(steps=8, refreshes=8)
    mean = softmax(ridge.eta.astype(float))
    outcome = np.eye(mean.shape[1])[ridge.position]
    score = ridge.design.totals(((outcome - mean) * weight[:, None]).astype(np.float32)) - 10 * ridge.b
    # what a Newton step would still gain
    assert score @ ridge.information.factor(ridge.precision).solve(score) < 0.05
    np.testing.assert_allclose(contribution, contribution.astype(np.float32))


def test_integer_weights_are_rows_repeated():
    rng = np.random.default_rng(11)
    f, _, y, _ = class_world(rng, 300, 3, lambda z: 0.5 * z)
    w = rng.integers(1, 3, 300)
    again = np.repeat(np.arange(300), w)
    _, one, _ = fitted(f, y, w.astype(float))
    _, two, _ = fitted(f, y[again], np.ones(len(again)), rows=again)
    np.testing.assert_allclose(one[again], two, atol=2e-3)


def test_a_temperature_is_found_and_calibrated_rows_are_left_nearly_alone():
    rng = np.random.default_rng(3)
    for slope, least, most in ((0.4, 0.9, 1.1), (1.0, -0.05, 0.05)):
        f, h, y, _ = class_world(rng, 3000, 4, lambda z, slope=slope: slope * z)
        _, contribution, entries = fitted(f, y, np.ones(3000))
        g = softmax((entries.log_mass + contribution).astype(float))
        share = ((f - h) ** 2 - (g - h) ** 2).sum() / max(((f - h) ** 2).sum(), 30.0)
        assert least < share < most


def test_a_class_that_never_occurs_is_no_obstacle():
    rng = np.random.default_rng(4)
    f, _, y, _ = class_world(rng, 200, 50, lambda z: z)
    _, contribution, _ = fitted(f, np.where(y == 7, 0, y), np.ones(200))
    assert np.isfinite(contribution).all()
