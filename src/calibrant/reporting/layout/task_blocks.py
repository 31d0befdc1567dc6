"""Blocks of forecasts and of positive-unlabeled rows."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.contents import Contents, Shares, Spread
from calibrant.reporting.drawing.markup import tag
from calibrant.reporting.drawing.shares import implied_figure, shares_figure
from calibrant.reporting.drawing.spread import coverage_figure, pit_figure, spread_figure
from calibrant.reporting.layout.elements import Block, as_text, callout, drawn, rejected
from calibrant.reporting.layout.keys import implied_key
from calibrant.reporting.rounding import score


def spread_block(section: Spread, contents: Contents) -> Iterator[Block]:
    """Errors against spread beside coverage, then the histogram of F(y)."""
    figures = [spread_figure(section, significant=rejected(contents))] if section.bins else []
    figures += [coverage_figure(section)] if section.coverage else []
    names = ["Errors and predicted spread", figures[1].title] if len(figures) == 2 else [""]
    lead = "Observed against nominal coverage of central intervals, with 95 % intervals."
    if section.bins:
        lead = "Root mean squared error against predicted standard deviation, with 95 % intervals. "
        lead += "Grey: a calibrated forecaster."
    body = [
        tag("figure", tag("figcaption", name) if name else None, drawn(figure), as_text(figure))
        for name, figure in zip(names, figures, strict=False)
    ]
    if figures:
        yield Block("spread", "Spread and error", figures[0].title, lead, tag("div", *body, class_="cols even"))
    if section.pit:
        pit = pit_figure(section)
        words = (
            "Where outcomes fall in their predicted distributions. Flat if calibrated; a U shape means that the spread "
            "is too narrow, a hump that it is too wide."
        )
        yield Block("coverage", "Distribution", pit.title, words, tag("figure", drawn(pit), as_text(pit)))


def shares_block(section: Shares, contents: Contents) -> Iterator[Block]:
    """The error against the assumed share, then the implied shares."""
    figure = shares_figure(section)
    lead = "Calibration error (PU-ECE, percentage points) against the assumed share of positives, with 95 % intervals."
    if section.largest is not None:
        lead += f" These data allow a share of at most {score(section.largest)}."
    yield Block("share", "Assumed share", figure.title, lead, tag("figure", drawn(figure), as_text(figure)))
    if not section.implied:
        return
    implied = implied_figure(section, significant=rejected(contents))
    note = callout(
        "What cannot be seen here.",
        "No row is known to be negative. Every frequency is the count of labelled positives, scaled so that they make "
        "up the assumed share. A random sample of 200 labelled rows would replace the assumption by a measurement.",
    )
    body = tag(
        "div",
        tag("figure", drawn(implied), as_text(implied)),
        tag("div", implied_key(score(section.prior)), note),
        class_="cols",
    )
    about = "Share of positives implied by the labelled ones, against predicted probability."
    yield Block("diagram", "Reliability", implied.title, about, body)
