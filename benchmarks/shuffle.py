"""What an engine moves when it groups rows by group and cell: drawn where that is possible, computed up to 1e12 rows.

Engines first add up rows within each partition, so a partition sends one line per (group, cell) that it has met. With a
share q of all rows in a (group, cell), a partition of r rows meets it with probability 1 - (1 - q)^r.

python -m benchmarks.shuffle
"""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

import calibrant as cal
from benchmarks.measuring import write_results
from calibrant.table.batch_sums import first_of_cells
from calibrant.table.binning import HybridGrid

#: Bytes of a row on disk (float32 score, int8 label, Parquet; measured by `benchmarks.scale`) and of a line that is
#: sent (group, cell, seven numbers).
ROW, LINE = 4.7, 9 * 8
#: Rows of a partition: 128 MB on disk.
PARTITION = 2.7e7
#: Processor seconds per row of `bin_table` with DuckDB, and per row of a scan, measured there too at 1e8 rows.
CPU, SCAN = 5.72e-8, 0.96e-8


def cell_shares(cells: int) -> np.ndarray:
    """Shares of the cells of a hybrid grid under skewed scores, Beta(1.1, 0.1)."""
    _, bits = first_of_cells(HybridGrid(cells), np.dtype(np.float64))
    edges = bits.view(np.float64)
    return np.diff(np.append(beta.cdf(edges, 1.1, 0.1), 1.0))


def group_shares(groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares of groups whose sizes follow Zipf's law, and how many groups have each (ranks are taken together)."""
    ranks = np.unique(np.geomspace(1, groups + 1, 400).astype(np.int64))
    ranks = ranks if len(ranks) > 1 else np.array([1, 2])
    many = np.diff(ranks)
    share = 1 / np.sqrt(ranks[:-1] * (ranks[1:] - 1.0))
    return share / (share * many).sum(), many


def expected_lines(rows: float, groups: int, cells: int) -> float:
    """The expected number of (group, cell) pairs among this many rows."""
    share, many = group_shares(groups)
    some = cell_shares(cells)
    return float(sum(m * -np.expm1(-rows * g * some).sum() for g, m in zip(share, many, strict=True)))


def drawn_lines(rows: int, groups: int, cells: int, rng: np.random.Generator) -> int:
    """The same, counted in drawn rows."""
    size = 1 / np.arange(1, groups + 1)
    group = rng.choice(groups, rows, p=size / size.sum())
    cell = HybridGrid(cells).index(rng.beta(1.1, 0.1, rows))
    return len(np.unique(group * np.int64(cells) + cell))


def check_lines() -> list[str]:
    rng = np.random.default_rng(0)
    lines = ["| rows | groups | cells | drawn | formula |", "|---|---|---|---|---|"]
    for rows, groups, cells in ((10**6, 1, 2**16), (10**6, 100, 2**12), (10**6, 10_000, 2**12), (10**6, 10**6, 2**8)):
        drawn, computed = drawn_lines(rows, groups, cells, rng), expected_lines(rows, groups, cells)
        lines.append(f"| {rows:.0e} | {groups:_} | {cells:_} | {drawn:_} | {computed:_.0f} |")
    return lines


def amount(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB" if number < 1000 else f"{number / 1000:.3g} PB"


def growth_lines() -> list[str]:
    lines = [
        "| rows | groups | cells | on disk | core hours (scan) | sent | sent / on disk | table: lines, size |",
        "|---|---|---|---|---|---|---|---|",
    ]
    cases = [
        *((n, 1, 2**16) for n in (1e8, 1e9, 1e10, 1e11, 1e12)),
        *((n, 1_000, 2**12) for n in (1e8, 1e10, 1e12)),
        *((n, 10**6, 2**12) for n in (1e10, 1e12)),
        *((n, 10**6, 2**8) for n in (1e10, 1e12)),
        (1e12, 10**8, 2**8),
        (1e12, 10**8, 2**4),
    ]
    for rows, groups, cells in cases:
        parts = max(1.0, rows / PARTITION)
        sent = parts * expected_lines(rows / parts, groups, cells) * LINE
        final = expected_lines(rows, groups, cells)
        hours = f"{rows * CPU / 3600:.2g} ({rows * SCAN / 3600:.2g})"
        lines.append(
            f"| {rows:.0e} | {groups:_} | {cells:_} | {amount(rows * ROW)} | {hours} | {amount(sent)} "
            f"| {sent / (rows * ROW):.2g} | {final:.2g}, {amount(final * LINE)} |"
        )
    return lines


def main() -> None:
    lines = [
        "Pairs of group and cell that a partition meets, and so the lines it sends: counted in drawn rows (skewed "
        "scores, sizes of groups by Zipf's law) and by the formula.",
        "",
        *check_lines(),
        "",
        f"From 1e8 rows, which were measured, to 1e12: {ROW} bytes per row on disk, {LINE} bytes per line, partitions "
        f"of {PARTITION:.1e} rows (128 MB), {CPU * 1e8:.2f} CPU s per 1e8 rows.",
        "",
        *growth_lines(),
    ]
    write_results("shuffle", "What grouping moves", "python -m benchmarks.shuffle", lines, calibrant=cal.__version__)


if __name__ == "__main__":
    main()
