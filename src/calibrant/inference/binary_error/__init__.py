"""The default interval of the true calibration error of binary predictions, from cells of scores to both ends.

Here belongs what `inversion.Inversion` is made of. Its neighbours in `binary_bounds` need other assumptions.
"""

__all__: list[str] = []
