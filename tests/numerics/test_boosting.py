"""Tables and trees of coded features: what they learn, and the law of the test of tables."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant.numerics import boosting
from calibrant.numerics.boosting import (
    Growth,
    Layout,
    all_cells,
    boosted_tables,
    boosted_trees,
    leaves,
    merged_codes,
    table_p_value,
)


def rows(n, seed=0, gap=0.0):
    """Two ordered columns, one category, and outcomes that are off by a gap where two of them agree."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, n).astype(np.uint8) for size in (20, 12, 6)]
    layout = Layout((False, False, True), (21, 13, 8))
    p = rng.uniform(0.1, 0.6, n)
    y = (rng.random(n) < p + gap * ((codes[0] < 8) ^ (codes[2] == 3))).astype(float)
    return codes, layout, p, y


def loss(y, x):
    return float(np.mean(np.logaddexp(0, x) - y * x))


def test_trees_lower_the_loss_of_new_rows():
    codes, layout, p, y = rows(6000, gap=0.25)
    trees = boosted_trees(codes, layout, y, logit(p), np.ones(6000), Growth(30, 3, 8.0), rng=np.random.default_rng(0))
    others, _, q, z = rows(20_000, seed=1, gap=0.25)
    assert loss(z, logit(q) + trees.predict(others)) < loss(z, logit(q)) - 0.01


def test_the_leaf_of_a_row_is_the_path_through_its_nodes():
    rng = np.random.default_rng(0)
    ranked = [rng.integers(0, 10, 50).astype(np.uint8) for _ in range(3)]
    feature, cut = rng.integers(0, 3, 7), rng.integers(0, 10, 7)
    found = leaves(ranked, feature, cut)
    for row in range(50):
        node = 0
        while node < 7:
            node = 2 * node + 1 + int(ranked[feature[node]][row] > cut[node])
        assert found[row] == node - 7


def test_the_first_split_of_a_tree_has_the_largest_gain():
    codes, layout, p, y = rows(3000, gap=0.3)
    ridge = 5.0
    tree = boosted_trees(codes, layout, y, logit(p), np.ones(3000), Growth(1, 1, ridge), rng=np.random.default_rng(0))
    g, h = y - p, p * (1 - p)
    best = {}
    for j, code in enumerate(tree.ranked(codes)):
        for cut in range(20):
            left = code <= cut
            if min(h[left].sum(), h[~left].sum()) >= ridge / 2:
                parts = [g[side].sum() ** 2 / (h[side].sum() + ridge) for side in (left, ~left)]
                best[j, cut] = sum(parts)
    assert (tree.feature[0, 0], tree.cut[0, 0]) == max(best, key=best.get)
    left = tree.ranked(codes)[tree.feature[0, 0]] <= tree.cut[0, 0]
    assert tree.value[0, 0] == pytest.approx(0.15 * g[left].sum() / (h[left].sum() + ridge))


def test_many_rows_are_sampled_for_splits(monkeypatch):
    seen = []
    original = boosting._SplitSearch._sums

    def sums(self, codes, *rest):
        seen.append(len(codes[0]))
        return original(self, codes, *rest)

    monkeypatch.setattr(boosting._SplitSearch, "_sums", sums)
    for n in (40_000, 40_001):
        codes, layout, p, y = rows(n)
        seen.clear()
        boosted_trees(codes, layout, y, logit(p), np.ones(n), Growth(1, 1, 8.0), rng=np.random.default_rng(0))
        assert seen == [40_000]


def test_cells_of_tables():
    code = np.arange(40).repeat(10).astype(np.uint8)
    ones = np.ones(400)
    fine = merged_codes(code, 41, ones, boosting._FINE, category=False)
    assert fine[:-1].max() == 11
    assert merged_codes(code, 41, ones, boosting._COARSE, category=False)[:-1].max() == 3
    assert merged_codes(code, 41, ones, boosting._COARSE, category=True).max() == 7
    assert merged_codes(code, 41, ones, boosting._FINE, category=True).max() == 11
    missing = np.append(code, np.full(50, 40, np.uint8))
    cells = merged_codes(missing, 41, np.ones(450), 4, category=False)
    assert cells[40] == 4
    assert 4 not in cells[:40]
    ways = list(all_cells([code, code, np.zeros(400, np.uint8)], Layout((False,) * 3, (41, 41, 2)), ones))
    assert [way.features for way in ways] == [(0,), (1,), (0, 1)]


def test_a_code_lies_in_the_cell_of_the_middle_of_its_information():
    code = np.array([0, 1], np.uint8)
    for information, cells in (([0.8, 0.2], [0, 1]), ([0.2, 0.8], [0, 1]), ([0.4, 0.6], [0, 1]), ([1.0, 0.0], [1, 1])):
        assert merged_codes(code, 3, np.array(information), 2, category=False)[:2].tolist() == cells
    three = merged_codes(np.arange(3, dtype=np.uint8), 4, np.array([3.0, 2.0, 5.0]), 10, category=False)
    assert three.tolist() == [1, 4, 7, 0]


def test_a_table_finds_what_no_single_feature_shows():
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 2, 4000).astype(np.uint8) for _ in range(3)]
    p = np.full(4000, 0.4)
    y = (rng.random(4000) < p + 0.1 * np.where(codes[0] == codes[1], 1, -1)).astype(float)
    tables = boosted_tables(codes, Layout((False,) * 3, (3, 3, 3)), y, logit(p), np.ones(4000), most=10)
    assert tables[0].features == (0, 1)
    value = tables[0].predict(
        [np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8), np.zeros(4, np.uint8)]
    )
    assert np.sign(value).tolist() == [1, -1, -1, 1]


def test_noise_has_few_tables():
    found = 0
    for seed in range(40):
        codes, layout, p, y = rows(1000, seed=seed)
        found += bool(boosted_tables(codes, layout, y, logit(p), np.ones(1000), most=1))
    assert found <= 8


def test_what_the_constants_learn():
    codes, layout, p, y = rows(3000, seed=2, gap=0.2)
    trees = boosted_trees(codes, layout, y, logit(p), np.ones(3000), Growth(5, 3, 8.0), rng=np.random.default_rng(0))
    tables = boosted_tables(codes, layout, y, logit(p), np.ones(3000), most=2)
    q = expit(logit(p) + sum(table.predict(codes) for table in tables))
    assert [round(float(np.abs(part).sum()), 6) for part in (trees.value, tables[0].value, q - p)] == FROZEN


def test_cells_of_little_variance_are_pooled():
    sums = np.array([[4.9, 5.0, 0.2, 20.0], [1.0, 2.0, 3.0, 4.0]])
    assert np.allclose(boosting._pooled(sums), [[5.0, 20.0, 5.1], [2.0, 4.0, 4.0]])
    assert boosting._pooled(sums[:, :2]).shape == (2, 1)


def test_the_test_of_tables_keeps_its_level_and_has_power():
    rejected = 0
    for seed in range(200):
        codes, layout, p, y = rows(600, seed=seed)
        rejected += table_p_value(codes, layout, y, p, np.ones(600))[0] <= 0.05
    assert rejected <= 0.05 * 200 + 3 * np.sqrt(0.05 * 0.95 * 200)
    codes, layout, p, y = rows(3000, gap=0.2)
    p_value, features = table_p_value(codes, layout, y, p, np.ones(3000))
    assert p_value < 1e-6
    assert features == (0, 2)
    assert table_p_value(codes, layout, y, p, np.tile([1.0, 1.5], 1500))[0] < 1e-4
    assert table_p_value([np.zeros(9, np.uint8)], Layout((False,), (2,)), y[:9], p[:9], np.ones(9)) == (1.0, ())


def test_moments_of_the_sum_of_squares():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.4, 300)
    cell = np.arange(300) % 5
    drawn = (rng.random((20_000, 300)) < p) - p
    v = p * (1 - p)
    V, K = np.bincount(cell, v), np.bincount(cell, v * (1 - 6 * v))
    q = sum((drawn[:, cell == c].sum(axis=1) ** 2) / V[c] for c in range(5))
    assert abs(q.mean() - 5) < 4 * q.std() / np.sqrt(20_000)
    variance = float((2 + K / V**2).sum())
    assert abs(q.var() / variance - 1) < 0.06


#: What the rates give.
FROZEN = [1.992582, 1.195331, 186.084766]
