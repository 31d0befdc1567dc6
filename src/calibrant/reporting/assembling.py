"""Putting a report together: its options, the sections made so far, why a section is left out, and who is told."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from numpy.linalg import LinAlgError

from calibrant.data.validation import UnsupportedPredictions
from calibrant.reporting.contents import CannotBuild, Omitted

Listener = Callable[[str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """Call `listener` with the name of every section that a report begins, while this lasts.

    >>> with told_to(print):
    ...     tell("Recalibration")
    Recalibration
    """
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def tell(name: str) -> None:
    """Say that a section begins; nothing happens where nobody listens."""
    listener = _LISTENER.get()
    if listener is not None and name:
        listener(name)


Result = TypeVar("Result")

#: What data can make impossible. Anything else is a mistake of the program and is not hidden.
IMPOSSIBLE = (CannotBuild, UnsupportedPredictions, ValueError, ArithmeticError, LinAlgError)


#: "ProfileLikelihood needs ...": readers know no such name.
_WHO = re.compile(r"^[\w.]+(?:\(.*?\))? (needs|cannot|does not)\b")


@dataclass(frozen=True)
class Options:
    """What the user asked for, checked.

    Attributes
    ----------
    by : tuple of (column, groups)
        The name of each column ("" if it has none) and the group of every row, or a table per group.
    time : tuple of (column, values) or None
    threshold, tolerance : float or None
    model, event, row, source : str or None
        What is told of the model and the data, and what the user calls one event and one row.
    """

    title: str = "Calibration report"
    by: tuple[tuple[str, Any], ...] = ()
    time: tuple[str, Any] | None = None
    threshold: float | None = None
    tolerance: float | None = None
    model: str | None = None
    event: str | None = None
    row: str | None = None
    source: str | None = None
    seed: int = 0


@dataclass
class Assembly:
    """What is being put together, and what had to be left out."""

    omitted: list[Omitted] = field(default_factory=list)

    def attempt(self, name: str, build: Callable[[], Result]) -> Result | None:
        """A result that the data may make impossible; then the reason is kept. A name of "" keeps none."""
        tell(name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what matters of them is a finding or a note
                return build()
        except IMPOSSIBLE as error:
            if name:
                self.omitted.append(Omitted(name, sentence(str(error))))
            return None


def sentence(text: str) -> str:
    """A reason as a sentence, without the name of the function that gave it."""
    text = _WHO.sub(r"It \1", " ".join(text.split())) or "These data do not allow it"
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
