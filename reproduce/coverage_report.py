"""The tables of `reproduce.coverage`, in Markdown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Line = dict[str, object]


Tables = dict[str, list[Line]]


def report(tables: Tables, head: str) -> str:
    cells = tables["coverage"]
    lines = [
        "# Coverage of intervals, level and power of tests",
        "",
        f"{head} `python -m reproduce.coverage`",
        "",
        "The ten published worlds (Roelofs et al. 2022, Tables 2 and 3) and their calibrated twins. Default "
        f"intervals, lower bounds and isotonic band: {samples(cells)} samples per cell (Monte-Carlo standard error at "
        f"0.95: {_error(samples(cells)):.3f}); `SplitLowerBound`: every fourth of them "
        f"({_error(samples(cells) / 4):.3f}); 299 draws per interval and test. Errors and widths are in per cent of "
        "probability.",
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
        "## Other two-sided intervals",
        "",
        "Least and mean coverage over worlds. Bootstrap intervals are those of the debiased error in 15 bins, "
        "n = 1000, 25 samples per world.",
        "",
        *other_table(cells),
        "",
        *beyond(tables),
        "",
        "## Tests",
        *tests(tables),
    ]
    return "\n".join(lines) + "\n"


def short(tables: Tables) -> list[str]:
    """The summary, and one line per world, for the documentation."""
    cells = tables["coverage"]
    sizes = sorted({n for _, n in groups(cells)})
    words = f"{samples(cells)} samples each (standard error {_error(samples(cells)):.3f})"
    lines = ["", *summary(cells), "", f"Share of 95 % intervals that hold the truth, L1 / L2, {words}:", ""]
    lines += ["| world | " + " | ".join(f"n = {n}" for n in sizes) + " |", "|-" * (len(sizes) + 1) + "|"]
    one, two = per_cell(cells, "cover L1"), per_cell(cells, "cover L2")
    for name in sorted({name for name, _ in one}, key=lambda name: (calibrated(name), name)):
        row = [f"{one[name, n]:.3f} / {two[name, n]:.3f}" if (name, n) in one else "" for n in sizes]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return [*lines, "", *beyond(tables), ""]


def tests(tables: Tables) -> list[str]:
    """Level and power."""
    return [
        "",
        f"Calibrated models that are rejected at the 5 % level, 4000 samples per cell for the default (standard error "
        f"{_error(4000):.4f}) and 1000 for the others ({_error(1000):.3f}):",
        "",
        *size_table(tables["coverage_size"]),
        "",
        "Share of samples in which an error is missed. Figure 5: uniform scores, probability c^d, 1000 samples; the "
        "sweep used as a test misses 0.160 (n = 1000, 5 %) and 0.425 (n = 5000, 2 %). Published worlds, both n: the "
        "gap of each is shrunk until its square over p(1 - p), summed over the rows, is 14, so that a test that knows "
        "its shape would miss it in 0.04 of samples; 400 samples each.",
        "",
        *power_table(tables["coverage_power"]),
        "",
    ]


def samples(cells: list[Line]) -> int:
    """Samples of the cell with the fewest blocks of a hundred."""
    return 100 * min(sum((line["world"], line["n"]) == cell for line in cells) for cell in groups(cells))


def _error(samples: float) -> float:
    return float(np.sqrt(0.95 * 0.05 / samples))


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
    lines = ["| | lowest | mean | required |", "|-|-|-|-|"]
    for key in ("cover L1", "cover L2"):
        found = per_cell(cells, key)
        for words, some in (("miscalibrated", False), ("calibrated", True)):
            values = np.array([value for (name, _), value in found.items() if calibrated(name) is some])
            bar = "0.93, mean at most 0.98" if not some else "0.93"
            lines.append(f"| default, two-sided, {key[6:]}, {words} | {_spread(values)} | {bar} |")
    for key, words, bar in (
        ("lower L1", "`Inversion` lower bound, L1", "0.94"),
        ("lower L2", "`Inversion` lower bound, L2", "0.94"),
        ("split lower L1", "`SplitLowerBound`, L1", "0.94"),
        ("band upper L1", "`IsotonicBand` upper bound, L1", "0.95"),
        ("band upper L2", "`IsotonicBand` upper bound, L2", "0.95"),
    ):
        values = np.array(list(per_cell(cells, key).values()))
        lines.append(f"| {words} | {_spread(values)} | {bar} |")
    return lines


def _spread(values: np.ndarray) -> str:
    return f"{values.min():.3f} | {values.mean():.3f}"


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


def other_table(cells: list[Line]) -> list[str]:
    lines = ["| method | miscalibrated: lowest | mean | calibrated: lowest | mean |", "|-|-|-|-|-|"]
    for key, words in (
        ("chi-square cover L2", "`ChiSquareMixture`, L2, all n"),
        ("basic bootstrap cover L1", "`Bootstrap`, basic, L1"),
        ("basic bootstrap cover L2", "`Bootstrap`, basic, L2"),
        ("bias-corrected bootstrap cover L1", "`Bootstrap`, bias-corrected, L1"),
        ("bias-corrected bootstrap cover L2", "`Bootstrap`, bias-corrected, L2"),
    ):
        found = per_cell([line for line in cells if key in line], key)
        wrong, right = ([v for (name, _), v in found.items() if calibrated(name) is some] for some in (False, True))
        lines.append(f"| {words} | {_spread(np.array(wrong))} | {_spread(np.array(right))} |")
    return lines


def beyond(tables: Tables) -> list[str]:
    """Coverage in worlds that were not used for tuning, and for clustered and weighted rows."""
    elsewhere, designs = tables["coverage_elsewhere"], tables["coverage_designs"]
    lines = [
        "Worlds that were not used for tuning (300 samples, standard error 0.013), two-sided L1 / L2, then lower "
        "bounds:",
        "",
        "| world | n | two-sided | lower bound |",
        "|-|-|-|-|",
    ]
    for line in sorted(elsewhere, key=lambda line: str(line["world"])):
        pairs = [f"{line[f'{kind} L1']:.3f} / {line[f'{kind} L2']:.3f}" for kind in ("cover", "lower")]
        lines.append(f"| {line['world']} | {line['n']:.0f} | {pairs[0]} | {pairs[1]} |")
    lines += [
        "",
        "Clustered and weighted rows, L2, 300 samples: 400 clusters of five rows (half of them with one outcome), and "
        "2000 weighted rows; coverage of the default, and if clusters or weights are ignored.",
        "",
        "| rows | world | default | ignored |",
        "|-|-|-|-|",
    ]
    for line in designs:
        lines.append(f"| {line['design']} | {line['world']} | {line['default']:.3f} | {line['independent rows']:.3f} |")
    lines += [
        "",
        "Two models on the same 1000 rows (`compare` at 95 %, 300 samples): with equal errors by construction, and one "
        "more overconfident than the other. Calibration errors by `PairedGaps`, the default, unless noted.",
        "",
        "| estimator | models | true difference | covered | significant |",
        "|-|-|-|-|-|",
    ]
    for line in tables["coverage_compare"]:
        words = f"{line['difference']:.4f} | {line['cover']:.3f} | {line['significant']:.3f}"
        lines.append(f"| {line['estimator']} | {line['models']} | {words} |")
    return lines


def size_table(sizes: list[Line]) -> list[str]:
    lines = ["| test | n = 200 | n = 1000 | n = 5000 | largest of a world and n |", "|-|-|-|-|-|"]
    for test in (key for key in sizes[0] if key not in ("world", "n")):
        means = [mean_of(sizes, test, lambda line, n=n: line["n"] == n) for n in (200, 1000, 5000)]
        largest = max(float(line[test]) for line in sizes)  # type: ignore[arg-type]
        lines.append(f"| {test} | {' | '.join(f'{mean:.3f}' for mean in means)} | {largest:.3f} |")
    return lines


def power_table(powers: list[Line]) -> list[str]:
    lines = ["| test | Figure 5, 5 % | Figure 5, 2 % | published worlds: mean | largest |", "|-|-|-|-|-|"]
    for name in dict.fromkeys(str(line["test"]) for line in powers):
        own = [line for line in powers if line["test"] == name]
        figure = [f"{line['miss']:.3f}" for line in own if str(line["setting"]).startswith("Figure")]
        worlds = [float(line["miss"]) for line in own if not str(line["setting"]).startswith("Figure")]  # type: ignore[arg-type]
        last = f"{np.mean(worlds):.3f} | {np.max(worlds):.3f}" if worlds else " | "
        lines.append(f"| {name} | {' | '.join(figure)} | {last} |")
    return lines
