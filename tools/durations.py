"""The processor time that tests take: measured by `make test`, recorded in `tests/durations.json` by `make durations`.

`make fast` leaves out the slow tests and plans its time with the rest.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tools.project import ALWAYS, ROOT

#: A test function is slow when one of its cases takes more seconds than this.
SLOW = 3.0
#: Seconds assumed for a file without a record.
UNKNOWN = 2.0
RECORD = Path("tests/durations.json")
#: The property of a test case in a JUnit file that holds its processor time; `tools.cpu_time` writes it.
PROPERTY = "cpu_seconds"


@dataclass(frozen=True)
class Durations:
    """Seconds of the longest case of slow test functions, by name, and of all other tests of each file."""

    slow: dict[str, float] = field(default_factory=dict)
    files: dict[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls, root: Path = ROOT) -> Durations:
        """The recorded durations; empty where nothing is recorded."""
        path = root / RECORD
        return cls(**json.loads(path.read_text(encoding="utf8"))) if path.exists() else cls()

    def save(self, root: Path = ROOT) -> None:
        """Record the durations, sorted, so that changes are readable."""
        parts = {"slow": self.slow, "files": self.files}
        (root / RECORD).write_text(json.dumps(parts, indent=1, sort_keys=True) + "\n", encoding="utf8")

    def is_slow(self, test: str) -> bool:
        """Whether a test, named as pytest names it, belongs to a slow function."""
        return test.partition("[")[0] in self.slow

    def seconds(self, test: str) -> float:
        """The expected time of a file without its slow tests; single tests are not recorded."""
        return self.files.get(test, UNKNOWN)

    def total(self, file: str) -> float:
        """The expected time of a file with its slow tests."""
        return self.seconds(file) + sum(time for test, time in self.slow.items() if test.startswith(f"{file}::"))

    @classmethod
    def of_junit(cls, *paths: Path) -> Durations:
        """The durations in files written by `pytest --junit-xml -o junit_family=xunit1`."""
        cases: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for case in (case for path in paths for case in ElementTree.parse(path).iter("testcase")):
            spent = case.findall(f"properties/property[@name='{PROPERTY}']")
            name = case.get("file", ""), case.get("name", "").partition("[")[0]
            cases[name].append(sum(float(entry.get("value", 0)) for entry in spent))
        slow: dict[str, float] = {}
        files: defaultdict[str, float] = defaultdict(float)
        for (file, function), seconds in cases.items():
            if max(seconds) > SLOW and file not in ALWAYS:
                slow[f"{file}::{function}"] = round(max(seconds), 1)
            else:
                files[file] += sum(seconds)
        return cls(slow, {file: round(seconds, 1) for file, seconds in files.items()})


if __name__ == "__main__":
    measured = Durations.of_junit(*map(Path, sys.argv[1:]))
    measured.save()
    print(f"{RECORD}: {len(measured.slow)} slow test functions, {sum(measured.files.values()):.0f} s for the others")
