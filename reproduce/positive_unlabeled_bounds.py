"""Theorem 3 of the PU-ECE paper: a bound for PU-ECE on training rows, by the information that scores have of them."""

from __future__ import annotations

import math

from calibrant.pu.binned_inference import Bins, resolved
from calibrant.table.binning import EqualMass, PaperBins


def generalization_bound(
    *,
    prior: float,
    n_positive: float,
    n_unlabeled: float,
    fcmi: float,
    fcmi_unlabeled: float | None = None,
    bins: Bins | None = None,
    lipschitz: float = 1.0,
) -> float:
    r"""Theorem 3: bound on the expected \|PU-ECE - TCE\| if PU-ECE is evaluated on the training rows.

    .. math:: \frac{1+L}{B} + \sqrt{8 v (\mathrm{fCMI} + B\ln 2)}
              \; \Bigl(+ (1+L)\sqrt{\tfrac{8}{n_U} (\mathrm{fCMI}_U + B\ln 2)} \text{ for equal mass}\Bigr)

    The functional conditional mutual information fCMI (in nats) measures how much the scores reveal about which rows
    were used for training; it is unknown in general. `fcmi_of_entropy` and `fcmi_of_vc_dimension` bound it; it is 0 for
    a model that was not trained on these rows.

    References
    ----------
    Estimating Expected Calibration Error for Positive-Unlabeled Learning (2025), theorem 3.

    Examples
    --------
    >>> round(generalization_bound(prior=0.5, n_positive=1e4, n_unlabeled=1e5, fcmi=20.0), 4)
    0.1723
    """
    noise, cut = resolved(prior, n_positive, n_unlabeled, PaperBins() if bins is None else bins, lipschitz)
    unlabeled = fcmi if fcmi_unlabeled is None else fcmi_unlabeled
    if not fcmi >= unlabeled >= 0:
        message = f"fcmi must be at least fcmi_unlabeled and not negative, got {fcmi!r} and {unlabeled!r}."
        raise ValueError(message)
    bound = (1 + lipschitz) / cut.n_bins + math.sqrt(8 * noise * (fcmi + cut.n_bins * math.log(2)))
    if isinstance(cut, EqualMass):
        bound += (1 + lipschitz) * math.sqrt(8 / n_unlabeled * (unlabeled + cut.n_bins * math.log(2)))
    return float(bound)


def fcmi_of_entropy(n_positive: float, n_unlabeled: float) -> float:
    """Bound on fCMI that holds for every model: the entropy of the split, (n_P + n_U) ln 2. Always loose.

    Examples
    --------
    >>> round(fcmi_of_entropy(10, 90), 1)
    69.3
    """
    return (n_positive + n_unlabeled) * math.log(2)


def fcmi_of_vc_dimension(dimension: float, n: float) -> float:
    """Bound on fCMI for binary-valued models of finite VC dimension d and n training rows.

    max((d + 1) ln 2, d ln(2 e n / d)), after Harutyunyan, Raginsky, Ver Steeg, Galstyan (2021), theorem 4.1.

    Examples
    --------
    >>> round(fcmi_of_vc_dimension(10, 1000), 1)
    63.0
    """
    return max((dimension + 1) * math.log(2), dimension * math.log(2 * math.e * n / dimension))
