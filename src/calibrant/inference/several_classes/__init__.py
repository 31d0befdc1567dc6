"""Several classes: tests of the whole vector and of each class, intervals of single classes, bounds of the vector."""

__all__: list[str] = []
