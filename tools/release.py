"""Is the version ready to be released? The tag, the package, the changelog and the citation must name the same one.

python -m tools.release v0.1.0
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def faults(tag: str, root: Path = ROOT) -> Iterator[str]:
    """What does not match the tag."""
    wanted = tag.removeprefix("v")
    if not re.fullmatch(r"\d+\.\d+\.\d+", wanted):
        yield f"The tag must be v<major>.<minor>.<patch>, got {tag!r}."
    version = _first(r'__version__ = "(.+)"', root / "src" / "calibrant" / "_version.py")
    if version != wanted:
        yield f"src/calibrant/_version.py says {version}."
    heading = _first(r"^## (.+)$", root / "CHANGELOG.md")
    if not re.fullmatch(rf"{re.escape(wanted)} - \d{{4}}-\d\d-\d\d", heading or ""):
        yield f"The first section of CHANGELOG.md must be '## {wanted} - <date>', it is '## {heading}'."
    cited = _first(r"^version: (.+)$", root / "CITATION.cff")
    if cited != wanted:
        yield f"CITATION.cff says {cited}."


def _first(pattern: str, path: Path) -> str | None:
    found = re.search(pattern, path.read_text(encoding="utf8"), flags=re.M)
    return found[1] if found else None


def main(tag: str, root: Path = ROOT) -> int:
    """Print what does not match; 1 if anything does not."""
    found = list(faults(tag, root))
    print("\n".join(found) if found else f"Everything names {tag}.")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
