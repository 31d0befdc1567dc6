"""Penalised matrices on log probabilities: gradient, optimum, and choice of precision.

Tables of two log odds: cells, sums, what is found and what is left alone.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.numerics import multiclass_matrices as leading_matrix
from calibrant.numerics import multiclass_matrices as tables
from calibrant.numerics.arrays import log_softmax, softmax
from calibrant.numerics.multiclass_features import Entries
from calibrant.numerics.multiclass_matrices import LeadingMatrix, ResidualMatrix, leading_logits
from tests.numerics.worlds import draw_classes


def test_the_best_table_of_a_pair_is_that_of_the_largest_standardised_sum_of_squares():
    rng = np.random.default_rng(0)
    gap, information = rng.normal(size=(4, 3, 5, 3)) * 12, rng.uniform(3.0, 60.0, (4, 3, 5, 3))
    found, again = tables._candidates(gap, information, np.array([7, 8, 9, 10]))
    wanted = []
    for i in range(4):
        scores = []
        for j in range(5):
            g, h = (values[i, :, j][information[i, :, j] > 5] for values in (gap, information))
            scores.append((np.sum(g**2 / h) - len(g)) / np.sqrt(np.sum(2 + 1 / h)))
        best = int(np.argmax(scores))
        g, h, usable = gap[i, :, best], information[i, :, best], information[i, :, best] > 5
        assert again[i] == (scores[best] > 4)
        if scores[best] > 7:
            part = 1 - usable.sum() / np.sum(g[usable] ** 2 / h[usable])
            wanted.append((7 + i, best, np.clip(np.where(usable, 0.5 * part * g / h, 0), -1.5, 1.5)))
    assert 0 < len(found) == len(wanted)
    for (pair, other, values), (i, j, expected) in zip(found, wanted, strict=True):
        assert (pair, other) == (i, j)
        np.testing.assert_allclose(values, expected)


def case(rng, n, classes, strength):
    """Classes whose log odds are confused along one direction of three inputs."""
    inputs = rng.normal(size=(n, 3)).astype(np.float32)
    f = softmax(inputs @ rng.normal(size=(3, classes)) + rng.normal(size=(n, classes)))
    entries = Entries.of(f, n)
    truth = np.zeros((3, classes))
    truth[0] = strength * rng.normal(size=classes)
    logits = np.log(f) + inputs @ truth
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    weight = np.ones(n, np.float32)
    return entries, LeadingMatrix(inputs, entries.index, entries.positions(labels), weight, classes), truth


@pytest.mark.parametrize("classes", [60, 300])
def test_leading_logits_are_products_with_the_columns_of_the_leading_classes(classes):
    rng = np.random.default_rng(0)
    entries, matrix, _ = case(rng, 50, classes, 0.0)
    w = rng.normal(size=(3, classes))
    found = leading_logits(matrix.inputs, w, entries.index)
    for row in (0, 17, 49):
        np.testing.assert_allclose(found[row, :16], matrix.inputs[row] @ w[:, entries.index[row, :16]], rtol=1e-4)
    assert not found[:, 16:].any()


def test_sums_by_class_are_the_transpose_of_leading_logits():
    rng = np.random.default_rng(1)
    entries, matrix, _ = case(rng, 80, 60, 0.0)
    w, q = rng.normal(size=(3, 60)), rng.random(entries.index.shape).astype(np.float32)
    whole = (leading_logits(matrix.inputs, w, entries.index) * q).sum(dtype=float)
    assert whole == pytest.approx((matrix._pulled(q, matrix.inputs) * w).sum(), rel=1e-4)


def test_a_confusion_is_found_with_a_precision_chosen_on_other_rows_and_noise_is_not():
    rng = np.random.default_rng(2)
    halves = np.arange(3000), np.arange(3000, 6000)
    entries, matrix, truth = case(rng, 6000, 60, 1.0)
    matrix.choose_precision(entries.log_mass, *halves)
    assert matrix.precision in leading_matrix.PRECISIONS
    matrix.fit(entries.log_mass)
    assert np.corrcoef(matrix.matrix[0], truth[0])[0, 1] > 0.8
    entries, nothing, _ = case(rng, 6000, 60, 0.0)
    nothing.choose_precision(entries.log_mass, *halves)
    found = nothing.fit(entries.log_mass)
    gain = nothing._log_likelihood(entries.log_mass + found) - nothing._log_likelihood(entries.log_mass)
    assert np.abs(found).mean() < 0.1
    assert gain < 100
    nothing.choose_precision(entries.log_mass, halves[0], halves[1][:0])  # nobody to judge
    fresh = LeadingMatrix(nothing.inputs, nothing.index, nothing.position, nothing.weight, 60)
    fresh.choose_precision(entries.log_mass, halves[0], halves[1][:0])
    assert fresh.precision == 0
    assert not fresh.fit(entries.log_mass).any()


def test_the_optimum_lowers_the_penalised_loss_and_weights_are_rows_repeated():
    rng = np.random.default_rng(3)
    entries, matrix, _ = case(rng, 400, 60, 1.0)
    matrix.precision = 20.0
    matrix.fit(entries.log_mass)
    again = np.repeat(np.arange(400), 2)
    twice = LeadingMatrix(
        matrix.inputs[again], matrix.index[again], matrix.position[again], np.ones(800, np.float32), 60
    )
    heavy = LeadingMatrix(matrix.inputs, matrix.index, matrix.position, np.full(400, 2, np.float32), 60)
    twice.precision = heavy.precision = 20.0
    np.testing.assert_allclose(heavy.fit(entries.log_mass), twice.fit(entries.log_mass[again])[::2], atol=1e-3)

    def loss(w):
        logs = log_softmax(entries.log_mass + leading_logits(matrix.inputs, w, matrix.index))
        return -logs[np.arange(400), matrix.position].sum() + 10 * (w**2).sum()

    assert loss(matrix.matrix) < min(loss(0.7 * matrix.matrix), loss(1.3 * matrix.matrix), loss(0 * matrix.matrix))


def confused(rng, n=3000):
    """Logits of three classes; what is seen as the first is often the second."""
    z = log_softmax(rng.normal(size=(n, 3)))
    confusion = np.array([[-0.5, 0.9, 0.0], [0.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
    labels = (z + (z - z.mean(axis=0)) @ confusion + rng.gumbel(size=z.shape)).argmax(axis=1)
    return z.astype(np.float32), labels, confusion


def standardised(z):
    centred = z - z.mean(axis=0)
    scale = np.sqrt(np.mean(centred**2))
    return centred / scale, scale


def ones(n):
    return np.ones(n, np.float32)


def test_the_matrix_minimises_the_penalised_loss():
    rng = np.random.default_rng(0)
    z, labels, _ = confused(rng, 300)
    weight = rng.uniform(0.5, 1.5, 300).astype(np.float32)
    inputs, _ = standardised(z)
    residual = ResidualMatrix(inputs, labels, weight)
    contribution = residual.fit(z, updates=4)
    precision = residual.precision

    def loss(matrix):
        logs = log_softmax(z + inputs @ matrix.reshape(3, 3))
        return -weight @ logs[np.arange(300), labels] + precision / 2 * matrix @ matrix

    residual.fit(z, updates=1)
    best = minimize(loss, np.zeros(9)).fun
    assert loss(residual.matrix.ravel()) == pytest.approx(best, abs=0.05)
    np.testing.assert_allclose(contribution, inputs @ residual.matrix, atol=0.2)


def test_a_confusion_is_found_and_calibrated_rows_get_next_to_nothing():
    rng = np.random.default_rng(1)
    z, labels, confusion = confused(rng)
    inputs, scale = standardised(z)
    found = ResidualMatrix(inputs, labels, ones(3000))
    found.fit(z, updates=4)
    per_log = found.matrix / scale
    # logits are known up to a constant per row
    gap = (per_log - confusion) - (per_log - confusion).mean(axis=1, keepdims=True)
    z_gap = (z - z.mean(axis=0)) @ gap
    assert np.sqrt(np.mean(z_gap**2)) < 0.15
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    nothing = ResidualMatrix(inputs, labels, ones(3000))
    assert np.abs(nothing.fit(z, updates=4)).max() < 0.15
    assert nothing.precision > 5 * found.precision


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
