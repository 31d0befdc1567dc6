"""What each public name is for, and which others belong to it: the tables of the reference and its "See also"."""

from __future__ import annotations

import inspect
import re
from typing import Any

#: The names of each task, in the order of the tables. A name stands alone, or after its package where two packages have
#: one of that name; `package.*` are all names defined in a package that are not listed themselves.
TASKS = {
    "Data": "data.*",
    "Logs of evaluations of language models": "EvaluationLog read_eval",
    "Errors of probabilities": (
        "calibration_error averaged_error variational_error variational_errors CrossFittedBound debiased_ece Distance "
        "ece GaussianKernel ici kde_ece kernel_error ks_error kuiper_error label_binned_ece LaplaceKernel mce "
        "overconfidence refinement smooth_ece SplitSampleBound sweep_ece underconfidence"
    ),
    "Level and direction": "calibration_intercept calibration_slope observed_expected",
    "Scores and ranking": "accuracy auc brier decompose Decomposition log_loss",
    "Intervals": (
        "Band Bootstrap ChiSquareMixture Clustered interval Inversion isotonic_band IsotonicBand LargestGapBound "
        "EventLosses MidP NormBand PlacementScore ProfileLikelihood SplitLowerBound"
    ),
    "Tests": "calibration_test ClusteredScore Cox HosmerLemeshow KernelTest KolmogorovSmirnov MultiScale Spiegelhalter",
    "Comparisons of models": "compare compare_many Comparison PairedCrossFits PairedFits PairedGaps",
    "Groups and time": "by_group ByGroup Change forest_rows ForestRow GroupResult over_time OverTime Period Search",
    "Audits by features": "audit Audit Condition FeatureLoss LossSplit Miscalibration Segment",
    "Rows without labels": "without_labels WithoutLabels",
    "Monitoring": "improvement Monitor Status",
    "Maps that choose by themselves": "Auto AutoForecast BayesianAverage FeatureMap gain Gain",
    "Smooth maps of a probability": "Beta Platt Quadratic Smoothed Spline Temperature",
    "Steps and bins": "BayesianBinning CentredIsotonic Histogram Isotonic ScalingBinning VennAbers",
    "Multiclass": (
        "by_class ByClass ClassRow classwise ClasswiseInversion ConditionalLogit Dirichlet EnsembleTemperature "
        "LearnedTest MatrixScaling multinomial_recalibration MultinomialRecalibration SequentialBound "
        "StructuredMatrixScaling StructuredVectorScaling VectorScaling VectorTest"
    ),
    "Trees and foundation models": "CatBoost LightGBM TabICL TabPFN",
    "Forecasts with a spread": (
        "CdfIsotonic Conformal coverage CoverageByGroup crps debiased_ence ence ence_curve "
        "ExchangeableStretch ForecastCurve ForecastRecalibrator ForecastTest group_coverage GroupShift "
        "interval_curve interval_error interval_score LogScale mean_squared_z MeanSquaredZ Moments nll "
        "PerGroup pinball pit_error pit_histogram PitInversion PitUniformity quantile_error scale_factor "
        "sharpness spread_curve SpreadChiSquare SpreadInversion SpreadSpline std_dispersion StdScaling "
        "sweep_ence uce VarianceHistogram VarianceIsotonic Wilson"
    ),
    "Curves": "class_tables confidence_gaps ConfidenceGaps reliability_curve ReliabilityCurve",
    "Decisions": "DecisionCurve miscalibration_cost MiscalibrationCost net_benefit risk_coverage RiskCoverage",
    "Wrappers, base classes and files": "BinaryRecalibrator FromClassifier Identity load OneVsRest Recalibrator",
    "The share of positives": "BestBin ElkanNoto estimate_prior",
    "Intervals, tests and curves": "DebiasedDelta PUInversion PUScore Reliability reliability",
    "Bounds": "bias_bound prior_band PriorBand sharp_bias_bound",
    "Maps": (
        "prior_shift PriorSensitivityWarning PUAverage PUBeta PUHistogram PUIsotonic PUPlatt PURecalibrator "
        "PUTemperature"
    ),
    "Planning": "Advice advise Detection power sample_size SampleSize",
    "Bias of an estimator": "Bias bias bias_table BiasTable simulate.estimates",
    "Worlds of known error": (
        "DirichletScores fit_logit_mixture LogitMixtureWorld LogNormalSpreads MulticlassWorld "
        "PAPER_WORLDS PUWorld RegressionWorld Scaled Spreads World"
    ),
    "Distributions of scores": (
        "BetaScores EmpiricalScores FixedScores LogitMixtureScores Scores UniformScores WithAtoms"
    ),
    "Calibration curves": (
        "Blend Curve FromScores Glm IdentityCurve PowerCurve ShiftCurve TemperatureCurve WavyCurve WithEnds"
    ),
    "Worlds fitted to data": "CurveFit fit_beta fit_curves fit_smoothed fit_world Goodness SmoothedCurve WorldFit",
    "Tables of rows that need not fit into memory": "bin_table bin_tables StreamingTable",
    "Which columns hold what": "EventColumns GaussianColumns OneVsRestColumns TopLabelColumns UnlabeledColumns",
    "Bins and tables": "table.*",
    "Figures": "plot.*",
    "Reports": "reporting.*",
    "Gates for tests of a model": "assert_calibrated Gate Decision headline_error headline_errors",
    "Inside scikit-learn": "integrations.sklearn.*",
    "Inside MLflow": "integrations.mlflow.*",
    "In training loops": "integrations.torchmetrics.*",
    "Results": "results.*",
    "This installation": "numerics.*",
}
_TASK = {key: title for title, keys in TASKS.items() for key in keys.split()}
#: At most this many other names under "See also".
MOST = 8


def home(package: str, thing: Any) -> str:
    """The module in which a name is defined, within the package; constants belong to the package that lists them."""
    module = getattr(thing, "__module__", None) or package
    return str(module).removeprefix("calibrant.")


def task(package: str, name: str, thing: Any) -> str:
    """The heading under which a name is listed."""
    return _TASK[key(package, name, thing)]


def key(package: str, name: str, thing: Any) -> str:
    """The entry of `TASKS` that a name belongs to: its own, else that of its package."""
    parts = home(package, thing).split(".")
    packages = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    entries = [*(f"{inner}.{name}" for inner in packages), name, *(f"{inner}.*" for inner in packages)]
    found = next((entry for entry in entries if entry in _TASK), None)
    if found is None:
        message = f"{package}.{name} has no task: add it to TASKS in docs/_extensions/reference_tasks.py"
        raise KeyError(message)
    return found


def by_task(package: str, things: dict[str, Any]) -> dict[str, list[str]]:
    """The names of a package by task, in the order of the tables."""
    titles = {name: task(package, name, thing) for name, thing in things.items()}
    return {title: [name for name in titles if titles[name] == title] for title in TASKS if title in titles.values()}


Key = tuple[str, str]


def see_also(things: dict[Key, Any]) -> dict[Key, list[Key]]:
    """For every name the others that belong to it: those it speaks of, its module, those that speak of it, its task."""
    names = {name: key for key in reversed(list(things)) for name in [key[1]]}
    speaks = {key: [names[word] for word in _words(thing) if word in names] for key, thing in things.items()}
    heard: dict[Key, list[Key]] = {key: [] for key in things}
    for key, others in speaks.items():
        for other in others:
            heard[other].append(key)
    homes = _groups({key: home(key[0], thing) for key, thing in things.items()})
    tasks = _groups({key: task(*key, thing) for key, thing in things.items()})
    found = {}
    for key in things:
        near = [*speaks[key], *homes[key], *heard[key]]
        others = list(dict.fromkeys(other for other in near if other != key))
        # A name that stands alone in its module has its task for company.
        found[key] = (others or [other for other in tasks[key] if other != key])[:MOST]
    return found


def _words(thing: Any) -> list[str]:
    """The names in backticks in a docstring, of methods `module.name` the last part."""
    text = inspect.getdoc(thing) if callable(thing) else ""
    return [word.rsplit(".", 1)[-1] for word in re.findall(r"(?<!`)`([\w.]+)`(?!`)", text or "")]


def _groups(keys: dict[Key, str]) -> dict[Key, list[Key]]:
    """For every key those with the same value."""
    members: dict[str, list[Key]] = {}
    for key, value in keys.items():
        members.setdefault(value, []).append(key)
    return {key: members[value] for key, value in keys.items()}
