"""Maps fitted on a growing part of the rows, each judged on the next part, which it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.estimators.cross_fitting import CrossFitted, multiclass_rows, recalibrated

#: Rows per part below which the first map has too little to learn from.
_FEWEST = 4


def judged_parts(data: Multiclass, *, parts: int, seed: int, needed_by: str) -> Iterator[CrossFitted]:
    """For each part but the first: its rows with their probabilities by the default map fitted on the parts before.

    Given the earlier parts, the map is fixed and the rows of the part are independent of it. So what each part says
    may be combined as in a sequential experiment, although the maps share rows.
    """
    if not isinstance(data, Multiclass):
        message = f"{needed_by} needs Multiclass predictions, not {data!r}."
        raise InvalidPredictions(message)
    if len(data) < _FEWEST * parts:
        message = (
            f"{needed_by} divides the rows into {parts} parts and needs {_FEWEST * parts} of them, got {len(data)}."
        )
        raise InvalidPredictions(message)
    rows = multiclass_rows(data, [1.0] * parts, [seed, parts])
    for part in range(1, parts):
        so_far = rows.take(rows.fold <= part)
        fitted = recalibrated(so_far, None, targets=[part])
        judged = fitted.take(fitted.fold == part)
        yield replace(judged, n=len(judged.weight))


def labels_of(rows: CrossFitted) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The observed class of each row."""
    return rows.observed.astype(np.intp)
