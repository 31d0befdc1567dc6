"""Why a section is missing from a report."""

from __future__ import annotations


class CannotBuild(Exception):
    """The data cannot make this section; the message is the reason, a sentence for the reader of the report.

    >>> str(CannotBuild("All rows have the same outcome."))
    'All rows have the same outcome.'
    """
