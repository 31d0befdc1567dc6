"""How long every public function on binary predictions takes, and how that grows with the number of rows.

python -m benchmarks.latency [largest number of rows]
"""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module

import numpy as np

import calibrant as cal
from benchmarks.measuring import write_results

#: A person does not notice less than this, in seconds.
BUDGET = {"simulate.advise": 2.0, "report": 0.5}
USUAL_BUDGET = 0.05
#: What takes longer at 1e4 rows, and why it does.
REASONS = {
    "interval(ece)": "the bounds of the true error take a dozen sets of 299 simulated samples",
    "interval(variational_error)": "that of `interval(ece)`, and a cross-fitted estimate of six families of maps",
    "interval(ks_error)": "399 samples by two laws in 4096 cells: 3.3 million random numbers take nearly half of it",
    "headline_error": "that of `interval(ece)`, and an estimate",
    "assert_calibrated": "that of `interval(ece)`, and an estimate",
    "by_group": "for each of five groups a dozen sets of 299 simulated samples for its interval, 1998 samples for "
    "its test",
    "compare": "the bounds of the true error of both models: two dozen sets of 299 simulated samples",
    "compare_many": "as `compare`",
    "miscalibration_cost": "a cross-fitted recalibration, an isotonic band, and a simultaneous band of the gain",
    "recalibrate.Auto().fit": "six averages of 38 corrections: of all rows, and without each of five folds",
}
BUDGETED_ROWS = (1_000, 10_000)
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
#: A size is tried if the one before took less than this; most runs of each, and the seconds they may take together.
PATIENCE, REPEATS, WITHIN = 1.0, 5, 1.5
#: Growth is fitted to sizes from this on; what is flagged, and what a step from one size to the next may be.
FITTED_FROM, STEEP = 10_000, 1.1

Case = Callable[["Inputs"], object]

#: Public functions that need no predictions of an event, or predictions of something else.
OTHERS = {
    *("classwise", "by_class", "class_tables", "coverage", "group_coverage", "crps", "debiased_ence", "ence"),
    *("ence_curve", "interval_curve", "interval_error", "interval_score", "mean_squared_z", "nll", "pinball"),
    *("pit_error", "pit_histogram", "quantile_error", "scale_factor", "sharpness", "spread_curve", "std_dispersion"),
    *("sweep_ence", "uce", "show_versions", "warm_up", "forest_rows", "headline_errors", "sample_size"),
    *("multinomial_recalibration", "read_eval", "without_labels"),
}


class Inputs:
    """Skewed scores and their outcomes, a second model, five groups, and twelve months."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(n)
        p = rng.beta(1.1, 0.1, n)
        y = rng.random(n) < p**1.3
        self.data, self.other = cal.Binary(y, p), cal.Binary(y, p**1.2)
        self.by, self.time = rng.integers(0, 5, n), np.arange(n) * 12 // n


def estimator_cases() -> dict[str, Case]:
    names = [
        *("accuracy", "auc", "averaged_error", "brier", "calibration_error", "calibration_intercept"),
        *("calibration_slope", "debiased_ece", "decompose", "ece", "ici", "kde_ece", "kernel_error", "ks_error"),
        *("kuiper_error", "label_binned_ece", "log_loss", "mce", "observed_expected", "overconfidence", "refinement"),
        *("smooth_ece", "sweep_ece", "underconfidence", "variational_error"),
    ]
    return {name: partial(_estimate, name) for name in names} | {
        "variational_errors": lambda i: cal.estimators.variational_errors(i.data, norms=(1, 2)),
    }


def _estimate(name: str, inputs: Inputs) -> object:
    return getattr(cal.estimators, name)(inputs.data)


def _fit(name: str, inputs: Inputs) -> object:
    return getattr(cal.recalibrate, name)().fit(inputs.data)


def inference_cases() -> dict[str, Case]:
    return {
        "interval(ece)": lambda i: cal.interval(cal.ece, i.data),
        "interval(variational_error)": lambda i: cal.interval(cal.variational_error, i.data),
        "interval(ks_error)": lambda i: cal.interval(cal.ks_error, i.data),
        "interval(brier)": lambda i: cal.interval(cal.brier, i.data),
        "calibration_test": lambda i: cal.calibration_test(i.data),
        "reliability_curve": lambda i: cal.reliability_curve(i.data),
        "isotonic_band": lambda i: cal.inference.isotonic_band(i.data),
        "headline_error": lambda i: cal.inference.headline_error(i.data),
        "confidence_gaps": lambda i: cal.inference.confidence_gaps(cal.ece(i.data)),
        "by_group": lambda i: cal.by_group(cal.ece, i.data, by=i.by),
        "compare": lambda i: cal.compare(cal.ece, i.data, i.other),
        "compare_many": lambda i: cal.compare_many(cal.ece, {"a": i.data, "b": i.other}),
        "net_benefit": lambda i: cal.net_benefit(i.data),
        "miscalibration_cost": lambda i: cal.inference.miscalibration_cost(i.data),
        "risk_coverage": lambda i: cal.risk_coverage(i.data),
        "assert_calibrated": lambda i: cal.assert_calibrated(i.data, below=0.9),
        "over_time": lambda i: cal.over_time(i.data, i.time),
        "audit": lambda i: cal.audit(i.data, {"x": i.by, "day": i.time}),
        "report": lambda i: cal.report(i.data),
        "simulate.advise": lambda i: cal.simulate.advise(i.data),
        "BinTable.of(HybridGrid())": lambda i: cal.BinTable.of(i.data, cal.table.HybridGrid()),
        "StreamingTable.update": lambda i: cal.scale.StreamingTable().update(i.data.y_true, i.data.y_prob),
    }


def fit_cases() -> dict[str, Case]:
    names = [
        *("Auto", "BayesianAverage", "BayesianBinning", "Beta", "CentredIsotonic", "Histogram", "Isotonic"),
        *("Platt", "Quadratic", "ScalingBinning", "Spline", "Temperature", "VennAbers"),
    ]
    return {f"recalibrate.{name}().fit": partial(_fit, name) for name in names}


def missing(cases: dict[str, Case]) -> set[str]:
    """Public functions that nobody measures; None may be added without a line here."""
    known = {name.split("(")[0].split(".")[-1] for name in cases} | OTHERS
    found = set()
    for room in ("", ".estimators", ".inference"):
        module = import_module(f"calibrant{room}")
        found |= {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    return found - known


def seconds(action: Callable[[], object]) -> float:
    """The least processor time of several runs."""
    best, spent = np.inf, 0.0
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
        if spent > WITHIN:
            break
    return best


def measure(case: Case, inputs: dict[int, Inputs]) -> dict[int, float] | str:
    """Seconds by number of rows, or what went wrong."""
    found: dict[int, float] = {}
    try:
        case(Inputs(500))  # imports
        for n, given in inputs.items():
            found[n] = seconds(lambda given=given: case(given))
            if found[n] > PATIENCE and n >= max(BUDGETED_ROWS):
                break
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:80]
    return found


def exponent(found: dict[int, float]) -> float:
    """The slope of log time on log rows, where there are many."""
    some = [(np.log(n), np.log(max(t, 1e-7))) for n, t in found.items() if n >= FITTED_FROM]
    return float(np.polyfit(*np.array(some).T, 1)[0]) if len(some) > 1 else float("nan")


def flags(name: str, found: dict[int, float]) -> list[str]:
    """What a reader should look at."""
    budget = BUDGET.get(name, USUAL_BUDGET)
    words = [f"{n:.0e}: over {1000 * budget:.0f} ms" for n in BUDGETED_ROWS if found.get(n, 0) > budget]
    if words and name in REASONS:
        words.append(REASONS[name])
    if exponent(found) > STEEP:
        words.append("steep")
    for (n, t), (m, u) in zip(found.items(), list(found.items())[1:], strict=False):
        if t > 0.01 and u < t / 1.5:
            words.append(f"falls from {n:.0e} to {m:.0e}")
        if u > 0.02 and u > 1.7 * t * (m / n) ** STEEP:
            words.append(f"jumps from {n:.0e} to {m:.0e}")
    return words


def table(cases: dict[str, Case], inputs: dict[int, Inputs]) -> list[str]:
    lines = [
        f"| function | {' | '.join(f'{n:.0e}' for n in inputs)} | exponent | look at |",
        "|---|" + "---|" * (len(inputs) + 2),
    ]
    for name, case in cases.items():
        found = measure(case, inputs)
        if isinstance(found, str):
            lines.append(f"| `{name}` {'| ' * len(inputs)}| | {found} |")
        else:
            cells = [f"{1000 * found[n]:.3g}" if n in found else "" for n in inputs]
            lines.append(
                f"| `{name}` | {' | '.join(cells)} | {exponent(found):.2f} | {'; '.join(flags(name, found))} |"
            )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    largest = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    cases = estimator_cases() | inference_cases() | fit_cases()
    if unmeasured := missing(cases):
        raise SystemExit(f"Public functions without a line in {__file__}: {sorted(unmeasured)}")
    inputs = {n: Inputs(n) for n in SIZES if n <= largest}
    lines = [
        "Milliseconds of processor time (the least of up to five runs in one process, after the imports), for skewed "
        f"scores, Beta(1.1, 0.1), whose predictions are miscalibrated. Budget: {1000 * USUAL_BUDGET:.0f} ms at 1e3 and "
        f"1e4 rows (`report` {BUDGET['report']} s, `advise` {BUDGET['simulate.advise']:.0f} s); what takes longer says "
        f"why. A size is left out where the one before took more than {PATIENCE:.0f} s. The exponent is that of growth "
        f"from 1e4 rows on; above {STEEP} it is called steep.",
        "",
        *table(cases, inputs),
    ]
    write_results("latency", "Latency", "python -m benchmarks.latency", lines, calibrant=cal.__version__)


if __name__ == "__main__":
    main()
