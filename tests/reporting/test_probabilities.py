"""The report on probabilities: verdict, measures, groups."""

import numpy as np
import pytest

import calibrant as cal
from tests.reporting.samples import CALIBRATED, GROUPS, OVER, P

rng = np.random.default_rng(1)


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


def test_groups_come_worst_first_with_their_own_intervals(over):
    assert {group.name for group in over.groups} == set(GROUPS)
    assert over.groups[0].estimate >= over.groups[1].estimate
    assert sum(group.n for group in over.groups) == 3000


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


SMALL = rng.random(60)
OUTCOMES = (rng.random(60) < SMALL).astype(int)


@pytest.mark.parametrize("scores", [(SMALL > 0.5).astype(float), np.full(60, 0.3)], ids=["hard", "constant"])
def test_scores_that_fit_no_world_have_a_report_without_biases(scores):
    found = cal.report(cal.Binary(OUTCOMES, scores))
    assert found.n == 60
    assert {measure.bias for measure in found.measures} == {None}


@pytest.mark.parametrize("rows", [1, 3])
def test_too_few_rows_are_refused_as_such(rows):
    with pytest.raises(cal.InvalidPredictions, match=f"rows, got {rows}"):
        cal.report(OUTCOMES[:rows], SMALL[:rows])


def test_no_name_of_a_group_hides_another_or_all_rows():
    names = np.array(["all rows", "'all rows'", "(missing)", None] * 15, dtype=object)
    found = cal.report(cal.Binary(OUTCOMES, SMALL), by=names)
    assert sum(group.n for group in found.groups) == 60
    assert len({group.name for group in found.groups}) == 4
    views = found.charts["stages"]["as stated"]
    assert set(views) == {"all rows", *(group.name for group in found.groups)}
    assert len(views) == 5
    tables = {name: cal.BinTable.of(cal.Binary(OUTCOMES[:20], SMALL[:20]), cal.table.Distinct()) for name in (1, "1")}
    table = cal.BinTable.of(cal.Binary(OUTCOMES, SMALL), cal.table.Distinct())
    assert {group.name for group in cal.report(table, by=tables).groups} == {"1", "'1'"}
