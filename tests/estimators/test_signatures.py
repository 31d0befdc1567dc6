"""One shape for every estimator: data first and positional-only, everything else keyword-only, one return type."""

import inspect
import typing

import numpy as np
import pytest

import calibrant as cal

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = RNG.random(300) < P**1.5
MEAN, STD = RNG.normal(size=300), np.exp(RNG.normal(size=300) / 2)
TARGET = MEAN + STD * RNG.normal(size=300)
K = RNG.dirichlet(np.ones(3), 300)
LABEL = RNG.integers(0, 3, 300)


def functions():
    """The public functions that are defined in the estimators, by name."""
    found = {name: getattr(place, name) for place in (cal, cal.estimators) for name in place.__all__}
    return {
        name: value
        for name, value in found.items()
        if inspect.isfunction(value) and value.__module__.startswith("calibrant.estimators.")
    }


def positional_only(function):
    kinds = inspect.signature(function).parameters.items()
    return tuple(name for name, value in kinds if value.kind is inspect.Parameter.POSITIONAL_ONLY)


FUNCTIONS = functions()
OF_PROBABILITIES = sorted(name for name, value in FUNCTIONS.items() if positional_only(value) == ("data", "y_prob"))
OF_DISTRIBUTIONS = sorted(
    name for name, value in FUNCTIONS.items() if positional_only(value) == ("data", "mean", "std")
)
#: What a function needs besides the data.
NEEDED = {"variational_errors": {"norms": [1, 2]}, "group_coverage": {"by": RNG.integers(0, 3, 300)}}


def plain(result):
    """A result as plain types, to compare two of them."""
    if isinstance(result, list):
        return [plain(one) for one in result]
    return {key: value for key, value in result.to_dict().items() if key != "bins"}


def test_data_come_first_and_by_position_alone():
    rest = set(FUNCTIONS) - set(OF_PROBABILITIES) - set(OF_DISTRIBUTIONS)
    assert {name: positional_only(FUNCTIONS[name]) for name in rest} == {"classwise": ("estimator", "data", "y_prob")}
    assert {"decompose", "auc", "kernel_error", "refinement", "variational_errors"} <= set(OF_PROBABILITIES)
    assert {"ence", "coverage", "interval_curve", "nll"} <= set(OF_DISTRIBUTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_everything_else_is_keyword_only_and_the_return_type_is_one_class(name):
    signature = inspect.signature(FUNCTIONS[name])
    others = [value for value in signature.parameters.values() if value.kind is not inspect.Parameter.POSITIONAL_ONLY]
    kinds = {value.kind for value in others}
    if name == "classwise":  # what follows are options of the estimator that it is given
        kinds.discard(inspect.Parameter.VAR_KEYWORD)
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}
    returned = typing.get_type_hints(FUNCTIONS[name])["return"]
    assert isinstance(returned, type) or typing.get_origin(returned) is list


@pytest.mark.no_cover
@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_labels_and_probabilities_are_as_good_as_binary_predictions(name):
    function, needed = FUNCTIONS[name], NEEDED.get(name, {})
    both = function(Y, P, **needed)
    assert plain(both) == plain(function(cal.Binary(Y, P), **needed))
    assert isinstance(both, list) or type(both) is typing.get_type_hints(function)["return"]


@pytest.mark.parametrize("name", OF_DISTRIBUTIONS)
def test_targets_means_and_deviations_are_as_good_as_gaussian_predictions(name):
    function, needed = FUNCTIONS[name], NEEDED.get(name, {})
    both = function(TARGET, MEAN, STD, **needed)
    assert plain(both) == plain(function(cal.Gaussian(TARGET, MEAN, STD), **needed))
    assert type(both) is typing.get_type_hints(function)["return"]
    outputs = [column.reshape(-1, 2) for column in (TARGET, MEAN, STD)]
    needed = {key: value[:150] for key, value in needed.items()}
    assert plain(function(*outputs, **needed)) == plain(function(cal.Gaussian(*outputs), **needed))


def test_classwise_takes_labels_and_a_matrix_as_well():
    assert plain(cal.classwise(cal.ece, LABEL, K)) == plain(cal.classwise(cal.ece, cal.Multiclass(LABEL, K)))
