"""Predicted distributions: intervals and tests of their spread, scale and coverage."""

__all__: list[str] = []
