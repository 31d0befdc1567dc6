"""What readers see instead of the names in code, and nouns in the plural."""

from __future__ import annotations

import re
from typing import NamedTuple

from calibrant.results.estimate import Estimate, Significance
from calibrant.table.binning import EqualMass, EqualWidth


class Name(NamedTuple):
    """A name for readers, and one line on what it is."""

    text: str
    line: str


#: Estimates by `Estimate.name` without its norm.
_ESTIMATES: dict[str, tuple[str, str]] = {
    "Calibration error": (
        "Calibration error",
        "Mean distance between predicted and true probability, by an average of smooth curves.",
    ),
    "Averaged error": ("Averaged error", "Mean distance between the predictions and an average of smooth curves."),
    "Variational error": (
        "Variational error",
        "What a fitted map gains on rows it has not seen; a lower bound on average.",
    ),
    "ECE": ("ECE", "Mean gap per bin. Depends on the number of bins and rows."),
    "ECE_debias": ("Debiased ECE", "Binned error with the expected noise of each bin removed; may be negative."),
    "ECE_sweep": ("ECE sweep", "Binned error with the largest number of bins whose frequencies still rise."),
    "smECE": ("Smooth ECE", "Gaussian smoothing instead of bins; its width is chosen from the data."),
    "ECE_KDE": ("Kernel-density ECE", "Gap between two kernel density estimates."),
    "KS error": (
        "Largest cumulative gap (KS)",
        "Largest difference between observed and predicted events below any score, as a share of the rows.",
    ),
    "SKCE": ("Kernel calibration error", "Correlation of residuals with nearby scores."),
    "MCE": ("Maximum bin error", "The worst bin. Noisy: do not compare across sizes."),
    "Overconfidence": (
        "Over-confident part",
        "The error where predictions are farther from 1/2 than they should be.",
    ),
    "Underconfidence": (
        "Under-confident part",
        "The error where predictions are closer to 1/2 than they should be.",
    ),
    "Calibration slope": (
        "Calibration slope",
        "Factor of the predicted log odds in a logistic regression of the outcome: 1 if calibrated.",
    ),
    "Calibration intercept": (
        "Calibration in the large",
        "Shift of the log odds after which totals agree: 0 if calibrated.",
    ),
    "O:E ratio": (
        "Observed : expected",
        "Events observed divided by the sum of predictions. Below 1: predictions are too high.",
    ),
    "ICI": ("Integrated calibration index", "Mean distance to a smooth curve."),
    "Brier score": ("Brier score", "A mean score, not a calibration error: it mixes calibration and discrimination."),
    "Log loss": ("Log loss", "A mean score, not a calibration error: it mixes calibration and discrimination."),
    "AUC": ("AUC", "Discrimination: it ignores calibration."),
    "Classwise ECE": ("Class-wise calibration error", "Mean over classes of the ECE of each class against the rest."),
    "Classwise debiased ECE": (
        "Class-wise calibration error",
        "Mean over classes of the debiased error of each class against the rest.",
    ),
    "ENCE": ("ENCE", "Mean relative gap between predicted spread and error."),
    "ENCE_debias": (
        "Debiased ENCE",
        "Root mean square of the same gaps, without what noise adds; on the scale of ENCE, and may be negative.",
    ),
    "ENCE_sweep": ("ENCE sweep", "ENCE with the largest number of bins whose errors still rise."),
    "UCE": ("UCE", "Mean gap between predicted variance and squared error, in squared units."),
    "Mean z": ("Mean standardised error", "Mean of (y − mean) / std: 0 if calibrated."),
    "Mean z^2": ("Mean squared standardised error", "Mean of ((y − mean) / std)²: 1 if calibrated."),
    "Scale factor": ("Error-to-spread ratio", "Root mean square of (y − mean) / std: 1 if calibrated."),
    "C_v": ("Variation of the spread", "Standard deviation of the predicted spreads over their mean: 0 if constant."),
    "Interval error": ("Mean coverage error", "Mean distance between nominal and observed coverage."),
    "Quantile error": ("Mean quantile error", "Mean distance between nominal and observed share below each quantile."),
    "Coverage": ("Coverage", "Share of outcomes inside the central interval."),
    "PIT KS distance": ("PIT distance (KS)", "Largest gap between the distribution of F(y) and uniform."),
    "Sharpness": ("Root mean predicted variance", "How wide the forecasts are; not a calibration error."),
    "CRPS": ("CRPS", "A mean score, in the units of the outcome; not a calibration error."),
    "NLL": ("Negative log likelihood", "A mean score; not a calibration error."),
    "Pinball": ("Pinball loss", "A mean score of quantiles; not a calibration error."),
}

#: Tests by the beginning of `Significance.method`.
_TESTS: tuple[tuple[str, str, str], ...] = (
    ("MultiScale", "Multiscale test", "Are there deviations in windows of any width and position?"),
    ("Cox", "Intercept and slope (Cox)", "Is the intercept 0 and the slope 1?"),
    ("Hosmer-Lemeshow", "Hosmer–Lemeshow, 10 groups", "Do ten groups of equal size deviate? Depends on the grouping."),
    (
        "Spiegelhalter",
        "Spiegelhalter",
        "Is the Brier score what the predictions say it should be? Blind to errors that cancel.",
    ),
    ("KolmogorovSmirnov", "Kolmogorov–Smirnov", "Is the largest cumulative gap beyond chance?"),
    ("KernelTest", "Kernel test", "Are there smooth deviations?"),
    ("VectorTest", "Whole-vector test", "All classes at once, against outcomes drawn from the vectors."),
    (
        "classes one by one",
        "Test of each class and of the confidence",
        "Is the intercept 0 and the slope 1 for every class, allowing for weights and dependence within clusters?",
    ),
    ("LearnedTest", "Learned test of the whole vector", "Can a fitted map predict outcomes better on unseen rows?"),
    ("ForecastTest", "Test of forecasts", "Do outcomes fall where their predicted distributions say?"),
    ("Moments", "Test of mean and spread", "Are errors 0 on average, and as large as the predicted spread?"),
    ("mean z^2", "Error-to-spread test", "Is the mean squared standardised error 1?"),
    ("spread chi square", "Spread by bins", "Do errors match the predicted spread in every bin of it?"),
    ("PIT uniformity", "Uniformity of F(y)", "Do outcomes fall evenly over their predicted distributions?"),
    (
        "judged rows",
        "Test of level, slope and shape with few gold labels",
        "Is the mean of gold that of the confidences, the slope 1 and the error 0, each within its share?",
    ),
    (
        "PU score test",
        "Score test for positive-unlabeled data",
        "Do scores of labelled positives agree with predictions and share?",
    ),
    (
        "Clustered score test",
        "Intercept and slope, between clusters",
        "Is the intercept 0 and the slope 1, allowing for dependence within clusters?",
    ),
)

#: Recalibration maps by class: the name in tables, and in a sentence where that differs.
_MAPS: dict[str, tuple[str, str]] = {
    "Temperature": ("Temperature scaling", ""),
    "MatrixTemperature": ("Temperature scaling", ""),
    "Platt": ("Platt scaling", ""),
    "Beta": ("Beta calibration", ""),
    "Quadratic": ("Quadratic scaling", ""),
    "Spline": ("Spline", "a spline"),
    "Isotonic": ("Isotonic regression", ""),
    "StdScaling": ("One factor (std scaling)", "one factor for all spreads"),
    "SpreadSpline": ("Spline of the spread", "a spline of the spread"),
    "VarianceIsotonic": ("Isotonic variance", "an isotonic map of the variance"),
    "Conformal": ("Conformal adjustment", "a conformal adjustment"),
    "VectorScaling": ("Vector scaling", ""),
    "MatrixScaling": ("Matrix scaling", ""),
    "Dirichlet": ("Dirichlet calibration", ""),
    "ConditionalLogit": ("Conditional logit", "a conditional logit with local corrections"),
    "PUPlatt": ("Platt scaling for positive-unlabeled data", ""),
    "PUIsotonic": ("Isotonic regression for positive-unlabeled data", ""),
}


def name_of_estimate(estimate: Estimate) -> Name:
    """The name with its norm and bins, and one line on what it is."""
    base, _, norm = estimate.name.partition(" (")
    text, line = _ESTIMATES.get(base, (base, ""))
    rule = None if estimate.bins is None else getattr(estimate.bins.cut, "rule", None)
    if base in ("ECE", "ENCE", "UCE") and isinstance(rule, EqualWidth | EqualMass):
        kind = "" if base != "ECE" else "equal-width " if isinstance(rule, EqualWidth) else "equal-mass "
        return Name(f"{text}, {rule.n_bins} {kind}bins", line)
    if "nominal" in estimate.details:
        return Name(f"{text} of {100 * estimate.details['nominal']:.6g} % intervals", line)
    return Name(f"{text} ({norm}" if norm else text, line)


def name_of_test(test: Significance) -> Name:
    """The name of a test with its number of simulations, and the question it asks."""
    text, line = next(
        ((name, line) for start, name, line in _TESTS if test.method.startswith(start)), (test.method, "")
    )
    return Name(f"{text} ({test.draws:,} simulations)" if test.draws else text, line)


def name_of_map(map_class: str) -> str:
    """The name of a recalibration map in tables, from that of its class."""
    return _MAPS.get(map_class, (map_class, ""))[0]


def remaining_error(loss: str) -> tuple[str, str]:
    """What is left after a map that is judged by a loss, and its unit."""
    return {"CRPS": ("ENCE", "%"), "negative log likelihood": ("ENCE", "%")}.get(loss, ("error", "points"))


def map_in_sentence(name: str, *, start: bool = False) -> str:
    """The name of a map, from its class or as in tables, in a sentence; `start` where it begins one."""
    name = name_of_map(name)
    text = next((words for shown, words in _MAPS.values() if shown == name and words), name)
    if start:
        return text[:1].upper() + text[1:]
    return text if text.startswith(("Platt", "Dirichlet")) else text[:1].lower() + text[1:]


_IRREGULAR = {
    "person": "people", "child": "children", "man": "men", "woman": "women", "loss": "losses",
    "analysis": "analyses", "crisis": "crises", "diagnosis": "diagnoses", "prognosis": "prognoses",
}  # fmt: skip
#: Words of letters only.
_WORDS = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
#: Of a noun with one of these, the last word is not the one that has a plural.
_JOINING = {"after", "and", "at", "before", "by", "for", "from", "in", "of", "on", "or", "over", "to", "with", "within"}
#: What a noun that has no plain plural is the name of.
_KINDS = {"event": "of", "row": "of", "group": "by"}


def plural(noun: str, number: float | None = None, *, kind: str = "row") -> str:
    """A noun in the plural, or as it is for exactly one; where it has no plain plural, "rows of" it.

    `kind` is what the noun names: an event, a row or a column of groups.
    """
    if not noun:
        return noun
    *before, last = re.split(r"(\s+)", noun)
    lower = last.lower()
    irregular = _IRREGULAR.get(lower)
    words = re.split(r"[ -]", noun.lower())
    if not _WORDS.fullmatch(noun) or _JOINING & set(words) or (lower.endswith("is") and irregular is None):
        return f"{kind if number == 1 else f'{kind}s'} {_KINDS[kind]} {noun}"
    if number == 1 or (irregular is None and re.search(r"[^su]s$", lower)):  # "deaths" is a plural already
        return noun
    if irregular is not None:
        last = irregular
    elif re.search(r"[^aeiou]y$", lower):
        last = f"{last[:-1]}ies"
    elif lower.endswith(("s", "x", "z", "ch", "sh")):
        last = f"{last}es"
    else:
        last = f"{last}s"
    return "".join([*before, last])


def had_the_event(event: str) -> str:
    """What is said of rows with the event: "had the event", with its name where it has one."""
    return "had the event" if event == "event" else f'had the event "{event}"'


def shortened(name: str, most: int) -> str:
    """A name in at most so many letters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def listed(words: list[str] | tuple[str, ...]) -> str:
    """Several words: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
