"""Tables of two log odds: cells, sums, what is found and what is left alone."""

import numpy as np
import pytest

from calibrant.numerics import pair_tables as tables
from calibrant.numerics.special import log_softmax, softmax
from tests.numerics.worlds import draw_classes


def world(rng, n, k=4, interaction=True):
    z = rng.normal(size=(n, k)) * 2
    p = softmax(z)
    h = p.copy()
    if interaction:
        sign, both = np.sign(z[:, 0] - z[:, 1]) * np.sign(z[:, 2] - z[:, 3]), p[:, 0] + p[:, 1]
        share = p[:, 0] / both
        share = np.clip(share + sign * share * (1 - share), 0, 1)
        h[:, 0], h[:, 1] = both * share, both * (1 - share)
    return np.log(p).astype(np.float32), h, draw_classes(rng, h)


def test_cells_are_divided_at_zero_and_at_quantiles_of_either_side():
    rng = np.random.default_rng(0)
    logs = log_softmax(rng.normal(np.arange(3.0, -2, -1), size=(500, 5))).astype(np.float32)
    cells = tables.PairCells.of(logs, 3, 4)
    p = np.exp(logs)
    sums = {(a, b): (p[:, a] * p[:, b]).sum() for a in range(5) for b in range(a + 1, 5)}
    chosen = sorted(sorted(sums, key=sums.get)[-3:])
    assert list(zip(cells.first.tolist(), cells.second.tolist(), strict=True)) == chosen
    codes = cells.codes(logs)
    for j, (a, b) in enumerate(chosen):
        odds = logs[:, a] - logs[:, b]
        expected = np.where(odds < 0, odds >= np.median(odds[odds < 0]), 2 + (odds >= np.median(odds[odds >= 0])))
        assert (codes[:, j] == expected).mean() > 0.99  # but for the rounding of the medians
    few = tables.PairCells.of(logs[:6], 3, 8)
    assert np.isinf(few.edges).sum(axis=1).max() >= 5
    assert few.codes(logs).max() < 8


def test_sums_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    logs, _, y = world(rng, 300)
    weight = rng.uniform(0.5, 2, 300).astype(np.float32)
    cells = tables.PairCells.of(logs, 6, 4)
    codes, live = cells.codes(logs), np.array([1, 4])
    gap = tables._cell_sums(cells, codes, live, lambda rows: tables._gaps(cells, live, logs, y, weight, rows))
    every = np.arange(6)
    information = tables._cell_sums(
        cells, codes, every, lambda rows: tables._information(cells, logs[rows], weight[rows])
    )[live]
    q, outcome = np.exp(logs.astype(float)), np.eye(4)[y]
    for i, f in enumerate(live):
        a, b = cells.first[f], cells.second[f]
        r = (outcome - q)[:, a] - (outcome - q)[:, b]
        v = q[:, a] + q[:, b] - (q[:, a] - q[:, b]) ** 2
        for j in range(6):
            for c in range(4):
                for d in range(4):
                    here = (codes[:, f] == c) & (codes[:, j] == d)
                    assert gap[i, c, j, d] == pytest.approx((weight * r)[here].sum(), abs=1e-3)
                    assert information[i, c, j, d] == pytest.approx((weight * v)[here].sum(), abs=1e-3)


def test_an_interaction_is_found_and_calibrated_rows_get_no_tables():
    rng = np.random.default_rng(2)
    logs, h, y = world(rng, 8000)
    cells = tables.PairCells.of(logs, 45, 4)
    codes = cells.codes(logs)
    found = tables.fit_tables(cells, codes, logs, y, np.ones(8000, np.float32))
    f, g = np.exp(logs), np.exp(found.added_to(logs, codes, cells))
    assert ((g - h) ** 2).sum() < 0.4 * ((f - h) ** 2).sum()
    number = {pair: j for j, pair in enumerate(zip(cells.first.tolist(), cells.second.tolist(), strict=True))}
    assert (number[0, 1], number[2, 3]) in set(zip(found.pair.tolist(), found.other.tolist(), strict=True))
    assert len(set(zip(found.pair.tolist(), found.other.tolist(), strict=True))) == len(found.pair)
    logs, _, y = world(rng, 8000, interaction=False)
    cells = tables.PairCells.of(logs, 45, 4)
    nothing = tables.fit_tables(cells, cells.codes(logs), logs, y, np.ones(8000, np.float32))
    assert len(nothing.pair) == 0
    assert nothing.added_to(logs, cells.codes(logs), cells) is logs


def test_confident_rows_and_no_rows_give_nothing():
    logs = np.log(np.array([[0.998, 0.001, 0.001]] * 50, np.float32))
    cells = tables.PairCells.of(logs, 45, 8)
    found = tables.fit_tables(cells, cells.codes(logs), logs, np.arange(50) % 3, np.ones(50, np.float32))
    assert found.values.shape == (0, 8, 8)


def test_weights_are_rows_repeated():
    rng = np.random.default_rng(3)
    logs, _, y = world(rng, 3000)
    cells, again = tables.PairCells.of(logs, 10, 4), np.repeat(np.arange(3000), 2)
    codes = cells.codes(logs)
    heavy = tables.fit_tables(cells, codes, logs, y, np.full(3000, 2, np.float32))
    twice = tables.fit_tables(cells, codes[again], logs[again], y[again], np.ones(6000, np.float32))
    np.testing.assert_array_equal(heavy.pair, twice.pair)
    np.testing.assert_allclose(heavy.values, twice.values, atol=1e-3)


def test_scores_of_tables_without_an_interaction_are_standardised(monkeypatch):
    rng = np.random.default_rng(8)
    information = rng.uniform(20, 200, (400, 3, 5, 4))
    gap = rng.normal(size=information.shape) * np.sqrt(information)
    largest = []
    for limit in (1.0, 2.0, 3.0, 4.5):
        monkeypatch.setattr(tables, "USED", limit)
        largest.append(len(tables._candidates(gap, information, np.arange(400))[0]))
    # The largest of five standard scores exceeds these limits in about 60, 11, 1 and 0 percent of the pairs.
    assert 160 < largest[0] < 330
    assert 15 < largest[1] < 100
    assert largest[2] < 30
    assert largest[3] <= 4
