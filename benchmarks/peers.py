"""What packages for calibration answer, in which worlds their answers are right, and how long they take, in one run.

python -m benchmarks.peers            # asks every package (about five minutes), then writes the table
python -m benchmarks.peers --table    # writes the table from the answers kept

Answers are kept in benchmarks/results/peers.json; the table is written to results/peers.md and to docs/peers.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate, stats

from benchmarks import peer_answers as asked
from benchmarks.measuring import RESULTS, ROOT, peers_python, write_results

STORED = RESULTS / "peers.json"
PAGE = ROOT / "docs" / "peers.md"
#: The table stands between these lines of the page.
BEGIN, END = "<!-- Written by benchmarks.peers: begin -->", "<!-- end -->"

#: Each question: what is asked, and when an answer is right. The rules were written while first
#: answers were looked at; no limit was changed afterwards.
QUESTIONS = {
    "ECE": (
        "ECE, 10 bins of equal width",
        "20,000 rows. Right: equal to the definition to 1e-6, with bins closed on the left or on the right; for a row "
        "that is not a probability, an error or NaN.",
    ),
    "smooth ECE": ("smooth ECE, width 0.05", "4,000 rows. Right: equal to its integral to 1e-5."),
    "true error": (
        "true error (L1)",
        f"{asked.TRUE_ERROR[1]:,} rows, {asked.TRUE_ERROR[2]} samples. Right: the mean answer is within 0.01 of the "
        "true error.",
    ),
    "interval": (
        "95 % interval for the true error",
        f"{asked.INTERVAL[1]:,} rows, {asked.INTERVAL[2]} samples. Right: it holds the true error in 95 % of them, "
        "less three standard errors.",
    ),
    "test": (
        "test at 5 %",
        f"{asked.TEST[1]:,} rows, {asked.TEST[2]} samples. Right: rejects at most 5 % of calibrated samples, plus "
        "three standard errors, and at least 80 % of others.",
    ),
    "slope": (
        "95 % interval for the slope",
        f"{asked.SLOPE[0]:,} rows, {asked.SLOPE[1]} samples. Right: as for the interval above.",
    ),
    "repair": (
        "repair by a map",
        f"fitted to {asked.REPAIR[1]} rows, {asked.REPAIR[2]} samples. Right: the expected log loss of other rows, "
        "beyond that of the true probabilities, is on average below that of the scores as they are, or at most 0.001.",
    ),
    "CRPS": (
        "CRPS of normal forecasts",
        "2,000 rows. Right: equal to its integral to 1e-6; for a row that is not a forecast, an error or NaN.",
    ),
    "coverage": (
        "coverage less level",
        f"The distance of coverage from level, averaged over all central intervals; {asked.SPREAD[0]:,} rows, "
        f"{asked.SPREAD[1]} samples. Right: the mean answer is within 0.01 of the true distance.",
    ),
    "spread": (
        "ENCE",
        f"The relative distance of spread and error; {asked.SPREAD[0]:,} rows, {asked.SPREAD[1]} samples. Right: the "
        "mean answer is within 0.01 of the true ENCE.",
    ),
}
TIMED = (
    "CPU time of one thread, the least of three to five calls: 1e6 rows for ECE and smooth ECE, 1e5 for forecasts, 1e4 "
    "for maps, 1,000 for the rest."
)
#: A verdict: whether the answer is right, and what was found, for a reader.
Verdict = tuple[bool, str]


@cache
def curves(case: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, observed frequency and mean score of each bin: with bins closed on the right, and on the left."""
    y, p = asked.ece_case(case)
    p = p.astype(float)
    place, near = p * asked.BINS, np.round(p * asked.BINS)
    place = np.where(np.abs(place - near) < 1e-9, near, place)  # tenths are not exact in binary
    found = []
    for bins in (np.maximum(np.ceil(place) - 1, 0), np.minimum(np.floor(place), asked.BINS - 1)):
        rows, events, scores = (np.bincount(bins.astype(int), values, asked.BINS) for values in (p * 0 + 1, y, p))
        filled = rows > 0
        found.append((rows[filled], events[filled] / rows[filled], scores[filled] / rows[filled]))
    return found


@cache
def smooth_definition(case: str) -> float:
    """The smooth ECE of the width by its integral: all scores and their images beyond 0 and 1."""
    y, p = asked.smooth_case(case)
    t = np.linspace(0, 1, 2001)
    kernels = (np.exp(-(((t[:, None] - images) / asked.SIGMA) ** 2) / 2) for images in (p, -p, 2 - p))
    smoothed = sum(kernel @ (y - p) for kernel in kernels) / (np.sqrt(2 * np.pi) * asked.SIGMA)
    return float(np.trapezoid(np.abs(smoothed), t) / len(p))


@cache
def true_error(world: str) -> float:
    """E|true probability - score|."""
    p = asked.BINARY[world][0](np.random.default_rng(5), 10**6)
    return float(np.abs(asked.BINARY[world][1](p) - p).mean())


@cache
def true_coverage(world: str) -> float:
    """The mean over levels of |P(error inside the central interval) - level|."""
    factor, heavy = asked.FORECASTS[world]
    law = stats.t(3, scale=1 / np.sqrt(3)) if heavy else stats.norm()

    def gap(level: float) -> float:
        return abs(2 * law.cdf(factor * stats.norm.ppf((1 + level) / 2)) - 1 - level)

    return float(integrate.quad(gap, 0, 1, limit=200)[0])


@cache
def crps_definition(case: str) -> float:
    """The CRPS by its integral, row by row."""
    y, mean, std = asked.crps_case(case)
    z = (y - mean) / std
    grid = np.linspace(-12, 12, 24_001)
    below = stats.norm.cdf(grid) ** 2
    above = stats.norm.sf(grid) ** 2
    low = integrate.cumulative_trapezoid(below, grid, initial=0)
    high = integrate.cumulative_trapezoid(above, grid, initial=0)
    return float(np.mean(std * (np.interp(z, grid, low) + high[-1] - np.interp(z, grid, high))))


def judged(question: str, world: str, answer: Any) -> Verdict:
    """Whether the answer of a package in a world is right."""
    if world.startswith("one "):
        refused = isinstance(answer, str) or not np.all(np.isfinite(answer))
        return refused, "" if refused else f"{world}: a number" if np.ndim(answer) else f"{world}: {answer:.4f}"
    if isinstance(answer, str):
        return False, f"{world}: {answer.partition(':')[0]}"
    if question == "ECE" and isinstance(answer, list):
        points = [np.concatenate([observed, score]) for _, observed, score in curves(world)]
        off = min((np.abs(true - answer).max() if len(true) == len(answer) else np.inf) for true in points)
        return bool(off < 1e-6), f"{world}: a point off by {off:.1g}"
    if question in {"ECE", "smooth ECE", "CRPS"}:
        return _equal(question, world, answer)
    return SAMPLED[question](world, np.asarray(answer, dtype=float))


def _equal(question: str, world: str, answer: float) -> Verdict:
    if question == "ECE":
        right, left = (float(rows @ np.abs(observed - score) / rows.sum()) for rows, observed, score in curves(world))
        both = f"{right:.5f}" if f"{right:.5f}" == f"{left:.5f}" else f"{right:.5f} or {left:.5f}"
        return bool(min(abs(answer - right), abs(answer - left)) < 1e-6), f"{world}: {answer:.5f} ({both})"
    make, tolerance = {"smooth ECE": (smooth_definition, 1e-5), "CRPS": (crps_definition, 1e-6)}[question]
    truth = make(world)
    return bool(abs(answer - truth) < tolerance), f"{world}: {answer:.5f} ({truth:.5f})"


def _mean(truth: Callable[[str], float]) -> Callable[[str, np.ndarray], Verdict]:
    def verdict(world: str, answers: np.ndarray) -> Verdict:
        found, true = float(answers.mean()), truth(world)
        return bool(abs(found - true) <= 0.01), f"{world}: {found:.3f} ({true:.3f})"

    return verdict


def _covers(truth: Callable[[str], float]) -> Callable[[str, np.ndarray], Verdict]:
    def verdict(world: str, ends: np.ndarray) -> Verdict:
        true = truth(world)
        held = float(np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])))
        floor = 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(ends))
        return bool(held >= floor), f"{world}: holds it in {100 * held:.0f} %"

    return verdict


def _rejects(world: str, p_values: np.ndarray) -> Verdict:
    share = float(np.mean(p_values < 0.05))
    limit = 0.05 + 3 * np.sqrt(0.95 * 0.05 / len(p_values))
    right = share <= limit if world.startswith("calibrated") else share >= 0.8
    return bool(right), f"{world}: rejects {100 * share:.0f} %"


def _repairs(world: str, found: np.ndarray) -> Verdict:
    p = asked.grid(world)
    before, after = asked.divergence(asked.BINARY[world][1](p), p), float(found.mean())
    said = "infinite" if np.isinf(after) else f"{after:.4f}"
    return bool(after <= max(before, 0.001)), f"{world}: {said} ({before:.4f} as they are)"


SAMPLED: dict[str, Callable[[str, np.ndarray], Verdict]] = {
    "true error": _mean(true_error),
    "interval": _covers(true_error),
    "test": _rejects,
    "slope": _covers(lambda world: 1 / asked.SLOPES[world]),
    "repair": _repairs,
    "coverage": _mean(true_coverage),
    "spread": _mean(lambda world: abs(1 / asked.FORECASTS[world][0] - 1)),
}


def table(stored: dict[str, Any]) -> list[str]:
    """One table, in the order of the questions; within a question the packages in the order of their names."""
    lines = ["| question | package and call | right in | not right in: found (true) | CPU ms | / Calibrant |"]
    lines.append("|---|---|---|---|---|---|")
    for question, (title, _) in QUESTIONS.items():
        ours = stored["calibrant"]["found"][question]["seconds"]
        for package in sorted(stored, key=lambda name: (name == "calibrant", name)):
            for name, row in stored[package]["found"].items():
                if name.partition(",")[0] != question:
                    continue
                verdicts = {world: judged(question, world, answer) for world, answer in row["answers"].items()}
                fine = [world for world, (is_right, _) in verdicts.items() if is_right]
                right = f"all {len(fine)}" if len(fine) == len(verdicts) else "; ".join(fine) or "none"
                wrong = "; ".join(said for is_right, said in verdicts.values() if not is_right) or "none"
                seconds = row["seconds"]
                label = f"{package} {stored[package]['version']}: {row['call']}"
                cells = [title, label, right, wrong, f"{1e3 * seconds:.3g}", f"{seconds / ours:.2g}"]
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def rules() -> list[str]:
    """What is asked, and when an answer is right."""
    return [*(f"- **{title}**: {rule}" for title, rule in QUESTIONS.values()), f"- **Time**: {TIMED}"]


def on_page(text: str, lines: list[str], day: str) -> str:
    """The page with the rules and the table of this day."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\nMeasured on {day}.\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


def ask(package: str) -> dict[str, Any]:
    """Run the questions in the environment of the package."""
    python = sys.executable if package == "calibrant" else peers_python()
    if python is None:
        message = "The other packages are not installed: run `make bench TOPICS=peers`, or set CALIBRANT_PEERS."
        raise SystemExit(message)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(ROOT / "src") if package == "calibrant" else ""
    script = Path(asked.__file__)
    done = subprocess.run([python, script, package], stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(*, again: bool) -> None:
    if again:
        stored: dict[str, Any] = {
            "day": date.today().isoformat(),
            "packages": {name: ask(name) for name in asked.PACKAGES},
        }
        STORED.write_text(json.dumps(stored) + "\n", encoding="utf8")
    stored = json.loads(STORED.read_text(encoding="utf8"))
    lines = [*rules(), "", *table(stored["packages"])]
    write_results(
        "peers", "Packages for calibration", "python -m benchmarks.peers", [f"Asked on {stored['day']}.", "", *lines]
    )
    PAGE.write_text(on_page(PAGE.read_text(encoding="utf8"), lines, stored["day"]), encoding="utf8")


if __name__ == "__main__":
    main(again="--table" not in sys.argv)
