"""The page of a report in parts: its head, a block per section, and what is folded away."""

__all__: list[str] = []
