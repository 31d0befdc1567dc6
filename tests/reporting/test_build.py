"""One function from predictions to a report, whatever the task and however little there is."""

import json

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from tests.reporting.samples import CALIBRATED, GROUPS, OVER, SPREAD, P

rng = np.random.default_rng(7)
FEW, Y = rng.random(60), rng.random(60) < 0.5
VECTORS = rng.dirichlet(np.ones(3), 80)

#: What users pass when something went wrong, or when there is little: each must end in a report.
LITTLE = {
    "three rows": cal.Binary([0, 1, 0], [0.2, 0.7, 0.4]),
    "one row": cal.Binary([1], [0.7]),
    "one label": cal.Binary(np.zeros(60), FEW),
    "the other label": cal.Binary(np.ones(60), FEW),
    "hard scores": cal.Binary(Y, (FEW > 0.5).astype(float)),
    "all scores 0": cal.Binary(Y, np.zeros(60)),
    "all scores 1": cal.Binary(Y, np.ones(60)),
    "one score": cal.Binary(Y, np.full(60, 0.3)),
    "two scores": cal.Binary(Y, np.where(FEW > 0.5, 0.3, 0.6)),
    "three clusters": cal.Binary(Y, FEW, group=np.arange(60) % 3),
    "one cluster": cal.Binary(Y, FEW, group=np.zeros(60)),
    "a heavy weight": cal.Binary(Y, FEW, weight=np.r_[1e9, np.ones(59)]),
    "an empty table": cal.BinTable.of(cal.Binary(Y, FEW), cal.table.Distinct()).take(np.zeros(60, dtype=bool)),
    "three vectors": cal.Multiclass([0, 1, 2], np.eye(3) * 0.4 + 0.2),
    "hard vectors": cal.Multiclass(np.arange(60) % 3, np.eye(3)[rng.integers(0, 3, 60)]),
    "one class observed": cal.Multiclass(np.zeros(80, dtype=int), VECTORS, classes=[0, 1, 2]),
    "weighted vectors": cal.Multiclass(rng.integers(0, 3, 80), VECTORS, weight=rng.random(80)),
    "clustered vectors": cal.Multiclass(rng.integers(0, 3, 80), VECTORS, group=np.arange(80) % 20),
    "three forecasts": cal.Gaussian([1.0, 2.0, 3.0], [1.1, 2.0, 2.5], [1.0, 1.0, 2.0]),
    "one spread": cal.Gaussian(rng.normal(size=200), np.zeros(200), np.ones(200)),
    "perfect means": cal.Gaussian(np.arange(50.0), np.arange(50.0), np.ones(50)),
    "two outputs": cal.Gaussian(rng.normal(size=(90, 2)), np.zeros((90, 2)), np.ones((90, 2))),
    "quantiles": cal.Quantiles(SPREAD.y_true[:90], [0.1, 0.5, 0.9], np.tile([-1.3, 0.0, 1.3], (90, 1))),
    "lopsided quantiles": cal.Quantiles(SPREAD.y_true[:90], [0.3, 0.4], np.tile([-0.5, -0.2], (90, 1))),
    "draws": cal.Samples(rng.normal(size=90), rng.normal(size=(90, 5))),
    "draws without spread": cal.Samples(
        rng.normal(size=90), np.where(np.arange(90)[:, None] < 3, 0.5, rng.normal(size=(90, 5)))
    ),
    "a table of spreads": cal.BinTable.of(SPREAD, cal.table.LogGrid()),
    "two positives": cal.PositiveUnlabeled([0.7, 0.8], rng.random(80), prior=0.2),
    "equal unlabeled scores": cal.PositiveUnlabeled([0.5] * 40, [0.5] * 80, prior=0.5),
}


@pytest.mark.parametrize("data", LITTLE.values(), ids=LITTLE.keys())
def test_a_report_is_always_made_and_says_what_it_lacks(data):
    found = cal.report(data, threshold=0.4, tolerance=0.02)
    assert found.verdict.sentence
    assert found.verdict.severity in ("problem", "caution", "note")
    for text in (str(found), found.to_markdown(), found.to_json(), found.to_html()):
        assert text
    json.loads(found.to_json())
    assert all(left.reason.endswith((".", "!", "?")) for left in found.contents.omitted)
    assert not any(
        "needs" in left.reason.split()[1:2] and left.reason.split()[0] != "It" for left in found.contents.omitted
    )


@pytest.mark.parametrize("name", ["three rows", "one label", "hard scores", "one score", "three forecasts"])
def test_groups_and_times_of_little_data_do_not_fail(name):
    data = LITTLE[name]
    group = np.full(len(data), None, dtype=object)
    found = cal.report(data, by=group, time=np.arange(len(data)))
    assert found.verdict.sentence
    assert "Groups" in {left.section for left in found.contents.omitted}


@pytest.mark.no_cover
def test_a_table_gives_the_same_report_as_the_rows():
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    found, rows = cal.report(table), cal.report(OVER)
    assert found.n == rows.n
    assert found.headline == pytest.approx(rows.headline, abs=2e-3)
    assert found.verdict.rule == rows.verdict.rule
    assert "Computed from a table of" in found.verdict.how_sure
    assert "CAL404" in {finding.code for finding in found.findings}


def test_arguments_are_checked_before_anything_is_computed():
    with pytest.raises(ValueError, match="one table per group"):
        cal.report(cal.BinTable.of(OVER, cal.table.HybridGrid()), by=GROUPS)
    with pytest.raises(TypeError, match="table of all rows"):
        cal.report(OVER, by={"a": cal.BinTable.of(OVER, cal.table.HybridGrid())})
    with pytest.raises(cal.InvalidPredictions, match="by"):
        cal.report(OVER, by=GROUPS[:10])
    with pytest.raises(cal.InvalidPredictions, match="time must have one value per row, 3000"):
        cal.report(OVER, time=np.arange(10))
    with pytest.raises(cal.InvalidPredictions, match="one table per period"):
        cal.report(cal.BinTable.of(OVER, cal.table.HybridGrid()), time=np.arange(3000))
    with pytest.raises(TypeError, match="table of all rows"):
        cal.report(OVER, time={"a": OVER})
    for name in ("threshold", "tolerance"):
        with pytest.raises(cal.InvalidPredictions, match=rf"{name} must lie in \(0, 1\)"):
            cal.report(OVER, **{name: 5})


def test_labels_that_are_probabilities_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="needs the observed class of each row"):
        cal.report(cal.Multiclass(rng.dirichlet(np.ones(3), 80), VECTORS))


def test_users_words_are_used():
    found = cal.report(CALIBRATED, event="fraud", row="payment", model="gbm 4", source="2025.parquet", title="Fraud")
    assert "3,000 payments" in str(found)
    assert found.contents.facts.event == "fraud"
    assert (found.contents.facts.model, found.contents.facts.source) == ("gbm 4", "2025.parquet")
    assert 'had the event "fraud"' in found.verdict.what_it_means


def test_several_columns_are_grouped_and_crossed():
    device = np.where(np.arange(3000) % 2 == 0, "phone", "desk")
    found = cal.report(CALIBRATED, by={"country": np.arange(3000) % 3, "device": device})
    assert [section.column for section in found.groups] == ["country", "device", "country × device"]
    assert [len(section.rows) for section in found.groups] == [3, 2, 6]


def test_tables_by_group_and_column():
    table = cal.BinTable.of(OVER, cal.table.HybridGrid())
    parts = {name: cal.BinTable.of(OVER.take(name == GROUPS), cal.table.HybridGrid()) for name in set(GROUPS)}
    assert {row.name for row in cal.report(table, by=parts).groups[0].rows} == set(GROUPS)
    named = {f"kind = {name}": part for name, part in parts.items()}
    (section,) = cal.report(table, by=named).groups
    assert section.column == "kind"
    assert {row.name for row in section.rows} == set(GROUPS)
    few = cal.BinTable.of(cal.Binary(Y, P[:60]), cal.table.Distinct())
    assert {row.name for row in cal.report(few, by={1: few, "1": few}).groups[0].rows} == {"1", "'1'"}


def test_names_of_crossed_groups_are_told_apart():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    by = {
        "country": np.where(np.arange(400) % 2, "PL", "UK"),
        "channel": np.where(np.arange(400) // 2 % 2, "app", "web"),
    }
    crossed = cal.report(cal.Binary(rng.random(400) < p, p), by=by).groups[-1]
    assert crossed.column == "country × channel"
    assert {row.name for row in crossed.rows} == {"PL × app", "PL × web", "UK × app", "UK × web"}


def test_words_that_have_no_plural():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    by = {"age>=65": np.arange(2000) % 2}
    shown = cal.report(cal.Binary(rng.random(2000) < p**3, p), by=by, event="sepsis", row="diagnosis")
    for text in (str(shown), shown.to_html(), shown.to_markdown()):
        for wrong in ("sepsises", "diagnosises", "65s", "were sepsis", "Others do"):
            assert wrong not in text
    assert "events of sepsis" in str(shown)
    assert "Both groups by age>=65 are miscalibrated" in str(shown)


def test_groups_and_times_of_other_rows_are_refused():
    by = pd.Series(["a", "b"] * 20)
    with pytest.raises(cal.InvalidPredictions, match="by and time have different pandas indexes"):
        cal.report(cal.Binary([0, 1] * 20, [0.3, 0.6] * 20), by=by, time=pd.Series(range(40), index=by.index[::-1]))


def test_one_outcome_only_is_not_called_too_few_rows():
    p = np.random.default_rng(0).uniform(0, 0.3, 800)
    advice = cal.report(cal.Binary(np.zeros(800), p)).verdict.what_to_do
    assert advice == "A map is fitted to rows of both outcomes, and all of these have the same one."
