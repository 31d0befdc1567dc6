"""Maps that repair probabilities: scikit-learn estimators fitted to scores and outcomes, saved as JSON.

>>> import calibrant as cal
>>> fixed = cal.recalibrate.Platt().fit([0.1, 0.9, 0.9, 0.1, 0.9], [0, 1, 0, 0, 1])
>>> fixed.predict_proba([0.9]).round(3)
array([[0.333, 0.667]])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.pu.recalibration import PUBeta as PUBeta
    from calibrant.pu.recalibration import PUPlatt as PUPlatt
    from calibrant.pu.recalibration import PURecalibrator as PURecalibrator
    from calibrant.pu.recalibration import PUTemperature as PUTemperature
    from calibrant.pu.recalibration_nonparametric import PUHistogram as PUHistogram
    from calibrant.pu.recalibration_nonparametric import PUIsotonic as PUIsotonic
    from calibrant.pu.recalibration_nonparametric import prior_shift as prior_shift
    from calibrant.recalibrate.base import BinaryRecalibrator as BinaryRecalibrator
    from calibrant.recalibrate.base import Identity as Identity
    from calibrant.recalibrate.base import Recalibrator as Recalibrator
    from calibrant.recalibrate.bayesian_binning import BayesianBinning as BayesianBinning
    from calibrant.recalibrate.boosted_trees import CatBoost as CatBoost
    from calibrant.recalibrate.boosted_trees import LightGBM as LightGBM
    from calibrant.recalibrate.ensemble import EnsembleTemperature as EnsembleTemperature
    from calibrant.recalibrate.foundation import TabICL as TabICL
    from calibrant.recalibrate.foundation import TabPFN as TabPFN
    from calibrant.recalibrate.histogram import Histogram as Histogram
    from calibrant.recalibrate.histogram import ScalingBinning as ScalingBinning
    from calibrant.recalibrate.isotonic import CentredIsotonic as CentredIsotonic
    from calibrant.recalibrate.isotonic import Isotonic as Isotonic
    from calibrant.recalibrate.kmeans import Partition as Partition
    from calibrant.recalibrate.logistic import Beta as Beta
    from calibrant.recalibrate.logistic import Platt as Platt
    from calibrant.recalibrate.logistic import Quadratic as Quadratic
    from calibrant.recalibrate.logistic import Temperature as Temperature
    from calibrant.recalibrate.matrix import Dirichlet as Dirichlet
    from calibrant.recalibrate.matrix import MatrixScaling as MatrixScaling
    from calibrant.recalibrate.matrix import StructuredMatrixScaling as StructuredMatrixScaling
    from calibrant.recalibrate.matrix import StructuredVectorScaling as StructuredVectorScaling
    from calibrant.recalibrate.matrix import VectorScaling as VectorScaling
    from calibrant.recalibrate.nadaraya_watson import NadarayaWatson as NadarayaWatson
    from calibrant.recalibrate.persistence import load as load
    from calibrant.recalibrate.regression_base import ForecastRecalibrator as ForecastRecalibrator
    from calibrant.recalibrate.regression_base import PerGroup as PerGroup
    from calibrant.recalibrate.regression_distribution import CdfIsotonic as CdfIsotonic
    from calibrant.recalibrate.regression_distribution import Conformal as Conformal
    from calibrant.recalibrate.regression_spread import SpreadSpline as SpreadSpline
    from calibrant.recalibrate.regression_spread import StdScaling as StdScaling
    from calibrant.recalibrate.regression_spread import VarianceHistogram as VarianceHistogram
    from calibrant.recalibrate.regression_spread import VarianceIsotonic as VarianceIsotonic
    from calibrant.recalibrate.selection import Auto as Auto
    from calibrant.recalibrate.smoothed import ConditionalLogit as ConditionalLogit
    from calibrant.recalibrate.smoothed import Smoothed as Smoothed
    from calibrant.recalibrate.spline import Spline as Spline
    from calibrant.recalibrate.venn_abers import VennAbers as VennAbers
    from calibrant.recalibrate.wrappers import FromClassifier as FromClassifier
    from calibrant.recalibrate.wrappers import OneVsRest as OneVsRest

#: Where each public name lives.
_HOME = {
    "pu.recalibration": ("PUBeta", "PUPlatt", "PURecalibrator", "PUTemperature"),
    "pu.recalibration_nonparametric": ("PUHistogram", "PUIsotonic", "prior_shift"),
    "recalibrate.base": ("BinaryRecalibrator", "Identity", "Recalibrator"),
    "recalibrate.bayesian_binning": ("BayesianBinning",),
    "recalibrate.boosted_trees": ("CatBoost", "LightGBM"),
    "recalibrate.ensemble": ("EnsembleTemperature",),
    "recalibrate.foundation": ("TabICL", "TabPFN"),
    "recalibrate.histogram": ("Histogram", "ScalingBinning"),
    "recalibrate.isotonic": ("CentredIsotonic", "Isotonic"),
    "recalibrate.kmeans": ("Partition",),
    "recalibrate.logistic": ("Beta", "Platt", "Quadratic", "Temperature"),
    "recalibrate.matrix": (
        "Dirichlet",
        "MatrixScaling",
        "StructuredMatrixScaling",
        "StructuredVectorScaling",
        "VectorScaling",
    ),
    "recalibrate.nadaraya_watson": ("NadarayaWatson",),
    "recalibrate.persistence": ("load",),
    "recalibrate.regression_base": ("ForecastRecalibrator", "PerGroup"),
    "recalibrate.regression_distribution": ("CdfIsotonic", "Conformal"),
    "recalibrate.regression_spread": ("SpreadSpline", "StdScaling", "VarianceHistogram", "VarianceIsotonic"),
    "recalibrate.selection": ("Auto",),
    "recalibrate.smoothed": ("ConditionalLogit", "Smoothed"),
    "recalibrate.spline": ("Spline",),
    "recalibrate.venn_abers": ("VennAbers",),
    "recalibrate.wrappers": ("FromClassifier", "OneVsRest"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"calibrant.{_MODULE_OF[name]}"), name)
    message = f"module 'calibrant.recalibrate' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return __all__
