"""Write binned.json: errors of real predictions, computed from the definitions in plain Python and by scikit-learn.

Nothing of Calibrant is imported. Run with the folder of real predictions as argument.
"""

import json
import math
import platform
import sys
from bisect import bisect_left
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
import sklearn
from sklearn.calibration import calibration_curve

FILES = [
    "toplabel_kangsepp_densenet40_c10",
    "toplabel_kangsepp_resnet110_c10",
    "toplabel_kangsepp_densenet40_c100",
    "toplabel_kangsepp_resnet110_c100",
    "toplabel_kangsepp_resnet50_birds",
    "toplabel_snacks",
    "538_nfl_games",
    "538_nba_games",
    "det_coco_ssd_inception_v2_iou_060",
]


def columns(path):
    """Outcome and score of a binary, top-label or detection file."""
    data = np.load(path)
    if "prob" in data:
        return data["labels"].astype(int).tolist(), data["prob"].astype(float).tolist()
    outcome = data["correct"] if "correct" in data else data["pred"] == data["labels"]
    return outcome.astype(int).tolist(), data["conf"].astype(float).tolist()


def bins(y, p, inner):
    """(rows, sum of scores, outcomes) of each bin (low, high] that has rows."""
    scores, outcomes = [[] for _ in range(len(inner) + 1)], [0] * (len(inner) + 1)
    for outcome, score in zip(y, p, strict=True):
        k = bisect_left(inner, score)
        scores[k].append(score)
        outcomes[k] += outcome
    return [(len(s), math.fsum(s), o) for s, o in zip(scores, outcomes, strict=True) if s]


def equal_mass(ordered, count):
    """Inner edges: order statistics of rank floor(n b / count), equal ones once."""
    ranks = [len(ordered) * b // count for b in range(1, count)]
    return sorted({ordered[rank - 1] for rank in ranks if rank} - {ordered[-1]})


def error(table, norm):
    """The binned error."""
    rows = sum(size for size, _, _ in table)
    return math.fsum(size / rows * abs(total - hits) ** norm / size**norm for size, total, hits in table) ** (1 / norm)


def debiased_square(table):
    """The L2 square less the variance of each mean outcome."""
    rows, parts = sum(size for size, _, _ in table), []
    for size, total, hits in table:
        rate = hits / size
        if size > 1:
            parts.append(size / rows * ((total / size - rate) ** 2 - rate * (1 - rate) / (size - 1)))
    return math.fsum(parts)


def swept(y, p):
    """The last table before mean outcomes fall, and its number of bins."""
    ordered, last = sorted(p), bins(y, p, [])
    for count in range(2, len(p)):
        table = bins(y, p, equal_mass(ordered, count))
        rates = [hits / size for size, _, hits in table]
        if any(right < left for left, right in pairwise(rates)):
            return last, count - 1
        last = table
    return last, len(p) - 1


def by_scikit_learn(y, p):
    """ECE of 15 equal-width bins from `calibration_curve`, whose bins are also closed on the right."""
    observed, predicted = calibration_curve(y, p, n_bins=15)
    count = [size for size, _, _ in bins(y, p, [b / 15 for b in range(1, 15)])]
    return float(np.average(np.abs(observed - predicted), weights=count))


def main():
    """Compute and write."""
    numbers = {}
    for name in FILES:
        y, p = columns(Path(sys.argv[1]) / "classification" / f"{name}.npz")
        wide = bins(y, p, np.linspace(0, 1, 16)[1:-1].tolist())
        mass = bins(y, p, equal_mass(sorted(p), 15))
        sweep, count = swept(y, p)
        numbers[name] = {
            "n": len(p),
            "equal width L1": error(wide, 1),
            "equal width L1 by scikit-learn": by_scikit_learn(y, p),
            "equal width L2": error(wide, 2),
            "equal mass L1": error(mass, 1),
            "equal mass L2": error(mass, 2),
            "equal mass debiased square": debiased_square(mass),
            "sweep L1": error(sweep, 1),
            "sweep L2": error(sweep, 2),
            "sweep bins": count,
        }
        print(name, numbers[name])
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    text = json.dumps({"made": date.today().isoformat(), "versions": versions, "numbers": numbers}, indent=1)
    Path(__file__).with_name("binned.json").write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
