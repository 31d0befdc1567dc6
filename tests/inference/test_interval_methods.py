"""The default method of an interval follows from its target and task."""

from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.interval_methods import Method
from calibrant.inference.intervals import BY_METHOD
from calibrant.results import Target
from tests.inference.worlds import BENT

RNG = np.random.default_rng(0)


def test_defaults_follow_the_target():
    data = BENT.sample(300)
    assert "LargestGapBound" in cal.interval(cal.mce, data).interval.method
    for estimator in (cal.ks_error, cal.smooth_ece, cal.kernel_error):
        assert "NormBand" in cal.interval(estimator, data).interval.method
    assert "Bootstrap" in cal.interval(cal.brier, data, level=0.9).interval.method
    squared = cal.interval(partial(cal.calibration_error, norm="squared"), data).interval
    root = cal.inference.Inversion().interval(data, norm=2)
    assert (squared.low, squared.high) == (root.low**2, root.high**2)
    grouped = cal.Binary(data.y_true, data.y_prob, group=np.arange(300) // 3)
    assert "Inversion" in cal.interval(cal.ece, grouped).interval.method
    assert "Clustered" in cal.interval(cal.brier, grouped).interval.method
    positives = cal.PositiveUnlabeled(np.linspace(0.3, 1, 200), np.linspace(0, 1, 500), prior=0.5)
    assert "PUInversion" in cal.interval(cal.ece, positives).interval.method


def test_every_method_has_one_way_to_be_asked():
    kinds = [kind for kind, _ in BY_METHOD]
    for method in Method.__args__:
        assert sum(issubclass(method, kind) for kind in kinds) == 1, method


def test_an_interval_of_several_classes_that_is_not_known_to_cover_is_refused():
    data = cal.Multiclass(RNG.integers(0, 3, 60), RNG.dirichlet(np.ones(3), 60))
    for estimator in (cal.kernel_error, cal.refinement, cal.overconfidence, partial(cal.classwise, cal.brier)):
        with pytest.raises(cal.InvalidPredictions, match="known to cover"):
            cal.interval(estimator, data)
    for estimator in (lambda d: cal.ece(d.top_label()), lambda d: cal.calibration_error(d.top_label())):
        with pytest.raises(cal.InvalidPredictions, match="one score"):
            cal.interval(estimator, data)
    assert cal.interval(cal.refinement, data, method=cal.Bootstrap(3)).interval.target == Target("refinement")
