"""Rows and binnings to try tables with."""

import numpy as np
from hypothesis import strategies as st

import calibrant as cal

scores = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.2, 0.3, 1 / 3, 2 / 3]),
    st.integers(0, 20).map(lambda k: k / 20),
)
#: A score, an outcome and a whole weight per row.
rows = st.lists(st.tuples(scores, st.booleans(), st.integers(0, 4)), min_size=1, max_size=60)
binnings = st.one_of(
    st.integers(1, 20).map(cal.EqualWidth),
    st.integers(1, 20).map(cal.EqualMass),
    st.just(cal.Edges([0, 0.1, 0.1, 0.5, 1])),
)


def unpack(rows, weighted):
    """Outcomes, scores, and weights (None unless weighted), never all 0."""
    p, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if weighted and not w.any():
        w[0] = 1
    return y.astype(int), p, (w if weighted else None)
