"""Odd inputs, by entry point: the result is that of the plain arrays, or a sentence that names the argument."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import Inversion, IsotonicBand, MultiScale, PitInversion
from tests.fuzz import odd_inputs as odd

RNG = np.random.default_rng(0)
N = 40
P = RNG.random(N).round(3)
Y = (RNG.random(N) < P).astype(int)
W = RNG.random(N) + 0.5
CLASSES = RNG.dirichlet([1, 1, 1], N)
CODES = RNG.integers(0, 3, N)
VALUE, MEAN, STD = RNG.normal(size=N), RNG.normal(size=N), RNG.random(N) + 0.5
UNIFORM = cal.simulate.World(cal.simulate.UniformScores())
NORMAL = cal.Gaussian(VALUE, MEAN, STD)
QUANTILES = np.sort(RNG.normal(size=(N, 3)), axis=1)
BY = RNG.integers(0, 2, N)
PLATT, TEMPERATURE = cal.recalibrate.Platt().fit(P, Y), cal.recalibrate.Temperature().fit(CLASSES, CODES)
PACKAGE = str(Path(cal.__file__).parent)


@dataclass(frozen=True)
class Entry:
    """A function of one column: what is plain, what messages call it, what it holds, how many containers to try."""

    call: object
    plain: np.ndarray
    names: str
    kind: str = "numbers"
    most: int = 99


def columns(data, *names):
    return [np.asarray(getattr(data, name), dtype=float) for name in names]


ENTRIES = {
    "Binary y_true": Entry(lambda v: columns(cal.Binary(v, P), "y_true", "y_prob"), Y, "y_true", "labels"),
    "Binary y_prob": Entry(lambda v: columns(cal.Binary(Y, v), "y_true", "y_prob"), P, "y_prob|y_true"),
    "Binary weight": Entry(lambda v: columns(cal.Binary(Y, P, weight=v), "weight"), W, "weight", "optional"),
    "Binary group": Entry(lambda v: cal.Binary(Y, P, group=v).row_groups()[1], BY, "group|by", "groups"),
    "Multiclass y_true": Entry(
        lambda v: columns(cal.Multiclass(v, CLASSES), "y_true"), CODES, "y_true", "class labels"
    ),
    "Multiclass y_prob": Entry(
        lambda v: columns(cal.Multiclass(CODES, v), "y_prob"), CLASSES, "y_prob|y_true", "matrix"
    ),
    "Multiclass logits": Entry(
        lambda v: columns(cal.Multiclass(CODES, logits=v), "y_prob"), CLASSES, "logits|y_prob|y_true", "matrix"
    ),
    "Multiclass weight": Entry(
        lambda v: columns(cal.Multiclass(CODES, CLASSES, weight=v), "weight"), W, "weight", "optional"
    ),
    "Gaussian y_true": Entry(lambda v: cal.crps(cal.Gaussian(v, MEAN, STD)), VALUE, "y_true|mean", "outputs"),
    "Gaussian mean": Entry(lambda v: cal.crps(cal.Gaussian(VALUE, v, STD)), MEAN, "mean", "outputs"),
    "Gaussian std": Entry(lambda v: cal.ence(cal.Gaussian(VALUE, MEAN, v)), STD, "std", "outputs"),
    "Quantiles y_true": Entry(
        lambda v: cal.pinball(cal.Quantiles(v, [0.1, 0.5, 0.9], QUANTILES)), VALUE, "y_true|values"
    ),
    "Quantiles values": Entry(
        lambda v: cal.pinball(cal.Quantiles(VALUE, [0.1, 0.5, 0.9], v)), QUANTILES, "values", "matrix"
    ),
    "Samples y_true": Entry(lambda v: cal.crps(cal.Samples(v, QUANTILES)), VALUE, "y_true|draws"),
    "Samples draws": Entry(lambda v: cal.crps(cal.Samples(VALUE, v)), QUANTILES, "draws", "matrix"),
    "PositiveUnlabeled positive": Entry(
        lambda v: cal.ece(cal.PositiveUnlabeled(v, P, prior=0.4)), P, "positive", "alone"
    ),
    "PositiveUnlabeled unlabeled": Entry(
        lambda v: cal.ece(cal.PositiveUnlabeled(P, v, prior=0.4)), P, "unlabeled", "alone"
    ),
    "PositiveUnlabeled labels": Entry(
        lambda v: cal.ece(cal.PositiveUnlabeled.from_labels(v, P, prior=0.4, scenario="case-control")), Y, "labelled"
    ),
    "ece y_true": Entry(lambda v: cal.ece(v, P), Y, "y_true", "labels"),
    "ece y_prob": Entry(lambda v: cal.ece(Y, v), P, "y_prob|y_true"),
    "ence std": Entry(lambda v: cal.ence(VALUE, MEAN, v), STD, "std", "outputs"),
    "decompose y_prob": Entry(lambda v: cal.decompose(Y, v).miscalibration, P, "y_prob|y_true"),
    "interval y_prob": Entry(
        lambda v: cal.interval(cal.ece, Y, v, method=IsotonicBand()).interval.high, P, "y_prob|y_true", most=2
    ),
    "calibration_test y_true": Entry(lambda v: cal.calibration_test(v, P).p_value, Y, "y_true", "labels", most=2),
    "calibration_test y_prob": Entry(lambda v: cal.calibration_test(Y, v).p_value, P, "y_prob|y_true", most=2),
    "reliability_curve y_prob": Entry(lambda v: cal.reliability_curve(Y, v, bins=5).observed, P, "y_prob|y_true"),
    "by_group by": Entry(
        lambda v: list(cal.by_group(cal.brier, Y, P, by=v).estimates.values()), BY, "by|group", "groupings", most=2
    ),
    "group_coverage by": Entry(
        lambda v: cal.estimators.group_coverage(VALUE, MEAN, STD, by=v), BY, "by|[Gg]roup", "groups"
    ),
    "compare y_prob": Entry(
        lambda v: cal.compare(cal.brier, cal.Binary(Y, v), cal.Binary(Y, P**2)).difference,
        P,
        "y_prob|y_true",
        most=2,
    ),
    "report y_true": Entry(lambda v: cal.report(v, P).headline, Y, "y_true", "labels", most=1),
    "report y_prob": Entry(lambda v: cal.report(Y, v).headline, P, "y_prob|y_true", most=1),
    "BinTable y_prob": Entry(
        lambda v: cal.BinTable.of(cal.Binary(Y, v), cal.EqualWidth(5)).observed, P, "y_prob|y_true"
    ),
    "Platt scores": Entry(lambda v: cal.recalibrate.Platt().fit(v, Y).predict_proba(P), P, "scores|y"),
    "Platt y": Entry(lambda v: cal.recalibrate.Platt().fit(P, v).predict_proba(P), Y, "y", "classes"),
    "Platt sample_weight": Entry(
        lambda v: cal.recalibrate.Platt().fit(P, Y, v).predict_proba(P), W, "sample_weight", "optional"
    ),
    "Platt predict": Entry(lambda v: PLATT.predict_proba(v), P, "scores", "alone"),
    "Temperature scores": Entry(
        lambda v: cal.recalibrate.Temperature().fit(v, CODES).predict_proba(CLASSES), CLASSES, "scores|y", "matrix"
    ),
    "Temperature predict": Entry(lambda v: TEMPERATURE.predict_proba(v), CLASSES, "scores", "matrix alone"),
    "Isotonic scores": Entry(lambda v: cal.recalibrate.Isotonic().fit(v, Y).predict_proba(P), P, "scores|y"),
}
#: Containers that are tried where a result takes long.
FEW = ("objects", "pandas nullable", "Arrow chunks")
#: What may be given all the same, by kind of column.
ALLOWED = {
    "alone": {"one row less", "one row more"},
    "matrix alone": {"one row less", "one row more"},
    "optional": {"None"},
    "outputs": {"two columns of all"},
    "groups": {
        *("mask", "None in objects", "NaN in objects", "pandas NA in objects", "NaT in objects"),
        *("masked constant in objects", "list with null", "one row of text"),
        *(name for name in odd.REFUSED_COLUMN if "null" in name),
    },
    "groupings": {"two columns"},
    "class labels": {"text of numbers", "text of variable width", "text as objects", "bytes of numbers"},
    #: Any two values are classes of a recalibrator.
    "classes": {
        "dates",
        "dates as objects",
        "text of numbers",
        "text of variable width",
        "text as objects",
        "bytes of numbers",
        "complex",
        "durations",
    },
}


ALLOWED["groupings"] |= ALLOWED["groups"]


def same(entry):
    wide = entry.plain.ndim == 2
    made = {**odd.SAME_ANY, **(odd.SAME_MATRIX if wide else odd.SAME_COLUMN)}
    if entry.kind in ("groups", "groupings", "classes"):  # values of other types are other names
        made = {name: make for name, make in made.items() if name not in ("decimals", "fractions")}
    return {name: make for name, make in made.items() if name in FEW[: entry.most] or entry.most > len(FEW)}


def refused(entry):
    made = {**odd.REFUSED_ANY, **({} if entry.kind in ("groups", "groupings") else odd.REFUSED_NUMBERS)}
    if entry.plain.ndim == 1:
        made |= odd.REFUSED_COLUMN
    return {name: make for name, make in made.items() if name not in ALLOWED.get(entry.kind, ())}


def complaint(entry, make):
    """What is wrong with how an entry point takes a bad column; None where it refuses it by name."""
    try:
        found = entry.call(make(entry.plain))
    except (ValueError, TypeError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if not last.filename.startswith(PACKAGE):
            return f"{type(error).__name__} of {last.filename}: {error}"
        return None if re.search(rf"\b({entry.names})\b", str(error)) else f"does not name {entry.names}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"accepted: {found!r}"


def difference(entry, make, expected):
    """How the result of the same values in another container differs; None where it does not."""
    try:
        found = entry.call(make(entry.plain))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    close = np.allclose(np.asarray(found, dtype=float), np.asarray(expected, dtype=float), rtol=1e-12, atol=0)
    return None if close else f"{found!r} is not {expected!r}"


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_the_same_values_in_any_container_give_the_same_result(entry):
    expected = entry.call(entry.plain)
    wrong = {name: difference(entry, make, expected) for name, make in same(entry).items()}
    assert {name: how for name, how in wrong.items() if how} == {}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_bad_columns_are_refused_by_name(entry):
    wrong = {name: complaint(entry, make) for name, make in refused(entry).items()}
    assert {name: how for name, how in wrong.items() if how} == {}


def test_the_matrix_is_large():
    assert sum(len(same(entry)) + len(refused(entry)) for entry in ENTRIES.values()) > 1200


@dataclass(frozen=True)
class Option:
    """An argument that is a single value, with values that are right, and others."""

    call: object
    name: str
    right: tuple
    wrong: tuple


BINS = ((15, np.int64(15), cal.EqualMass(15)), (0, -1, 2.5, True, "15", (0.0, 1.0), float("nan"), len, cal.EqualMass))
OPTIONS = {
    **{
        f"{f.__name__} bins": Option(lambda v, f=f: f(Y, P, bins=v), "bins", *BINS)
        for f in (cal.ece, cal.mce, cal.debiased_ece)
    },
    **{
        f"{f.__name__} bins": Option(lambda v, f=f: f(VALUE, MEAN, STD, bins=v), "bins", *BINS)
        for f in (cal.ence, cal.uce, cal.debiased_ence)
    },
    "label_binned_ece bins": Option(lambda v: cal.estimators.label_binned_ece(Y, P, bins=v), "bins", *BINS),
    "reliability_curve bins": Option(lambda v: cal.reliability_curve(Y, P, bins=v).observed, "bins", *BINS),
    "HosmerLemeshow bins": Option(
        lambda v: cal.calibration_test(Y, P, method=cal.inference.HosmerLemeshow(bins=v)).p_value, "bins", *BINS
    ),
    "coarsen bins": Option(
        lambda v: cal.BinTable.of(cal.Binary(Y, P), cal.table.Distinct()).coarsen(v).observed, "bins", *BINS
    ),
    "BinTable.of bins": Option(lambda v: cal.BinTable.of(cal.Binary(Y, P), v).observed, "bins", *BINS),
    "Histogram bins": Option(lambda v: cal.recalibrate.Histogram(bins=v).fit(P, Y).predict_proba(P), "bins", *BINS),
    **{
        f"{f.__name__} norm": Option(
            lambda v, f=f: f(Y, P, norm=v),
            "norm",
            (1, 1.0, np.float64(1), True),
            (0, -1, float("nan"), "x", None, len, [1]),
        )
        for f in (cal.ece, cal.debiased_ece, cal.sweep_ece, cal.averaged_error)
    },
    **{
        name: Option(call, "level", (0.9, np.float64(0.9)), (0, 1, 5, -0.1, float("nan"), "0.9", None, len, [0.9]))
        for name, call in {
            "interval level": lambda v: (
                cal.interval(cal.brier, Y, P, level=v, method=cal.Bootstrap(draws=20)).interval.high
            ),
            "reliability_curve level": lambda v: cal.reliability_curve(Y, P, bins=5, level=v).observed,
            "compare level": lambda v: (
                cal.compare(
                    cal.brier, cal.Binary(Y, P), cal.Binary(Y, P**2), level=v, method=cal.Bootstrap(draws=20)
                ).difference
            ),
        }.items()
    },
    "variational_error norm": Option(
        lambda v: cal.variational_error(Y, P, norm=v), "norm", (1, 1.0), (0, -1, float("nan"), "x", None, len, [1])
    ),
    "coverage nominal": Option(
        lambda v: cal.coverage(VALUE, MEAN, STD, nominal=v), "nominal", (0.9,), (0, 1, float("nan"), "0.9", None, [0.9])
    ),
    "log_loss floor": Option(
        lambda v: cal.log_loss(Y, P, floor=v), "floor", (0, 0.0), (-0.1, 0.5, float("nan"), "0", None, [0])
    ),
    "pinball levels": Option(
        lambda v: cal.pinball(VALUE, MEAN, STD, levels=v),
        "levels",
        ([0.5], (0.5,)),
        ([0], [1.5], ["a"], [None], 0.5, []),
    ),
    "reliability_curve draws": Option(
        lambda v: cal.reliability_curve(Y, P, draws=v).observed, "draws", (20, np.int64(20)), (0, 2.5, "20", None, True)
    ),
    "Bootstrap draws": Option(
        lambda v: cal.interval(cal.brier, Y, P, method=cal.Bootstrap(draws=v)).interval.high,
        "draws",
        (20, np.int64(20)),
        (0, 2.5, "20", None, True),
    ),
    **{
        f"{name} seed": Option(call, "seed", (3, np.int64(3)), (-1, 2.5, float("nan"), "3", None, True, len, [3]))
        for name, call in {
            "variational_error": lambda v: cal.variational_error(Y, P, repeats=1, seed=v),
            "Bootstrap": lambda v: cal.interval(cal.brier, Y, P, method=cal.Bootstrap(20, seed=v)).interval.high,
            "Inversion": lambda v: cal.interval(cal.ece, Y, P, method=Inversion(19, seed=v)).interval.high,
            "PitInversion": lambda v: (
                cal.interval(cal.interval_error, NORMAL, method=PitInversion(19, seed=v)).interval.high
            ),
            "MultiScale": lambda v: cal.calibration_test(Y, P, method=MultiScale(19, seed=v)).p_value,
            "by_group": lambda v: (
                cal.by_group(
                    cal.brier, Y, P, by=BY, method=cal.Bootstrap(20, seed=v), test=MultiScale(19)
                ).worst.p_value
            ),
            "by_class": lambda v: cal.by_class(cal.Multiclass(CODES, CLASSES), draws=19, seed=v).rows[0].adjusted,
            "reliability_curve": lambda v: cal.reliability_curve(Y, P, draws=20, seed=v).consistency_low,
            "report": lambda v: cal.report(NORMAL, seed=v).headline,
            "bias": lambda v: cal.simulate.bias(cal.ece, UNIFORM, 50, repeats=3, seed=v).mean,
            "power": lambda v: cal.simulate.power(cal.ece, UNIFORM, 50, repeats=3, seed=v).type_two,
            "Auto": lambda v: cal.recalibrate.Auto(seed=v).fit(P, Y).predict_proba(P),
        }.items()
    },
    "prior": Option(
        lambda v: cal.ece(cal.PositiveUnlabeled(P, P, prior=v)),
        "prior",
        (0.4, np.float64(0.4)),
        (0, 1, -0.1, float("nan"), "0.4", len, [0.4], 1 + 1j),
    ),
    "positive": Option(
        lambda v: cal.ece(cal.Binary(Y, P, positive=v)), "positive|y_true", (1, True, 1.0), (2, "1", "x", [1], {})
    ),
    "classes": Option(
        lambda v: cal.brier(cal.Multiclass(CODES, CLASSES, classes=v)),
        "classes|y_true",
        ([0, 1, 2], (0, 1, 2), range(3), np.arange(3)),
        ([0, 1], [0, 1, 1], ["a", "b", "c"], [[0], [1], [2]], 3, "ab", {0, 1, 2}, {0: 1, 1: 2, 2: 3}),
    ),
}


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_single_arguments_are_taken_as_meant_or_refused_by_name(option):
    expected = np.asarray(option.call(option.right[0]), dtype=float)
    for value in option.right[1:]:
        np.testing.assert_array_equal(np.asarray(option.call(value), dtype=float), expected)
    entries = {repr(value): Entry(option.call, value, option.name) for value in option.wrong}
    wrong = {shown: complaint(entry, lambda value: value) for shown, entry in entries.items()}
    assert {name: how for name, how in wrong.items() if how} == {}
