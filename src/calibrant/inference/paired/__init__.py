"""Two models on the same rows: the interval of the difference of their true errors, task by task.

Here belong the methods; `compare` itself is in `calibrant.inference.comparison`.
"""

__all__: list[str] = []
