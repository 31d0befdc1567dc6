"""The tables of `reproduce.coverage`, in Markdown: what falls short first."""

from __future__ import annotations

import numpy as np

from reproduce.coverage_cells import Cell, cells_of
from reproduce.coverage_files import Line
from reproduce.coverage_methods_report import comparison_table, method_table, pair_table, tests

Tables = dict[str, list[Line]]
GROUPS = ("published", "published, calibrated", "rough", "other, calibrated", "uneven clusters", "weights")
#: Faults that chance explains less often than these are listed, or are called beyond chance.
LISTED, SURE = 0.2, 0.025
OTHER_TASKS = {
    "multiclass_coverage": "Multiclass",
    "regression_coverage": "Regression",
    "regression_designs": "Regression: spreads that repeat, clusters, weights",
    "unlabeled_coverage": "Positive-unlabeled data",
}
#: Cells of each of them on the page of the documentation.
MOST_ON_PAGE = 12


def report(tables: Tables, head: str) -> str:
    """The whole report."""
    cells = cells_of(tables.get("coverage", []))
    lines = [
        "# Coverage of intervals, level and power of tests",
        "",
        f"{head} `python -m reproduce.coverage`",
        "",
        "Nominal 95 % intervals in worlds of known error. Errors and widths are in per cent of probability. *Covered*: "
        "the interval holds the truth. *Low above*: its lower end lies above the truth. *High below*: its upper end "
        "lies below it. Settings of the method were chosen on the worlds marked with a star, on other samples.",
        "",
        "## Cells that fall short",
        "",
        *bad_cells(tables),
        "",
        "## Summary",
        "",
        *summary(cells),
        "",
        "## Widths and time",
        "",
        *width_table(cells, tables),
        "",
        *time_table(cells),
        "",
        "## Every cell",
        "",
        *cell_tables(cells, tables),
        "",
        "## Other estimators",
        "",
        *estimator_table(cells_of(tables.get("coverage_estimators", []))),
        "",
        *other_tasks(tables),
        "## Other methods",
        "",
        *method_table(tables.get("coverage_methods", [])),
        "",
        *comparisons(tables),
        "",
        "## Tests",
        *tests(tables),
    ]
    return "\n".join(lines) + "\n"


def comparisons(tables: Tables) -> list[str]:
    """Two models on the same rows: in one world with all methods, and in rough worlds."""
    return [
        *comparison_table(tables.get("coverage_compare", [])),
        "",
        *pair_table(tables.get("coverage_pairs", [])),
    ]


def marked_parts(tables: Tables) -> dict[str, list[str]]:
    """The parts of the documentation that are written here."""
    cells = cells_of(tables.get("coverage", []))
    coverage = [
        "",
        "Cells that fall short:",
        "",
        *bad_cells(tables),
        "",
        "All cells (samples differ, see the full table):",
        "",
        *summary(cells),
        "",
        *width_table(cells, tables),
        "",
    ]
    others = ["", *estimator_table(cells_of(tables.get("coverage_estimators", [])), by_world=False), ""]
    return {
        "coverage": coverage,
        "estimators": others,
        "tasks": ["", "All cells are in `reproduce/results/coverage.md`.", "", *other_tasks(tables, MOST_ON_PAGE)],
        "comparisons": ["", *comparisons(tables), ""],
        "tests": tests(tables),
    }


def bad_cells(tables: Tables) -> list[str]:
    """What goes wrong more often than it may, the surest faults first."""
    files = ("coverage", "coverage_estimators", *OTHER_TASKS)
    cells = [cell for name in files for cell in cells_of(tables.get(name, []))]
    promised = [cell for cell in cells if cell.promised]
    bad = sorted((cell for cell in promised if cell.chance < LISTED), key=lambda cell: cell.chance)
    sure, faulty = (sum(cell.chance < limit for cell in promised) for limit in (SURE, 1.0))
    samples = [cell.samples for cell in promised] or [0]
    lines = [
        f"{faulty:,} of {len(promised):,} cells missed their target; {sure} significantly at the {SURE:.1%} level "
        f"({SURE * len(promised):.0f} expected by chance). Cells have {min(samples)} to {max(samples)} samples (median "
        f"{np.median(samples):.0f}): with few, a real fault need not be significant. Listed are those with a p-value "
        f"below {LISTED:.0%}, the smallest first. "
        f"{len(cells) - len(promised)} cells whose gap oscillates too fast for their n are not counted.",
        "",
    ]
    if not bad:
        return lines[:1]
    lines += ["| target | world | n | samples | covered | low above | high below | fault | by chance |", "|-" * 9 + "|"]
    for cell in bad:
        faults = ", ".join(f"{key.replace('_', ' ')} {share:.3f}" for key, share in cell.faults.items())
        words = f"{cell.target} | {_starred(cell)} | {cell.n} | {cell.samples} | {_tails(cell)} | {faults}"
        lines.append(f"| {words} | {cell.chance:.2g} |")
    return lines


def summary(cells: list[Cell]) -> list[str]:
    """Lowest and mean coverage of each group of worlds."""
    lines = [
        "| worlds | target | cells | covered: lowest | mean | low above: most | mean | one-sided lower above: mean "
        "| zero excluded: mean |",
        "|-|-|-|-|-|-|-|-|-|",
    ]
    for group in GROUPS:
        for tuned in (True, False):
            for target in ("L1", "L2"):
                some = [c for c in cells if group_of(c) == group and c.target == target and c.promised]
                some = [cell for cell in some if cell.tuned is tuned]
                if some:
                    words = f"{group}{'*' if tuned else ''}"
                    lines.append(f"| {words} | {target} | {len(some)} | {_summed(some)} |")
    return lines


def _summed(cells: list[Cell]) -> str:
    covered = [cell.means["covered"] for cell in cells]
    above = [cell.means["low_above"] for cell in cells]
    lower = [cell.means["lower_above"] for cell in cells if "lower_above" in cell.means]
    zero = [cell.means["zero_excluded"] for cell in cells if cell.calibrated]
    words = f"{min(covered):.3f} | {np.mean(covered):.3f} | {max(above):.3f} | {np.mean(above):.3f}"
    words += f" | {np.mean(lower):.3f}" if lower else " | "
    return words + (f" | {np.mean(zero):.3f}" if zero else " | ")


def group_of(cell: Cell) -> str:
    """The group of worlds to which a cell belongs."""
    for words in ("clusters", "weights"):
        if words in cell.world:
            return "uneven clusters" if words == "clusters" else words
    network = "_c10" in cell.world or "_imgnet" in cell.world
    kind = "published" if network else "rough" if not cell.calibrated else "other"
    return f"{kind}, calibrated" if cell.calibrated else kind


def width_table(cells: list[Cell], tables: Tables) -> list[str]:
    """Mean widths over those of the first edition and over the oracle's."""
    first = {(c.target, c.world, c.n): c.means["width"] for c in cells_of(tables.get("coverage_first", []))}
    oracle = _oracle(tables)
    lines = [
        "Mean width over that of the first edition's method, which assumed a smooth gap, and over the oracle's, the "
        "central 95 % range of the debiased error in 15 bins:",
        "",
        "| worlds | target | n | over the first edition's: mean | most | over the oracle's: mean | most |",
        "|-|-|-|-|-|-|-|",
    ]
    for group in (*GROUPS[:4], "rare events"):
        for target in ("L1", "L2"):
            for n in sorted({cell.n for cell in cells}):
                some = [c for c in cells if (c.target, c.n) == (target, n)]
                some = [c for c in some if (group == "rare events" and "events" in c.world) or group_of(c) == group]
                ratios = [_ratios(some, known) for known in (first, oracle)]
                if any(ratios):
                    shown = " | ".join(f"{np.mean(r):.2f} | {np.max(r):.2f}" if r else " | " for r in ratios)
                    lines.append(f"| {group} | {target} | {n} | {shown} |")
    return lines


def _oracle(tables: Tables) -> dict[tuple[str, str, int], float]:
    return {
        (target, str(line["world"]), int(float(str(line["n"])))): float(str(line[f"oracle {target}"]))
        for line in tables.get("coverage_oracle", [])
        for target in ("L1", "L2")
    }


def _ratios(cells: list[Cell], known: dict[tuple[str, str, int], float]) -> list[float]:
    keys = [(cell.target, cell.world, cell.n) for cell in cells]
    return [c.means["width"] / known[key] for c, key in zip(cells, keys, strict=True) if known.get(key, 0.0) > 0]


def time_table(cells: list[Cell]) -> list[str]:
    """CPU time of a two-sided interval in both norms."""
    lines = ["| n | CPU ms, mean | largest of a world |", "|-|-|-|"]
    for n in sorted({cell.n for cell in cells}):
        spent = [1000 * cell.means["cpu"] for cell in cells if cell.n == n and group_of(cell) != "uneven clusters"]
        if spent:
            lines.append(f"| {n} | {np.mean(spent):.0f} | {np.max(spent):.0f} |")
    return lines


def cell_tables(cells: list[Cell], tables: Tables) -> list[str]:
    """One line per world, n and norm, group by group."""
    oracle, lines = _oracle(tables), []
    for group in GROUPS:
        some = [cell for cell in cells if group_of(cell) == group]
        if not some:
            continue
        lines += [f"### {group.capitalize()}", "", "| world | n | target | true error | samples | covered | low above "]
        lines[-1] += "| high below | width | oracle | one-sided lower above | upper below | estimate outside |"
        lines.append("|-" * 13 + "|")
        for cell in sorted(some, key=lambda cell: (cell.world, cell.n, cell.target)):
            width = f"{100 * cell.means['width']:.2f}"
            known = oracle.get((cell.target, cell.world, cell.n))
            words = [_starred(cell), str(cell.n), cell.target, f"{100 * cell.truth:.2f}", str(cell.samples)]
            words += [_tails(cell), width, "" if known is None else f"{100 * known:.2f}"]
            words += [
                f"{cell.means[k]:.2f}" if k in cell.means else "" for k in ("lower_above", "upper_below", "outside")
            ]
            lines.append("| " + " | ".join(words) + " |")
        lines.append("")
    return lines


def estimator_table(cells: list[Cell], *, by_world: bool = True) -> list[str]:
    """Intervals of the other estimators: one line per estimator and size, then all cells."""
    lines = ["| estimator | n | worlds | covered: lowest | mean | zero excluded if calibrated: mean | mean width |"]
    lines.append("|-" * 7 + "|")
    for target in dict.fromkeys(cell.target for cell in cells):
        for n in sorted({cell.n for cell in cells if cell.target == target}):
            some = [cell for cell in cells if (cell.target, cell.n) == (target, n)]
            covered = [cell.means["covered"] for cell in some]
            zero = [cell.means["zero_excluded"] for cell in some if cell.calibrated]
            width = np.mean([cell.means["width"] for cell in some])
            words = f"{min(covered):.3f} | {np.mean(covered):.3f} | {np.mean(zero) if zero else float('nan'):.3f}"
            last = f"{100 * width:.3g}" if np.isfinite(width) else "a bound"
            lines.append(f"| {target} | {n} | {len(some)} | {words} | {last} |")
    if by_world and cells:
        lines += [
            "",
            "| estimator | world | n | true value | samples | covered | low above | high below |",
            "|-" * 8 + "|",
        ]
        for cell in cells:
            words = [cell.target, cell.world, str(cell.n), f"{100 * cell.truth:.3g}", str(cell.samples), _tails(cell)]
            lines.append("| " + " | ".join(words) + " |")
    return lines


def other_tasks(tables: Tables, most: int | None = None) -> list[str]:
    """Cells of the other tasks, measured by scripts of their own, the lowest coverage first, at most `most`."""
    lines: list[str] = []
    for name, words in OTHER_TASKS.items():
        cells = sorted(cells_of(tables.get(name, [])), key=lambda cell: cell.means["covered"])
        if not cells:
            continue
        samples, covered = [cell.samples for cell in cells], [cell.means["covered"] for cell in cells]
        shown = cells[:most]
        rest = "" if len(shown) == len(cells) else f"; the {len(shown)} that cover least"
        lines += [
            f"### {words}",
            "",
            f"{len(cells)} cells of {_range(samples)} samples, covered in {np.mean(covered):.3f} on average{rest}:",
            "",
            "| target | world | n | samples | covered | low above | high below | width |",
            "|-" * 8 + "|",
        ]
        for cell in shown:
            width = cell.means.get("width", float("nan"))
            row = [cell.target, _starred(cell), str(cell.n), str(cell.samples), _tails(cell), f"{width:.4g}"]
            lines.append("| " + " | ".join(row) + " |")
        lines.append("")
    return lines


def _range(values: list[int]) -> str:
    return f"{min(values)} to {max(values)}" if min(values) < max(values) else str(values[0])


def _tails(cell: Cell) -> str:
    tails = [cell.means.get(key, float("nan")) for key in ("covered", "low_above", "high_below")]
    return " | ".join(f"{tail:.3f}" for tail in tails)


def _starred(cell: Cell) -> str:
    return cell.world + ("*" if cell.tuned else "") + ("" if cell.promised else " (too fast for n)")
