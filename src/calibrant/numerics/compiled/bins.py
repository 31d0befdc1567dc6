"""Few bins of equal width: rows and sums of p per bin and outcome, and the check of all rows, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.numerics.compiled.kernel import BLOCK, I64, ONE, U64, inner, kernel
from calibrant.numerics.compiled.vectors import add_at

#: Copies of the table, so that neighbouring rows never wait for the same number; blocks between two additions to the
#: totals, so that no running sum has many terms.
LANES, FLUSH = 16, 16


@inner
def places(score: Any, bins: Any, step: Any, offset: Any, unit: Any, index: Any) -> Any:
    """Find the place of each score, `unit` times its bin plus its offset; negative if a score is bad.

    floor(bins p + 1/2) is the bin or one more, whatever the rounding, and one comparison with the true edge settles it.
    The bits of a score outside [0, 1], of NaN and of -0.0 are negative or larger than those of 1. No branch depends on
    the data, and a bad score has a place too.
    """
    scale, last, wrong = np.float64(bins), np.float64(bins - 1), I64(0)
    for i in range(score.shape[0]):
        v = np.float64(score[i])
        bits = v.view(np.int64)
        wrong |= (ONE - bits) | bits
        above = np.floor(v * scale + 0.5)
        where = above - (1.0 if v <= above * step else 0.0)
        where = where if where > 0.0 else 0.0
        where = where if where < last else last
        index[i] = np.uint32(np.int32(where) * np.int32(unit) + offset[i])
    return wrong


@inner
def _add(score: Any, index: Any, table: Any) -> None:
    """Add each score and a count of one at its place: one load, addition and store of 16 bytes."""
    for i in range(score.shape[0]):
        add_at(table, U64(index[i]), (np.float64(score[i]), 1.0))


@inner
def _flush(lanes: Any, totals: Any) -> None:
    """Move the sums of all lanes to `totals`, of shape (places, 2)."""
    size = totals.shape[0]
    for lane in range(LANES):
        for k in range(size):
            totals[k, 0] += lanes[(lane * size + k) * 2]
            totals[k, 1] += lanes[(lane * size + k) * 2 + 1]
    lanes[:] = 0.0


@inner
def _with_outcomes(label: Any, seen: Any, index: Any) -> None:
    """Move rows of outcome 1 to the places after those of outcome 0; add the union of all bits of labels to `seen`."""
    union = seen[0]
    for i in range(label.shape[0]):
        outcome = seen.dtype.type(label[i])
        union |= outcome
        index[i] += np.uint32((outcome & 1) * 2)
    seen[0] = union


@kernel
def _sums(p: Any, y: Any, seen: Any, step: Any, lane: Any, index: Any, lanes: Any, totals: Any) -> Any:
    """Add sums of p and rows per bin and outcome, or per bin if there are no labels, to `totals`.

    Returns a negative number if a score is bad.
    """
    wrong, blocks, outcomes = I64(0), 0, 1 if y is None else 2
    for start in range(0, p.shape[0], BLOCK):
        m = min(p.shape[0] - start, BLOCK)
        score, place = p[start : start + m], index[:m]
        wrong |= places(score, totals.shape[0] // outcomes, step, lane, 2 * outcomes, place)
        if y is not None:  # Numba compiles only what applies
            _with_outcomes(y[start : start + m], seen, place)
        _add(score, place, lanes)
        blocks += 1
        if blocks == FLUSH:
            blocks = 0
            _flush(lanes, totals)
    _flush(lanes, totals)
    return wrong


@kernel
def good_rows(p: Any, y: Any, seen: Any) -> Any:
    """Negative if a score is bad; the union of all bits of labels is added to `seen`."""
    wrong = I64(0)
    for i in range(p.shape[0]):
        bits = np.float64(p[i]).view(np.int64)
        wrong |= (ONE - bits) | bits
    union = seen[0]
    for i in range(y.shape[0]):
        union |= seen.dtype.type(y[i])
    seen[0] = union
    return wrong


class Labels:
    """The union of the bits of all labels of a call: 0 or 1 only if every label is."""

    def __init__(self) -> None:
        self._seen = np.zeros(1, np.int32), np.zeros(1, np.int64)

    def of(self, y: Any | None) -> Any:
        """Where the union is gathered, empty as yet."""
        seen = self._seen[y is not None and y.dtype.itemsize == 8]
        seen[0] = 0
        return seen

    def checked(self, p: Any, y: Any) -> bool:
        """Whether all scores lie in [0, 1] and all labels are 0 or 1; rows with -0.0 are left to a closer look."""
        seen = self.of(y)
        return not (good_rows(p, y, seen) < 0 or seen[0] & ~1)


class EqualWidthSums:
    """Sums over `bins` bins of equal width between 0 and 1, with the arrays that every call needs."""

    def __init__(self, bins: int, *, labelled: bool) -> None:
        self._bins, places = bins, 2 * bins if labelled else bins
        self._kept, self._totals = np.zeros((places, 2)), np.zeros((places, 2))
        self._lane = (np.arange(BLOCK) % LANES * places * 2).astype(np.int32)
        self._work = 1 / bins, self._lane, np.empty(BLOCK, np.uint32), np.zeros(LANES * places * 2), self._totals
        self._labels = Labels()

    def add(self, p: Any, y: Any | None) -> bool:
        """Add any rows; False, and nothing is added, if one of them is bad."""
        seen = self._labels.of(y)
        bad = _sums(p, y, seen, *self._work) < 0 or seen[0] & ~1
        if not bad:
            self._kept += self._totals
        self._totals.fill(0.0)
        return not bad

    def taken(self) -> Any:
        """Rows and sums of p per bin and outcome (one, if there are no labels), which then begin anew."""
        found = self._kept.reshape(self._bins, -1, 2)[..., ::-1].transpose(2, 0, 1).copy()
        self._kept.fill(0.0)
        return found


def equal_width(p: Any, y: Any | None, bins: int) -> Any | None:
    """Rows and sums of p per bin and outcome (one, if there are no labels), of any rows; None if a row is bad."""
    sums = EqualWidthSums(bins, labelled=y is not None)
    return sums.taken() if sums.add(p, y) else None
