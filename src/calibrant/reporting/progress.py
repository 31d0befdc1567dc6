"""Who wants to know which section of a report is being made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
