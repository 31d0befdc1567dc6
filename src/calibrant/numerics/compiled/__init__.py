"""Loops over rows, compiled by Numba. `loops` has all of them, and only `numerics.acceleration` imports it.

Every kernel finds the bins and cells of NumPy's way, bit for bit, and sums that agree to 1e-12. Kernels release the
interpreter's lock, never allocate per row, and index with unsigned numbers. Scores are read in blocks that stay in the
first-level cache: a vectorised loop finds bins and checks rows, then a scalar one adds them up. A kernel that meets a
bad row says so and its sums are dropped: NumPy's way then finds the row and words the message.
"""

#: Nothing is public; the switch imports `loops`.
__all__: list[str] = []
