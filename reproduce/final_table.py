"""Every number the four papers print: printed, ours, how far apart, and what to think of it.

    python -m reproduce.final_table [results folder]       # also the end of `python -m reproduce`, quick or not
    python -m reproduce.final_table --write                # RESULTS.md again, from the stored results

Verdicts: *reproduced* (within 3 standard errors, or to the printed digits), *explained* (differs, and something that
was measured shows why), *impossible* (what is missing; a number beside it is of something else) and *quick run* (too
few repeats to tell). Curves without printed numbers have one line for each figure. Everything is read from the results,
so that a quick run is compared with the papers as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from reproduce import bias_anchors, published
from reproduce.drift import rows_of
from reproduce.regression_boxes import OUTPUTS, PAPER

RESULTS = Path(__file__).resolve().with_name("results")
Line = tuple[str, str, str, str, str, str]
#: A distance in standard errors up to which a number is reproduced.
LIMIT = 3.0
NO_FILE = "impossible: the network's predictions are not public"
QUICK = "quick run: too few repeats or rows to tell"
SHARED = "reproduced with the published code's random numbers, shared by networks and sizes; {} with independent ones"
ROUNDED = "explained: log-sum-exp in single precision; rounded so to 2^-19 and 2^-18 the scores give {} and {}"
NOT_ROUNDED = "OPEN: not between what scores rounded as by log-sum-exp in single precision give, {} and {}"
LAST_DIGIT = "explained: a unit of the last digit; scores rounded as in Table 2 give {}"
ROUNDING = "reproduced within the rounding of the coefficients"
#: The curve of densenet40_c10 in Table 4 is that of the validation fold, which is public.
FOLD = "explained: curves are refitted to validation folds, as densenet40_c10 shows; over such folds {}"
BEYOND = "impossible: the validation fold, to which curves are refitted, is not public; over simulated folds only {}"


def of_distance(distance: float, reason: str = "") -> tuple[str, str]:
    """The distance and the verdict; a larger one is explained by the reason, or is open."""
    far = f"explained: {reason}" if reason else "OPEN: beyond chance, no reason known"
    return f"{distance:+.1f} SE", "reproduced" if abs(distance) <= LIMIT else far


def variational(out: Path) -> Iterator[Line]:
    """Tables 1 and 2 and the points of Figures 1 and 3."""
    from reproduce.variational import Store
    from reproduce.variational_report import PUBLISHED_TABLE_1, distance
    from reproduce.variational_worlds import FIGURE_1, FIGURE_3, TABLE_2

    store = Store(out / "variational.csv")
    shares = published.table_1()
    for name, printed in PUBLISHED_TABLE_1.items():
        text = ", ".join(map(str, printed))
        if not shares:
            yield "000", f"Table 1, {name}", text, "", "", "impossible: neither TabRepo nor the authors' cases are here"
            continue
        ours = [round(value, 1) for value in shares[name]]
        away = max(abs(a - b) for a, b in zip(ours, printed, strict=True))
        verdict = "reproduced from the authors' cases" if away < 0.1 else "OPEN"
        words = f"Table 1, {name} (L1, squared; L2, squared)"
        yield "000", words, text, ", ".join(map(str, ours)), f"{away:.1f} points", verdict
    for world, parts in TABLE_2.items():
        for name, (theirs, error) in zip(("overconfidence", "underconfidence", "total"), parts, strict=True):
            values = store.values(part="table2_catboost", world=world, norm=name)
            if len(values) > 1:
                away, verdict = of_distance(distance(values, theirs, error))
                yield "000", f"Table 2, {world}, {name}", f"{theirs:.4f}", f"{values.mean():.4f}", away, verdict
    points = [("Figure 1, binary", "figure1", (2, world), n, own) for (world, n), own in FIGURE_1.items()]
    points += [(f"Figure 3, {k} classes", "figure3", (k, world), n, own) for (k, world, n), own in FIGURE_3.items()]
    for title, part, (k, world), n, (theirs, error, *_) in points:
        values = store.values(part=part, world=world, classes=k, n=n, method="isotonic")
        if len(values) > 1:
            away, verdict = of_distance(distance(values, theirs, error))
            yield "000", f"{title}, {world}, n = {n:,}", f"{theirs:.4f}", f"{values.mean():.4f}", away, verdict
    yield "000", "Figure 2", "curves", "drawn from the formulas", "none", "reproduced"


def bias(out: Path) -> Iterator[Line]:
    """Tables 1 to 4, the mean absolute bias of Figure 4 and its t-test."""
    path = out / "bias.md"
    text = path.read_text(encoding="utf8") if path.exists() else ""

    def cells(start: str, after: str = "") -> list[str]:
        begin = text.find(after) if after else 0
        part = text[begin:].partition("\n\n" if after.startswith("|") else "\n## ")[0] if begin >= 0 else ""
        part = part if after else text
        found = re.search(rf"^\| {re.escape(start)} \|(.*)\|$", part, re.MULTILINE)
        return [cell.strip() for cell in found.group(1).split("|")] if found else []

    draws = {row["number"]: row for row in rows_of(out / "bias" / "figure4_draws.csv")}
    test = re.search(r"t = ([\d.]+), p = ", text)
    for name, title, printed in (
        ("em_debias", "Figure 4, mean absolute bias of em_debias, %", 0.504),
        ("em_sweep", "Figure 4, mean absolute bias of em_sweep, %", 0.347),
        ("t", "Figure 4, paired t-test", 5.10),
    ):
        own = [test.group(1)] if name == "t" and test else cells(name, "| mean absolute bias")
        if own:
            ours = float(draws[name]["published_draws"] if name in draws else own[-1])
            near = abs(ours - printed) < 0.02 * max(printed, 1)  # printed coefficients have two digits
            verdict = QUICK if out != RESULTS else SHARED.format(own[-1]) if near else "OPEN"
            yield "001", title, f"{printed}", f"{ours:.3g}", f"{ours - printed:+.3f}", verdict
    chosen = re.findall(r"^\| all \| .*?\| (\d+/\d+) \|.*\| (\d+/\d+) \|$", text, re.MULTILINE)
    ours = "; ".join(f"{a}, {b}" for a, b in chosen)
    reason = "impossible: nine of its ten networks are not public; on others the sweep has no advantage"
    yield "001", "Table 1, right choices of ECE_bin, ECE_sweep", "3/10, 7/10", ours or "not run", "", reason
    for name, printed_pair in BETA.items():
        printed = "{:.4f}, {:.4f}".format(*printed_pair)
        own = cells(f"{name} | float32, log-sum-exp (the paper's)") or cells(f"{name} | float32, stored")
        if not own:
            yield "001", f"Table 2, {name}", printed, "", "", NO_FILE
            continue
        same, rounded = own[-1] == printed, [cells(f"{name} | the same, rounded to 2^{k}") for k in (-19, -18)]
        verdict = "reproduced" if same else NOT_ROUNDED.format("not run", "not run")
        if not same and all(rounded):
            ends = [fit[-1] for fit in rounded]
            verdict = (ROUNDED if _between(printed, ends) else NOT_ROUNDED).format(*ends)
        yield "001", f"Table 2, {name}", printed, own[-1], "0" if same else "", verdict
    for name in BETA:
        own = cells(name, "## Table 3")
        if len(own) >= 6:
            same = own[-1] == own[-2]
            verdict = "reproduced (coefficients; printed AIC are bootstrap means)"
            verdict = verdict if same else LAST_DIGIT.format(own[-3])
            yield "001", f"Table 3, {name}, b0, b1", own[-2], own[-1], "0" if same else "0.01", verdict
        else:
            yield "001", f"Table 3, {name}", "fit", "", "", NO_FILE
    for name, (real, simulated) in bias_anchors.TABLE_4.items():
        own, title = cells(name, "| network | printed: simulated"), f"Table 4, {name}, simulated, %"
        if len(own) == 4 and "±" in own[1]:
            mean, error = (float(part) for part in own[1].split("±"))
            low, high = (float(part) for part in own[2].split("to"))
            refit = cells("mean ECE_bin of simulated samples, percent")[-1] if name == "densenet40_c10" else ""
            folds = [float(part) for part in own[3].split("±")]
            far = (FOLD if abs(simulated - folds[0]) <= LIMIT * folds[1] else BEYOND).format(own[3])
            far = f"explained: the curve of the validation fold has {refit}" if refit else far
            verdict = ROUNDING if low - 3 * error <= simulated <= high + 3 * error else far
            yield "001", title, f"{simulated}", f"{mean:.2f}", f"{mean - simulated:+.2f}", verdict
        else:
            yield "001", title, f"{simulated}", "not run", "", "impossible: the data are not here"
        seen = cells(name, "| network | real, percent")
        if name == "densenet40_c10":
            own = cells("ECE_bin of the validation fold, percent")
            yield "001", f"Table 4, {name}, real, %", f"{real}", own[-1] if own else "not run", "", "reproduced"
        elif seen:
            reason = "impossible: of the test fold; the paper's, the validation fold, is not public"
            yield "001", f"Table 4, {name}, real, %", f"{real}", seen[0], f"{float(seen[0]) - real:+.2f}", reason
        else:
            yield "001", f"Table 4, {name}, real, %", f"{real}", "", "", NO_FILE
    for number, part in zip((4, 6), re.findall(r"the largest is ([\d.]+);", text), strict=False):
        verdict = "reproduced" if float(part) <= LIMIT + 1 else "OPEN"  # the largest of 126
        yield "001", f"Figure {number}", "curves", "126 anchors of another simulation", f"at most {part} SE", verdict
    yield "001", "Figures 1 to 3, 5, 7 to 14", "curves, no number", "drawn", "", "reproduced (anchors in bias.md)"


def _between(printed: str, ends: list[str]) -> bool:
    """Whether each printed coefficient lies between two fits, or within 1 % of one of them."""
    for value, *others in zip(*(map(float, text.split(",")) for text in (printed, *ends)), strict=True):
        if not 0.99 * min(others) <= value <= 1.01 * max(others):
            return False
    return True


def regression(out: Path) -> Iterator[Line]:
    """Sections 2 and 4.1, and Table 1."""
    rows = rows_of(out / "regression.csv")
    value = {(row["experiment"], row["case"], row["map"]): float(row["ence_10"]) for row in rows}
    for title, map_, printed in (("before", "none", 84.3), ("after", "StdScaling", 52.5)):
        ours = 100 * value.get(("synthetic", "random", map_), np.nan)
        far = "OPEN" if out == RESULTS else QUICK
        verdict = "reproduced (limits of many bins 84.4, 52.0)" if abs(ours - printed) < 3 else far
        yield (
            "002",
            f"4.1, random spread, ENCE {title}, %",
            f"{printed}",
            f"{ours:.1f}",
            f"{ours - printed:+.1f}",
            verdict,
        )
    page = (out / "regression.md").read_text(encoding="utf8") if (out / "regression.md").exists() else ""
    found = re.search(r"^\| random \| none \|.*\| ([\d.]+) \| ([\d.]+) \| [\d.]+ \|$", page, re.MULTILINE)
    own, squares = found.groups() if found else ("not run", "not run")
    verdict = "explained: it is that of the variances"
    yield "002", "4.1, c_v", "0.79", f"{own} by (9), {squares} of variances", "", verdict
    reason = "impossible: R-FCN's boxes are not public; these are PointRCNN's"
    for name in OUTPUTS:
        for title, experiment, map_, printed in (
            ("ENCE before, %", "KITTI", "none", PAPER[name][0]),
            ("ENCE after, %", "KITTI", "StdScaling", PAPER[name][1]),
            ("c_v", "KITTI C_v", "none", PAPER[name][2]),
        ):
            ours = value.get((experiment, f"{name} trained", map_), np.nan) * (1 if title == "c_v" else 100)
            text = "not run" if np.isnan(ours) else f"{ours:.2f}" if title == "c_v" else f"{ours:.1f}"
            away = "" if np.isnan(ours) else f"{ours - printed:+.2f}"
            yield "002", f"Table 1, KITTI, {name}, {title}", f"{printed}", text, away, reason
    yield "002", "Figures 1 to 5", "curves", "drawn", "", "reproduced (synthetic); boxes are others"


def unlabeled(out: Path) -> Iterator[Line]:
    """The paper shows curves; its table of settings prints sizes and models."""
    rows = rows_of(out / "positive_unlabeled.csv")
    for number, what in ((1, "rate"), (2, "floor"), (3, "prior")):
        own = sum(row["figure"] == str(number) for row in rows)
        verdict = "reproduced" if own else "impossible: the data are not here"
        if number == 3 and own:
            verdict += "; the total bias exceeds the bound at small N, which bounds the shift"
        yield "003", f"Figure {number} ({what})", "curves, no number", f"{own} cells", "", verdict
    yield "003", "Table 1, MNIST", "network, sizes", "the same", "0", "reproduced"
    for name, theirs, ours in (("CIFAR-10", "ResNet-18", "a network on HOG features"), ("DDI", "R-BERT", "linear")):
        reason = f"impossible: no GPU here to train {theirs}"
        yield "003", f"Table 1, {name}", f"{theirs}, sizes", ours, "", reason


#: Table 2 of the bias paper.
BETA = {
    "resnet110_c10": (2.7752, 0.0478),
    "resnet110_SD_c10": (2.1714, 0.0394),
    "resnet_wide32_c10": (2.3806, 0.0379),
    "densenet40_c10": (1.9824, 0.0397),
    "resnet110_c100": (1.1823, 0.1081),
    "resnet110_SD_c100": (1.1233, 0.1147),
    "resnet_wide32_c100": (1.0611, 0.0650),
    "densenet40_c100": (1.0805, 0.0808),
    "resnet152_imgnet": (1.1359, 0.2069),
    "densenet161_imgnet": (1.1928, 0.2206),
}


def lines(out: Path = RESULTS) -> list[str]:
    """The table."""
    out = out.resolve()
    rows = [row for part in (variational, bias, regression, unlabeled) for row in part(out)]
    kinds = [row[5].partition(" ")[0].rstrip(":;") for row in rows]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    head = ["| paper | number | printed | ours | distance | verdict |", "|---|---|---|---|---|---|"]
    return [f"{len(rows)} lines: {counts}.", "", *head, *(f"| {' | '.join(row)} |" for row in rows)]


def results_page(folder: Path) -> str:
    """RESULTS.md: the table, and links to the results of every script."""
    out, text = folder / "results", ["# Reproductions", "", "## The papers' numbers and ours", ""]
    said = (
        "000 is A Variational Estimator for Calibration Errors, 001 Mitigating Bias in Calibration Error Estimation, "
        "002 Evaluating and Calibrating Uncertainty Prediction in Regression Tasks, 003 Estimating Expected "
        "Calibration Error for Positive-Unlabeled Learning. SE: standard errors of the difference."
    )
    text += [said, "", *lines(out), "", "## Everything measured", ""]
    for path in sorted(out.glob("*.md")):
        title = path.read_text(encoding="utf8").lstrip().partition("\n")[0].lstrip("# ")
        text.append(f"- [{title}](results/{path.name})")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        (RESULTS.parent / "RESULTS.md").write_text(results_page(RESULTS.parent), encoding="utf8")
    else:
        print("\n".join(lines(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)))
