"""Which method an interval is computed by: the one with the best measured coverage for its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from calibrant.data.predictions import Binary, Multiclass, Predictions
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.binary_bounds.chi_square_mixture import ChiSquareMixture
from calibrant.inference.binary_bounds.isotonic_bands import IsotonicBand
from calibrant.inference.binary_bounds.largest_gap import LargestGapBound
from calibrant.inference.binary_bounds.norm_bands import NormBand
from calibrant.inference.binary_bounds.split_lower_bound import SplitLowerBound
from calibrant.inference.binary_error.inversion import Inversion
from calibrant.inference.bootstrap import Bootstrap, Clustered
from calibrant.inference.forecasts.pit_inversion import PitInversion
from calibrant.inference.forecasts.scale_factor import LogScale
from calibrant.inference.forecasts.spread_inversion import SPREAD_ERRORS, SpreadInversion
from calibrant.inference.forecasts.wilson import Wilson
from calibrant.inference.mid_p import MidP
from calibrant.inference.profile_likelihood import ProfileLikelihood
from calibrant.inference.several_classes.classwise_inversion import ClasswiseInversion
from calibrant.inference.several_classes.sequential_bound import SequentialBound
from calibrant.pu.inference import BasicBootstrap, Conservative, DebiasedDelta
from calibrant.pu.inversion import PUInversion
from calibrant.results.target import Target, name_of
from calibrant.table.bintable import BinTable
from calibrant.table.task import task_of
from calibrant.table.unlabeled import Unlabeled

Estimator = Callable[[Any], float]

OfError = Inversion | IsotonicBand | LargestGapBound | ChiSquareMixture | SplitLowerBound
OfPositives = PUInversion | DebiasedDelta | BasicBootstrap | Conservative
OfClasses = SequentialBound | ClasswiseInversion
OfForecasts = SpreadInversion | LogScale | PitInversion | Wilson
OfValidation = MidP | ProfileLikelihood
Method = OfError | NormBand | Bootstrap | OfPositives | OfClasses | OfForecasts | OfValidation

#: The methods for what only predicted distributions have, by target.
FORECAST_METHODS: dict[str, OfForecasts] = {
    **dict.fromkeys(SPREAD_ERRORS, SpreadInversion()),
    "scale factor": LogScale(),
    "coverage error": PitInversion(),
    "coverage": Wilson(),
}

#: The targets that `NormBand` is for.
NORMS_OF_GAP = ("cumulative error", "cumulative range", "smooth error", "kernel error")

#: The methods for the numbers of the logistic recalibration framework, by target.
VALIDATION_METHODS: dict[str, OfValidation] = {
    "observed to expected ratio": MidP(),
    "calibration intercept": MidP(),
    "calibration slope": ProfileLikelihood(),
}


def default_method(estimator: Estimator, target: Target | None, data: Predictions | BinTable) -> Method:
    """The method with the best measured coverage for this target, task and clustering."""
    wanted = require_target(estimator, target)
    norm = wanted.norm
    if isinstance(task_of(data), Unlabeled):
        return PUInversion()
    if isinstance(data, Multiclass):
        return _default_of_classes(estimator, wanted, data)
    if wanted.quantity in FORECAST_METHODS:
        return FORECAST_METHODS[wanted.quantity]
    if wanted.quantity in VALIDATION_METHODS:
        return VALIDATION_METHODS[wanted.quantity]
    grouped, largest = getattr(data, "group", None) is not None, isinstance(norm, float) and math.isinf(norm)
    if is_norm_of_gap(target) and isinstance(data, Binary | BinTable):
        return NormBand()
    inverted = isinstance(norm, float) or norm == "squared"
    if not is_true_error(target) or not inverted:
        return Clustered() if grouped else Bootstrap()
    return LargestGapBound() if largest else Inversion()


def require_target(estimator: Estimator, target: Target | None) -> Target:
    """Refuse an estimator without a declared target."""
    if target is not None:
        return target
    message = (
        f"{name_of(estimator)} does not declare its target, so no method can be chosen: pass method=Bootstrap(), or "
        'declare it, e.g. @calibrant.results.estimates("mean score").'
    )
    raise TypeError(message)


def is_true_error(target: Target | None) -> bool:
    """Whether the calibration error of the population is the target."""
    return target is not None and target.quantity == "true error"


def is_norm_of_gap(target: Target | None) -> bool:
    """Whether the target is a norm of the gap as a signed measure on the scores."""
    return target is not None and target.quantity in NORMS_OF_GAP


def _default_of_classes(estimator: Estimator, target: Target, data: Multiclass) -> Method:
    """Of several classes: a bound of the error of whole vectors, an interval of that of single classes."""
    if target.quantity == "true error":
        return SequentialBound()
    if target.quantity == "classwise mean" and target.norm in (1.0, 2.0):
        return ClasswiseInversion()
    if target.quantity == "mean score":
        return Bootstrap() if data.group is None else Clustered()
    message = (
        f"No interval of {name_of(estimator)} for several classes is known to cover. Use calibration_error (a lower "
        "bound of the error of the whole vector), classwise(ece) in L1 or L2, data.top_label(), or calibration_test; "
        "method=Bootstrap() gives an interval for the expected estimate only."
    )
    raise InvalidPredictions(message)
