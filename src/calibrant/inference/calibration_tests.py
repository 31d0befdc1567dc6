"""`calibration_test`: is the model calibrated? With the default test of binary predictions, `MultiScale`."""

from __future__ import annotations

from typing import Any, Literal, Unpack, get_args

from calibrant.data.forecasts import Forecast
from calibrant.data.judged import Judged
from calibrant.data.predictions import Binary, Column, Columns, Multiclass, Predictions, binary
from calibrant.data.validation import fail
from calibrant.inference.classical_tests import Cox, HosmerLemeshow, KernelTest, KolmogorovSmirnov, Spiegelhalter
from calibrant.inference.clustered_scores import ClusteredScore
from calibrant.inference.forecast_tests import ForecastTest
from calibrant.inference.forecasts import MeanSquaredZ, Moments, PitUniformity, SpreadChiSquare
from calibrant.inference.learned_bounds import LearnedTest
from calibrant.inference.multiclass_tests import VectorTest
from calibrant.inference.multiscale import MultiScale
from calibrant.pu.binned_inference import PUScore
from calibrant.results.estimate import Significance
from calibrant.results.target import takes_columns
from calibrant.table.bintable import BinTable
from calibrant.table.of_data import Data
from calibrant.table.task import Unlabeled, task_of

OfOutcomes = MultiScale | KolmogorovSmirnov | Spiegelhalter | HosmerLemeshow | KernelTest | Cox | ClusteredScore
OfForecasts = ForecastTest | Moments | MeanSquaredZ | PitUniformity | SpreadChiSquare
OfClasses = VectorTest | LearnedTest
TestMethod = OfOutcomes | OfForecasts | OfClasses | PUScore

#: What each method tests.
_METHODS: dict[str, Any] = {
    "outcomes": OfOutcomes,
    "several classes": OfClasses,
    "distributions": OfForecasts,
    "positive-unlabeled data": PUScore,
}


#: Tests that are asked for by name.
TestName = Literal["multiscale", "kolmogorov-smirnov", "spiegelhalter", "hosmer-lemeshow", "kernel", "cox"]
_TESTS = (MultiScale, KolmogorovSmirnov, Spiegelhalter, HosmerLemeshow, KernelTest, Cox)
_NAMED: dict[str, type[OfOutcomes]] = dict(zip(get_args(TestName), _TESTS, strict=True))


@takes_columns
def calibration_test(
    data: Data = None, y_prob: Column = None, *, method: TestMethod | TestName | None = None, **columns: Unpack[Columns]
) -> Significance:
    """Test of the hypothesis that the model is calibrated; a small p-value is evidence against it.

    Parameters
    ----------
    data : Binary, Multiclass, Judged, Gaussian, Quantiles, Samples, PositiveUnlabeled, BinTable, or y_true
        Rows must be independent, or binary or forecasts with a `group` that says which depend on each other; the
        outputs of one row of a forecast may depend on each other. For several classes
        the whole vector is tested; `data.top_label()` is the confidence alone, and `by_class` tests class by class.
        Judged data have one test, of level, slope and shape. With plain arrays, `y_prob` comes next.
    method : "multiscale", "spiegelhalter", "cox", ..., or one of the classes below, optional
        For outcomes: `MultiScale` (default: exact, and no other test has more power in all settings),
        `KolmogorovSmirnov`, `Spiegelhalter`, `HosmerLemeshow`, `KernelTest`, `Cox`; for rows with a
        group `MultiScale` (default) or `ClusteredScore`. For several classes: `VectorTest`
        (default), `LearnedTest`. For distributions: `ForecastTest`
        (default), `Moments`, `MeanSquaredZ`, `PitUniformity`, `SpreadChiSquare`. For positive-unlabeled data:
        `calibrant.pu.PUScore`.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> calibration_test(rng.random(2000) < p, p).p_value > 0.05
    True
    >>> calibration_test(cal.Binary(rng.random(2000) < p**1.2, p)).p_value < 0.01
    True
    """
    data = data if isinstance(data, BinTable) else binary(data, y_prob)
    if isinstance(data, Judged):
        from calibrant.inference.judged import judged_test

        if method is not None:
            fail(f"Judged data have one test; leave out method={method!r}.", TypeError)
        return judged_test(data)
    chosen: Any = _default(data) if method is None else method
    chosen = _NAMED[chosen]() if isinstance(chosen, str) and chosen in _NAMED else chosen
    if not isinstance(chosen, TestMethod):
        names = ", ".join(map(repr, _NAMED))
        fail(f"method must be {names}, or MultiScale(), Spiegelhalter(), ..., got {method!r}.", TypeError)
    wanted = next(kind for kind, methods in _METHODS.items() if isinstance(chosen, methods))
    if wanted != _kind(data) and not (isinstance(data, BinTable) and wanted != "several classes"):
        fail(f"{type(chosen).__name__} tests {wanted}, but {data!r} holds {_kind(data)}.", TypeError)
    _require_independent(data, chosen)
    given: Any = data
    return chosen.test(given)


def _require_independent(data: Predictions | BinTable, chosen: TestMethod) -> None:
    """Tests for groups allow for the dependence of rows with one; those of forecasts also for that of outputs."""
    if isinstance(chosen, ForecastTest | Moments):
        return
    needs = f"{type(chosen).__name__} needs independent rows"
    if getattr(data, "group", None) is not None and not isinstance(chosen, MultiScale | ClusteredScore):
        fail(f"{needs}, but these have a group; {_instead(data)}.")
    outputs = len(data.outputs) if isinstance(data, Forecast) else 1
    if outputs > 1:
        fail(f"{needs}, but each row has {outputs} outputs, which may depend on each other; {_instead(data)}.")


def _instead(data: Predictions | BinTable) -> str:
    """What dependent rows can be tested with."""
    if isinstance(data, Binary | Forecast):
        return f"use {type(_default(data)).__name__}()"
    return "take one row per group"


def _kind(data: Predictions | BinTable) -> str:
    if isinstance(task_of(data), Unlabeled):
        return "positive-unlabeled data"
    if isinstance(data, Multiclass):
        return "several classes"
    return "distributions" if isinstance(data, Forecast) else "outcomes"


def _default(data: Predictions | BinTable) -> TestMethod:
    classes = {"several classes": VectorTest, "distributions": ForecastTest, "positive-unlabeled data": PUScore}
    return classes.get(_kind(data), MultiScale)()
