"""`Auto` with and without `ConditionalLogit` on rows it was not fitted to, over multiclass files of predictions.

    python -m reproduce.auto_candidates              # two minutes; results/auto_candidates.md and .csv

No constant of `Auto` was chosen on these files but the least number of rows of `ConditionalLogit` (50).
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from calibrant import recalibrate
from calibrant._atomic_write import replacing
from calibrant.recalibrate.model_averaging import row_losses
from reproduce import data

RESULTS = Path(__file__).with_name("results")
#: Training rows and divisions; losses are measured on at most this many of the other rows.
SIZES, OTHER_ROWS = {300: 3, 2000: 2}, 5000
MAPS = {
    "raw": recalibrate.Identity(),
    "without": recalibrate.Auto(exportable=True),  # as it was before
    "auto": recalibrate.Auto(),
    "alone": recalibrate.ConditionalLogit(),
}


def files() -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Name, probabilities and labels of every stored multiclass file; none where the folder is missing."""
    folder, found = data.folder("classification"), []
    for path in sorted(folder.glob("*.npz")) if folder else []:
        with np.load(path) as stored:
            key = next((name for name in ("logits", "probs") if name in stored), None)
            if key is None or stored[key].ndim != 2 or stored[key].shape[1] < 3:
                continue
            scores, labels = stored[key].astype(float), stored["labels"].astype(int)
        p = np.exp(scores - scores.max(axis=1, keepdims=True)) if key == "logits" else scores
        found.append((path.stem, p / p.sum(axis=1, keepdims=True), labels))
    return found


def losses(p: np.ndarray, y: np.ndarray, n: int, division: int) -> dict[str, float]:
    """Mean log loss of each map, fitted to n rows, on others."""
    order = np.random.default_rng([380, division, n]).permutation(len(y))
    train, test = order[:n], order[n : n + OTHER_ROWS]
    fitted = {name: map_.fit(p[train], y[train], classes=range(p.shape[1])) for name, map_ in MAPS.items()}
    found = {name: row_losses(map_.predict_proba(p[test]), y[test], "log_loss") for name, map_ in fitted.items()}
    return {name: float(values.mean()) for name, values in found.items()}


def table(rows: list[dict]) -> list[str]:
    """Percent by which log losses differ from those of `Auto` without the map, mean over divisions."""
    lines = ["| training rows | files | map | mean | best file | worst file | files better | worst division |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for n in SIZES:
        own = [row for row in rows if row["n"] == n]
        names = list(dict.fromkeys(row["file"] for row in own))
        for map_ in ("auto", "alone"):
            of = [[row for row in own if row["file"] == name] for name in names]
            change = np.array([100 * (sum(r[map_] for r in f) / sum(r["without"] for r in f) - 1) for f in of])
            single = max(100 * (row[map_] / row["without"] - 1) for row in own)
            title = "`Auto`" if map_ == "auto" else "`ConditionalLogit` alone"
            lines.append(
                f"| {n:,} | {len(names)} | {title} | {change.mean():+.2f} | {change.min():+.2f} | "
                f"{change.max():+.2f} | {int((change < 0).sum())} | {single:+.2f} |"
            )
    return lines


def main() -> None:
    rows, found = [], files()
    if not found:
        raise SystemExit(data.missing("classification"))
    for n, divisions in SIZES.items():
        for name, p, y in found:
            for division in range(divisions):
                rows.append({"file": name, "classes": p.shape[1], "n": n, "division": division})
                rows[-1] |= losses(p, y, n, division)
    with replacing(RESULTS / "auto_candidates.csv") as place, place.open("w", encoding="utf8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    title = "# `Auto` with `ConditionalLogit`: log loss on other rows, percent of `Auto` without it"
    with replacing(RESULTS / "auto_candidates.md") as place:
        place.write_text("\n".join([title, "", *table(rows)]) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
