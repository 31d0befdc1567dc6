"""Reports for every task: a sentence, tables, findings, and the same numbers as the library's."""

import json
from html import unescape

import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.repairs import fold_tables, repairs
from calibrant.reporting.text import number, p_value, points

rng = np.random.default_rng(0)
P = rng.random(3000)
OVER = cal.Binary(rng.random(3000) < 0.5 + 0.6 * (P - 0.5), P)
CALIBRATED = cal.Binary(rng.random(3000) < P, P)
GROUPS = np.where(rng.random(3000) < 0.3, "<script>alert(1)</script>", 'a "quoted" | group')
SIGMA = np.exp(0.5 * rng.standard_normal(1500))
SPREAD = cal.Gaussian(1.4 * SIGMA * rng.standard_normal(1500), np.zeros(1500), SIGMA)


@pytest.fixture(scope="module")
def over():
    return cal.report(OVER, by=GROUPS, title="Over <b>confident</b>")


def test_the_verdict_names_direction_size_interval_and_remedy(over):
    assert over.verdict.startswith("Over-confident by 1")
    assert "95 % interval" in over.verdict
    assert "would bring it to" in over.verdict
    assert repr(over).startswith("<Report 'Over <b>confident</b>': Over-confident")


def test_probabilities_that_are_all_too_high_are_called_so():
    y = rng.random(3000) < P**1.5
    assert cal.report(cal.Binary(y, P)).verdict.startswith("Stated probabilities are too high by")


def test_a_calibrated_model_is_not_accused():
    found = cal.report(CALIBRATED)
    assert found.verdict.startswith("No miscalibration can be shown")
    assert "CAL202" in {finding.code for finding in found.findings}


def test_the_table_holds_the_library_s_own_numbers(over):
    measured = {(m.estimate.name, m.estimate.method): m.estimate for m in over.measures}
    assert measured["ECE (L1)", repr(cal.EqualWidth(15))] == pytest.approx(
        cal.ece(OVER, bins=cal.EqualWidth(15)), abs=1e-12
    )
    assert measured["ECE (L1)", repr(cal.EqualMass(15))] == pytest.approx(cal.ece(OVER), abs=1e-12)
    assert over.headline == pytest.approx(cal.averaged_error(OVER, norm=1), abs=1e-9)
    assert over.headline.interval is not None
    assert over.headline in over.headline.interval


def test_every_stop_of_the_slider_shows_the_library_s_ece(over):
    view = over.charts["stages"]["as stated"]["all rows"]
    for stop in over.charts["stops"]:
        for name, method in (("mass", cal.EqualMass), ("width", cal.EqualWidth)):
            shown = view["bins"][name][str(stop)]
            assert shown["ece"] == pytest.approx(cal.ece(OVER, bins=method(stop)), rel=1e-5)
            assert sum(point[2] for point in shown["points"]) == pytest.approx(3000, rel=1e-5)


def test_groups_come_worst_first_with_their_own_intervals(over):
    assert {group.name for group in over.groups} == set(GROUPS)
    assert over.groups[0].estimate >= over.groups[1].estimate
    assert sum(group.n for group in over.groups) == 3000


def test_a_table_gives_the_same_report_as_the_rows():
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    found, rows = cal.report(table), cal.report(OVER)
    assert found.n == rows.n
    assert found.headline == pytest.approx(rows.headline, abs=2e-3)


def test_several_tables_give_a_report_by_group():
    tables = {
        name: cal.BinTable.of(cal.Binary(OVER.y_true[name == GROUPS], P[name == GROUPS]), cal.table.HybridGrid())
        for name in set(GROUPS)
    }
    whole = cal.BinTable.of(OVER, cal.table.HybridGrid())
    assert {group.name for group in cal.report(whole, by=tables).groups} == set(GROUPS)


def test_several_classes_are_reported_by_their_top_label():
    logits = rng.standard_normal((1500, 4))
    probs = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
    draw = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (rng.random(1500)[:, None] > draw.cumsum(axis=1)).sum(axis=1)
    found = cal.report(cal.Multiclass(y, probs))
    assert found.task == "Confidence of the predicted class, 4 classes"
    assert "Classwise ECE (L1)" in {m.estimate.name for m in found.measures}
    assert found.verdict.startswith("Over-confident")


def test_regression_says_by_which_factor_errors_exceed_the_spread():
    found = cal.report(SPREAD, by=np.arange(1500) % 2)
    assert "errors are 1.4" in found.verdict or "errors are 1.3" in found.verdict
    assert "CAL601" in {finding.code for finding in found.findings}
    assert found.repairs[0].error < 0.1
    assert {curve["across"] for curve in found.charts["curves"]} >= {"stated spread", "F(y)", "stated level"}
    assert len(found.groups) == 2


@pytest.mark.parametrize(
    "data",
    [
        cal.Quantiles(SPREAD.y_true, [0.1, 0.5, 0.9], np.outer(SIGMA, [-1.28, 0, 1.28])),
        cal.Samples(SPREAD.y_true[:300], SIGMA[:300, None] * rng.standard_normal((300, 20))),
    ],
    ids=["quantiles", "samples"],
)
def test_other_forecasts_are_reported_with_what_they_allow(data):
    found = cal.report(data)
    assert found.measures
    assert found.verdict
    json.loads(found.to_json())


def test_positive_unlabeled_data_say_what_hangs_on_the_prior():
    found = cal.report(cal.PositiveUnlabeled(rng.beta(3, 1, 400), rng.random(3000), prior=0.4))
    assert "if the share of positives is 0.4" in found.verdict
    assert "CAL201" in {finding.code for finding in found.findings}


def test_all_forms_carry_the_verdict_and_escape_what_users_named(over):
    assert over.verdict in str(over)
    assert json.loads(over.to_json())["verdict"] == over.verdict
    assert "&lt;script>" in over.to_markdown()
    assert 'a "quoted" \\| group' in over.to_markdown()
    for html in (over.to_html(), over._repr_html_()):
        assert "<script>alert(1)" not in html
        assert "<b>confident</b>" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_the_page_is_small_forbids_requests_and_names_no_outside_address(over):
    html = over.to_html()
    assert len(html.encode()) < 2_500_000
    assert "default-src 'none'" in unescape(html)
    assert 'src="http' not in html
    assert "@import" not in html


def test_saving_is_by_ending_and_atomic(over, tmp_path):
    for name in ("report.html", "report.json", "report.md"):
        assert over.save(tmp_path / name).stat().st_size > 500
    with pytest.raises(ValueError, match=r"\.html, \.json or \.md"):
        over.save(tmp_path / "report.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json", "report.md"]


def test_certain_forecasts_that_failed_are_a_problem():
    p = np.concatenate([np.full(50, 1.0), P])
    y = np.concatenate([np.zeros(50), CALIBRATED.y_true])
    assert "CAL101" in {finding.code for finding in cal.report(cal.Binary(y, p)).findings}


def test_folds_hold_every_row_once_and_keep_groups_whole():
    folds = fold_tables(OVER, 0)
    assert sum(fold.n for fold in folds) == 3000
    clustered = cal.Binary(OVER.y_true, P, group=np.arange(3000) // 10)
    assert sum(fold.n for fold in fold_tables(clustered, 0)) == 3000
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    assert sum(fold.n for fold in fold_tables(table, 0)) == 3000


def test_a_repair_is_measured_on_rows_it_did_not_see():
    tried, after = repairs(OVER)
    assert tried[0].gain > 0
    assert tried[0].error < 0.03
    assert after.n == 3000
    assert cal.log_loss(after) == pytest.approx(tried[0].loss)


def test_numbers_read_well():
    assert (number(0.12345), number(12345.678), number(None)) == ("0.1235", "1.235e+04", "")
    assert (p_value(0.0004), p_value(0.04)) == ("< 0.001", "0.040")
    assert (points(0.0312), points(0.0001)) == ("3.1", "0.01")


def test_tables_without_rows_cannot_be_grouped_by_rows():
    with pytest.raises(ValueError, match="one table per group"):
        cal.report(cal.BinTable.of(OVER, cal.table.HybridGrid()), by=GROUPS)
    with pytest.raises(TypeError, match="table of all rows"):
        cal.report(OVER, by={})
