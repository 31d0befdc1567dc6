"""Is the version ready to be released? Tag, package, changelog, citation and recipe must name the same one.

python -m tools.release v0.1.0           # what does not match
python -m tools.release v0.1.0 --write   # writes the version everywhere, and dates the changelog
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


#: Where the version is written, what the line looks like, and how it is said there.
PLACES = {
    "src/calibrant/_version.py": (r'__version__ = "(.+)"', '__version__ = "{}"'),
    "CITATION.cff": (r"^version: (.+)$", "version: {}"),
    "packaging/conda/recipe.yaml": (r'^  version: "(.+)"$', '  version: "{}"'),
}
HEADING = r"^## (.+)$"


def faults(tag: str, root: Path = ROOT) -> Iterator[str]:
    """What does not match the tag."""
    wanted = tag.removeprefix("v")
    if not re.fullmatch(r"\d+\.\d+\.\d+", wanted):
        yield f"The tag must be v<major>.<minor>.<patch>, got {tag!r}."
    for place, (pattern, _) in PLACES.items():
        found = _first(pattern, root / place)
        if found != wanted:
            yield f"{place} says {found}."
    heading = _first(HEADING, root / "CHANGELOG.md")
    if not re.fullmatch(rf"{re.escape(wanted)} - \d{{4}}-\d\d-\d\d", heading or ""):
        yield f"The first section of CHANGELOG.md must be '## {wanted} - <date>', it is '## {heading}'."


def write(tag: str, root: Path = ROOT, *, day: datetime.date | None = None) -> None:
    """Name the version everywhere; the section "Unreleased" of the changelog becomes that of the version."""
    version = tag.removeprefix("v")
    for place, (pattern, said) in PLACES.items():
        _replace(pattern, said.format(version), root / place)
    if _first(HEADING, root / "CHANGELOG.md") == "Unreleased":
        _replace(HEADING, f"## {version} - {day or datetime.date.today()}", root / "CHANGELOG.md")


def _replace(pattern: str, text: str, path: Path) -> None:
    changed = re.sub(pattern, lambda _: text, path.read_text(encoding="utf8"), count=1, flags=re.M)
    path.write_text(changed, encoding="utf8")


def _first(pattern: str, path: Path) -> str | None:
    found = re.search(pattern, path.read_text(encoding="utf8"), flags=re.M)
    return found[1] if found else None


def main(tag: str, root: Path = ROOT) -> int:
    """Print what does not match; 1 if anything does not."""
    found = list(faults(tag, root))
    print("\n".join(found) if found else f"Everything names {tag}.")
    return min(len(found), 1)


if __name__ == "__main__":
    if "--write" in sys.argv:
        write(sys.argv[1])
    sys.exit(main(sys.argv[1]))
