"""How far long work has come: the stage, a bar and the time, on a terminal; nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


@dataclass
class Stage:
    """A stage of the work; what is told of it appears where somebody can see it."""

    name: str
    bar: Any = None
    task: Any = None

    def part(self, name: str) -> None:
        """Say which part of the stage begins."""
        if self.bar is not None:
            shown = name if name[:2].isupper() else f"{name[:1].lower()}{name[1:]}"  # ECE stays ECE
            self.bar.update(self.task, description=f"{self.name}: {shown}")

    def done(self, amount: float, total: float | None) -> None:
        """Say how much is done; without a total the bar only shows that work goes on."""
        if self.bar is not None:
            self.bar.update(self.task, completed=amount, total=total)


@contextmanager
def stage(name: str, console: Console | None = None) -> Iterator[Stage]:
    """Show a stage while it lasts; off a terminal nothing is printed.

    >>> with stage("Reading") as reading:
    ...     reading.done(10, 100)
    """
    from rich.console import Console

    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield Stage(name)
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    shown = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), shown, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield Stage(name, bar, bar.add_task(name, total=None))
