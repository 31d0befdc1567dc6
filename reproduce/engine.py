"""Binary intervals of this tree against those of another, on the same samples: python -m reproduce.engine OTHER

OTHER is the `src` folder of the other tree. Each tree runs in a process of its own; writes reproduce/results/engine.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
#: Rows of a sample, and how many samples.
SIZES = {200: 100, 2000: 80, 20_000: 60}
NORMS = (1.0, 2.0)


def sampled(world: str, n: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The columns of a sample, and the probability of each outcome."""
    p, more = rng.random(n), {}
    if world.startswith("rare"):
        p = rng.beta(0.6, 30, n)
    elif "atoms" in world:
        p = rng.integers(1, 20, n) / 20
    elif "half at 0.5" in world:
        p = np.where(rng.random(n) < 0.5, 0.5, p)
    curve = {
        "bent": p**1.3,
        "wave, 3 periods": p + 0.2 * np.sin(6 * np.pi * p) * p * (1 - p),
        "wave, 7 periods": p + 0.3 * np.sin(14 * np.pi * p) * p * (1 - p),
        "square wave, 14 periods": p + 0.06 * np.sign(np.sin(28 * np.pi * p)) * (np.abs(p - 0.5) < 0.4),
        "steps": (np.floor(5 * p) + 0.5) / 5,
        "rare, doubled": np.minimum(2 * p, 1),
        "atoms, zigzag": np.clip(p + 0.08 * (-1) ** np.round(20 * p), 0, 1),
    }
    if world == "clusters":
        more["group"] = np.arange(n) // 5
        p = np.repeat(rng.random(-(-n // 5)), 5)[:n] * 0.6 + 0.4 * p
    if world == "weights":
        more["weight"] = rng.exponential(1, n)
    true = curve.get(world, p)
    return {"y_true": rng.random(n) < true, "y_prob": p, **more}, true


WORLDS = (
    "calibrated", "bent", "wave, 3 periods", "wave, 7 periods", "square wave, 14 periods", "steps", "rare, calibrated",
    "rare, doubled", "atoms, calibrated", "atoms, zigzag", "half at 0.5", "clusters", "weights",
)  # fmt: skip


def measure(path: str) -> None:
    """Save the ends of all samples, of the package that is imported."""
    import calibrant as cal

    found = {}
    for world in WORLDS:
        for n, samples in SIZES.items():
            ends = []
            for k in range(samples):
                columns, _ = sampled(world, n, np.random.default_rng([k, n, WORLDS.index(world)]))
                both = cal.inference.Inversion(199, k).intervals(cal.Binary(**columns), norms=NORMS)
                ends.append([[one.low, one.high] for one in both])
            found[f"{world}|{n}"] = np.array(ends)
            print(world, n, flush=True)
    np.savez(path, **found)


def truths(world: str) -> list[float]:
    """The true error in each norm, from many scores."""
    columns, true = sampled(world, 10**6, np.random.default_rng(0))
    return [float(np.mean(np.abs(columns["y_prob"] - true) ** norm) ** (1 / norm)) for norm in NORMS]


def main(other: str) -> None:
    paths = {"other": Path("/tmp/engine_other.npz"), "this": Path("/tmp/engine_this.npz")}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "reproduce.engine", "--measure", str(paths[name])],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        for name, source in (("other", other), ("this", str(ROOT / "src")))
        if not paths[name].exists()
    ]
    for process in running:
        if process.wait():
            raise SystemExit(1)
    report(paths)


def report(paths: dict[str, Path]) -> None:
    old, new = np.load(paths["other"]), np.load(paths["this"])
    lines = [
        "# Binary intervals before and after the one engine",
        "",
        f"`python -m reproduce.engine OTHER/src` with OTHER at dc701c8; {date.today()}, Python "
        f"{sys.version.split()[0]}, NumPy {np.__version__}. The same samples and seeds, 199 draws, level 0.95. "
        "Identical: ends that differ by less than 1e-8. Ratio: mean width now over mean width before. "
        "Classwise, PIT and PU intervals, and comparisons of these, have the same frozen results as before (1e-10).",
        "",
        "| world | n | samples | norm | covered before | now | low above before | now | ratio of widths | identical |",
        "|-|-|-|-|-|-|-|-|-|-|",
    ]
    ratios, covered = [], []
    for key in old.files:
        world, n = key.split("|")
        for j, (norm, truth) in enumerate(zip(NORMS, truths(world), strict=True)):
            a, b = old[key][:, j], new[key][:, j]
            hits = [float(np.mean((one[:, 0] <= truth) & (truth <= one[:, 1]))) for one in (a, b)]
            above = [float(np.mean(one[:, 0] > truth)) for one in (a, b)]
            ratio = float(np.diff(b).mean() / np.diff(a).mean())
            same = float(np.mean(np.abs(a - b) < 1e-8))
            ratios.append(ratio)
            covered.append(hits)
            lines.append(
                f"| {world} | {n} | {len(a)} | L{norm:g} | {hits[0]:.3f} | {hits[1]:.3f} | {above[0]:.3f} | "
                f"{above[1]:.3f} | {ratio:.3f} | {same:.2f} |"
            )
    means = np.mean(covered, axis=0)
    lines += [
        "",
        f"Mean ratio of widths {np.mean(ratios):.4f} (from {min(ratios):.3f} to {max(ratios):.3f}); mean coverage "
        f"{means[0]:.4f} before and {means[1]:.4f} now, lowest {min(c[0] for c in covered):.3f} and "
        f"{min(c[1] for c in covered):.3f}.",
    ]
    (ROOT / "reproduce/results/engine.md").write_text("\n".join(lines) + "\n", encoding="utf8")
    print(lines[-1])


if __name__ == "__main__":
    measure(sys.argv[2]) if sys.argv[1] == "--measure" else main(sys.argv[1])
