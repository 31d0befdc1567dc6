"""Confidence intervals by inverting tests: binary, classwise, spread and PIT errors.

The path along which a test is inverted is `calibrant.numerics.inversion`; positive-unlabeled data have
`calibrant.pu.inversion`.
"""

__all__: list[str] = []
