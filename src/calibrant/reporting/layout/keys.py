"""Keys of the diagrams: what every line, band and marker is."""

from __future__ import annotations

from calibrant.reporting.drawing.canvas import dot, stroke
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.names import plural

_DIAGONAL = tag("path", d="M1 13 33 1", class_="ref")
_STEPS = tag("path", d="M1 12H11V8H22V3H33", class_="curve")


def _sample(*parts: Markup, height: float = 14) -> Markup:
    return tag("svg", *parts, width=34, height=height, aria_hidden="true")


def _band(style: str) -> Markup:
    return _sample(tag("rect", width=34, height=14, class_=style))


def _dot() -> Markup:
    return _sample(stroke(17, 0, 17, 18, "wh"), dot(17, 9, 5.5, "dot"), height=18)


def _key(*lines: tuple[Markup, str, str]) -> Markup:
    return tag("ul", *(tag("li", s, tag("span", tag("b", strong), text)) for s, strong, text in lines), class_="key")


_BANDS = (
    (_band("confband"), "Confidence band.", " The true curve lies inside everywhere with 95 % confidence."),
    (_band("nullband"), "Consistency band.", " Where a calibrated model’s curve would lie, 95 % at each score."),
)


def probability_key(row: str, event: str) -> Markup:
    """The diagram of probabilities, in the user's words for one row and one event."""
    perfect = f" Of 100 {plural(row)} scored 10 %, 10 are {plural(event)}."
    return _key(
        (_sample(_DIAGONAL), "Perfect calibration.", perfect),
        (_sample(_STEPS), "Observed frequency", ", the best rising curve (CORP, isotonic). No bins to choose."),
        *_BANDS,
        (_dot(), "Binned frequency", f" with 95 % interval; the area shows the number of {plural(row)}."),
    )


def confidence_key(row: str) -> Markup:
    """The diagram of confidence in the predicted class."""
    return _key(
        (_sample(_DIAGONAL), "Perfect calibration.", f" Of 100 {plural(row)} with a confidence of 80 %, 80 are right."),
        (_sample(_STEPS), "Observed accuracy", ", the best rising curve (CORP, isotonic)."),
        *_BANDS,
        (_dot(), "Binned accuracy", f" with 95 % interval; the area shows the number of {plural(row)}."),
    )


def implied_key(prior: str) -> Markup:
    """The diagram of shares of positives that the labelled ones imply."""
    words = f" at an assumed total of {prior}, with 95 % sampling interval."
    return _key((_dot(), "Implied share of positives", words), (_sample(_DIAGONAL), "Perfect calibration.", ""))
