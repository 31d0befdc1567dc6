"""The section of groups: totals, direction, flags, crosses, tables, and what remains after a map."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.inference.groupings import groupings
from calibrant.inference.inversion.binary import Inversion
from calibrant.numerics.arrays import expit
from calibrant.reporting.contents import CannotBuild
from calibrant.reporting.evidence import headline_error
from calibrant.reporting.sections.groups import (
    WITH_INTERVAL,
    confirmed_section,
    direction,
    enough_events,
    event_row,
    group_section,
    spread_direction,
)
from calibrant.reporting.text import tables
from calibrant.results.estimate import Value
from tests.reporting.sections.worlds import binary

KINDS = np.array(["high", "low", "extreme", "moderate", "right"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    kind = KINDS[np.arange(10_000) % 5]
    z = rng.normal(0.0, 1.3, 10_000)
    shift = np.select([kind == "high", kind == "low"], [-0.7, 0.7], 0.0)
    slope = np.select([kind == "extreme", kind == "moderate"], [0.6, 1.7], 1.0)
    return cal.Binary(rng.random(10_000) < expit(shift + slope * z), expit(z)), kind


@pytest.fixture(scope="module")
def section(data):
    return group_section(data[0], data[1], column="kind")


def test_directions_are_those_of_the_world(section):
    found = {row.name: row.direction for row in section.rows}
    assert found == {
        "high": "too high",
        "low": "too low",
        "extreme": "too extreme",
        "moderate": "too moderate",
        "right": "not flagged",
    }
    assert [row.name for row in section.rows][0::4] == ["high", "low"]


def test_totals_and_intervals(data, section):
    for row in section.rows:
        some = data[1] == row.name
        assert row.n == 2000
        assert row.observed == pytest.approx(data[0].y_true[some].sum())
        assert row.expected == pytest.approx(data[0].y_prob[some].sum())
        assert row.ratio.value == pytest.approx(row.observed / row.expected)
        assert row.ratio.low < row.ratio.value < row.ratio.high
        assert row.error.low <= row.error.value <= row.error.high
        assert row.judged
        assert row.flagged == (row.p_value < 0.05)


def test_what_remains_after_a_map(data):
    p = data[0].y_prob
    repaired = expit(np.log(p / (1 - p)) - 0.7)
    after = cal.Binary(data[0].y_true, np.where(data[1] == "high", repaired, p))
    found = {row.name: row.flagged_after for row in group_section(data[0], data[1], column="kind", after=after).rows}
    assert found == {"high": False, "low": True, "extreme": True, "moderate": True, "right": None}


def test_crosses_are_named_by_both_columns(data):
    other = np.where(np.arange(10_000) % 2, "a", "b")
    found = group_section(data[0], {"kind": data[1], "device": other}, column="kind × device")
    assert len(found.rows) == 10
    assert "high × a" in {row.name for row in found.rows}


@pytest.mark.no_cover
def test_one_bad_group_among_two_hundred_is_flagged():
    good = binary(20_000)
    group = np.arange(20_000) % 200
    p = np.where(group == 77, np.minimum(3 * good.y_prob, 0.99), good.y_prob)
    found = group_section(cal.Binary(good.y_true, p), group, column="shop")
    assert [row.name for row in found.rows if row.flagged] == ["77"]
    assert found.rows[0].name == "77"
    assert [int(row.name) for row in found.rows[1:]] == [k for k in range(200) if k != 77]  # the rest in their order
    assert len(found.rows) == 200
    assert sum(row.error.high is not None for row in found.rows) == WITH_INTERVAL
    assert next(row for row in found.rows if row.name == "77").error.high is not None


@pytest.mark.parametrize(("groups", "first"), [(30, "0"), (31, "17")])
def test_thirty_numbered_groups_keep_their_order(groups, first):
    good = binary(9_000)
    group = np.arange(9_000) % groups
    p = np.where(group == 17, np.minimum(3 * good.y_prob, 0.99), good.y_prob)
    found = group_section(cal.Binary(good.y_true, p), group, column="shop")
    assert "17" in [row.name for row in found.rows if row.flagged]
    assert found.rows[0].name == first


def test_small_groups_are_shown_but_not_judged():
    data = binary(1000)
    group = np.where(np.arange(1000) < 12, "tiny", "large")
    found = {row.name: row for row in group_section(data, group, column="g").rows}
    assert not found["tiny"].judged
    assert found["tiny"].direction == "not flagged"
    assert found["large"].judged


def test_missing_groups_are_a_group():
    data = binary(300)
    group = np.where(np.arange(300) < 100, None, "a").astype(object)
    assert {row.name for row in group_section(data, group, column="g").rows} == {"(missing)", "a"}
    with pytest.raises(CannotBuild, match="one group of g"):
        group_section(data, np.full(300, None), column="g")


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "columns", [{"group": np.arange(10_000) // 5}, {"weight": np.random.default_rng(1).random(10_000)}]
)
def test_clusters_and_weights(data, columns):
    some = cal.Binary(data[0].y_true, data[0].y_prob, **columns)
    found = {row.name: row.direction for row in group_section(some, data[1], column="kind").rows}
    assert found["high"] == "too high"
    assert found["right"] == "not flagged"


def test_groups_with_few_clusters_are_named():
    some = binary(400, group=np.r_[np.arange(390) // 10, np.full(10, 99)])
    found = group_section(some, np.r_[np.full(390, "many"), np.full(10, "one")], column="g")
    assert found.omitted.endswith("belong to them: one.")
    assert not next(row for row in found.rows if row.name == "one").judged


def test_tables_per_group(data):
    tables = {kind: cal.BinTable.of(data[0].take(data[1] == kind), cal.table.Distinct()) for kind in KINDS}
    whole = cal.table.merge(list(tables.values()))
    found = {row.name: row.direction for row in group_section(whole, tables, column="k").rows}
    assert found["high"] == "too high"
    assert found["right"] == "not flagged"
    with pytest.raises(CannotBuild, match="table per group"):
        group_section(tables["high"], data[1], column="k")


def test_forecasts():
    rng = np.random.default_rng(0)
    kind = np.repeat(["narrow", "wide", "low", "high", "right"], 800)
    std = np.exp(0.3 * rng.normal(size=4000))
    factor = np.select([kind == "narrow", kind == "wide"], [1.4, 0.7], 1.0)
    y = std * (factor * rng.normal(size=4000) + np.select([kind == "low", kind == "high"], [0.4, -0.4], 0.0))
    data = cal.Gaussian(y, np.zeros(4000), std)
    found = {row.name: row for row in group_section(data, kind, column="kind").rows}
    assert {name: row.direction for name, row in found.items()} == {
        "narrow": "too narrow", "wide": "too wide", "low": "too low", "high": "too high", "right": "not flagged",
    }  # fmt: skip
    assert found["narrow"].ratio.value == pytest.approx(float(cal.scale_factor(data.take(kind == "narrow"))))
    assert found["narrow"].observed is None
    tables = {name: cal.BinTable.of(data.take(kind == name), cal.table.LogGrid()) for name in ("narrow", "right")}
    assert [row.flagged for row in group_section(tables["right"], tables, column="k").rows] == [False, True]


@pytest.mark.parametrize("kind", ["distribution", "samples"])
def test_biased_groups_of_any_forecasts_have_a_side(kind):
    rng, region = np.random.default_rng(1), np.repeat(["north", "south"], 300)
    y = rng.normal(size=600) + np.where(region == "north", 0.5, -0.5)
    whole = cal.Distribution(y, stats.norm(np.zeros(600), np.ones(600)))
    data = whole if kind == "distribution" else cal.Samples(y, rng.normal(size=(600, 20)))
    found = group_section(data, region, column="region").rows
    assert {row.name: row.direction for row in found} == {"north": "too low", "south": "too high"}


def test_several_classes_by_their_top_label():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 1200)
    y = (rng.random((1200, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    sharp = np.arange(1200) >= 600
    p[sharp] = p[sharp] ** 3 / (p[sharp] ** 3).sum(axis=1, keepdims=True)
    group = np.where(sharp, "sharp", "right")
    found = {row.name: row for row in group_section(cal.Multiclass(y, p), group, column="g").rows}
    assert found["sharp"].direction == "too high"
    assert not found["right"].flagged


def test_the_first_direction_that_applies():
    above, below, one = Value(1.2, 1.1, 1.3), Value(0.8, 0.7, 0.9), Value(1.0, 0.9, 1.1)
    assert direction(below, above) == "too high"
    assert direction(above, None) == "too low"
    assert direction(one, below) == "too extreme"
    assert direction(one, above) == "too moderate"
    assert direction(one, one) == direction(one, None) == "mixed"
    assert spread_direction(one, None) == "mixed"
    assert spread_direction(below, Value(0.3, 0.2, 0.4)) == "too wide"


@pytest.mark.parametrize(("events", "judged"), [(10, True), (9, False)])
def test_ten_events_are_enough_to_judge_a_group(events, judged):
    table = cal.BinTable.of(cal.Binary(np.arange(40) < events, np.linspace(0.1, 0.4, 40)), cal.table.Distinct())
    row = event_row("g", table.filled(), 40.0, 0.5, with_interval=False)
    assert row.judged is enough_events(row) is judged


def test_intervals_of_groups_take_few_draws():
    data, group = binary(600), np.arange(600) % 2
    found = {row.name: row.error for row in group_section(data, group, column="g").rows}
    one = cal.interval(headline_error, data.take(group == 0), method=Inversion(draws=99)).interval
    assert (found["0"].low, found["0"].high) == (max(one.low, 0.0), one.high)


def test_eight_groups_that_were_not_tested_are_named():
    data = binary(400, group=np.r_[np.arange(300) // 10, np.repeat(np.arange(90, 100), 10)])
    group = np.r_[np.full(300, "many"), np.repeat([f"g{k}" for k in range(10)], 10)]
    assert group_section(data, group, column="g").omitted.endswith("g6, g7 and 2 more.")


def quantiles_by_horizon(rng, last):
    """Forecasts of 12 horizons, of which the last ones are too narrow by a factor."""
    horizon = np.repeat(np.arange(1, 13), 150)
    size = np.where(horizon > 9, last, 1.0)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    ends = [-1.645, -0.6745, 0.0, 0.6745, 1.645]
    return cal.Quantiles(size * rng.normal(size=len(size)), levels, np.tile(ends, (len(size), 1))), horizon


def test_groups_of_quantiles_are_judged_by_coverage_in_their_order():
    data, horizon = quantiles_by_horizon(np.random.default_rng(3), 1.7)
    found = group_section(data, horizon, column="horizon")
    assert [row.name for row in found.rows] == [str(k) for k in range(1, 13)]
    assert [row.name for row in found.rows if row.flagged] == ["10", "11", "12"]
    assert all(row.direction == "too narrow" for row in found.rows if row.flagged)
    assert all(row.ideal == 0.9 and row.n == 150 for row in found.rows)
    assert all(row.ratio.excludes(0.9) <= row.flagged for row in found.rows)
    page = cal.report(data, by={"horizon": horizon})
    table = next(table for table in tables(page) if table.heading == "Horizons")
    assert table.columns == (
        "Horizon",
        "Rows",
        "Coverage of 90 % intervals",
        "95 % interval",
        "Direction",
        "Adjusted p",
    )
    assert table.rows[0][2].endswith(" %")
    assert page.verdict.direction == "too narrow"
    assert "intervals by horizon; marker area shows rows" in page.to_html()


def test_groups_that_are_numbers_keep_their_order():
    rng = np.random.default_rng(0)
    p, month = rng.random(2400), np.repeat(np.arange(1, 13), 200)
    data = cal.Binary(rng.random(2400) < p, p)
    wanted = [str(k) for k in range(1, 13)]
    assert [row.name for row in group_section(data, month.astype(str), column="month").rows] == wanted
    tables = {str(k): cal.BinTable.of(data.take(month == k), cal.table.HybridGrid()) for k in range(1, 13)}
    whole = cal.BinTable.of(data, cal.table.HybridGrid())
    assert [row.name for row in group_section(whole, tables, column="month").rows] == wanted


def test_groups_are_found_on_one_half_and_tested_on_the_other():
    rng = np.random.default_rng(0)
    p, land, age = rng.beta(1, 5, 8000), rng.choice(["DK", "BR"], 8000), rng.integers(18, 80, 8000)
    wrong = (land == "BR") & (age > 60)
    data = cal.Binary(rng.random(8000) < np.where(wrong, 0.3 * p, p), p)
    by = {"country": land, "age": age}
    (found,) = cal.report(data, by=by, depth=2, quantiles=4, confirm=True).groups
    same = cal.by_group(cal.ece, data, by=by, depth=2, quantiles=4, confirm=True, intervals=20)
    alone = confirmed_section(data, groupings(by, length=8000, depth=2, quantiles=4))
    assert sorted(row.p_value for row in alone.rows) == sorted(row.adjusted for row in same.rows)
    assert min(row.p_value for row in found.rows) >= same.worst.p_value  # adjusted for the test of all rows, too
    assert {row.n for row in found.rows} == {row.n for row in same.rows}
    flagged = {row.name for row in found.rows if row.flagged}
    assert any(name.startswith("country = BR × age = > ") for name in flagged)
    assert found.search.startswith("Of 14 groups, the 14 with the most evidence on one half of the rows")
    plain = cal.report(data, by=by, depth=1, quantiles=4).groups
    assert [one.column for one in plain] == ["country", "age"]
    assert len(plain[1].rows) == 4
