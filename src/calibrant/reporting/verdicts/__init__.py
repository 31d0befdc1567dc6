"""The answer of a report, as a pure function of evidence: nothing here sees data.

Here belong the truth tables: which sentence, which severity, which advice. Evidence is collected in `reporting`.
"""

__all__: list[str] = []
