"""What few readers need, folded away: every estimate, every test, notes on the method, and how it was made."""

from __future__ import annotations

import platform

from calibrant._version import __version__
from calibrant.reporting.drawing.markup import Child, Markup, tag
from calibrant.reporting.layout.elements import Block, fold, plain_table, rich
from calibrant.reporting.model import Report
from calibrant.reporting.tables import Table, estimates_table, tests_table


def details_block(report: Report) -> Block:
    """The folds at the end of the page."""
    folds: list[Child] = []
    estimates, tests = estimates_table(report), tests_table(report)
    if estimates.rows:
        note = (
            "One interval is given for the true error: that of the headline. Other estimates of it aim at the same "
            "quantity. Mean scores, such as the Brier score and log loss, are not calibration errors."
        )
        folds.append(fold("All estimates", _scrolled(estimates, ("", "n nw", "n nw", "why")), tag("p", note)))
    if tests.rows:
        folds.append(fold("All tests", _scrolled(tests, ("", "n nw", "why"))))
    if report.contents.notes:
        folds.append(fold("Method notes", *(tag("p", rich(note)) for note in report.contents.notes)))
    made = f"Calibrant {__version__}, Python {platform.python_version()}, {platform.system()}."
    folds.append(fold("How this report was made", tag("p", made)))
    return Block("details", "Details", "Details", "", tag("div", *folds, class_="folds"))


def _scrolled(table: Table, styles: tuple[str, ...]) -> Markup:
    inner = plain_table(table.columns, table.rows, styles)
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=f"All {table.heading.lower()}")
