"""Recalibration maps in time: temperature against scikit-learn and netcal, isotonic against scikit-learn."""

from __future__ import annotations

import numpy as np
import sklearn

from benchmarks.measuring import cpu_seconds, run_peer, write_results
from calibrant.recalibrate import Isotonic, Temperature

LOGITS = """
import numpy as np

def logits_and_labels(n, k):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, k)) * 3
    p = np.exp(logits / 1.7)
    p /= p.sum(axis=1, keepdims=True)
    return logits, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
"""

#: netcal wants probabilities; its time is divided by that of scikit-learn's in the same process.
PEER = (
    LOGITS
    + """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
from importlib.metadata import version
from netcal.scaling import TemperatureScaling
from sklearn.calibration import _TemperatureScaling

def least(action, repeats=2):
    times = []
    for _ in range(repeats):
        start = time.process_time(); action(); times.append(time.process_time() - start)
    return min(times)

found = {}
for k in (10, 100):
    logits, y = logits_and_labels(100_000, k)
    p = np.exp(logits); p /= p.sum(axis=1, keepdims=True)
    netcal = TemperatureScaling()
    seconds = least(lambda: netcal.fit(p, y))
    found[str(k)] = dict(netcal=seconds, sklearn=least(lambda: _TemperatureScaling().fit(logits, y)),
                         temperature=1 / float(np.ravel(netcal.weights)[0]))
print(json.dumps(dict(found=found, version=version("netcal"))))
"""
)


def mean_loss(logits: np.ndarray, y: np.ndarray, temperature: float) -> float:
    scaled = logits / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    return float((np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(len(y)), y]).mean())


def temperature_lines(peer: dict | None) -> list[str]:
    from sklearn.calibration import _TemperatureScaling

    space: dict[str, object] = {}
    exec(LOGITS, space)
    lines = [
        "## Temperature, n = 1e5, true T = 1.7",
        "",
        "| classes | map | CPU s | x scikit-learn (bar 2) | x netcal (bar 3) | T | mean loss above ours |",
        "|-|-|-|-|-|-|-|",
    ]
    for k in (10, 100):
        logits, y = space["logits_and_labels"](100_000, k)  # type: ignore[operator]
        fitted, theirs = Temperature(input="logits"), _TemperatureScaling()
        own = cpu_seconds(lambda: fitted.fit(logits, y), 5)  # noqa: B023
        other = cpu_seconds(lambda: theirs.fit(logits, y), 2)  # noqa: B023
        best, found = mean_loss(logits, y, fitted.temperature_), peer and peer["found"][str(k)]
        netcal_ratio = f"{found['netcal'] / found['sklearn'] * other / own:.1f}" if found else ""
        lines.append(
            f"| {k} | `Temperature` | {own:.3f} | {other / own:.1f} | {netcal_ratio} | {fitted.temperature_:.6f} | 0 |"
        )
        above = mean_loss(logits, y, 1 / theirs.beta_) - best
        lines.append(f"| {k} | scikit-learn | {other:.3f} | 1 | | {1 / theirs.beta_:.6f} | {above:.1e} |")
        if found:
            above = mean_loss(logits, y, found["temperature"]) - best
            ratio = found["sklearn"] / found["netcal"]
            lines.append(
                f"| {k} | netcal | {found['netcal']:.3f} | {ratio:.2f} | 1 | {found['temperature']:.6f} | {above:.1e} |"
            )
    return [*lines, ""]


def isotonic_lines() -> list[str]:
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(0)
    lines = [
        "## Isotonic, n = 1e6",
        "",
        "| scores | CPU s | scikit-learn CPU s | times as fast (bar 3) | largest difference |",
        "|-|-|-|-|-|",
    ]
    for name, p in {"all distinct": rng.random(10**6), "three digits": rng.random(10**6).round(3)}.items():
        y = (rng.random(10**6) < p**2).astype(np.int8)
        ours, theirs = Isotonic(allow_certainty=True), IsotonicRegression(out_of_bounds="clip")
        own = cpu_seconds(lambda: ours.fit(p, y), 5)  # noqa: B023
        other = cpu_seconds(lambda: theirs.fit(p, y), 3)  # noqa: B023
        gap = np.abs(ours.predict_proba(p)[:, 1] - theirs.predict(p)).max()
        lines.append(f"| {name} | {own:.3f} | {other:.3f} | {other / own:.1f} | {gap:.1e} |")
    return [*lines, ""]


def other_lines() -> list[str]:
    from calibrant import recalibrate as rc

    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.7, 10**5)
    y = (rng.random(10**5) < p**1.5).astype(np.int8)
    names = ("Platt", "Quadratic", "Beta", "Spline", "CentredIsotonic", "Histogram", "BayesianBinning")
    names += ("VennAbers", "ScalingBinning", "Auto")
    times = {name: cpu_seconds(lambda: getattr(rc, name)().fit(p, y), 2) for name in names}  # noqa: B023
    head = ["## The other binary maps, n = 1e5, CPU seconds to fit", "", "| " + " | ".join(times) + " |"]
    return [*head, "|" + "-|" * len(times), "| " + " | ".join(f"{value:.3f}" for value in times.values()) + " |", ""]


def main() -> None:
    peer = run_peer(PEER)
    versions = {"scikit-learn": sklearn.__version__} | ({"netcal": str(peer["version"])} if peer else {})
    lines = temperature_lines(peer) + isotonic_lines() + other_lines()
    write_results("recalibrate", "Recalibration maps: time", "python -m benchmarks.recalibrate", lines, **versions)


if __name__ == "__main__":
    main()
