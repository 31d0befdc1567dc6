"""Other intervals and bounds of binary predictions: norms of the gap, the largest gap, rising curves, split samples."""

__all__: list[str] = []
