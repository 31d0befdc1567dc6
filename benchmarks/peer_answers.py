"""Ask one package the questions of the comparison with peers: python benchmarks/peer_answers.py PACKAGE

Needs NumPy and that package alone, since it runs in the package's environment. Prints one JSON object: its version and,
for each question, the call, the answer in each world and the CPU time. `benchmarks.peers` compares answers with the
truth.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

Array = np.ndarray
Answers = dict[str, tuple[str, Callable[..., Any]]]

#: Worlds of binary outcomes: how scores are drawn, and the true probability of each score.
LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
BINARY: dict[str, tuple[Callable[..., Array], Callable[[Array], Array]]] = {
    "calibrated": (lambda rng, n: rng.random(n), lambda p: p),
    "calibrated, 2 % events": (lambda rng, n: rng.beta(1, 49, n), lambda p: p),
    "calibrated, 5 scores": (lambda rng, n: rng.choice(LEVELS, n), lambda p: p),
    "too extreme": (lambda rng, n: rng.random(n), lambda p: 0.15 + 0.7 * p),
    "wave": (lambda rng, n: 0.2 + 0.6 * rng.random(n), lambda p: p + 0.1 * np.sin(10 * np.pi * p)),
    "5 scores, each off by 0.05": (
        lambda rng, n: rng.choice(LEVELS, n),
        lambda p: p + 0.05 * (-1.0) ** np.round(5 * p - 0.5),
    ),
    "near 0 and 1": (lambda rng, n: rng.beta(0.2, 0.2, n), lambda p: 0.1 + 0.8 * p),
    "2 % events, odds too low": (lambda rng, n: rng.beta(1, 49, n), lambda p: 2 * p / (1 + p)),
}
#: What the log odds of the true probabilities are multiplied by; the calibration slope is its inverse.
SLOPES = {"calibrated": 1.0, "log odds too large": 1 / 0.7, "log odds too small": 1 / 1.4}
#: Forecasts: the predicted standard deviation over that of the errors, and whether errors are normal or Student's t.
FORECASTS = {"calibrated": (1.0, False), "spread too small": (0.7, False), "heavy tails": (1.0, True)}
#: Which worlds a question is asked in, from how many rows, and how many samples of each.
TRUE_ERROR = ([*BINARY][:7], 1000, 40)
TEST = (["calibrated", "calibrated, 2 % events", "calibrated, 5 scores", "too extreme", "wave"], 1000, 200)
INTERVAL = (["calibrated", "calibrated, 5 scores", "too extreme", "wave"], 1000, 60)
REPAIR = (["calibrated", "too extreme", "wave", "near 0 and 1", "2 % events, odds too low"], 500, 20)
SLOPE, SPREAD = (1000, 200), (1000, 40)
BINS, SIGMA, LARGE = 10, 0.05, 10**7
ECE_CASES = ("inside bins", "on edges", "at 0 and 1", "float32, 1e7 rows", "one NaN", "one 1.3")
SMOOTH_CASES = ("inside (0, 1)", "at 0 and 1")
CRPS_CASES = ("all valid", "one std of -1", "one NaN")


def binary(world: str, n: int, sample: int) -> tuple[Array, Array]:
    """Outcomes and scores of a world."""
    rng = np.random.default_rng([[*BINARY].index(world), sample])
    scores, curve = BINARY[world]
    p = scores(rng, n)
    return (rng.random(n) < curve(p)).astype(np.int64), p


def ece_case(case: str) -> tuple[Array, Array]:
    """Rows on which rules of bins differ, or that no rule allows."""
    rng = np.random.default_rng(ECE_CASES.index(case))
    n = LARGE if case.startswith("float32") else 20_000
    p = rng.random(n)
    if case == "on edges":
        p = rng.integers(0, BINS + 1, n) / BINS
    if case == "at 0 and 1":
        p = np.where(rng.random(n) < 0.2, np.round(p), p)
    # too low in one bin, too high in the next: rows that a rule puts into another bin change the error
    y = (rng.random(n) < np.clip(p + 0.05 * (-1.0) ** np.floor(BINS * p), 0, 1)).astype(np.int64)
    if case.startswith("one"):
        p[7] = np.nan if case == "one NaN" else 1.3
    return y, p.astype(np.float32) if case.startswith("float32") else p


def smooth_case(case: str) -> tuple[Array, Array]:
    """Rows for the smooth error of a fixed width."""
    rng = np.random.default_rng(3)
    p = 0.2 + 0.6 * rng.random(4000)
    if case == "at 0 and 1":
        p = np.where(rng.random(4000) < 0.2, np.round(p), p)
    return (rng.random(4000) < 0.05 + 0.85 * p).astype(np.int64), p


def slope_rows(world: str, n: int, sample: int) -> tuple[Array, Array]:
    """Scores whose calibration slope is known."""
    rng = np.random.default_rng([11, [*SLOPES].index(world), sample])
    logit = rng.normal(-0.5, 1.2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    return y, 1 / (1 + np.exp(-logit * SLOPES[world]))


def forecasts(world: str, n: int, sample: int) -> tuple[Array, Array, Array]:
    """Outcomes, means and standard deviations."""
    rng = np.random.default_rng([12, [*FORECASTS].index(world), sample])
    factor, heavy = FORECASTS[world]
    mean, spread = rng.normal(size=n), rng.lognormal(0, 0.5, n)
    error = rng.standard_t(3, n) / np.sqrt(3) if heavy else rng.normal(size=n)
    return mean + spread * error, mean, factor * spread


def crps_case(case: str) -> tuple[Array, Array, Array]:
    """Normal forecasts, one of them not valid."""
    y, mean, std = (values.copy() for values in forecasts("calibrated", 2000, 0))
    if case == "one std of -1":
        std[7] = -1
    if case == "one NaN":
        std[7] = np.nan
    return y, mean, std


# What each package answers: the call, and a function of the rows. A test gives a p-value, an interval its ends, a map
# the scores that it makes of others.


def _two(p: Array) -> Array:
    return np.column_stack([1 - p, p])


def calibrant() -> Answers:
    import calibrant as cal

    def ends(found: Any) -> list[float]:
        return [float(found.interval.low), float(found.interval.high)]

    return {
        "ECE": ("`ece(y, p, bins=EqualWidth(10))`", lambda y, p: cal.ece(y, p, bins=cal.EqualWidth(BINS))),
        "smooth ECE": ("`smooth_ece(y, p, sigma=0.05)`", lambda y, p: cal.smooth_ece(y, p, sigma=SIGMA)),
        "true error": ("`calibration_error`", lambda y, p: cal.calibration_error(y, p)),
        "interval": ("`interval(calibration_error, d)`", lambda y, p: ends(cal.interval(cal.calibration_error, y, p))),
        "test": ("`calibration_test`", lambda y, p: cal.calibration_test(cal.Binary(y, p)).p_value),
        "slope": ("`interval(calibration_slope, d)`", lambda y, p: ends(cal.interval(cal.calibration_slope, y, p))),
        "repair": ("`recalibrate.Auto`", lambda y, p, new: cal.recalibrate.Auto().fit(p, y).predict_proba(new)[:, 1]),
        "CRPS": ("`crps`", lambda y, mean, std: cal.crps(y, mean, std)),
        "coverage": ("`interval_error`", lambda y, mean, std: cal.interval_error(y, mean, std)),
        "spread": ("`debiased_ence`", lambda y, mean, std: cal.debiased_ence(y, mean, std)),
    }


def scikit_learn() -> Answers:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV, calibration_curve
    from sklearn.frozen import FrozenEstimator

    class Scores(ClassifierMixin, BaseEstimator):
        """A classifier whose only feature is its score."""

        def fit(self, rows: Array, y: Array) -> Scores:
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, rows: Array) -> Array:
            return _two(rows[:, 0])

        def predict(self, rows: Array) -> Array:
            return (rows[:, 0] > 0.5).astype(int)

    def repaired(y: Array, p: Array, new: Array, method: str = "sigmoid") -> Array:
        model = CalibratedClassifierCV(FrozenEstimator(Scores().fit(p[:, None], y)), method=method)
        return model.fit(p[:, None], y).predict_proba(new[:, None])[:, 1]

    return {
        "ECE": (
            "`calibration_curve(y, p, n_bins=10)`, the curve alone",
            lambda y, p: np.concatenate(calibration_curve(y, p, n_bins=BINS)).tolist(),
        ),
        "repair": ("`CalibratedClassifierCV`", repaired),
        "repair, 2": (
            '`CalibratedClassifierCV(method="isotonic")`',
            lambda y, p, new: repaired(y, p, new, "isotonic"),
        ),
    }


def netcal() -> Answers:
    from netcal.binning import HistogramBinning
    from netcal.metrics import ECE
    from netcal.metrics.regression import ENCE

    return {
        "ECE": ("`ECE(10)`", lambda y, p: ECE(BINS).measure(p, y)),
        "true error": ("`ECE(10)`", lambda y, p: ECE(BINS).measure(p, y)),
        "repair": ("`HistogramBinning(10)`", lambda y, p, new: HistogramBinning(BINS).fit(p, y).transform(new)),
        "spread": (
            "`ENCE(10)`",
            lambda y, mean, std: np.ravel(ENCE(BINS).measure((mean[:, None], std[:, None]), y[:, None]))[0],
        ),
    }


def torchmetrics() -> Answers:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    torch.set_num_threads(1)

    def error(y: Array, p: Array) -> float:
        return float(binary_calibration_error(torch.from_numpy(p), torch.from_numpy(y), n_bins=BINS))

    call = "`binary_calibration_error(p, y, n_bins=10)`"
    return {"ECE": (call, error), "true error": (call, error)}


def mapie() -> Answers:
    from mapie.metrics import calibration

    def error(y: Array, p: Array) -> float:
        return calibration.expected_calibration_error(y, p, num_bins=BINS, split_strategy="uniform")

    call = '`expected_calibration_error(y, p, 10, "uniform")`'
    return {
        "ECE": (call, error),
        "true error": (call, error),
        "test": ("`kolmogorov_smirnov_p_value`", calibration.kolmogorov_smirnov_p_value),
        "test, 2": ("`kuiper_p_value`", calibration.kuiper_p_value),
        "test, 3": ("`spiegelhalter_p_value`", calibration.spiegelhalter_p_value),
    }


def calzone_tool() -> Answers:
    from calzone.metrics import CalibrationMetrics

    def found(y: Array, p: Array, metric: str, key: str) -> float:
        return CalibrationMetrics(num_bins=BINS).calculate_metrics(y, _two(p), [metric])[key]

    def bootstrap(y: Array, p: Array) -> list[float]:
        np.random.seed(0)  # noqa: NPY002  # its own generator
        draws = CalibrationMetrics(num_bins=BINS).bootstrap(y, _two(p), ["ECE-H"], n_samples=200)
        return np.percentile(draws["ECE-H"], [2.5, 97.5]).tolist()

    def slope(y: Array, p: Array) -> list[float]:
        every = CalibrationMetrics().calculate_metrics(y, _two(p), ["COX"])
        return [every["COX coef lowerci"], every["COX coef upperci"]]

    return {
        "ECE": ("`CalibrationMetrics(num_bins=10)`, ECE-H", lambda y, p: found(y, p, "ECE-H", "ECE-H")),
        "true error": ("ECE-C, 10 bins", lambda y, p: found(y, p, "ECE-C", "ECE-C")),
        "interval": ("`bootstrap` of ECE-H, 200 draws", bootstrap),
        "test": ("Hosmer-Lemeshow, HL-C", lambda y, p: found(y, p, "HL-C", "HL-C p-value")),
        "slope": ("COX", slope),
    }


def pycalib() -> Answers:
    from pycalib.metrics import binary_ECE
    from pycalib.models.calibrators import SigmoidCalibration

    def error(y: Array, p: Array) -> float:
        return binary_ECE(y, p, bins=BINS)

    return {
        "ECE": ("`binary_ECE(y, p, bins=10)`", error),
        "true error": ("`binary_ECE(y, p, bins=10)`", error),
        "repair": (
            "`SigmoidCalibration`",
            lambda y, p, new: SigmoidCalibration().fit(p, y).predict_proba(new)[:, 1],
        ),
    }


def relplot() -> Answers:
    from relplot.metrics import smECE_sigma

    return {"smooth ECE": ("`smECE_sigma(p, y, 0.05)`", lambda y, p: smECE_sigma(p, y, SIGMA))}


def probmetrics() -> Answers:
    import torch
    from probmetrics.calibrators import get_calibrator
    from probmetrics.metrics import Metrics

    torch.set_num_threads(1)
    name = "calib-err_proper-L1-binary-as-1d_isotonic-mix_cv-5"

    def error(y: Array, p: Array) -> float:
        found = Metrics.from_names([name]).compute_all_from_labels_probs(torch.from_numpy(y), torch.from_numpy(_two(p)))
        return float(found[name])

    def repaired(y: Array, p: Array, new: Array) -> Array:
        return get_calibrator("logistic").fit(_two(p), y).predict_proba(_two(new))[:, 1]

    return {"true error": (f"`{name}`", error), "repair": ('`get_calibrator("logistic")`', repaired)}


def uncertainty_toolbox() -> Answers:
    from uncertainty_toolbox import metrics_calibration, metrics_scoring_rule

    return {
        "CRPS": ("`crps_gaussian`", lambda y, mean, std: metrics_scoring_rule.crps_gaussian(mean, std, y)),
        "coverage": (
            "`mean_absolute_calibration_error`",
            lambda y, mean, std: metrics_calibration.mean_absolute_calibration_error(mean, std, y),
        ),
    }


def properscoring() -> Answers:
    import properscoring as scoring

    return {"CRPS": ("`crps_gaussian`, its mean", lambda y, mean, std: scoring.crps_gaussian(y, mean, std).mean())}


PACKAGES: dict[str, Callable[[], Answers]] = {
    "calibrant": calibrant,
    "calzone-tool": calzone_tool,
    "mapie": mapie,
    "netcal": netcal,
    "probmetrics": probmetrics,
    "properscoring": properscoring,
    "pycalib": pycalib,
    "relplot": relplot,
    "scikit-learn": scikit_learn,
    "torchmetrics": torchmetrics,
    "uncertainty-toolbox": uncertainty_toolbox,
}


def grid(world: str) -> Array:
    """Scores of later rows, on which a map is judged."""
    return BINARY[world][0](np.random.default_rng(99), 20_000)


def excess(answer: Callable[..., Any], world: str, n: int, sample: int) -> float:
    """Expected log loss of the mapped scores less that of the true probabilities."""
    p = grid(world)
    found = np.clip(np.asarray(answer(*binary(world, n, sample), p), dtype=float), 0, 1)
    return divergence(BINARY[world][1](p), found)


def divergence(true: Array, found: Array) -> float:
    """The mean Kullback-Leibler divergence of two Bernoulli distributions; infinite where an event was ruled out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(q > 0, q * np.log(q / g), 0.0) for q, g in ((true, found), (1 - true, 1 - found))]
    return float(np.mean(parts[0] + parts[1]))


def rows_of(question: str) -> dict[str, Callable[[Callable[..., Any]], Any]]:
    """What is asked in each world of a question: a function of the answer's function."""
    once = {"ECE": (ECE_CASES, ece_case), "smooth ECE": (SMOOTH_CASES, smooth_case), "CRPS": (CRPS_CASES, crps_case)}
    if question in once:
        cases, make = once[question]
        return {case: lambda answer, case=case: plain(answer(*make(case))) for case in cases}
    if question == "repair":
        worlds, n, samples = REPAIR
        return {
            world: lambda answer, world=world: [plain(excess(answer, world, n, k)) for k in range(samples)]
            for world in worlds
        }
    if question in {"coverage", "spread"}:
        worlds, (n, samples), draw = [*FORECASTS], SPREAD, forecasts
    elif question == "slope":
        worlds, (n, samples), draw = [*SLOPES], SLOPE, slope_rows
    else:
        asked = {"true error": TRUE_ERROR, "interval": INTERVAL, "test": TEST}[question]
        worlds, n, samples = asked
        draw = binary
    return {
        world: lambda answer, world=world: [plain(answer(*draw(world, n, k))) for k in range(samples)]
        for world in worlds
    }


def plain(value: Any) -> Any:
    """A number, or a list of numbers, to eight digits."""
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else float(f"{float(value):.8g}")


def timed(question: str) -> tuple[tuple[Any, ...], int]:
    """The rows on which a question is timed, and how often."""
    if question in {"ECE", "smooth ECE"}:
        return binary("too extreme", 10**6, 0), 3
    if question in {"CRPS", "coverage", "spread"}:
        return forecasts("spread too small", 10**5, 0), 3
    if question == "repair":
        return (*binary("too extreme", 10**4, 0), grid("too extreme")), 3
    return binary("too extreme", 1000, 0), 5


def asked(package: str) -> dict[str, Any]:
    """All answers of a package."""
    found: dict[str, Any] = {}
    for name, (call, answer) in PACKAGES[package]().items():
        question = name.partition(",")[0]
        answers = {}
        for world, ask in rows_of(question).items():
            try:
                answers[world] = ask(answer)
            except Exception as error:  # what a package refuses is an answer too
                answers[world] = f"{type(error).__name__}: {error}"[:200]
            print(f"\r{package} {name} {world:40}", end="", file=sys.stderr, flush=True)
        rows, times = timed(question)
        seconds = []
        answer(*rows)
        for _ in range(times):
            start = time.process_time()
            answer(*rows)
            seconds.append(time.process_time() - start)
        found[name] = {"call": call, "answers": answers, "seconds": min(seconds)}
    if package == "calibrant":  # the sources of this tree, not an installed version
        from calibrant import __version__ as found_version
    else:
        found_version = version(package)
    return {"version": found_version, "found": found}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    print(json.dumps(asked(sys.argv[1])))
