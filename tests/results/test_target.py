"""What an estimator declares, read through the options and wrappers around it."""

import math
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.numerics.sorted_samples import SortedSamples
from calibrant.results.target import Clipped, batched, name_of, norm_of

SAMPLES = SortedSamples.of(np.array([[0.2, 0.7, 0.4]]), np.array([[0, 1, 1]], dtype=np.int8))


def test_names_and_norms_are_read_from_the_estimator():
    assert name_of(partial(cal.ece, norm=2)) == "ece(norm=2)"
    assert name_of(Clipped(cal.debiased_ece)) == "Clipped(debiased_ece)"
    assert norm_of(cal.ece) == 1
    assert norm_of(partial(cal.sweep_ece, norm=3)) == 3
    assert norm_of(Clipped(cal.debiased_ece)) == 1
    assert norm_of(cal.mce) == math.inf
    assert norm_of(cal.ks_error) == 1
    assert norm_of(float) == 1


def test_the_estimator_of_many_samples_has_the_options_of_the_one():
    data = cal.Binary(SAMPLES.outcome[0], SAMPLES.key[0])
    for estimator in (cal.ece, partial(cal.ece, norm=3), partial(partial(cal.ece, norm=3), bins=cal.EqualWidth(2))):
        assert batched(estimator)(SAMPLES) == pytest.approx([float(estimator(data))])


def test_options_that_the_estimator_does_not_have_are_refused_as_by_itself():
    with pytest.raises(TypeError, match="bandwidth"):
        batched(partial(cal.ece, bandwidth=0.1))(SAMPLES)


def test_clipping_reaches_many_samples():
    calibrated = SortedSamples.of(np.array([[0.5, 0.5]]), np.array([[0, 1]], dtype=np.int8))
    assert batched(cal.debiased_ece)(calibrated) < 0
    assert batched(Clipped(cal.debiased_ece))(calibrated) == 0


@pytest.mark.parametrize(
    "estimator",
    [cal.ks_error, cal.brier, lambda data: 0.0, partial(cal.estimators.label_binned_ece, norm=2), Clipped(cal.brier)],
)
def test_estimators_that_declare_nothing_for_many_samples_say_so(estimator):
    assert batched(estimator) is None


def test_an_estimator_that_already_has_data_is_none_of_many_samples():
    assert batched(partial(cal.ece, [0, 1])) is None
