"""The numbers of every task, the gate, and the columns of two models."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli.columns import Columns
from calibrant.cli.console import UsageError
from calibrant.cli.measures import Measuring, compared, estimator_of, gates_of, missing_check, names_of, sentence
from calibrant.inference import Gate
from calibrant.inference.comparison import Comparison
from calibrant.results.estimate import Interval

NAN = float("nan")
rng = np.random.default_rng(4)
P = rng.random(900)
LAND = np.repeat(["at", "de", "dk"], 300)
Y = rng.random(900) < np.where(LAND == "dk", P**3, P)


def test_groups_pass_or_fail_by_the_same_rule():
    data = cal.Binary(Y, P)
    whole, groups = (Measuring(gates=(Gate(0.1),), per_group=each) for each in (False, True))
    found = groups.of(data, LAND)
    assert len(whole.of(data, LAND).decision.checks) == 1
    assert found.decision.result == "failed"
    (reason,) = (check for check in found.decision.checks if check.result == "failed")
    assert reason.sentence.startswith("dk: the calibration error is between")
    lower, upper = (
        [check.result for check in Measuring(gates=(Gate(0.1, by=by),), per_group=True).of(data, LAND).decision.checks]
        for by in ("lower", "upper")
    )
    assert lower == upper
    assert Measuring().of(data, LAND).decision is None


@pytest.mark.no_cover
def test_of_many_groups_the_largest_are_shown_and_all_are_decided_on():
    some = np.random.default_rng(0)
    p, by = some.random(1200), np.concatenate([np.repeat(np.arange(60), 19), np.full(60, 99)])
    y = np.where(by == 40, p < 0.5, some.random(1200) < p)
    data = cal.Binary(y, p)
    found = Measuring().of(data, by)
    assert (len(found.groups), found.not_shown) == (50, 11)
    assert next(iter(found.groups)) == "99"
    assert Measuring(all_groups=True).of(data, by).not_shown == 0
    gated = Measuring(gates=(Gate(0.05),), per_group=True).of(data, by)
    assert (len(gated.groups), gated.not_shown, len(gated.decision.checks)) == (50, 11, 62)


def test_several_limits_are_checked_per_group():
    gates = gates_of(None, ["error=0.4", "relative=2", "oe=0.8:2", "slope=0.1:5"], "lower")
    decision = Measuring(gates=gates, per_group=True).of(cal.Binary(Y, P), LAND).decision
    assert sorted({check.of for check in decision.checks}) == ["error", "oe", "relative", "slope"]
    assert len(decision.checks) == 4 * 4
    assert decision.result == "failed"  # of group dk


@pytest.mark.parametrize("text", ["error", "error=", "oe=1:2:3", "=0.1:", "error=a"])
def test_limits_that_cannot_be_read_are_refused(text):
    with pytest.raises(UsageError, match="--limit takes NAME=NUMBER"):
        gates_of(None, [text], "lower")


def test_a_number_is_limited_once():
    with pytest.raises(UsageError, match="error is limited twice"):
        gates_of(0.02, ["error=0.1"], "lower")


def test_rows_left_out_fail_a_gate():
    measuring = Measuring(gates=(Gate(0.9),))
    data = cal.Binary(Y, P)
    assert measuring.of(data, None, 0.05).decision.result == "passed"
    failed = measuring.of(data, None, 0.0501).decision
    assert failed.result == "failed"
    assert "5.01 % of the rows were left out for missing values" in failed.sentence
    assert missing_check(0.3, 0.3, "lower") == ()
    for most in (NAN, -0.1, 1.1):
        with pytest.raises(UsageError, match="--max-missing must lie"):
            missing_check(0.0, most, "lower")


def test_weak_limits_are_warned_of_for_all_rows_and_for_groups():
    rare = np.random.default_rng(1).random(900) < 0.01
    decision = Measuring(gates=(Gate(0.05),), per_group=True).of(cal.Binary(rare, np.full(900, 0.01)), LAND).decision
    assert "not below the share of events" in decision.warnings[0]
    assert decision.warnings[1] == "the limit of the error is as weak in 3 of 3 groups."


def test_every_task_is_measured():
    std = rng.lognormal(0, 0.3, 300)
    error = std * rng.normal(size=300)
    positives = cal.PositiveUnlabeled(P[:100], P[100:], prior=0.5)
    names = [
        ("Calibration error (L1)", cal.Multiclass(rng.integers(0, 3, 300), rng.dirichlet(np.ones(3), 300))),
        ("Calibration error (coverage, L1)", cal.Gaussian(error, 0 * std, std)),
        ("Calibration error (L1)", positives),
    ]
    for name, data in names:
        assert Measuring().of(data, None).whole[0].name == name
    quantiles = cal.Quantiles(error, [0.1, 0.5, 0.9], np.outer(std, [-1.3, 0, 1.3]))
    by = np.arange(300) % 2
    found = Measuring(gates=(Gate(0.3),), per_group=True).of(quantiles, by)
    assert sorted(found.groups) == ["0", "1"]
    with pytest.raises(UsageError, match="own --prior"):
        Measuring().of(positives, by)


def test_a_gate_per_group_needs_a_gate_and_groups():
    with pytest.raises(UsageError, match="give one of them"):
        Measuring(per_group=True)
    with pytest.raises(UsageError, match="give --by"):
        Measuring(gates=(Gate(0.1),), per_group=True).of(cal.Binary(Y, P), None)


def test_every_option_is_one_model():
    made = compared(Columns("y", weight="w"), {"mean": ["a", "b"], "std": ["s", "t"]})
    assert [(one.mean, one.std, one.weight) for one in made.models] == [("a", "s", "w"), ("b", "t", "w")]
    made = compared(Columns("y"), {"quantiles": ["0.1=a,0.9=b", "c_*"]})
    assert [one.quantiles for one in made.models] == [("0.1=a", "0.9=b"), ("c_*",)]


@pytest.mark.parametrize(
    "given", [{}, {"prob": ["a"]}, {"std": ["a", "b"]}, {"prob": ["a", "b"], "mean": ["c"], "std": ["d"]}]
)
def test_other_numbers_of_models_are_refused(given):
    with pytest.raises(UsageError, match="Name the predictions of two models"):
        compared(Columns("y"), given)


def test_forecasts_without_a_spread_are_compared_by_their_quantiles():
    assert estimator_of(cal.Quantiles([0.0], [0.5], [[0.0]])) is cal.quantile_error
    assert estimator_of(cal.Samples([0.0], [[0.0, 1.0]])) is cal.ence
    assert estimator_of(cal.Multiclass([0], [[0.5, 0.5]])) is cal.variational_error
    assert estimator_of(cal.Binary([0], [0.5])) is cal.calibration_error


def test_models_are_called_as_their_options():
    assert names_of({"members": ["a_*", "b_*"]}) == ("a_*", "b_*")
    assert names_of({"prob": ["p", "p"]}) == ("first", "second")


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
    made = Comparison("calibration_error", "old", "new", 0.06, 0.02, middle, bounds, 0.0004, 0.0004)
    assert sentence(made) == (
        "Calibration error (L1), of each model alone: 0.0600 for old, 0.0200 for new.\n"
        f"Difference of the true errors, old minus new: {middle:.4f} (95 % interval {low:.4f} to {high:.4f}), "
        + "\n".join(["p < 0.001.", *([made.note] if made.note else []), end])
    )
    assert bool(made.note) == (middle < 0)


def test_examples_of_gates_of() -> None:
    assert [(gate.of, gate.limit) for gate in gates_of(0.02, ["oe=0.8:1.25"], "lower")] == [
        ("error", 0.02),
        ("oe", (0.8, 1.25)),
    ]


def test_examples_of_names_of() -> None:
    assert names_of({"mean": ["m", "m"], "std": ["s", "t"]}) == ("m, s", "m, t")
