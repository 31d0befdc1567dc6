"""Tables of the methods that are not the default, of comparisons, and of tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reproduce.coverage_files import Line

METHODS = {
    "band upper L1": "`IsotonicBand` upper bound, L1",
    "band upper L2": "`IsotonicBand` upper bound, L2",
    "band lower L1": "`IsotonicBand` lower bound, L1",
    "split lower L1": "`SplitLowerBound`, L1",
    "chi-square cover L2": "`ChiSquareMixture`, L2",
    "basic bootstrap cover L1": "`Bootstrap`, basic, L1",
    "basic bootstrap cover L2": "`Bootstrap`, basic, L2",
    "bias-corrected bootstrap cover L1": "`Bootstrap`, bias-corrected, L1",
    "bias-corrected bootstrap cover L2": "`Bootstrap`, bias-corrected, L2",
}

#: Cells of pairs with fewer samples are not shown.
FEWEST = 20
#: Pairs listed by name for each kind of fault.
WORST_PAIRS = 4


def _error(samples: float) -> float:
    return float(np.sqrt(0.95 * 0.05 / samples))


def _values(lines: list[Line], key: str, where: Callable[[Line], bool]) -> list[float]:
    return [float(str(line[key])) for line in lines if key in line and where(line)]


def method_table(lines: list[Line]) -> list[str]:
    """Least and mean share in which each method holds, over the published worlds and sizes."""
    table = [
        "Published worlds and their calibrated twins, n = 200, 1000, 5000, 1000 samples each (`SplitLowerBound` 250; "
        "bootstraps of the debiased error in 15 bins 25, at n = 1000): share of samples in which each holds.",
        "",
        "| method | miscalibrated: lowest | mean | calibrated: lowest | mean |",
        "|-|-|-|-|-|",
    ]
    for key, words in METHODS.items():
        parts = [
            _values(lines, key, lambda line, some=some: str(line["world"]).endswith("calibrated") is some)
            for some in (False, True)
        ]
        if all(parts):
            shown = " | ".join(f"{min(part):.3f} | {np.mean(part):.3f}" for part in parts)
            table.append(f"| {words} | {shown} |")
    return table


def comparison_table(lines: list[Line]) -> list[str]:
    """Two models on the same rows."""
    table = [
        "Two models on the same 1000 rows (`compare` at 95 %, 300 samples): with equal errors by construction, and one "
        "more overconfident than the other. Calibration errors by `PairedGaps`, the default, unless noted.",
        "",
        "| estimator | models | true difference | covered | significant |",
        "|-|-|-|-|-|",
    ]
    for line in lines:
        words = f"{line['difference']:.4f} | {line['cover']:.3f} | {line['significant']:.3f}"
        table.append(f"| {line['estimator']} | {line['models']} | {words} |")
    return table


def pair_table(lines: list[Line]) -> list[str]:
    """Pairs of models in rough worlds: the worst cells, and the mean of all, by size."""
    cells = [line for line in _pooled(lines) if _float(line, "samples") >= FEWEST]
    if not cells:
        return []
    samples = [_float(cell, "samples") for cell in cells]
    table = [
        "Pairs of models in worlds with steps, waves, spikes, ties, rare events, clusters and weights (`compare` at 95 "
        "%, `PairedGaps`). Equal errors: twins whose scores are independent "
        "given the outcome, or nine tenths equal, and models with the same error but another curve. Different errors: "
        f"against a model that predicts the true chance. Each cell has {min(samples):.0f} to {max(samples):.0f} "
        "samples; the standard error of 0.05 is 0.015 in 200. Clusters have 1 to 100 rows.",
        "",
        *_worst_pairs(cells),
        "",
        "| target | n | settings chosen on them | pairs | equal: called different, mean | most | covered, mean | least "
        "| different: covered, mean | least | found, mean | difference, mean |",
        "|-|-|-|-|-|-|-|-|-|-|-|-|",
    ]
    keys = ("target", "tuned", "n")
    for target, tuned, n in sorted({tuple(cell[key] for key in keys) for cell in cells}, key=_order):
        own = [cell for cell in cells if tuple(cell[key] for key in keys) == (target, tuned, n)]
        equal, other = ([c for c in own if (abs(_float(c, "difference")) < 1e-9) is some] for some in (True, False))
        called, kept = ([_float(c, key) for c in equal] for key in ("significant", "cover"))
        covered, found, size = ([_float(c, key) for c in other] for key in ("cover", "significant", "difference"))
        shown = [*_mean_and(max, called), *_mean_and(min, kept), *_mean_and(min, covered)]
        shown += [f"{np.mean(values):.3f}" if values else "" for values in (found, size)]
        table.append(f"| {target} | {_rows(own[0])} | {'yes' if tuned else 'no'} | {len(own)} | {' | '.join(shown)} |")
    return table


def _worst_pairs(cells: list[Line]) -> list[str]:
    """The pairs of equal errors most often called different, and the differences least often covered."""
    called = sorted((c for c in cells if abs(_float(c, "difference")) < 1e-9), key=lambda c: -_float(c, "significant"))
    missed = sorted((c for c in cells if abs(_float(c, "difference")) >= 1e-9), key=lambda c: _float(c, "cover"))
    worst = [*called[:WORST_PAIRS], *missed[:WORST_PAIRS]]
    return [
        "The worst pairs:",
        "",
        "| target | models | n | samples | true difference | covered | called different |",
        "|-|-|-|-|-|-|-|",
        *(
            f"| {c['target']} | {c['models']} | {_rows(c)} | {_float(c, 'samples'):.0f} "
            f"| {_float(c, 'difference'):.4f} | {_float(c, 'cover'):.3f} | {_float(c, 'significant'):.3f} |"
            for c in worst
        ),
    ]


def _rows(cell: Line) -> str:
    """What n counts."""
    kinds = {"uneven clusters": " clusters", "log-normal weights": " weighted rows"}
    kind = next((words for start, words in kinds.items() if str(cell["models"]).startswith(start)), "")
    return f"{_float(cell, 'n'):.0f}{kind}"


def _pooled(lines: list[Line]) -> list[Line]:
    """One line for all blocks of a cell."""
    keys, values = ("models", "target", "tuned", "n"), ("difference", "cover", "significant", "width")
    cells: dict[tuple[object, ...], list[Line]] = {}
    for line in lines:
        cells.setdefault(tuple(line[key] for key in keys), []).append(line)
    pooled: list[Line] = []
    for cell, own in cells.items():
        samples = [_float(line, "samples") for line in own]
        means = {key: float(np.average([_float(line, key) for line in own], weights=samples)) for key in values}
        pooled.append({**dict(zip(keys, cell, strict=True)), "samples": sum(samples), **means})
    return pooled


def _mean_and(worst: Callable[[list[float]], float], values: list[float]) -> list[str]:
    return [f"{np.mean(values):.3f}", f"{worst(values):.3f}"] if values else ["", ""]


def _order(cell: tuple[object, ...]) -> tuple[str, float, float]:
    target, tuned, n = cell
    return str(target), float(str(tuned)), float(str(n))


def _float(line: Line, key: str) -> float:
    return float(str(line[key]))


def tests(tables: dict[str, list[Line]]) -> list[str]:
    """Level and power."""
    return [
        "",
        f"Calibrated models that are rejected at the 5 % level, 4000 samples per cell for the default (standard error "
        f"{_error(4000):.4f}) and 1000 for the others ({_error(1000):.3f}):",
        "",
        *size_table(tables.get("coverage_size", [])),
        "",
        "Share of samples in which an error is missed. Figure 5: uniform scores, probability c^d, 1000 samples; the "
        "sweep used as a test misses 0.160 (n = 1000, 5 %) and 0.425 (n = 5000, 2 %). Published worlds, both n: the "
        "gap of each is shrunk until its square over p(1 - p), summed over the rows, is 14, so that a test that knows "
        "its shape would miss it in 0.04 of samples; 400 samples each.",
        "",
        *power_table(tables.get("coverage_power", [])),
        "",
    ]


def size_table(sizes: list[Line]) -> list[str]:
    """How often each test rejects."""
    lines = ["| test | n = 200 | n = 1000 | n = 5000 | largest of a world and n |", "|-|-|-|-|-|"]
    for test in (key for key in (sizes[0] if sizes else {}) if key not in ("world", "n")):
        means = [np.mean(_values(sizes, test, lambda line, n=n: line["n"] == n) or [np.nan]) for n in (200, 1000, 5000)]
        largest = max(_values(sizes, test, lambda _: True))
        lines.append(f"| {test} | {' | '.join(f'{mean:.3f}' for mean in means)} | {largest:.3f} |")
    return lines


def power_table(powers: list[Line]) -> list[str]:
    """How often each test misses."""
    lines = ["| test | Figure 5, 5 % | Figure 5, 2 % | published worlds: mean | largest |", "|-|-|-|-|-|"]
    for name in dict.fromkeys(str(line["test"]) for line in powers):
        own = [line for line in powers if line["test"] == name]
        figure = [f"{line['miss']:.3f}" for line in own if str(line["setting"]).startswith("Figure")]
        worlds = _values(own, "miss", lambda line: not str(line["setting"]).startswith("Figure"))
        last = f"{np.mean(worlds):.3f} | {np.max(worlds):.3f}" if worlds else " | "
        lines.append(f"| {name} | {' | '.join(figure)} | {last} |")
    return lines
