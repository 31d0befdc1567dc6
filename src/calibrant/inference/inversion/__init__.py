"""Confidence intervals by inverting tests: binary, classwise, spread and PIT errors.

All fit a gap and follow the same path of hypotheses, `calibrant.numerics.inversion`; positive-unlabeled data have
`calibrant.pu.inversion`. docs/methods/intervals.md derives the method.
"""

__all__: list[str] = []
