"""Figures as static SVG, drawn from the sections of a report: nothing here computes, nothing needs a script."""

__all__: list[str] = []
