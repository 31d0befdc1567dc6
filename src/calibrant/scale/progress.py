"""A progress bar for long jobs, where somebody is looking."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

#: Seconds between two progress queries to the engine.
INTERVAL = 0.25

Percent = Callable[[], float | None]
"""How far the engine is with its query, in percent; None or a negative number where it cannot tell."""


class Watch:
    """Nobody is looking: nothing is shown."""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Work on one part of the source."""
        yield

    @contextmanager
    def asking(self, percent: Percent) -> Iterator[None]:
        """Work that an engine does and that `percent` can tell the state of."""
        yield


class Bar(Watch):
    """A bar that counts parts done of parts, and within a part asks the engine how far it is."""

    def __init__(self, bar: Any, parts: int) -> None:
        self.bar = bar
        self.line = bar.add_task("reading", total=100 * parts)
        self.done = 0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Work on one part of the source."""
        self.bar.update(self.line, description=name)
        yield
        self.done += 1
        self.bar.update(self.line, completed=100 * self.done)

    @contextmanager
    def asking(self, percent: Percent) -> Iterator[None]:
        """Ask from a second thread while this one waits for the engine."""
        over = threading.Event()
        asker = threading.Thread(target=self._ask, args=(percent, over), daemon=True)
        asker.start()
        try:
            yield
        finally:
            over.set()
            asker.join()

    def _ask(self, percent: Percent, over: threading.Event) -> None:
        while not over.wait(INTERVAL):
            now = percent()
            if now is not None and now >= 0:
                self.bar.update(self.line, completed=100 * self.done + min(now, 100.0))


@contextmanager
def watching(parts: int, *, enabled: bool | None) -> Iterator[Watch]:
    """A watch over the work on `parts` parts: a bar on the standard error, or nothing."""
    if enabled is None:
        enabled = sys.stderr.isatty() and find_spec("rich") is not None
    if not enabled:
        yield Watch()
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError as error:
        message = "A progress bar needs rich: pip install 'calibrant[cli]'."
        raise ImportError(message) from error
    console = Console(stderr=True)
    with Progress(console=console, transient=console.is_terminal) as bar:
        yield Bar(bar, parts)


def spark_percent(session: Any) -> Percent:
    """Tasks done of tasks in the stages that Spark runs at present."""
    tracker = session.sparkContext.statusTracker()

    def percent() -> float | None:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return 100 * sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else None

    return percent
