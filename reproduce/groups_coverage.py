"""How often does `by_group` flag a group of a calibrated model, and does it find one bad group among thousands?

``python -m reproduce.groups_coverage`` writes reproduce/results/groups_coverage.md; what its CSV file holds already is
not measured again. A run of 5,000 groups of 200 rows takes about ten seconds, so that there are fewer of these.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.inference.group_tests import group_tests
from calibrant.inference.groupings import groupings
from reproduce.resumable import Row, asked_samples, markdown, measured

RESULTS = Path(__file__).with_name("results")
#: Groups, rows per group, and how many runs there are for each run of the largest design.
DESIGNS = ((2, 200, 20), (50, 200, 6), (500, 40, 3), (5000, 200, 1))
#: One in this many runs also has a reversed group; fewer in designs with many groups.
REVERSED, SELDOM_REVERSED, MANY_GROUPS = 2, 10, 5000
KEYS = ("groups", "rows", "runs")


def flagged(groups: int, rows: int, runs: int) -> Row:
    """The share of runs in which any calibrated group is flagged at 5 %, and one that is reversed below 0.001."""
    group = np.repeat(np.arange(groups), rows)
    column = groupings(group, length=len(group))
    every = SELDOM_REVERSED if groups >= MANY_GROUPS else REVERSED
    alarms, found, others = [], [], []
    for k in range(runs):
        rng = np.random.default_rng([40, groups, rows, k])
        p = rng.beta(0.5 + rng.random(groups)[group], 1.0)  # groups differ in their scores
        uniform = rng.random(len(p))
        alarms.append(group_tests(cal.Binary(uniform < p, p), column, seed=k)[0].adjusted.min() <= 0.05)
        if k % every == 0:
            bad = group_tests(cal.Binary(uniform < np.where(group == 0, 1 - p, p), p), column, seed=k)[0].adjusted
            found.append(bad[0] < 1e-3)
            others.append(bad[1:].min() <= 0.05)
    error = np.sqrt(0.05 * 0.95 / runs)
    return {
        "any_flagged": round(float(np.mean(alarms)), 4),
        "standard_error_at_5": round(float(error), 4),
        "reversed_below_0.001": round(float(np.mean(found)), 4),
        "another_flagged": round(float(np.mean(others)), 4),
    }


def main() -> None:
    """Measure what is missing and write the page."""
    samples = asked_samples(__doc__)
    tasks = [(groups, rows, samples * factor) for groups, rows, factor in DESIGNS] if samples else []
    found = measured(RESULTS / "groups_coverage.csv", tasks, KEYS, flagged)
    columns = (*KEYS, "any_flagged", "standard_error_at_5", "reversed_below_0.001", "another_flagged")
    (RESULTS / "groups_coverage.md").write_text(
        "# Groups of a calibrated model that are flagged, and one reversed group\n\nAt 5 %, adjusted for the number of "
        "groups; in every second run (every tenth of 5,000 groups) one group is reversed as well.\n\n"
        + markdown(found, columns),
        encoding="utf8",
    )


if __name__ == "__main__":
    main()
