"""Can a model's stated uncertainty be believed? Measure it, say how sure you are, and repair it.

>>> import calibrant as cal
>>> cal.ece([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], bins=cal.EqualWidth(2))
<ECE 0.25, n=4, EqualWidth(n=2, low=0.0, high=1.0)>

Names are loaded when first used, so that importing the package costs little more than importing NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__ as __version__

if TYPE_CHECKING:
    from calibrant import inference as inference
    from calibrant import plot as plot
    from calibrant import pu as pu
    from calibrant import recalibrate as recalibrate
    from calibrant import scale as scale
    from calibrant import simulate as simulate
    from calibrant.data.distributions import Distribution as Distribution
    from calibrant.data.distributions import Gaussian as Gaussian
    from calibrant.data.distributions import Quantiles as Quantiles
    from calibrant.data.distributions import Samples as Samples
    from calibrant.data.positive_unlabeled import PositiveUnlabeled as PositiveUnlabeled
    from calibrant.data.predictions import Binary as Binary
    from calibrant.data.predictions import Multiclass as Multiclass
    from calibrant.data.predictions import Predictions as Predictions
    from calibrant.data.validation import InvalidPredictions as InvalidPredictions
    from calibrant.estimators.averaged import averaged_error as averaged_error
    from calibrant.estimators.binned import ece as ece
    from calibrant.estimators.binned import label_binned_ece as label_binned_ece
    from calibrant.estimators.binned import mce as mce
    from calibrant.estimators.coverage import coverage as coverage
    from calibrant.estimators.coverage import group_coverage as group_coverage
    from calibrant.estimators.coverage import interval_error as interval_error
    from calibrant.estimators.coverage import pit_error as pit_error
    from calibrant.estimators.coverage import quantile_error as quantile_error
    from calibrant.estimators.cumulative import ks_error as ks_error
    from calibrant.estimators.debiased import debiased_ece as debiased_ece
    from calibrant.estimators.decomposition import Decomposition as Decomposition
    from calibrant.estimators.decomposition import decompose as decompose
    from calibrant.estimators.dispersion import mean_squared_z as mean_squared_z
    from calibrant.estimators.dispersion import std_dispersion as std_dispersion
    from calibrant.estimators.ence import debiased_ence as debiased_ence
    from calibrant.estimators.ence import ence as ence
    from calibrant.estimators.ence import sweep_ence as sweep_ence
    from calibrant.estimators.ence import uce as uce
    from calibrant.estimators.kde import kde_ece as kde_ece
    from calibrant.estimators.kernel import kernel_error as kernel_error
    from calibrant.estimators.kernel_forms import GaussianKernel as GaussianKernel
    from calibrant.estimators.kernel_forms import LaplaceKernel as LaplaceKernel
    from calibrant.estimators.lower_bound import CrossFittedBound as CrossFittedBound
    from calibrant.estimators.lower_bound import SplitSampleBound as SplitSampleBound
    from calibrant.estimators.multiclass import classwise as classwise
    from calibrant.estimators.proper_scores import brier as brier
    from calibrant.estimators.proper_scores import log_loss as log_loss
    from calibrant.estimators.ranking import auc as auc
    from calibrant.estimators.regression_curves import ForecastCurve as ForecastCurve
    from calibrant.estimators.regression_curves import ence_curve as ence_curve
    from calibrant.estimators.regression_curves import interval_curve as interval_curve
    from calibrant.estimators.regression_curves import pit_histogram as pit_histogram
    from calibrant.estimators.regression_curves import spread_curve as spread_curve
    from calibrant.estimators.regression_scores import crps as crps
    from calibrant.estimators.regression_scores import interval_score as interval_score
    from calibrant.estimators.regression_scores import nll as nll
    from calibrant.estimators.regression_scores import pinball as pinball
    from calibrant.estimators.regression_scores import sharpness as sharpness
    from calibrant.estimators.smooth import smooth_ece as smooth_ece
    from calibrant.estimators.sweep import sweep_ece as sweep_ece
    from calibrant.estimators.variational import calibration_error as calibration_error
    from calibrant.estimators.variational import calibration_errors as calibration_errors
    from calibrant.estimators.variational import overconfidence as overconfidence
    from calibrant.estimators.variational import refinement as refinement
    from calibrant.estimators.variational import underconfidence as underconfidence
    from calibrant.estimators.variational_norms import Distance as Distance
    from calibrant.inference.bootstrap import Bootstrap as Bootstrap
    from calibrant.inference.bootstrap import Clustered as Clustered
    from calibrant.inference.calibration_tests import calibration_test as calibration_test
    from calibrant.inference.chi_square_mixture import ChiSquareMixture as ChiSquareMixture
    from calibrant.inference.classical_tests import Cox as Cox
    from calibrant.inference.classical_tests import HosmerLemeshow as HosmerLemeshow
    from calibrant.inference.classical_tests import KernelTest as KernelTest
    from calibrant.inference.classical_tests import KolmogorovSmirnov as KolmogorovSmirnov
    from calibrant.inference.classical_tests import Spiegelhalter as Spiegelhalter
    from calibrant.inference.comparison import Comparison as Comparison
    from calibrant.inference.comparison import compare as compare
    from calibrant.inference.comparison import compare_many as compare_many
    from calibrant.inference.groups import ByGroup as ByGroup
    from calibrant.inference.groups import by_group as by_group
    from calibrant.inference.intervals import SplitLowerBound as SplitLowerBound
    from calibrant.inference.intervals import interval as interval
    from calibrant.inference.inversion import Inversion as Inversion
    from calibrant.inference.isotonic_bands import IsotonicBand as IsotonicBand
    from calibrant.inference.multiscale import MultiScale as MultiScale
    from calibrant.inference.paired_gaps import PairedGaps as PairedGaps
    from calibrant.inference.reliability import ReliabilityCurve as ReliabilityCurve
    from calibrant.inference.reliability import reliability_curve as reliability_curve
    from calibrant.integrations.testing import assert_calibrated as assert_calibrated
    from calibrant.reporting import Report as Report
    from calibrant.reporting import report as report
    from calibrant.results.estimate import Estimate as Estimate
    from calibrant.results.estimate import Interval as Interval
    from calibrant.results.estimate import Significance as Significance
    from calibrant.table.binning import BoundBins as BoundBins
    from calibrant.table.binning import Distinct as Distinct
    from calibrant.table.binning import Edges as Edges
    from calibrant.table.binning import EqualMass as EqualMass
    from calibrant.table.binning import EqualWidth as EqualWidth
    from calibrant.table.binning import HybridGrid as HybridGrid
    from calibrant.table.binning import LogGrid as LogGrid
    from calibrant.table.binning import PaperBins as PaperBins
    from calibrant.table.bintable import BinTable as BinTable

#: Where each public name lives.
_HOME = {
    "data.distributions": ("Distribution", "Gaussian", "Quantiles", "Samples"),
    "data.positive_unlabeled": ("PositiveUnlabeled",),
    "data.predictions": ("Binary", "Multiclass", "Predictions"),
    "data.validation": ("InvalidPredictions",),
    "estimators.averaged": ("averaged_error",),
    "estimators.binned": ("ece", "label_binned_ece", "mce"),
    "estimators.coverage": ("coverage", "group_coverage", "interval_error", "pit_error", "quantile_error"),
    "estimators.cumulative": ("ks_error",),
    "estimators.debiased": ("debiased_ece",),
    "estimators.decomposition": ("Decomposition", "decompose"),
    "estimators.dispersion": ("mean_squared_z", "std_dispersion"),
    "estimators.ence": ("debiased_ence", "ence", "sweep_ence", "uce"),
    "estimators.kde": ("kde_ece",),
    "estimators.kernel": ("kernel_error",),
    "estimators.kernel_forms": ("GaussianKernel", "LaplaceKernel"),
    "estimators.lower_bound": ("CrossFittedBound", "SplitSampleBound"),
    "estimators.multiclass": ("classwise",),
    "estimators.proper_scores": ("brier", "log_loss"),
    "estimators.ranking": ("auc",),
    "estimators.regression_curves": ("ForecastCurve", "ence_curve", "interval_curve", "pit_histogram", "spread_curve"),
    "estimators.regression_scores": ("crps", "interval_score", "nll", "pinball", "sharpness"),
    "estimators.smooth": ("smooth_ece",),
    "estimators.sweep": ("sweep_ece",),
    "estimators.variational": (
        "calibration_error",
        "calibration_errors",
        "overconfidence",
        "refinement",
        "underconfidence",
    ),
    "estimators.variational_norms": ("Distance",),
    "inference.bootstrap": ("Bootstrap", "Clustered"),
    "inference.calibration_tests": ("calibration_test",),
    "inference.chi_square_mixture": ("ChiSquareMixture",),
    "inference.classical_tests": ("Cox", "HosmerLemeshow", "KernelTest", "KolmogorovSmirnov", "Spiegelhalter"),
    "inference.comparison": ("Comparison", "compare", "compare_many"),
    "inference.groups": ("ByGroup", "by_group"),
    "inference.intervals": ("SplitLowerBound", "interval"),
    "inference.inversion": ("Inversion",),
    "inference.isotonic_bands": ("IsotonicBand",),
    "inference.multiscale": ("MultiScale",),
    "inference.paired_gaps": ("PairedGaps",),
    "inference.reliability": ("ReliabilityCurve", "reliability_curve"),
    "integrations.testing": ("assert_calibrated",),
    "reporting": ("Report", "report"),
    "results.estimate": ("Estimate", "Interval", "Significance"),
    "table.binning": (
        "BoundBins",
        "Distinct",
        "Edges",
        "EqualMass",
        "EqualWidth",
        "HybridGrid",
        "LogGrid",
        "PaperBins",
    ),
    "table.bintable": ("BinTable",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

#: Subpackages that are reached as attributes.
_SUBPACKAGES: tuple[str, ...] = ("inference", "plot", "pu", "recalibrate", "scale", "simulate")

__all__ = sorted(["__version__", *_MODULE_OF, *_SUBPACKAGES])


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"calibrant.{_MODULE_OF[name]}"), name)
    if name in _SUBPACKAGES:
        return import_module(f"calibrant.{name}")
    message = f"module 'calibrant' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return __all__
