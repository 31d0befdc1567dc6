"""Extremes of running sums: those found by cells are those of a sort, ties and all."""

import math

import numpy as np
import pytest

from calibrant.numerics import sorting as running_gaps
from calibrant.numerics.rows import Rows
from calibrant.numerics.sorting import running_gap_extremes

pytestmark = pytest.mark.usefixtures("fast")


def written_out(p, y):
    """The lowest and highest of the exact sums of p - y up to each score, zero included."""
    order = np.lexsort((y, p))
    p, y = p[order].astype(np.float64), y[order]
    ends = np.append(np.flatnonzero(p[1:] != p[:-1]) + 1, len(p))
    sums, start, total = [0.0], 0, 0.0
    for end in ends:
        total += math.fsum(p[start:end]) - int(y[start:end].sum())
        start = end
        sums.append(total)
    return min(sums), max(sums)


def worlds():
    rng = np.random.default_rng(0)
    n = 3000
    beta, uniform = rng.beta(1.1, 0.1, n), rng.random(n)
    yield "calibrated", uniform, rng.random(n) < uniform
    yield "overconfident", beta, rng.random(n) < beta**3
    yield "underconfident near 0", 1 - beta, rng.random(n) < np.sqrt(1 - beta)
    yield "rounded", uniform.round(2), rng.random(n) < uniform
    yield "one score", np.full(n, 0.3), rng.random(n) < 0.3
    yield "ends", np.repeat([0.0, 1.0, 0.5], n // 3), rng.random(n) < 0.5
    yield "all negative", uniform, np.zeros(n, bool)
    yield "all positive", uniform, np.ones(n, bool)
    yield "negative zero", np.where(uniform < 0.3, -0.0, uniform), rng.random(n) < uniform
    yield "one cell", uniform * 1e-5, rng.random(n) < 1e-3
    yield "one row", np.array([0.4]), np.array([True])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "p", "y"), list(worlds()), ids=lambda value: value if isinstance(value, str) else "")
def test_cells_find_the_extremes_of_the_definition(name, p, y, dtype, monkeypatch):
    p, y = p.astype(dtype), y.astype(np.int8)
    monkeypatch.setattr(running_gaps, "GAP_CELL_ROWS", 0)
    monkeypatch.setattr(running_gaps, "CHUNK", 700)
    np.testing.assert_allclose(running_gap_extremes(Rows(p, p, y)), written_out(p, y), rtol=0, atol=1e-10)


def test_few_rows_are_sorted_to_the_same_extremes():
    for _, p, y in worlds():
        y = y.astype(np.int8)
        np.testing.assert_allclose(running_gap_extremes(Rows(p, p, y)), written_out(p, y), rtol=0, atol=1e-10)


def test_few_rows_are_opened_where_there_are_many(monkeypatch):
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    y = (rng.random(len(p)) < p**1.1).astype(np.int8)
    seen = []
    plain = running_gaps.sorted_rows
    monkeypatch.setattr(running_gaps, "sorted_rows", lambda rows: (seen.append(len(rows.key)), plain(rows))[1])
    running_gap_extremes(Rows(p, p, y))
    assert sum(seen) < 0.05 * len(p)
