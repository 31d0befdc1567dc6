"""Keys of the diagrams: what every line, band and marker is."""

from __future__ import annotations

from calibrant.reporting.drawing.canvas import dot, stroke
from calibrant.reporting.drawing.markup import Markup, tag

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


PROBABILITY_KEY = _key(
    (_sample(_DIAGONAL), "Perfect calibration.", " Of rows scored 10 %, one in ten is an event."),
    (_sample(_STEPS), "Observed frequency", ", the best rising curve (CORP, isotonic). No bins to choose."),
    (_band("confband"), "Confidence band.", " The true curve lies inside everywhere with 95 % confidence."),
    (_band("nullband"), "Consistency band.", " Where a calibrated model’s curve would lie, 95 % at each score."),
    (_dot(), "Binned frequency", " with 95 % interval; the area shows the number of rows."),
)
CONFIDENCE_KEY = _key(
    (_sample(_DIAGONAL), "Perfect calibration.", " Of rows with a confidence of 80 %, four in five are right."),
    (_sample(_STEPS), "Observed accuracy", " (CORP, isotonic)."),
    (_band("confband"), "Confidence band.", " The true curve lies inside everywhere with 95 % confidence."),
    (_band("nullband"), "Consistency band.", " Where a calibrated model’s curve would lie, 95 % at each score."),
    (_dot(), "Binned accuracy", " with 95 % interval; the area shows the number of rows."),
)
IMPLIED_KEY = _key(
    (_dot(), "Implied share of positives", " at the assumed total share, with 95 % sampling interval."),
    (_sample(_DIAGONAL), "Perfect calibration.", ""),
)
