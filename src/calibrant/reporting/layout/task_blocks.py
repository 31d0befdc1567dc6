"""Blocks of forecasts and of positive-unlabeled rows."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.reporting.contents import Contents, Shares, Spread
from calibrant.reporting.drawing.markup import Child, tag
from calibrant.reporting.drawing.shares import implied_figure, shares_figure
from calibrant.reporting.drawing.spread import coverage_figure, pit_figure, spread_figure
from calibrant.reporting.layout.elements import Block, as_text, callout, drawn, rejected
from calibrant.reporting.layout.keys import implied_key
from calibrant.reporting.rounding import score


def spread_block(section: Spread, contents: Contents) -> Iterator[Block]:
    """Errors against spread beside coverage, then the histogram of F(y)."""
    figures: list[Child] = []
    titles = []
    if section.bins:
        found = spread_figure(section, significant=rejected(contents))
        titles.append(found.title)
        figures.append(tag("figure", tag("figcaption", "Errors and predicted spread"), drawn(found), as_text(found)))
    if section.coverage:
        cover = coverage_figure(section)
        titles.append(cover.title)
        figures.append(tag("figure", tag("figcaption", cover.title), drawn(cover), as_text(cover)))
    lead = (
        "Root mean squared error against predicted standard deviation, and coverage of central intervals, with 95 % "
        "intervals. Grey: a calibrated forecaster."
    )
    if figures:
        yield Block("spread", "Spread and error", titles[0], lead, tag("div", *figures, class_="cols even"))
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
