"""Compare the frozen results with those of this code, or freeze them anew: `python -m tests.golden --help`."""

import os

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CALIBRANT_FAST"] = "off"  # compiled loops add in another order

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from tests.golden.calls import PARTS
from tests.golden.record import Record, differences, recorded

FROZEN = Path(__file__).with_name("values.json")
CHANGELOG = Path("CHANGELOG.md")
#: The section of the changelog that lists them.
CHANGED = "### Numbers that changed\n"
#: Differences that are printed.
MOST = 60


def main() -> int:
    """Exit 1 where a result differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="Frozen results of public calls.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="compare these parts")
    parser.add_argument("--update", metavar="REASON", help="freeze anew, and list the reason in the changelog")
    options = parser.parse_args()
    if options.update is not None and (not options.update.strip() or len(options.only) < len(PARTS)):
        parser.error("--update needs a reason, for the changelog, and freezes all parts")
    now: Record = {}
    for part in options.only:
        now |= recorded(part, PARTS[part]())
        print(f"{part}: {len(now)} values", file=sys.stderr, flush=True)
    before = json.loads(FROZEN.read_text(encoding="utf-8"))["values"] if FROZEN.exists() else {}
    moved = differences({name: one for name, one in before.items() if name.split("/")[0] in options.only}, now)
    print("".join(f"  {line}\n" for line in moved[:MOST]), end="")
    print(f"{len(moved)} of {len(now)} values differ")
    if options.update is None:
        return 1 if moved else 0
    if moved:
        freeze(now)
        CHANGELOG.write_text(
            with_reason(CHANGELOG.read_text(encoding="utf-8"), options.update, len(moved)), encoding="utf-8"
        )
    return 0


def freeze(values: Record) -> None:
    """Write the values, one to a line."""
    versions = {"numpy": np.__version__, "python": sys.version.split()[0]}
    text = json.dumps({"made with": versions, "values": values}, separators=(",", ":")).replace(',"', ',\n"')
    FROZEN.write_text(text + "\n", encoding="utf-8")


def with_reason(changelog: str, reason: str, moved: int) -> str:
    """The changelog with the reason as the last point under "Numbers that changed" of its first section."""
    first, _, older = changelog.partition("\n## ")
    section, mark, rest = older.partition("\n## ")
    if CHANGED not in section:
        section = f"{section.rstrip()}\n\n{CHANGED}"
    head, _, points = section.partition(CHANGED)
    points, below, other = points.partition("\n### ")
    point = f"- {reason.strip()} ({moved:,} frozen {'value' if moved == 1 else 'values'})\n"
    points = f"{points.rstrip()}\n{point}" if points.strip() else f"\n{point}"
    return f"{first}\n## {head}{CHANGED}{points}{below}{other}{mark}{rest}"


if __name__ == "__main__":
    sys.exit(main())
