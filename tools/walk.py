"""How far a call walks through the package: which modules run, how often the walk changes rooms, and what it loads.

    python -m tools.walk                # the calls of `CALLS`, a line each
    python -m tools.walk report --rooms # one of them, with its changes from room to room

A change of room is a call from a function of one room to a function of another.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tools.project import PACKAGE, ROOT

#: Made before the walk begins.
SETUP = """
import numpy as np, calibrant as cal
rng = np.random.default_rng(0)
p = rng.random(2000)
data = cal.Binary(rng.random(2000) < p**1.3, p)
"""
#: The calls that users make most, as they write them.
CALLS = {"interval": "cal.interval(cal.ece, data)", "report": "cal.report(data)"}


@dataclass(frozen=True)
class Walk:
    """What one call passed through."""

    modules: frozenset[str]
    changes: Counter[tuple[str, str]]

    @property
    def changes_of_room(self) -> int:
        """Calls from one room to another."""
        return self.changes.total()


def walked(call: Callable[[], Any]) -> Walk:
    """Run a call and follow it, after it has run once so that nothing is loaded on the way."""
    call()
    modules: set[str] = set()
    changes: Counter[tuple[str, str]] = Counter()

    def step(frame: FrameType, event: str, _: Any) -> None:
        here = _module(frame)
        if event != "call" or here is None:
            return
        modules.add(here)
        caller = frame.f_back
        while caller is not None and _module(caller) is None:
            caller = caller.f_back
        there = _module(caller) if caller is not None else None
        if there is not None and _room(there) != _room(here):
            changes[_room(there), _room(here)] += 1

    sys.setprofile(step)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(frozenset(modules), changes)


def loaded(call: str) -> list[str]:
    """The modules of the package that a call loads in a new process."""
    code = f"import sys\n{SETUP}\n{call}\nprint(*(name for name in sys.modules if name.startswith('{PACKAGE}')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


def walk_of(call: str) -> Walk:
    """The walk of one of the `CALLS`."""
    names: dict[str, Any] = {}
    exec(SETUP, names)
    return walked(lambda: eval(call, names))


def _module(frame: FrameType) -> str | None:
    name = frame.f_globals.get("__name__", "")
    return name if name.partition(".")[0] == PACKAGE else None


def _room(module: str) -> str:
    return [*module.split("."), ""][1]


def main(arguments: list[str] | None = None) -> int:
    """Print the walks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("call", nargs="*", help="names of calls; all of them by default")
    parser.add_argument("--rooms", action="store_true", help="show the changes from room to room, and the modules")
    options = parser.parse_args(arguments)
    for name in options.call or CALLS:
        walk = walk_of(CALLS[name])
        cold = len(loaded(CALLS[name]))
        print(f"{name}: {len(walk.modules)} modules, {walk.changes_of_room} changes of room, {cold} modules loaded")
        if options.rooms:
            print(*(f"  {count:5} {there} -> {here}" for (there, here), count in walk.changes.most_common()), sep="\n")
            print(*(f"  {module}" for module in sorted(walk.modules)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
