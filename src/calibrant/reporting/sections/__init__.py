"""The sections of a report, one builder each: from data to the dataclasses of `calibrant.reporting.contents`.

Here everything is computed and nothing is drawn or worded. A builder whose data cannot make its section raises
`CannotBuild`, whose text says why.
"""

__all__: list[str] = []
