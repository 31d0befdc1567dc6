"""The same keys, counts and sums whatever engine holds the rows."""

import narwhals.stable.v2 as nw
import numpy as np
import pytest

import calibrant as cal
from calibrant.scale import GaussianColumns, OneVsRestColumns, TopLabelColumns, UnlabeledColumns, bin_table, bin_tables
from tests.scale.logs import assert_same_table

pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")
GRID = cal.table.HybridGrid()
ANIMALS = ("cat", "cow", "dog")


@pytest.mark.no_cover
def test_the_table_of_events_is_that_of_the_rows_in_memory(source, log):
    expected = cal.BinTable.of(cal.Binary(log.y, log.p), GRID)
    found = bin_table(source, y_true="y", y_prob="p")
    assert_same_table(found, expected)
    assert found.invalid == {}
    assert cal.ece(found) == pytest.approx(float(cal.ece(expected)), abs=1e-15)


@pytest.mark.no_cover
def test_weights_are_summed_as_in_memory(source, log):
    expected = cal.BinTable.of(cal.Binary(log.y, log.p, weight=log.w), GRID)
    assert_same_table(bin_table(source, y_true="y", y_prob="p", weight="w"), expected)


@pytest.mark.no_cover
def test_the_engine_finds_the_top_label_the_first_of_equal_ones(source, log):
    data = cal.Multiclass(log.animal, log[list(ANIMALS)].to_numpy(), classes=ANIMALS)
    found = bin_table(source, y_true="animal", y_prob=ANIMALS, task=TopLabelColumns(ANIMALS))
    assert_same_table(found, cal.BinTable.of(data.top_label(), GRID))


@pytest.mark.no_cover
def test_the_task_of_a_normal_distribution_is_cut_by_sigma(source, log):
    expected = cal.BinTable.of(cal.Gaussian(log.z, log.mu, log.sigma), cal.table.LogGrid())
    assert_same_table(bin_table(source, y_true="z", task=GaussianColumns(mean="mu", std="sigma")), expected, rtol=1e-11)


@pytest.mark.no_cover
def test_positive_unlabeled_rows_are_told_apart_by_their_label(source, log):
    positive = (log.animal == "cat").to_numpy()
    unlabeled = (log.animal == "cow").to_numpy()
    expected = cal.BinTable.of(cal.PositiveUnlabeled(log.p[positive], log.p[unlabeled], prior=0.3), GRID)
    task = UnlabeledColumns(prior=0.3, positive="cat", unlabeled="cow")
    where = nw.col("animal") != "dog"
    assert_same_table(bin_table(source, y_true="animal", y_prob="p", task=task, where=where), expected)


@pytest.mark.parametrize(("known", "weight"), [({"prior": 0.6}, None), ({"label_frequency": 0.9}, "w")])
def test_one_sample_of_which_some_positives_are_labelled(source, log, known, weight):
    some = log[log.animal != "dog"]
    weights = None if weight is None else some.w
    scenario = {"scenario": "single-sample", **known}
    data = cal.PositiveUnlabeled.from_labels(some.animal == "cat", some.p, weight=weights, **scenario)
    task = UnlabeledColumns(positive="cat", unlabeled="cow", **scenario)
    where = nw.col("animal") != "dog"
    found = bin_table(source, y_true="animal", y_prob="p", weight=weight, task=task, where=where)
    expected = cal.BinTable.of(data, GRID)
    assert found.task.nested
    np.testing.assert_allclose(cal.pu.Gaps.of(found).prior, data.prior, rtol=1e-12)
    assert_same_table(found, expected)


@pytest.mark.no_cover
def test_groups_and_folds_give_one_table_each(source, log):
    found = bin_tables(source, y_true="y", y_prob="p", by="country", fold="day")
    days = ["0", "1", "2"] if str(source).endswith(".csv") else [0, 1, 2]  # keys are the text of a CSV file
    assert list(found) == [(country, day) for country in ("at", "de") for day in days]
    for (country, day), table in found.items():
        rows = log[(log.country == country) & (log.day == int(day))]
        assert_same_table(table, cal.BinTable.of(cal.Binary(rows.y, rows.p), GRID))


def test_exact_bins_equal_those_in_memory(source, log):
    data = cal.Binary(log.y, log.p)
    for bins in (cal.EqualMass(15), cal.EqualWidth(15), cal.EqualMass(7), cal.Edges([0, 0.2, 0.5, 0.99, 1])):
        table = bin_table(source, y_true="y", y_prob="p", exact=bins)
        np.testing.assert_allclose(cal.ece(table, bins=bins), cal.ece(data, bins=bins), atol=1e-12)
        np.testing.assert_array_equal(table.coarsen(bins).count, cal.BinTable.of(data, bins).count)


def test_one_versus_rest_gives_a_table_per_class(log):
    data = cal.Multiclass(log.animal, log[list(ANIMALS)].to_numpy(), classes=ANIMALS)
    found = bin_tables(log, y_true="animal", y_prob=ANIMALS, task=OneVsRestColumns(ANIMALS), by=["country", "day"])
    assert len(found) == 6 * len(ANIMALS)
    whole = bin_tables(log, y_true="animal", y_prob=ANIMALS, task=OneVsRestColumns(ANIMALS))
    for name, binary in data.one_vs_rest().items():
        assert_same_table(whole[name], cal.BinTable.of(binary, GRID))
        parts = [table for (*_, label), table in found.items() if label == name]
        assert_same_table(sum(parts[1:], parts[0]), whole[name])
