"""The tables of `reproduce.coverage`, in Markdown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Line = dict[str, object]


def report(cells: list[Line], powers: list[Line], head: str) -> str:
    counts = [sum("cover L1" in line for line in cells if (line["world"], line["n"]) == cell) for cell in groups(cells)]
    repeats = f"{100 * min(counts)}" if min(counts) == max(counts) else f"{100 * min(counts)} to {100 * max(counts)}"
    error = np.sqrt(0.95 * 0.05 / (100 * min(counts)))
    lines = [
        "# Coverage of intervals, level and power of tests",
        "",
        f"{head} `python -m reproduce.coverage`",
        "",
        "The ten published worlds (Roelofs et al. 2022, Tables 2 and 3) and their calibrated twins. Default interval "
        f"and test: {repeats} samples per cell (Monte-Carlo standard error at 0.95: {error:.3f}), isotonic band "
        "100 (0.022), other bounds and tests 34 (0.037, so that single cells of theirs say little and their means over "
        "worlds count); 299 draws per interval and test. In the CSV block 0 holds bounds and tests, later blocks the "
        "default. Errors and widths are in per cent of probability.",
        "",
        *summary(cells),
        "",
        "## Two-sided 95 % intervals of the default method (`Inversion`)",
        "",
        "`cover` is the share of samples whose interval holds the true error; that of L2 is that of its square. "
        "`oracle` is the width of the central 95 % range of the debiased estimate: what one who knows the sampling "
        "distribution would give.",
        "",
        *interval_table(cells),
        "",
        "## Bounds",
        "",
        *bound_table(cells),
        "",
        "## Tests: rejections of calibrated models at the 5 % level, all calibrated worlds",
        "",
        *size_table(cells),
        "",
        "## Tests: misses in the setting of Figure 5 (uniform scores, chance c^d)",
        "",
        "The sweep used as a test misses 0.160 (n = 1000, 5 %) and 0.425 (n = 5000, 2 %).",
        "",
        "| test | n = 1000, error 5 % | n = 5000, error 2 % |",
        "|-|-|-|",
        *power_lines(powers),
    ]
    return "\n".join(lines) + "\n"


def short(cells: list[Line]) -> list[str]:
    """The summary, and one line per world, for the documentation."""
    sizes = sorted({n for _, n in groups(cells)})
    lines = ["", *summary(cells), "", f"Share of 95 % intervals that hold the truth, L1 / L2, {len(sizes)} sizes:", ""]
    lines += ["| world | " + " | ".join(f"n = {n}" for n in sizes) + " |", "|-" * (len(sizes) + 1) + "|"]
    one, two = per_cell(cells, "cover L1"), per_cell(cells, "cover L2")
    for name in sorted({name for name, _ in one}, key=lambda name: (calibrated(name), name)):
        row = [f"{one[name, n]:.2f} / {two[name, n]:.2f}" if (name, n) in one else "" for n in sizes]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return [*lines, ""]


def mean_of(cells: list[Line], key: str, where: Callable[[Line], bool]) -> float:
    values = [float(line[key]) for line in cells if key in line and where(line)]  # type: ignore[arg-type]
    return float(np.mean(values)) if values else float("nan")


def groups(cells: list[Line]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((str(line["world"]), int(line["n"])) for line in cells))  # type: ignore[call-overload]


def calibrated(name: str) -> bool:
    return name.endswith("calibrated")


def per_cell(cells: list[Line], key: str) -> dict[tuple[str, int], float]:
    return {
        (name, n): mean_of(cells, key, lambda line, name=name, n=n: (line["world"], line["n"]) == (name, n))
        for name, n in groups(cells)
    }


def summary(cells: list[Line]) -> list[str]:
    lines = ["| | least | mean | cells below 0.93 |", "|-|-|-|-|"]
    for key in ("cover L1", "cover L2"):
        found = per_cell(cells, key)
        for words, some in (("miscalibrated", False), ("calibrated", True)):
            values = np.array([value for (name, _), value in found.items() if calibrated(name) is some])
            lines.append(f"| {key[6:]}, {words} | {_spread(values)} |")
    for key, words in (
        ("lower L1", "`Inversion` lower bound, L1"),
        ("lower L2", "`Inversion` lower bound, L2"),
        ("split lower L1", "`SplitLowerBound`, L1"),
        ("band upper L1", "`IsotonicBand` upper bound, L1"),
        ("band upper L2", "`IsotonicBand` upper bound, L2"),
    ):
        values = np.array(list(per_cell(cells, key).values()))
        lines.append(f"| {words} | {_spread(values)} |")
    return lines


def _spread(values: np.ndarray) -> str:
    return f"{values.min():.3f} | {values.mean():.3f} | {(values < 0.93).sum()} of {len(values)}"


def interval_table(cells: list[Line]) -> list[str]:
    lines = [
        "| world | n | L1 error | cover | width | oracle | L2 error | cover | width | oracle |",
        "|-|-|-|-|-|-|-|-|-|-|",
    ]
    for name, n in sorted(groups(cells), key=lambda cell: (calibrated(cell[0]), cell[0], cell[1])):
        row = [name, str(n)]
        for norm in ("L1", "L2"):
            found = [
                mean_of(cells, key, lambda line, name=name, n=n: (line["world"], line["n"]) == (name, n))
                for key in (norm, f"cover {norm}", f"width {norm}", f"oracle width {norm}")
            ]
            row += [f"{100 * found[0]:.2f}", f"{found[1]:.3f}", f"{100 * found[2]:.2f}", f"{100 * found[3]:.2f}"]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def bound_table(cells: list[Line]) -> list[str]:
    keys = ("lower L1", "lower L2", "split lower L1", "band lower L1", "band upper L1", "band upper L2")
    words = ("lower, L1", "lower, L2", "split lower, L1", "band lower, L1", "band upper, L1", "band upper, L2")
    lines = [f"| worlds | n | {' | '.join(words)} | band width, L1 |", "|-" * (len(words) + 3) + "|"]
    for some in (False, True):
        for n in sorted({n for _, n in groups(cells)}):
            here = [line for line in cells if line["n"] == n and calibrated(str(line["world"])) is some]
            means = [mean_of(here, key, lambda _: True) for key in keys]
            width = 100 * mean_of(here, "band width L1", lambda _: True)
            kind = "calibrated" if some else "miscalibrated"
            lines.append(f"| {kind} | {n} | {' | '.join(f'{mean:.3f}' for mean in means)} | {width:.1f} |")
    return lines


def size_table(cells: list[Line]) -> list[str]:
    names = sorted({key for line in cells for key in line if key.startswith("size ")})
    lines = ["| test | n = 200 | n = 1000 | n = 5000 | largest of a world and n |", "|-|-|-|-|-|"]
    for key in names:
        by_size = [mean_of(cells, key, lambda line, n=n: line["n"] == n) for n in (200, 1000, 5000)]
        largest = np.nanmax([value for (name, _), value in per_cell(cells, key).items() if calibrated(name)])
        lines.append(f"| {key[5:]} | {' | '.join(f'{value:.3f}' for value in by_size)} | {largest:.3f} |")
    return lines


def power_lines(powers: list[Line]) -> list[str]:
    names = dict.fromkeys(str(line["test"]) for line in powers)
    misses = {(line["test"], line["n"]): float(line["miss"]) for line in powers}  # type: ignore[arg-type]
    return [f"| {name} | {misses[name, 1000]:.3f} | {misses[name, 5000]:.3f} |" for name in names]
