"""Tables on stored predictions of others, and on models trained here on UCI data."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import BayesianRidge

import calibrant as cal

HEADER = [
    "| predictions | n | ENCE, 10 bins | calibrated: mean (97.5 %) | kurtosis | C_v | mean z² | coverage 95 % "
    "| ENCE_sweep | ENCE after STD scaling |",
    "|---|---|---|---|---|---|---|---|---|---|",
]


def gaussian(file: Path) -> cal.Gaussian:
    with np.load(file) as columns:
        mean = columns["mu"]
        y = columns["y"] if mean.ndim == 1 else np.broadcast_to(columns["y"].reshape(-1, 1), mean.shape)
        return cal.Gaussian(y, mean, columns["sigma"])


def stored_lines(folder: Path) -> list[str]:
    """Every stored Gaussian forecast; STD scaling is fitted on the rows it is judged on, as in the specification."""
    lines = list(HEADER)
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as columns:
            stated = "sigma" in columns
        for number, data in enumerate(gaussian(file).outputs if stated else []):
            name = f"{file.stem}, {number + 1}" if "learning_curve" in file.stem else file.stem
            lines.append(_line(name, data, _quietly_scaled(data, data)))
    return lines


def qm9_lines(folder: Path) -> list[str]:
    """Maps fitted on the validation set of QM9 and judged on its test set."""
    train, test = (gaussian(folder / f"qm9_E_uncal_{name}.npz") for name in ("val", "test"))
    maps = cal.recalibrate
    kinds = {
        "none": None,
        "StdScaling": maps.StdScaling(),
        "StdScaling, CRPS": maps.StdScaling(criterion="crps"),
        "StdScaling, MAD": maps.StdScaling(criterion="mad"),
        "VarianceIsotonic": maps.VarianceIsotonic(),
        "VarianceHistogram(20)": maps.VarianceHistogram(),
        "VarianceHistogram(20), scaling": maps.VarianceHistogram(scaling=True),
        "SpreadSpline": maps.SpreadSpline(),
        "CdfIsotonic": maps.CdfIsotonic(),
    }
    lines = ["| map | ENCE | NLL | CRPS | coverage 95 % | quantile error |", "|---|---|---|---|---|---|"]
    for name, kind in kinds.items():
        fixed = test if kind is None else kind.fit(train).transform(test)
        values = (cal.ence(fixed), cal.nll(fixed), cal.crps(fixed), cal.coverage(fixed, nominal=0.95))
        numbers = f"{values[0]:.4f} | {values[1]:.4f} | {values[2]:.6f} | {values[3]:.4f}"
        lines.append(f"| {name} | {numbers} | {cal.quantile_error(fixed):.4f} |")
    return lines


def covid_lines(folder: Path) -> list[str]:
    """Quantile and ensemble forecasts of COVID-19 counts."""
    with np.load(folder / "covid19_eu_quantile.npz") as columns:
        quantiles = cal.Quantiles(columns["y"], columns["levels"], columns["quantiles"])
    with np.load(folder / "covid19_eu_samples.npz") as columns:
        alive = np.ptp(columns["samples"], axis=1) > 0  # one row states no spread at all
        samples = cal.Samples(columns["y"][alive], columns["samples"][alive])
    lines = ["| forecast | metric | value | calibrated: mean (97.5 %) |", "|---|---|---|---|"]
    metrics = (cal.coverage, cal.quantile_error, cal.interval_error, cal.pit_error, cal.crps)
    for name, data in (("23 quantiles", quantiles), ("40 draws", samples)):
        for metric in (*metrics, cal.ence) if isinstance(data, cal.Samples) else metrics:
            result = metric(data)
            null = result.details["null"]
            lines.append(f"| {name} | {result.name} | {result:.4g} | {null['mean']:.4g} ({null['high']:.4g}) |")
    return lines


def uci_lines(folder: Path, *, rows: int) -> list[str]:
    """Bayesian ridge and the trees of a random forest, trained here; thirds to fit, to recalibrate and to judge."""
    lines = [
        "| data | model | n test | ENCE | after StdScaling | after VarianceIsotonic | calibrated: mean | C_v "
        "| coverage 90 % | after CdfIsotonic |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for file in sorted(folder.glob("uci_*.npz")):
        with np.load(file) as columns:
            x, y = columns["X"], columns["target"].ravel()
        order = np.random.default_rng(0).permutation(len(y))[:rows]
        fit, tune, judge = np.array_split(order, 3)
        for name, predicted in _models(x, y, fit):
            train, test = (cal.Gaussian(y[part], *predicted(x[part])) for part in (tune, judge))
            scaled = _quietly_scaled(train, test)
            isotonic = cal.recalibrate.VarianceIsotonic().fit(train).transform(test)
            kuleshov = cal.recalibrate.CdfIsotonic().fit(train).transform(test)
            values = [cal.ence(data) for data in (test, scaled, isotonic)]
            lines.append(
                f"| {file.stem[4:]} | {name} | {len(test)} | {values[0]:.3f} | {values[1]:.3f} | {values[2]:.3f} "
                f"| {values[1].details['null']['mean']:.3f} | {cal.std_dispersion(test):.3f} "
                f"| {cal.coverage(test):.3f} | {cal.coverage(kuleshov):.3f} |"
            )
    return lines


def _models(x: np.ndarray, y: np.ndarray, fit: np.ndarray):
    ridge = BayesianRidge().fit(x[fit], y[fit])
    yield "Bayesian ridge", lambda rows: ridge.predict(rows, return_std=True)
    forest = RandomForestRegressor(60, min_samples_leaf=3, random_state=0, n_jobs=1).fit(x[fit], y[fit])

    def spread(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        trees = np.stack([tree.predict(rows) for tree in forest.estimators_])
        return trees.mean(axis=0), np.maximum(trees.std(axis=0), 1e-6 * y[fit].std())

    yield "random forest", spread


def _quietly_scaled(train: cal.Gaussian, test: cal.Gaussian) -> cal.Gaussian:
    with warnings.catch_warnings():  # that one row decides is the table's subject here
        warnings.simplefilter("ignore", UserWarning)
        return cal.recalibrate.StdScaling().fit(train).transform(test)


def _line(name: str, data: cal.Gaussian, scaled: cal.Gaussian) -> str:
    result = cal.ence(data)
    null = result.details["null"]
    return (
        f"| {name} | {len(data)} | {result:.4f} | {null['mean']:.4f} ({null['high']:.4f}) | {null['kurtosis']:.1f} "
        f"| {cal.std_dispersion(data):.3f} | {cal.mean_squared_z(data):.3f} | {cal.coverage(data, nominal=0.95):.4f} "
        f"| {cal.sweep_ence(data):.4f} | {cal.ence(scaled):.4f} |"
    )
