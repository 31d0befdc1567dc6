"""The console block of the README: its command is run on the file of the demo, and what it prints is written below it.

python -m tools.readme           # whether the README says what the command prints
python -m tools.readme --write   # write it
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from calibrant.cli.demo import payments

README = Path(__file__).parents[1] / "README.md"
#: The command, with its lines that end in a backslash, and the line below it.
SHOWN = re.compile(r"^\$ (calibrant report (?:.*\\\n)*.*)\n(.*)$", flags=re.M)


@cache
def run(command: str) -> tuple[str, str]:
    """What the command prints, and the page that it writes, run beside the file of the demo that it names."""
    import pyarrow
    from pyarrow import parquet

    words = shlex.split(command.replace("\\\n", " "))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / words[2]
        place.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.table(payments()), place)
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, encoding="utf8", check=True
        )
        return done.stdout.strip(), (Path(folder) / words[words.index("-o") + 1]).read_text(encoding="utf8")


def renewed(text: str) -> str:
    """The README with what its command prints."""
    found = SHOWN.search(text)
    if found is None:
        message = "README.md has no line that begins with '$ calibrant report'."
        raise ValueError(message)
    return text[: found.start(2)] + run(found[1])[0] + text[found.end(2) :]


def main() -> int:
    """Exit 1 where the README says something else."""
    text = README.read_text(encoding="utf8")
    now = renewed(text)
    if "--write" in sys.argv:
        README.write_text(now, encoding="utf8")
        return 0
    print("README.md agrees." if now == text else "README.md is out of date: run `make readme`.")
    return int(now != text)


if __name__ == "__main__":
    sys.exit(main())
