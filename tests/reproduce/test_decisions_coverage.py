"""The study of coverage of validations and decisions, in a few samples of its worlds."""

import numpy as np
import pytest

import calibrant as cal
from reproduce import decisions_coverage, decisions_worlds


def test_the_worlds_have_their_rates_and_shares():
    for curve in decisions_worlds.CURVES:
        assert decisions_worlds.population(curve, 0.02)[1].mean() == pytest.approx(0.02)
    shares = decisions_worlds.class_population("too extreme")[1].mean(axis=0)
    assert shares == pytest.approx(decisions_worlds.SHARES)
    assert decisions_worlds.class_truth("too extreme")["slope"] == pytest.approx([0.5, 0.5])
    assert decisions_worlds.costs("calibrated", 0.3, (0.2, 0.6)).tolist() == [0, 0]


def test_truths_are_what_many_rows_say():
    data = decisions_worlds.sample(np.random.default_rng(0), 200_000, "jump", 0.3, "rows")
    curve = cal.risk_coverage(data)
    assert curve.aurc == pytest.approx(decisions_worlds.area("jump", 0.3), abs=0.003)
    assert curve.excess == pytest.approx(decisions_worlds.excess_area("jump", 0.3), abs=0.003)
    assert curve.risk[-200:] == pytest.approx(decisions_worlds.risk_at("jump", 0.3, curve.confidence[-200:]), abs=0.004)
    at = (0.15, 0.6)
    assert cal.net_benefit(data, thresholds=at).value == pytest.approx(
        decisions_worlds.net_benefit("jump", 0.3, at), abs=0.004
    )


@pytest.mark.parametrize("part", decisions_coverage.PARTS)
def test_every_part_measures_its_quantities(part):
    names, _, _ = decisions_coverage.PARTS[part]
    curve, rate = ("too extreme", 0.3)
    (found,) = decisions_coverage.samples_of(part, curve, rate, 100, "rows", 1)
    assert tuple(found) == names
    assert all(np.all(np.asarray(low) <= np.asarray(high)) for low, high, _ in found.values())
    row = decisions_coverage.cell(names[-1], curve, rate, 100, "rows", 1)
    assert row["covered"] in (0, 1)


def test_the_page_has_the_lowest_coverage_first():
    rows = [{"covered": "0.96", "samples": "400"}, {"covered": "0.92", "samples": "300"}]
    made = decisions_coverage.page(rows, ("covered", "samples"))
    assert "2 cells of known truth; coverage is below 0.93 in 1 of them." in made
    assert "0.013" in made
    assert made.index("0.92 |") < made.index("0.96 |")
