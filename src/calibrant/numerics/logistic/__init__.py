"""Logistic regressions, all of them: binary, many at once, multinomial and conditional, by one stacked Newton."""

__all__: list[str] = []
