"""How a reader applies a recalibration map: the commands, and the same in Python."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Sequence

from calibrant.reporting.sections.since_change import Since

#: Names of files and columns of the reader, who replaces them by their own.
_FITTED, _NEW = "labelled.csv", "new.csv"


def commands(map_class: str, columns: str, *, since: Since | None = None) -> str:
    r"""Fit the map to a file of predictions with outcomes, and apply it to another; `columns` are options of both.

    With `since` it is fitted to the rows since then.

    >>> print(commands("Platt", "--prob p"))
    calibrant recalibrate labelled.csv --truth y --prob p --method platt -o map.json && \
    calibrant apply map.json new.csv --prob p -o recalibrated.csv
    """
    rows = "" if since is None else f" --where {_quoted(since.condition)}"
    fit = f"calibrant recalibrate {_FITTED} --truth y {columns}{rows} --method {map_class.lower()} -o map.json"
    return f"{fit} && \\\ncalibrant apply map.json {_NEW} {columns} -o recalibrated.csv"


def _quoted(text: str) -> str:
    """One word of a shell: in double quotes where nothing in them has a meaning, which is easier to read."""
    return shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'


def class_columns(labels: Sequence[Hashable]) -> str:
    """The options that name one column of probabilities per class: its label, or p_0, p_1, ... for numbers.

    >>> class_columns(["cat", "big dog"]), class_columns([0, 1])
    ("--prob cat --prob 'big dog'", '--prob p_0 --prob p_1')
    """
    words = all(isinstance(label, str) for label in labels)
    return " ".join(f"--prob {shlex.quote(str(label) if words else f'p_{label}')}" for label in labels)


def class_code(map_class: str) -> str:
    """The same in Python, for arrays y, p and p_new of several classes.

    >>> print(class_code("VectorScaling").splitlines()[-1])
    recalibrated = fitted.predict_proba(p_new)
    """
    return "\n".join(
        [
            f"from calibrant.recalibrate import {map_class}",
            "",
            f"fitted = {map_class}().fit(p, y)",
            "recalibrated = fitted.predict_proba(p_new)",
        ]
    )


def forecast_code(map_class: str) -> str:
    """The same in Python, for arrays y, mean, std, mean_new and std_new.

    >>> print(forecast_code("StdScaling").splitlines()[-1])
    recalibrated = fitted.transform(np.column_stack([mean_new, std_new]))
    """
    return "\n".join(
        [
            "import numpy as np",
            f"from calibrant.recalibrate import {map_class}",
            "",
            f"fitted = {map_class}().fit(np.column_stack([mean, std]), y)",
            "recalibrated = fitted.transform(np.column_stack([mean_new, std_new]))",
        ]
    )


def binary_code(map_class: str, *, since: Since | None = None) -> str:
    """The same in Python, for arrays y, p and p_new, and time where only the rows since a time are fitted.

    >>> print(binary_code("Platt"))
    from calibrant.recalibrate import Platt
    <BLANKLINE>
    fitted = Platt().fit(p, y)
    recalibrated = fitted.predict_proba(p_new)[:, 1]
    """
    fit = [f"fitted = {map_class}().fit(p, y)"]
    if since is not None:
        fit = [f"recent = {since.code}", f"fitted = {map_class}().fit(p[recent], y[recent])"]
    numpy = ["import numpy as np"] if "np." in fit[0] else []
    start = [*numpy, f"from calibrant.recalibrate import {map_class}", ""]
    return "\n".join([*start, *fit, "recalibrated = fitted.predict_proba(p_new)[:, 1]"])
