"""Calibration when only positives and unlabeled rows exist: guarantees, inference, class priors, risks, ground truth.

The estimators themselves have their usual names and take `calibrant.PositiveUnlabeled`; repair is in
`calibrant.recalibrate` (`PUPlatt` and its kin).

>>> import calibrant as cal
>>> round(cal.pu.bias_bound(prior=0.5, n_positive=1000, n_unlabeled=10_000, bins=cal.PaperBins()), 4)
0.2186
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.plot.unlabeled import reliability_diagram as reliability_diagram
    from calibrant.pu.bounds import PriorBand as PriorBand
    from calibrant.pu.bounds import bias_bound as bias_bound
    from calibrant.pu.bounds import fcmi_of_entropy as fcmi_of_entropy
    from calibrant.pu.bounds import fcmi_of_vc_dimension as fcmi_of_vc_dimension
    from calibrant.pu.bounds import generalization_bound as generalization_bound
    from calibrant.pu.bounds import prior_band as prior_band
    from calibrant.pu.bounds import sharp_bias_bound as sharp_bias_bound
    from calibrant.pu.inference import BasicBootstrap as BasicBootstrap
    from calibrant.pu.inference import Conservative as Conservative
    from calibrant.pu.inference import DebiasedDelta as DebiasedDelta
    from calibrant.pu.inference import Reliability as Reliability
    from calibrant.pu.inference import pu_calibration_test as pu_calibration_test
    from calibrant.pu.inference import pu_interval as pu_interval
    from calibrant.pu.inference import reliability as reliability
    from calibrant.pu.logistic import PULogistic as PULogistic
    from calibrant.pu.prior import BestBin as BestBin
    from calibrant.pu.prior import ElkanNoto as ElkanNoto
    from calibrant.pu.prior import estimate_prior as estimate_prior
    from calibrant.pu.recalibration_nonparametric import prior_shift as prior_shift
    from calibrant.pu.risks import imbalanced_nnpu_risk as imbalanced_nnpu_risk
    from calibrant.pu.risks import nnpu_risk as nnpu_risk
    from calibrant.pu.risks import upu_risk as upu_risk
    from calibrant.simulate.logit_mixture import LogitMixture as LogitMixture
    from calibrant.simulate.logit_mixture import Normals as Normals
    from calibrant.simulate.logit_mixture import logit_mixture as logit_mixture
    from calibrant.table.unlabeled import Gaps as Gaps
    from calibrant.table.unlabeled import largest_prior as largest_prior

#: Where each public name lives.
_HOME = {
    "table.unlabeled": ("Gaps", "largest_prior"),
    "pu.bounds": (
        "PriorBand",
        "bias_bound",
        "fcmi_of_entropy",
        "fcmi_of_vc_dimension",
        "generalization_bound",
        "prior_band",
        "sharp_bias_bound",
    ),
    "plot.unlabeled": ("reliability_diagram",),
    "pu.inference": (
        "BasicBootstrap",
        "Conservative",
        "DebiasedDelta",
        "Reliability",
        "pu_calibration_test",
        "pu_interval",
        "reliability",
    ),
    "pu.logistic": ("PULogistic",),
    "simulate.logit_mixture": ("LogitMixture", "Normals", "logit_mixture"),
    "pu.prior": ("BestBin", "ElkanNoto", "estimate_prior"),
    "pu.risks": ("imbalanced_nnpu_risk", "nnpu_risk", "upu_risk"),
    "pu.recalibration_nonparametric": ("prior_shift",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"calibrant.{_MODULE_OF[name]}"), name)
    message = f"module 'calibrant.pu' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return __all__
