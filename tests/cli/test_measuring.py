"""The numbers of every task, and the gate."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli.formats import UsageError
from calibrant.cli.measuring import Measuring
from calibrant.inference import Gate

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
