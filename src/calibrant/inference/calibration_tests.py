"""`calibration_test`: is the model calibrated?"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from calibrant.data.forecasts import Forecast
from calibrant.data.predictions import Binary, Multiclass, Predictions, binary
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.clustered_score import ClusteredScore
from calibrant.inference.forecasts.regression_tests import MeanSquaredZ, PitUniformity, SpreadChiSquare
from calibrant.inference.hypothesis_tests.classical_tests import (
    Cox,
    HosmerLemeshow,
    KernelTest,
    KolmogorovSmirnov,
    Spiegelhalter,
)
from calibrant.inference.hypothesis_tests.multiscale import MultiScale
from calibrant.inference.several_classes.learned_test import LearnedTest
from calibrant.inference.several_classes.vector_test import VectorTest
from calibrant.pu.inference import PUScore
from calibrant.results.estimate import Significance
from calibrant.table.bintable import BinTable
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Unlabeled

OfOutcomes = MultiScale | KolmogorovSmirnov | Spiegelhalter | HosmerLemeshow | KernelTest | Cox | ClusteredScore
OfForecasts = MeanSquaredZ | PitUniformity | SpreadChiSquare
OfClasses = VectorTest | LearnedTest
TestMethod = OfOutcomes | OfForecasts | OfClasses | PUScore

#: What each method tests.
_METHODS: dict[str, Any] = {
    "outcomes": OfOutcomes,
    "several classes": OfClasses,
    "distributions": OfForecasts,
    "positive-unlabeled data": PUScore,
}


def calibration_test(
    data: Predictions | BinTable | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    method: TestMethod | None = None,
) -> Significance:
    """Test of the hypothesis that the model is calibrated; a small p-value is evidence against it.

    Parameters
    ----------
    data : Binary, Multiclass, Gaussian, Distribution, Quantiles, Samples, PositiveUnlabeled, fine BinTable, or y_true
        Rows must be independent, or binary with a `group` that says which depend on each other. For several classes
        the whole vector is tested; `data.top_label()` is the confidence alone, and `by_class` tests class by class.
        With plain arrays, `y_prob` comes next.
    method : optional
        For outcomes: `MultiScale` (default: exact, and no other test has more power in all settings),
        `KolmogorovSmirnov`, `Spiegelhalter`, `HosmerLemeshow`, `KernelTest`, `Cox`; for rows with a
        group `ClusteredScore`, the default there. For several classes: `VectorTest`
        (default), `LearnedTest`. For distributions: `PitUniformity`
        (default), `MeanSquaredZ`, `SpreadChiSquare`. For positive-unlabeled data: `calibrant.pu.PUScore`.

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
    chosen: Any = _default(data) if method is None else method
    if not isinstance(chosen, TestMethod):
        message = f"method must be MultiScale(), Spiegelhalter(), ..., got {method!r}."
        raise TypeError(message)
    wanted = next(kind for kind, methods in _METHODS.items() if isinstance(chosen, methods))
    if wanted != _kind(data) and not (isinstance(data, BinTable) and wanted != "several classes"):
        message = f"{type(chosen).__name__} tests {wanted}, but {data!r} holds {_kind(data)}."
        raise TypeError(message)
    if getattr(data, "group", None) is not None and not isinstance(chosen, ClusteredScore):
        instead = "use ClusteredScore()" if isinstance(data, Binary) else "take one row per group"
        message = f"{type(chosen).__name__} needs independent rows, but these have a group; {instead}."
        raise InvalidPredictions(message)
    given: Any = data
    return chosen.test(given)


def _kind(data: Predictions | BinTable) -> str:
    if isinstance(task_of(data), Unlabeled):
        return "positive-unlabeled data"
    if isinstance(data, Multiclass):
        return "several classes"
    return "distributions" if isinstance(data, Forecast) else "outcomes"


def _default(data: Predictions | BinTable) -> TestMethod:
    if isinstance(data, Binary) and data.group is not None:
        return ClusteredScore()
    made: dict[str, TestMethod] = {
        "outcomes": MultiScale(),
        "several classes": VectorTest(),
        "distributions": PitUniformity(),
        "positive-unlabeled data": PUScore(),
    }
    return made[_kind(data)]
