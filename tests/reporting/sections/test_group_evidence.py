"""P-values of groups: small for any number of groups, and right under calibration."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference.groupings import groupings
from calibrant.numerics.special import expit
from calibrant.reporting.sections.group_evidence import adjusted_of_tables, adjusted_p_values
from tests.reporting.sections.worlds import binary


def grouping(labels):
    return groupings(labels, length=len(labels))[0]


def test_rows_are_tested_as_by_group_does():
    data, labels = binary(2000, slope=0.6), np.arange(2000) % 4
    found = adjusted_p_values(data, grouping(labels))
    own = cal.by_group(cal.ece, data, by=labels, intervals=0)
    np.testing.assert_allclose(found, [own.tests[k].p_value for k in range(4)])


@pytest.mark.no_cover
def test_tables_can_be_flagged_among_hundreds():
    tables = [cal.BinTable.of(binary(150, seed=k), cal.table.Distinct()) for k in range(100)]
    tables[17] = cal.BinTable.of(binary(150, shift=-3.0, seed=500), cal.table.Distinct())
    found = adjusted_of_tables(tables)
    assert found[17] == 0.001
    assert np.delete(found, 17).min() > 0.02


def clustered(rng, *, shift=0.0, clusters=40, size=15):
    z = rng.normal(-0.5, 1, clusters * size)
    group = np.repeat(np.arange(clusters), size)
    own = np.sqrt(1 + 0.35) * (z + shift) + rng.normal(0, 1, clusters)[group]  # its mean over clusters is nearly p
    return rng.random(len(z)) < expit(own), expit(z), group


@pytest.mark.no_cover
def test_clusters_keep_the_level_where_rows_would_not():
    rng, rejected, naive = np.random.default_rng(3), 0, 0
    for _ in range(120):
        y, p, group = clustered(rng)
        whole = grouping(np.zeros(len(y), dtype=int))
        rejected += adjusted_p_values(cal.Binary(y, p, group=group), whole)[0] < 0.05
        naive += cal.inference.Cox().test(cal.Binary(y, p)).p_value < 0.05
    assert rejected <= 14  # 99.6 % of samples at a level of 5 %
    assert naive > 15


def test_clusters_do_not_hide_a_shift():
    y, p, group = clustered(np.random.default_rng(0), shift=-1.0)
    assert adjusted_p_values(cal.Binary(y, p, group=group), grouping(np.zeros(len(y), dtype=int)))[0] < 0.01


def test_few_clusters_cannot_be_tested():
    y, p, group = clustered(np.random.default_rng(0), clusters=4)
    assert np.isnan(adjusted_p_values(cal.Binary(y, p, group=group), grouping(np.zeros(len(y), dtype=int)))[0])


def test_forecasts_that_are_shifted_or_too_narrow():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1500)
    labels = np.repeat(["right", "shifted", "narrow"], 500)
    z += np.where(labels == "shifted", 0.3, 0.0)
    z *= np.where(labels == "narrow", 1.3, 1.0)
    data = cal.Gaussian(z, np.zeros(1500), np.ones(1500))
    found = dict(zip(sorted(set(labels)), adjusted_p_values(data, grouping(labels)), strict=True))
    assert found["right"] > 0.05 > max(found["shifted"], found["narrow"])


def test_several_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 1000)
    y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    p[500:] = p[500:, [1, 2, 0]]
    found = adjusted_p_values(cal.Multiclass(y, p), grouping(np.arange(1000) // 500))
    assert found[0] > 0.05 > found[1]
