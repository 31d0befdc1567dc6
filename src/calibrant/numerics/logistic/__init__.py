"""Logistic regressions, all of them: binary, many at once, multinomial, conditional, and their optimisers."""

__all__: list[str] = []
