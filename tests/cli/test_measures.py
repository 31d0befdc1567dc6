"""The numbers of every task, the gate, and the columns of two models."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError
from calibrant.cli.measures import Given, Measuring, compared, estimator_of, names_of, sentence
from calibrant.inference import Gate
from calibrant.inference.comparison import Comparison
from calibrant.results.estimate import Interval

rng = np.random.default_rng(4)
P = rng.random(900)
LAND = np.repeat(["at", "de", "dk"], 300)
Y = rng.random(900) < np.where(LAND == "dk", P**3, P)


def test_groups_pass_or_fail_by_the_same_rule():
    data = cal.Binary(Y, P)
    whole, groups = (Measuring(gate=Gate(0.1), per_group=each) for each in (False, True))
    found = groups.of(data, LAND)
    assert whole.failures(whole.of(data, LAND)) == []
    (reason,) = groups.failures(found)
    assert reason.startswith("dk: the lower end of Averaged error")
    assert found.groups["dk"].interval.level == pytest.approx(1 - 0.05 / 3)
    assert Measuring(gate=Gate(0.1, by="upper"), per_group=True).of(data, LAND).groups["dk"].interval.level == 0.95
    assert Measuring().failures(found) == []


def test_every_task_is_measured():
    std = rng.lognormal(0, 0.3, 300)
    error = std * rng.normal(size=300)
    names = {
        "Averaged error (L1)": cal.Multiclass(rng.integers(0, 3, 300), rng.dirichlet(np.ones(3), 300)),
        "Interval error (L1)": cal.Gaussian(error, 0 * std, std),
        "ECE (L1)": cal.PositiveUnlabeled(P[:100], P[100:], prior=0.5),
    }
    for name, data in names.items():
        assert Measuring().of(data, None).whole[0].name == name
    quantiles = cal.Quantiles(error, [0.1, 0.5, 0.9], np.outer(std, [-1.3, 0, 1.3]))
    by = np.arange(300) % 2
    found = Measuring(gate=Gate(0.3), per_group=True).of(quantiles, by)
    assert sorted(found.groups) == ["0", "1"]
    with pytest.raises(UsageError, match="own --prior"):
        Measuring().of(names["ECE (L1)"], by)


def test_a_gate_per_group_needs_a_gate_and_groups():
    with pytest.raises(UsageError, match="give --fail-above"):
        Measuring(per_group=True)
    with pytest.raises(UsageError, match="give --by"):
        Measuring(gate=Gate(0.1), per_group=True).of(cal.Binary(Y, P), None)


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


def test_models_are_called_as_their_options():
    assert names_of(Given(members=["a_*", "b_*"])) == ("a_*", "b_*")
    assert names_of(Given(prob=["p", "p"])) == ("first", "second")


@pytest.mark.parametrize(
    ("low", "high", "end"),
    [
        (0.01, 0.09, "new is better calibrated."),
        (-0.09, -0.01, "old is better calibrated."),
        (-0.01, 0.09, "No significant difference detected."),
        (0.0, 0.09, "No significant difference detected."),
    ],
)
def test_the_better_model_is_named_only_where_the_interval_excludes_zero(low, high, end):
    middle = (low + high) / 2
    bounds = Interval(low, high, level=0.95, method="m", assumption="a")
    made = Comparison("debiased_ece(norm=1)", "old", "new", 0.06, 0.02, middle, bounds, 0.0004, 0.0004)
    assert sentence(made) == (
        "Debiased ECE (L1): 0.0600 for old, 0.0200 for new.\n"
        f"Difference of the true errors, old minus new: {middle:.4f} (95 % interval {low:.4f} to {high:.4f}), "
        f"p < 0.001.\n{end}"
    )
