"""One result per group, and whether the worst group is significantly miscalibrated."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Predictions, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.calibration_tests import TestMethod, calibration_test
from calibrant.inference.intervals import Method, interval
from calibrant.inference.multiplicity import holm
from calibrant.results.estimate import Estimate, Significance


@dataclass(frozen=True, eq=False)
class ByGroup:
    """Estimates and tests per group; see `by_group`.

    Attributes
    ----------
    estimates : dict of group to Estimate
        Each with its interval. With shrinkage, ``details["shrunk"]`` is the shrunken value.
    tests : dict of group to Significance
        One test of calibration per group, with p-values adjusted for the number of groups (Holm).
    worst : Significance
        The smallest adjusted p-value: is any group miscalibrated? Its method names the group.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(600)
    >>> found = by_group(cal.ece, rng.random(600) < p, p, by=np.repeat(["DK", "SE"], 300))
    >>> len(found), sorted(found.estimates), found["SE"].n
    (2, ['DK', 'SE'], 300)
    """

    estimates: Mapping[Hashable, Estimate]
    tests: Mapping[Hashable, Significance]
    worst: Significance

    def __getitem__(self, group: Hashable) -> Estimate:
        return self.estimates[group]

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        return f"<ByGroup of {len(self)} groups, worst {self.worst!r}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {
            "groups": {
                str(group): {**estimate.to_dict(), "test": self.tests[group].to_dict()}
                for group, estimate in self.estimates.items()
            },
            "worst": self.worst.to_dict(),
        }


def by_group(
    estimator: Callable[[Any], float],
    data: Predictions | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    by: ArrayLike | None = None,
    level: float = 0.95,
    method: Method | None = None,
    test: TestMethod | None = None,
    shrink: bool = False,
) -> ByGroup:
    r"""One estimate per group with its interval, and a test of the worst group that corrects for multiplicity.

    With `shrink`, estimates are shrunk to their mean m by :math:`m + (e - m)\,\tau^2 / (\tau^2 + s^2)`, where s is the
    standard error implied by the interval and τ² the variance between groups beyond noise (DerSimonian and Laird):
    small groups look extreme mostly by chance. The value stays unshrunk; the shrunken one is in `details`.

    Parameters
    ----------
    estimator : callable
    data : Predictions, or y_true
        With plain arrays, `y_prob` comes next.
    by : array-like, optional
        The group of each row; by default `data.group` (which then no longer marks clusters).
    level, method
        As for `interval`.
    test : optional
        As for `calibration_test`.
    shrink : bool

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, land = rng.random(4000), np.repeat(["DK", "SE"], 2000)
    >>> y = rng.random(4000) < np.where(land == "DK", p, p**1.5)
    >>> found = by_group(cal.ece, y, p, by=land)
    >>> found.worst.p_value < 0.01, found.worst.method.split(",")[0]
    (True, 'worst of 2 groups: SE')
    >>> found.tests["DK"].p_value > 0.05
    True
    """
    level, data = validation.fraction("level", level), binary(data, y_prob)
    if isinstance(data, PositiveUnlabeled):
        message = "Groups of positive-unlabeled rows may differ in their prior: measure each with its own prior."
        raise InvalidPredictions(message)
    names, index = data.row_groups(by)
    estimates: dict[Hashable, Estimate] = {}
    tests: dict[Hashable, Significance] = {}
    for k, name in enumerate(names):
        some = data.take(np.flatnonzero(index == k))
        some = some.sorted_once() if isinstance(some, Binary) else some
        if by is None:
            some.group = None
        estimates[name] = interval(estimator, some, level=level, method=method)
        tests[name] = calibration_test(_independent(some), method=test)
    adjusted = holm([found.p_value for found in tests.values()])
    tests = {
        name: replace(found, p_value=p, method=f"{found.method}, Holm over {len(names)} groups")
        for (name, found), p in zip(tests.items(), adjusted, strict=True)
    }
    worst = min(tests, key=lambda name: (tests[name].p_value, -float(estimates[name])))
    method_name = f"worst of {len(names)} groups: {worst}, {tests[worst].method}"
    if shrink:
        estimates = _shrunk(estimates, level)
    return ByGroup(
        estimates, tests, replace(tests[worst], method=method_name, n=len(data), null="every group calibrated")
    )


@dataclass(frozen=True)
class ForestRow:
    """One row of a forest plot; `low` and `high` are the estimate itself where it has no interval.

    Examples
    --------
    >>> ForestRow("DK", n=2000, value=0.01, low=0.0, high=0.02, significant=False).group
    'DK'
    """

    group: str
    n: int
    value: float
    low: float
    high: float
    significant: bool


def forest_rows(result: ByGroup | Mapping[Any, Estimate], *, alpha: float = 0.05) -> list[ForestRow]:
    """The data of `calibrant.plot.forest`, largest estimate first.

    A group is significant where the p-value of its test is below `alpha`.

    Examples
    --------
    >>> made = {name: Estimate(e, name="ECE", method="", n=9) for name, e in (("a", 0.1), ("b", 0.3))}
    >>> [row.group for row in forest_rows(made)]
    ['b', 'a']
    """
    estimates: Mapping[Any, Estimate] = result if isinstance(result, Mapping) else result.estimates
    tests: Mapping[Any, Significance] = {} if isinstance(result, Mapping) else result.tests
    rows = []
    for name, e in estimates.items():
        low, high = (e.value, e.value) if e.interval is None else (e.interval.low, e.interval.high)
        rows.append(ForestRow(str(name), e.n, e.value, low, high, name in tests and tests[name].p_value < alpha))
    return sorted(rows, key=lambda row: -row.value)


def _independent(data: Any) -> Any:
    """Refuse clusters, which the test does not support."""
    if data.group is None:
        return data
    message = "The test per group needs independent rows, but within the groups of `by` these have clusters (group)."
    raise InvalidPredictions(message)


def _shrunk(estimates: Mapping[Hashable, Estimate], level: float) -> dict[Hashable, Estimate]:
    from scipy.special import ndtri

    values = np.array([float(estimate) for estimate in estimates.values()])
    ends = np.array([(e.interval.low, e.interval.high) if e.interval else (0.0, 0.0) for e in estimates.values()])
    error = np.diff(ends, axis=1)[:, 0] / (2 * float(ndtri((1 + level) / 2)))
    weight = 1 / np.maximum(error**2, 1e-18)
    mean = float(weight @ values / weight.sum())
    excess = float(weight @ (values - mean) ** 2) - (len(values) - 1)
    between = max(0.0, excess / float(weight.sum() - (weight**2).sum() / weight.sum())) if len(values) > 1 else 0.0
    kept = between / (between + error**2) if between > 0 else np.zeros(len(values))
    return {
        name: Estimate(e.value, **{**e._fields(), "details": {**e.details, "shrunk": float(mean + part * (e - mean))}})
        for (name, e), part in zip(estimates.items(), kept, strict=True)
    }
