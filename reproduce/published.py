"""The authors' own results of the variational paper, from the CSV files of their repository (folder `papers`).

Table 1 is computed from their cases: repeats and folds of a data set and model are averaged, those whose largest error
(L1 of binary data, L2 of multiclass data) is above .02 count, and the share of a map is its estimate, at least 0,
divided by the largest of the ten maps. That gives every printed digit.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from functools import cache

import numpy as np

from reproduce import data

#: Names in the files of the maps of Table 1.
MAPS = {
    "TabICLv2": "tabICLv2",
    "RealTabPFN-2.5": "TabPFN",
    "WS CatBoost": "InitLogitCatboostClassifier",
    "WS LightGBM": "InitLogitLGBMClassifier",
    "CatBoost": "BetterCatBoost",
    "LightGBM": "CheapBetterLGBMClassifier",
    "Nadaraya-Watson": "NadarayaWatson",
    "TS": "TSPredictor",
    "Isotonic": "IsotonicPredictor",
    "PartitionWise": "PartitionWise",
}
#: Curves of Figures 1 and 3 that are drawn, by their names there.
CURVES = {
    "isotonic": "IsotonicPredictor",
    "isotonic in sample": "overfitted_IsotonicPredictor",
    "binned": "Binning_Classic",
    "WS CatBoost": "InitLogitCatboostClassifier",
}
WORLDS = {
    (2, "calibrated"): "perfectly_calibrated_bin",
    (2, "over, .4x + .3"): "overconfident_binary",
    (2, "shifted by .02"): "almost_perfectly_calibrated_binary",
    **{
        (k, world): f"{name}_mc"
        for k in (3, 10)
        for world, name in (
            ("calibrated", "perfectly_calibrated"),
            ("under", "underconfident"),
            ("over", "overconfident"),
        )
    },
}
TABLE_2 = {
    "over, .4x": "overconfident_binary_centered",
    "under, 4x": "underconfident_binary_centered",
    "both": "under_and_over_confident_binary_centered",
}
L1, L2, SQUARED = "ERT_L1_ECE_", "ERT_generalized_norm_score_2_", "ERT_brier_score_"


@cache
def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of one file; none where it is not here."""
    folder = data.folder("papers")
    path = None if folder is None else folder / f"{name}.csv.gz"
    if path is None or not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf8", newline="") as file:
        return list(csv.DictReader(file))


def curve(classes: int, world: str, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, mean estimates and their standard errors of a curve of Figure 1 or 3."""
    rows = rows_of("synthetic_binary_V7" if classes == 2 else "synthetic_multiclass_V7")
    column, wanted = (L1 if classes == 2 else L2) + CURVES[method], WORLDS[classes, world]
    found: dict[float, list[float]] = defaultdict(list)
    for row in rows:
        own = row["h_func"] == wanted and (classes == 2 or float(row["n_classes"]) == classes)
        if own and row[column]:
            found[float(row["n_samples"])].append(float(row[column]))
    sizes = sorted(n for n in found if len(found[n]) > 1)
    means = [np.mean(found[n]) for n in sizes]
    errors = [np.std(found[n], ddof=1) / np.sqrt(len(found[n])) for n in sizes]
    return np.array(sizes), np.array(means), np.array(errors)


@cache
def table_1() -> dict[str, tuple[float, float, float, float]]:
    """Shares of the ten maps in per cent: binary L1 and squared, multiclass L2 and squared; none without the files."""
    columns = []
    for name, primary in (("binary_data_all_V3", L1), ("multi_class_data_all_V2", L2)):
        if not rows_of(name):
            return {}
        cases: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
        for row in rows_of(name):
            cases[row["dataset"], row["config"]].append(row)
        errors = {norm: [_means(rows, norm) for rows in cases.values()] for norm in (primary, SQUARED)}
        for norm in (primary, SQUARED):
            shares = [
                100 * np.maximum(values, 0) / np.nanmax(values)
                for values, first in zip(errors[norm], errors[primary], strict=True)
                if np.nanmax(first) > 0.02 and np.nanmax(values) > 0
            ]
            columns.append(np.nanmean(shares, axis=0))
    return {name: tuple(float(column[k]) for column in columns) for k, name in enumerate(MAPS)}  # type: ignore[misc]


def _means(rows: list[dict[str, str]], norm: str) -> np.ndarray:
    """The mean over repeats of one case, of each map; NaN where a map was not run."""
    values = np.array([[float(row[norm + name] or "nan") for name in MAPS.values()] for row in rows])
    seen = np.isfinite(values).sum(axis=0)
    return np.divide(np.nansum(values, axis=0), seen, out=np.full(len(MAPS), np.nan), where=seen > 0)


def table_2() -> dict[str, list[tuple[float, float]]]:
    """Mean and standard error of overconfidence, underconfidence and their sum, of each world."""
    found = {}
    for world, name in TABLE_2.items():
        rows = [row for row in rows_of("over_under") if row["function"] == name]
        if rows:
            parts = ("over_metrics_L1", "under_metrics_L1", "ece_metrics_L1")
            values = np.array([[float(row[part]) for part in parts] for row in rows])
            errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            found[world] = list(zip(values.mean(axis=0).tolist(), errors.tolist(), strict=True))
    return found


def table_1_lines() -> list[str]:
    """Table 1 of the paper, as printed and from the authors' cases."""
    from reproduce.variational_report import PUBLISHED_TABLE_1

    head = "| map, on TabRepo | binary L1 | binary squared | multiclass L2 | multiclass squared |"
    lines = ["The authors' Table 1, computed from their 696 binary and 241 multiclass cases (as printed):", "", head]
    lines.append("|---|---|---|---|---|")
    for name, shares in table_1().items():
        cells = (f"{own:.1f} ({other})" for own, other in zip(shares, PUBLISHED_TABLE_1[name], strict=True))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""] if table_1() else [data.missing("papers"), ""]
