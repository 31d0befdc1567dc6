"""The default test: level and power."""

import numpy as np

import calibrant as cal
from calibrant.simulate import PAPER_WORLDS, PowerCurve, UniformScores, World


def rejections(world, method, n, repeats):
    return np.mean([cal.calibration_test(world.sample(n, k), method=method).p_value <= 0.05 for k in range(repeats)])


def test_the_default_holds_its_level_where_scores_crowd_next_to_one():
    world = PAPER_WORLDS["resnet110_c10"].calibrated()
    assert rejections(world, cal.inference.MultiScale(199), 200, 80) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)


def test_the_default_sees_what_the_sweep_sees():
    world = World(UniformScores(), PowerCurve(1.2022))  # an L2 error of 5 %: the sweep misses it in 0.160 of samples
    assert 1 - rejections(world, cal.inference.MultiScale(199), 1000, 60) <= 0.16


def test_the_default_sees_waves_that_the_mean_does_not():
    world = World(UniformScores(), lambda p: np.clip(p + 0.3 * np.sin(4 * np.pi * p) * 4 * p * (1 - p), 0, 1))
    assert rejections(world, cal.inference.MultiScale(199), 400, 30) > 0.9
