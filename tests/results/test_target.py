"""Targets: declared once, carried by every estimate with the norm of the call, and read through wrappers."""

import copy
import inspect
import json
import math
import pickle
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.cross_fitting import Distance
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.results import Clipped, Target, estimates
from calibrant.results.target import batched, declared_by, name_of, norm_of

SAMPLES = SortedSamples.of(np.array([[0.2, 0.7, 0.4]]), np.array([[0, 1, 1]], dtype=np.int8))
BINARY = cal.Binary([0, 1, 1, 0] * 10, np.linspace(0.05, 0.95, 40))


def public_estimators():
    """The public functions that return an `Estimate`."""
    found = {}
    for name in cal.estimators.__all__:
        value = getattr(cal.estimators, name)
        if inspect.isfunction(value) and inspect.signature(value).return_annotation == "Estimate":
            found[name] = value
    return found


@pytest.mark.parametrize("name", public_estimators())
def test_every_public_estimator_declares_its_target(name):
    assert isinstance(declared_by(public_estimators()[name]), Target)


def test_the_estimate_carries_the_norm_of_the_call():
    assert cal.ece(BINARY).target == Target("true error", 1)
    assert cal.ece(BINARY, norm=2).target == Target("true error", 2.0)
    assert cal.mce(BINARY).target == Target("true error", math.inf)
    assert cal.variational_error(BINARY, norm="squared").target == Target("true error", "squared")
    assert cal.brier(BINARY).target == Target("mean score")
    assert [e.target.norm for e in cal.estimators.variational_errors(BINARY, norms=[1, "kl"])] == [1, "kl"]


def test_an_outer_estimator_has_its_own_target():
    many = cal.Multiclass([0, 1, 2], np.full((3, 3), 1 / 3))
    assert cal.classwise(cal.ece, many).target == Target("classwise mean", 1.0)
    assert cal.classwise(partial(cal.ece, norm=2), many).target == Target("classwise mean", 2.0)
    assert cal.classwise(cal.brier, many).target == Target("classwise mean")


def test_targets_are_read_through_partial_and_clipped():
    assert declared_by(partial(cal.ece, norm=2)) == Target("true error", 2)
    assert declared_by(partial(partial(cal.ece, norm=3), bins=10)) == Target("true error", 3)
    assert declared_by(Clipped(partial(cal.debiased_ece, norm=2))) == Target("true error", 2)
    assert declared_by(lambda data: cal.ece(data)) is None
    assert norm_of(Clipped(partial(cal.ece, norm=2))) == 2
    assert norm_of(cal.mce) == math.inf
    assert norm_of(cal.brier) == norm_of(max) == 1
    assert name_of(Clipped(partial(cal.ece, norm=2))) == "Clipped(ece(norm=2))"


def test_a_declared_function_stays_itself():
    assert cal.ece.__name__ == "ece"
    assert "norm" in inspect.signature(cal.ece).parameters
    assert pickle.loads(pickle.dumps(cal.ece)) is cal.ece
    assert cal.ece.__globals__ is inspect.unwrap(cal.ece).__globals__  # so that its examples are tested


def test_a_bound_inside_the_estimate_gets_the_target():
    found = cal.variational_error(BINARY, bound=cal.estimators.CrossFittedBound())
    assert found.interval.target == found.target


def test_targets_survive_pickles_copies_intervals_and_json():
    found = cal.interval(cal.mce, BINARY)
    for same in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), found.with_interval(found.interval)):
        assert same.target == found.target == found.interval.target
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["target"] == plain["interval"]["target"] == {"quantity": "true error", "norm": "inf"}
    assert plain["interval"]["high"] is None  # a lower bound
    assert "true error (Linf)" in found._repr_html_()


def test_words_for_targets():
    assert str(Target("true error", 1)) == "true error (L1)"
    assert str(Target("true error", "kl")) == "true error (kl)"
    assert str(Target("mean score")) == "mean score"
    own = Target("true error", Distance(lambda f, q: np.zeros(len(f)), lambda f, q: 0 * q, name="none"))
    assert str(own) == "true error (none)"
    assert own.to_dict() == {"quantity": "true error", "norm": "none"}


def test_unknown_quantities_are_refused():
    with pytest.raises(ValueError, match="true error"):
        estimates("beauty")(lambda data: 0.0)


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


def test_options_for_many_samples_have_the_defaults_of_the_estimator():
    both = {name: (value, batched(value)) for name, value in public_estimators().items() if batched(value) is not None}
    assert set(both) == {"averaged_error", "calibration_error", "ece", "mce", "debiased_ece", "sweep_ece", "kde_ece"}
    for one, many in both.values():
        first, second = (
            {
                key: part.default
                for key, part in inspect.signature(function).parameters.items()
                if part.kind is inspect.Parameter.KEYWORD_ONLY and key not in ("y_true", "weight", "group", "n_bins")
            }
            for function in (one, many)
        )
        assert first == second
