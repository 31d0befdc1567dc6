"""Tests of calibration for binary predictions, the default and the classical ones, and how p-values are combined.

Here belong the methods; `calibration_test` itself is in `calibrant.inference.calibration_tests`.
"""

__all__: list[str] = []
