"""How a reader applies a recalibration map: the commands, and the same in Python."""

from __future__ import annotations

#: Names of files and columns of the reader, who replaces them by their own.
_FITTED, _NEW = "labelled.csv", "new.csv"


def commands(map_class: str, columns: str) -> str:
    r"""Fit the map to a file of predictions with outcomes, and apply it to another; `columns` are options of both.

    >>> print(commands("Platt", "--prob p"))
    calibrant recalibrate labelled.csv --truth y --prob p --method platt -o map.json && \
    calibrant apply map.json new.csv --prob p -o recalibrated.csv
    """
    fit = f"calibrant recalibrate {_FITTED} --truth y {columns} --method {map_class.lower()} -o map.json"
    return f"{fit} && \\\ncalibrant apply map.json {_NEW} {columns} -o recalibrated.csv"


def binary_code(map_class: str) -> str:
    """The same in Python, for arrays y, p and p_new.

    >>> print(binary_code("Platt"))
    from calibrant.recalibrate import Platt
    <BLANKLINE>
    fitted = Platt().fit(p, y)
    recalibrated = fitted.predict_proba(p_new)[:, 1]
    """
    return "\n".join(
        [
            f"from calibrant.recalibrate import {map_class}",
            "",
            f"fitted = {map_class}().fit(p, y)",
            "recalibrated = fitted.predict_proba(p_new)[:, 1]",
        ]
    )
