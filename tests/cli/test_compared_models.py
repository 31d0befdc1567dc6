"""The columns of two models."""

import pytest

import calibrant as cal
from calibrant.cli.columns import Columns
from calibrant.cli.compared_models import Given, compared, estimator_of
from calibrant.cli.formats import UsageError


def test_every_option_is_one_model():
    made = compared(Columns("y", weight="w"), Given(mean=["a", "b"], std=["s", "t"]))
    assert [(one.mean, one.std, one.weight) for one in made.models] == [("a", "s", "w"), ("b", "t", "w")]
    made = compared(Columns("y"), Given(quantiles=["0.1=a,0.9=b", "c_*"]))
    assert [one.quantiles for one in made.models] == [("0.1=a", "0.9=b"), ("c_*",)]


@pytest.mark.parametrize("given", [Given(), Given(prob=["a"]), Given(std=["a", "b"]), Given(["a", "b"], ["c"], ["d"])])
def test_other_numbers_of_models_are_refused(given):
    with pytest.raises(UsageError, match="Name the predictions of two models"):
        compared(Columns("y"), given)


def test_forecasts_without_a_spread_are_compared_by_their_quantiles():
    assert estimator_of(cal.Quantiles([0.0], [0.5], [[0.0]])) is cal.quantile_error
    assert estimator_of(cal.Samples([0.0], [[0.0, 1.0]])) is cal.ence
    assert estimator_of(cal.Multiclass([0], [[0.5, 0.5]])) is cal.calibration_error
    assert estimator_of(cal.Binary([0], [0.5])).keywords == {"norm": 1}
