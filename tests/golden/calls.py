"""The calls whose results are frozen: public names only, so that modules may move beneath them."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

import calibrant as cal
from calibrant import estimators, inference, pu, recalibrate, scale, simulate
from tests.golden.samples import WORLDS, samples, world

Calls = Iterator[tuple[str, Callable[[], Any]]]
DATA = samples()
#: Slow estimators are not tried on everything.
CROSS_FITTED = {"variational_error", "refinement", "overconfidence", "underconfidence"}
FEW = {"small", "weighted", "table", "classes", "one sample", "gaussian"}


def of_estimators() -> Calls:
    names = sorted(name for name in estimators.__all__ if name[0].islower())
    for name in names:
        if name in {"classwise", "variational_errors"}:
            continue
        for kind, data in DATA.items():
            if name not in CROSS_FITTED or kind in FEW:
                yield f"{name}/{kind}", partial(getattr(estimators, name), data)
    for norm in (2, np.inf):
        for name in ("ece", "averaged_error", "debiased_ece", "sweep_ece", "kde_ece"):
            yield f"{name}/small, norm {norm}", partial(getattr(cal, name), DATA["small"], norm=norm)
    for bins in (cal.EqualWidth(10), cal.EqualMass(7), cal.Edges([0, 0.2, 0.7, 1])):
        yield f"ece/medium, {bins!r}", partial(cal.ece, DATA["medium"], bins=bins)
    for one in (cal.ece, cal.debiased_ece, cal.brier):
        yield f"classwise/{one.__name__}", partial(cal.classwise, one, DATA["classes"])
    for score in ("brier", "log_loss"):
        for method in ("corp", "variational"):
            yield f"decompose/{score}, {method}", partial(cal.decompose, DATA["small"], score=score, method=method)


def of_intervals() -> Calls:
    for kind in ("small", "calibrated", "rounded", "weighted", "clustered", "table", "classes", "top"):
        for name in ("ece", "averaged_error", "brier", "mce", "ks_error", "observed_expected", "calibration_slope"):
            if kind in ("small", "weighted", "clustered") or name in ("averaged_error", "observed_expected"):
                yield f"interval/{name}/{kind}", partial(cal.interval, getattr(cal, name), DATA[kind])
    for name in ("smooth_ece", "kernel_error", "calibration_intercept", "auc", "log_loss", "ici", "variational_error"):
        yield f"interval/{name}/small", partial(cal.interval, getattr(cal, name), DATA["small"])
    for norm in (2, 3, "squared"):
        yield f"interval/norm {norm}", partial(cal.interval, partial(cal.variational_error, norm=norm), DATA["small"])
    yield "interval/classwise", partial(cal.interval, partial(cal.classwise, cal.ece), DATA["classes"])
    yield "interval/variational_error/classes", partial(cal.interval, cal.variational_error, DATA["classes"])
    yield from _of_forecasts_and_positives()
    yield from _of_chosen_methods()


def _of_forecasts_and_positives() -> Calls:
    everywhere = ("ence", "coverage", "pit_error", "scale_factor")
    rest = ("uce", "debiased_ence", "mean_squared_z", "interval_error", "quantile_error", "crps", "nll")
    for name in (*everywhere, *rest):
        for kind in ("gaussian", "gaussian clusters", "quantiles", "ensemble") if name in everywhere else ("gaussian",):
            yield f"interval/{name}/{kind}", partial(cal.interval, getattr(cal, name), DATA[kind])
    for kind in ("unlabeled", "one sample"):
        yield f"interval/ece/{kind}", partial(cal.interval, cal.ece, DATA[kind])
        call = partial(cal.interval, cal.ece, DATA[kind], method=pu.DebiasedDelta())
        yield f"interval/ece/{kind}, DebiasedDelta()", call


def _of_chosen_methods() -> Calls:
    for kind in ("small", "medium", "weighted"):
        call = partial(cal.interval, partial(cal.ece, norm=2), DATA[kind], method=inference.ChiSquareMixture())
        yield f"ChiSquareMixture/L2 {kind}", call
    for side in ("two-sided", "lower", "upper"):
        for level in (0.8, 0.95):
            method = inference.Inversion(draws=199, side=side)
            call = partial(cal.interval, cal.ece, DATA["medium"], method=method, level=level)
            yield f"Inversion/{side} {level}", call
    names = "IsotonicBand LargestGapBound ChiSquareMixture SplitLowerBound NormBand Bootstrap Clustered MidP"
    for name in (*names.split(), "ProfileLikelihood"):
        for estimator in (cal.ece, cal.mce, cal.ks_error, cal.calibration_slope, cal.observed_expected):
            method = getattr(inference, name)()
            yield f"{name}/{estimator.__name__}", partial(cal.interval, estimator, DATA["small"], method=method)


def of_worlds() -> Calls:
    for name in WORLDS:
        data = world(name)
        yield f"{name}/interval L1", partial(cal.interval, cal.ece, data)
        yield f"{name}/interval L2", partial(cal.interval, partial(cal.ece, norm=2), data)
        yield f"{name}/test", partial(cal.calibration_test, data)
        yield f"{name}/averaged_error", partial(cal.averaged_error, data)


def of_tests() -> Calls:
    for kind, data in DATA.items():
        yield f"default/{kind}", partial(cal.calibration_test, data)
    binary = "MultiScale Spiegelhalter HosmerLemeshow KolmogorovSmirnov KernelTest Cox ClusteredScore"
    kinds = {
        **dict.fromkeys(binary.split(), ("small", "calibrated", "clustered")),
        **dict.fromkeys(("VectorTest", "LearnedTest"), ("classes",)),
        **dict.fromkeys(("MeanSquaredZ", "PitUniformity", "SpreadChiSquare"), ("gaussian", "ensemble")),
    }
    for name, some in kinds.items():
        for kind in some:
            yield f"{name}/{kind}", partial(cal.calibration_test, DATA[kind], method=getattr(inference, name)())
    yield "PUScore", partial(cal.calibration_test, DATA["unlabeled"], method=pu.PUScore())
    yield "by_class", partial(cal.by_class, DATA["classes"], draws=199)


def of_comparisons_and_groups() -> Calls:
    a, classes, gaussian = DATA["small"], DATA["classes"], DATA["gaussian"]
    b = cal.Binary(a.y_true, expit(0.6 * logit(a.y_prob) - 0.2))
    for name in ("ece", "brier", "log_loss", "averaged_error", "auc"):
        yield f"compare/{name}", partial(cal.compare, getattr(cal, name), a, b)
    flat = cal.Multiclass(classes.y_true, 0.7 * classes.y_prob + 0.3 / 4)
    yield "compare/classes", partial(cal.compare, cal.variational_error, classes, flat)
    wide = cal.Gaussian(gaussian.y_true, gaussian.mean, 1.4 * gaussian.std)
    yield "compare/gaussian", partial(cal.compare, cal.ence, gaussian, wide)
    models = {"a": a, "b": b, "c": cal.Binary(a.y_true, 0.8 * a.y_prob)}
    yield "compare_many", partial(cal.compare_many, cal.ece, models)
    by = np.arange(2000) % 7
    for name in ("ece", "observed_expected"):
        yield f"by_group/{name}", partial(cal.by_group, getattr(cal, name), DATA["medium"], by=by)
    two = {"u": by % 2, "v": by % 3}
    yield "by_group/depth 2", partial(cal.by_group, cal.ece, DATA["medium"], by=two, depth=2)
    yield "by_group/gaussian", partial(cal.by_group, cal.ence, gaussian, by=np.arange(500) % 4)
    yield "by_group/clustered", partial(cal.by_group, cal.ece, DATA["clustered"], by=np.arange(600) // 4 % 3)


def of_curves_and_decisions() -> Calls:
    for kind in ("small", "weighted", "clustered", "table", "gaussian", "unlabeled"):
        yield f"reliability_curve/{kind}", partial(cal.reliability_curve, DATA[kind], draws=99)
        yield f"headline_error/{kind}", partial(inference.headline_error, DATA[kind])
    for kind in ("small", "weighted", "clustered"):
        for band in ("pointwise", "simultaneous"):
            call = partial(cal.net_benefit, DATA[kind], thresholds=[0.1, 0.3, 0.5], band=band)
            yield f"net_benefit/{kind} {band}", call
        yield f"cost/{kind}", partial(inference.miscalibration_cost, DATA[kind], thresholds=[0.2, 0.5])
        yield f"risk_coverage/{kind}", partial(cal.risk_coverage, DATA[kind])
    yield "risk_coverage/classes", partial(cal.risk_coverage, DATA["classes"], loss="log_loss")
    yield "isotonic_band", partial(inference.isotonic_band, DATA["medium"])
    yield "multinomial", partial(inference.multinomial_recalibration, DATA["classes"])


#: Maps that need other libraries, other arguments, or are no maps.
NOT_FROZEN = {
    "CatBoost",
    "LightGBM",
    "TabICL",
    "TabPFN",
    "PerGroup",
    "OneVsRest",
    "FeatureMap",
    "FromClassifier",
    "Gain",
    "gain",
    "load",
    "Recalibrator",
    "BinaryRecalibrator",
    "ForecastRecalibrator",
}
FORECAST_MAPS = {
    "AutoForecast",
    "CdfIsotonic",
    "Conformal",
    "SpreadSpline",
    "StdScaling",
    "VarianceHistogram",
    "VarianceIsotonic",
}
SCORES = np.array([0.0, 1e-4, 0.03, 0.2, 0.5, 0.77, 0.999, 1.0])


def of_maps() -> Calls:
    vectors = DATA["classes"].y_prob[:20]
    for name in sorted(set(recalibrate.__all__) - NOT_FROZEN):
        made = getattr(recalibrate, name)
        if name in FORECAST_MAPS:
            yield name, partial(_transformed, made())
            continue
        for kind in ("small", "weighted", "table"):
            yield f"{name}/{kind}", partial(_mapped, made(), DATA[kind], SCORES)
        yield f"{name}/classes", partial(_mapped, made(), DATA["classes"], vectors)
        yield f"{name}/sql", partial(_in_sql, made())
    yield "OneVsRest", partial(_mapped, recalibrate.OneVsRest(recalibrate.Platt()), DATA["classes"], vectors)
    for combine in ("average", "choose", "stack"):
        yield f"Auto/{combine}", partial(_mapped, recalibrate.Auto(combine=combine), DATA["medium"], SCORES)
    for kind in ("small", "clustered", "classes"):
        yield f"gain/{kind}", partial(_gain, DATA[kind])
    for name in ("PUPlatt", "PUTemperature", "PUBeta", "PUIsotonic", "PUHistogram", "PUAverage"):
        for kind in ("unlabeled", "one sample"):
            yield f"{name}/{kind}", partial(_mapped, getattr(pu, name)(), DATA[kind], SCORES)


def _gain(data: Any) -> Any:
    return recalibrate.gain(data, recalibrate.Temperature()).gain


def _mapped(made: Any, data: Any, scores: Any) -> Any:
    return np.asarray(made.fit(data).predict_proba(scores))


def _transformed(made: Any) -> Any:
    after = made.fit(DATA["gaussian"]).transform(DATA["gaussian"].take(np.arange(20)))
    return [np.asarray(after.std)] if hasattr(after, "std") else [np.asarray(getattr(after, "values", 0.0))]


def _in_sql(made: Any) -> str:
    """The expression with six digits of each number; the last of its sixteen depend on the machine."""
    text = made.fit(DATA["small"]).to_sql("score")
    return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.6g}", text)


def of_pu() -> Calls:
    positive, unlabeled = DATA["unlabeled"].positive, DATA["unlabeled"].unlabeled
    for method in (pu.BestBin(), pu.ElkanNoto()):
        call = partial(pu.estimate_prior, positive, unlabeled, method=method)
        yield f"estimate_prior/{type(method).__name__}", call
    for kind in ("unlabeled", "one sample"):
        yield f"prior_band/{kind}", partial(pu.prior_band, DATA[kind], 0.25, 0.45)
        yield f"reliability/{kind}", partial(pu.reliability, DATA[kind])
        yield f"sharp_bias_bound/{kind}", partial(pu.sharp_bias_bound, DATA[kind])
    sizes = {"prior": 0.3, "n_positive": 200, "n_unlabeled": 1000}
    yield "bias_bound", partial(pu.bias_bound, **sizes)
    yield "prior_shift", partial(pu.prior_shift, unlabeled[:20], from_prior=0.5, to_prior=0.2)


def of_simulations() -> Calls:
    for k, one in enumerate(list(simulate.PAPER_WORLDS)[:6]):
        known = simulate.PAPER_WORLDS[one] if isinstance(simulate.PAPER_WORLDS, dict) else one
        yield f"world {k}/true_error", known.true_error
        yield f"world {k}/bias", partial(simulate.bias, cal.ece, known, 200, repeats=40)
    some = simulate.World(simulate.BetaScores(1, 2), simulate.TemperatureCurve(1.5))
    yield "power", partial(simulate.power, cal.ece, some, 300, repeats=60)
    yield "fit_world", lambda: simulate.fit_world(DATA["small"]).world
    yield "sample_size", partial(cal.sample_size, cal.observed_expected, some, width=0.2)
    spreads = simulate.RegressionWorld(simulate.LogNormalSpreads(), simulate.Scaled(1.3))
    yield "regression", spreads.true_error
    vectors = simulate.MulticlassWorld(simulate.DirichletScores([1, 1, 2]), simulate.TemperatureCurve(1.4))
    yield "multiclass", vectors.true_error
    several = {"ece": cal.ece, "sweep": cal.sweep_ece}
    yield "bias_table", lambda: simulate.bias_table(several, [some], [100, 300], repeats=30).rows


def of_scale() -> Calls:
    y, p = DATA["medium"].y_true, DATA["medium"].y_prob
    frame = pd.DataFrame({"y": y, "p": p, "g": np.arange(2000) % 3})
    yield "bin_table", partial(scale.bin_table, frame, y_true="y", y_prob="p")
    yield "bin_tables", partial(scale.bin_tables, frame, y_true="y", y_prob="p", by="g")
    yield "streaming", partial(_streamed, y, p)
    yield "ece of a table", partial(cal.ece, DATA["table"], bins=12)


def _streamed(y: Any, p: Any) -> Any:
    table = scale.StreamingTable()
    for k in range(0, len(y), 250):
        table.update(y[k : k + 250], p[k : k + 250])
    return table.table()


def of_reports() -> Calls:
    days = np.datetime64("2024-01-01") + np.arange(2000) // 6
    options: dict[str, dict[str, Any]] = {
        "medium": {"by": np.arange(2000) % 5, "time": days, "threshold": 0.4},
        "gaussian": {"by": np.arange(500) % 3, "time": days[:500]},
    }
    kinds = "medium small calibrated weighted clustered rounded table classes gaussian quantiles ensemble unlabeled"
    for kind in (*kinds.split(), "one sample"):
        yield kind, partial(_reported, DATA[kind], **options.get(kind, {}))


def _reported(data: Any, **options: Any) -> dict[str, Any]:
    report = cal.report(data, **options)
    return {
        "verdict": dataclasses.asdict(report.verdict),
        "findings": [str(finding) for finding in report.findings],
        "measures": list(report.measures),
        "headline": report.headline,
        "tests": report.tests,
        "over_time": report.over_time,
        "groups": report.groups,
        "recalibration": report.recalibration,
    }


PARTS = {
    "estimators": of_estimators,
    "inference": of_intervals,
    "worlds": of_worlds,
    "tests": of_tests,
    "results": of_comparisons_and_groups,
    "curves": of_curves_and_decisions,
    "maps": of_maps,
    "pu": of_pu,
    "simulate": of_simulations,
    "scale": of_scale,
    "report": of_reports,
}
