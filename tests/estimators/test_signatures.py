"""One shape for every estimator: data first, or columns by position or name; options by name; one return type."""

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


def positional(function):
    kinds = inspect.signature(function).parameters.items()
    return tuple(name for name, value in kinds if value.kind in (value.POSITIONAL_ONLY, value.POSITIONAL_OR_KEYWORD))


FUNCTIONS = functions()
OF_PROBABILITIES = sorted(name for name, value in FUNCTIONS.items() if positional(value) == ("data", "y_prob"))
OF_DISTRIBUTIONS = sorted(name for name, value in FUNCTIONS.items() if positional(value) == ("data", "mean", "std"))
#: What a function needs besides the data.
NEEDED = {"variational_errors": {"norms": [1, 2]}, "group_coverage": {"by": RNG.integers(0, 3, 300)}}


def plain(result):
    """A result as plain types, to compare two of them."""
    if isinstance(result, list):
        return [plain(one) for one in result]
    return {key: value for key, value in result.to_dict().items() if key != "bins"}


def test_data_come_first():
    rest = set(FUNCTIONS) - set(OF_PROBABILITIES) - set(OF_DISTRIBUTIONS)
    assert {name: positional(FUNCTIONS[name]) for name in rest} == {"classwise": ("estimator", "data", "y_prob")}
    assert {"decompose", "auc", "kernel_error", "refinement", "variational_errors"} <= set(OF_PROBABILITIES)
    assert {"ence", "coverage", "interval_curve", "nll"} <= set(OF_DISTRIBUTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_everything_else_is_keyword_only_and_the_return_type_is_one_class(name):
    function = FUNCTIONS[name]
    shown = inspect.signature(function).parameters
    kinds = {value.kind for key, value in shown.items() if key not in positional(function)}
    if name in ("classwise", "calibration_error"):  # options of the estimator that is given or chosen
        kinds.discard(inspect.Parameter.VAR_KEYWORD)
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}
    if name != "classwise":
        assert {"y_true", "weight", "group"} <= set(shown)
        assert ("n_bins" in shown) == ("bins" in shown)
    returned = typing.get_type_hints(function)["return"]
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


def called(function, *args, **options):
    """What a call returns, or the error it raises: tables of weighted rows, say, are refused in both ways."""
    try:
        return plain(function(*args, **options))
    except (ValueError, TypeError) as error:
        return type(error), str(error)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_labels_and_probabilities_may_be_named_and_have_weights_and_groups(name):
    function, needed = FUNCTIONS[name], NEEDED.get(name, {})
    assert plain(function(y_true=Y, y_prob=P, **needed)) == plain(function(Y, P, **needed))
    weight, group = RNG.integers(1, 4, 300), np.arange(300) // 3
    for rows in ({"weight": weight}, {"group": group}, {"weight": weight, "group": group}):
        wanted = called(function, cal.Binary(Y, P, **rows), **needed)
        assert called(function, Y, P, **rows, **needed) == wanted
        assert called(function, y_true=Y, y_prob=P, **rows, **needed) == wanted
    assert called(function, Y, y_prob=P, weight=None, **needed) == called(function, Y, P, **needed)


@pytest.mark.parametrize("name", OF_DISTRIBUTIONS)
def test_targets_means_and_deviations_may_be_named_and_have_weights_and_groups(name):
    function, needed = FUNCTIONS[name], NEEDED.get(name, {})
    assert plain(function(y_true=TARGET, mean=MEAN, std=STD, **needed)) == plain(function(TARGET, MEAN, STD, **needed))
    rows = {"weight": RNG.integers(1, 4, 300), "group": np.arange(300) // 3}
    wanted = called(function, cal.Gaussian(TARGET, MEAN, STD, **rows), **needed)
    assert called(function, TARGET, MEAN, STD, **rows, **needed) == wanted


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"classwise"}))
def test_wrong_and_doubled_arguments_are_refused(name):
    function, needed = FUNCTIONS[name], NEEDED.get(name, {})
    data = cal.Binary(Y, P) if name in OF_PROBABILITIES else cal.Gaussian(TARGET, MEAN, STD)
    named = {"y_prob": P} if name in OF_PROBABILITIES else {"mean": MEAN, "std": STD}
    with pytest.raises(TypeError, match="twice"):
        function(Y, *named.values(), y_true=Y, **needed)
    with pytest.raises(TypeError, match="twice"):
        function(Y, *named.values(), **named, **needed)
    with pytest.raises(TypeError, match=r"weight belong to the predictions: (Binary|Gaussian)\(y_true, "):
        function(data, weight=np.ones(300), **needed)
    with pytest.raises(TypeError, match=r"no argument 'wieght'|unexpected keyword argument 'wieght'"):
        function(data, wieght=np.ones(300), **needed)
    with pytest.raises(TypeError, match=r"either predictions or|twice"):
        function(data, **named, **needed)
    with pytest.raises(TypeError, match="Give predictions"):
        function(**needed)


@pytest.mark.parametrize(
    "name", sorted(name for name in FUNCTIONS if "bins" in inspect.signature(FUNCTIONS[name]).parameters)
)
def test_the_number_of_bins_may_be_given(name):
    function, needed = FUNCTIONS[name], NEEDED.get(name, {})
    columns = (Y, P) if name in OF_PROBABILITIES else (TARGET, MEAN, STD)
    if name == "sweep_ece":
        for choice in ({"n_bins": 7}, {"bins": cal.EqualWidth(7)}):
            with pytest.raises(ValueError, match="chooses the number of bins itself"):
                function(*columns, **choice)
        return
    assert called(function, *columns, n_bins=7, **needed) == called(function, *columns, bins=7, **needed)
    with pytest.raises(TypeError, match="not both"):
        function(*columns, n_bins=7, bins=7, **needed)


def test_an_estimator_without_bins_takes_no_number_of_them():
    with pytest.raises(TypeError, match="no bins to be chosen"):
        cal.smooth_ece(Y, P, n_bins=15)
