"""Phrases that we do not use, each with a better one, and where they are used all the same.

    python -m tools.words            # fail where one is used more often than it is allowed
    python -m tools.words --counts   # how often each is used, and allowed

Plain statistical English, as in SciPy's documentation. Extend `PHRASES` when a reader stumbles. A phrase that is still
in use has an allowance, which may only fall; without one, its first use fails `make lint`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

from tools.project import ROOT

#: Files whose words are checked.
PLACES = (
    "src/calibrant/**/*.py",
    "src/calibrant/**/*.pyi",
    "docs/**/*.md",
    "docs/**/*.py",
    "tools/*.py",
    "reproduce/*.py",
    "benchmarks/*.py",
    "*.md",
    "Makefile",
)
#: Files that are left out, and why.
EXCEPTIONS = {
    "tools/words.py": "holds the phrases",
    "docs/methods/constants.md": "is written from comments of the source",
    "docs/reference/*": "is made by the build of the site",
    "docs/pictures/*": "is made by the build of the site",
    "docs/drawn/*": "is made by the build of the site",
    "docs/benchmarks/*": "is made by the build of the site",
    "docs/reproduce/*": "is made by the build of the site",
}


@dataclass(frozen=True)
class Phrase:
    """A regular expression, whose spaces may be ends of lines, what to write instead, and how often it is allowed."""

    pattern: str
    better: str
    allowed: int = 0

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The compiled expression, for text in lower case."""
        return re.compile(self.pattern.replace(" ", r"\s+(?:#:?\s+)?"))


PHRASES = (
    Phrase(r"several(?: |_|-)classes", "multiclass, or more than two classes", 3),
    Phrase(r"\b(?:of|for|from|with) one event\b", "binary", 10),
    Phrase(r"\bso many\b(?![^.;:]*\bthat\b)", "this many, or name the number", 20),
    Phrase(r"\bso often\b(?![^.;:]*\bthat\b)", "this often"),
    Phrase(r"\bbad cells\b", "worst cases"),
    Phrase(r"\bbe believed\b", "be trusted"),
    Phrase(r"\band leave\.", "and exit"),
    Phrase(r"(?<!there\s)\bis no row\b", "rows of weight zero are ignored"),
    Phrase(
        r"(?<!there\s)\b(?:is|are|was|were) no (?!longer|more|fewer|less|lower|higher|other|better|worse"
        r"|larger|smaller|wider|narrower|slower|faster|greater|older|closer|further|later|such\b|one\b|way\b|need\b|row\b)\w+",
        "is not a ...",
        27,
    ),
    Phrase(r"\bspoken of\b", "reported", 1),
    Phrase(r"\bspeaks? (?:against|for)\b", "is evidence against, or for", 2),
    Phrase(r"\bnever makes? certain\b", "never predicts 0 or 1", 1),
    Phrase(r"\bsamples of the choice\b", "tuning samples"),
    Phrase(r"\bwhoever\b", "any rule, method or reader that ..."),
    Phrase(r"\bthe same by\b", "say what differs: compiled version of `f`"),
    Phrase(r"\bneeds? no smooth\b", "does not assume a smooth ..."),
    Phrase(r"\bothers do as well\b", "other maps perform equally well"),
    Phrase(r"\bcount by a prior\b", "are weighted by a prior"),
    Phrase(r"\bfor them to tell\b", "needed to estimate", 1),
    Phrase(r"\bwhat is read,? and what is refused\b", "accepted and rejected input"),
    Phrase(r"\berrors that name\b", "raise an error that names"),
    Phrase(r"\bgo wrong more often than required\b", "missed their target"),
    Phrase(r"\bcosts? about [\w.]+ times reading\b", "takes ... times as long as reading"),
    Phrase(r"\bdearer\b", "more expensive, or slower"),
    Phrase(r"\bmend(?:s|ed|ing)?\b", "fix, repair"),
    Phrase(r"\brows enough\b", "enough rows", 2),
    Phrase(r"\b(?:can|could|may|to) be had\b", "be obtained, computed", 3),
    Phrase(r"\banew\b", "again", 5),
    Phrase(r"\bweighs? nothing\b", "has weight zero", 1),
    Phrase(r"\bworth (?:its|their) while\b", "faster, or worth its cost"),
    Phrase(r"\b(?:is|are) taken for\b", "is treated as", 8),
    Phrase(r"\bugly ones first\b", "worst cases first"),
    Phrase(r"\bby the same token\b", "for the same reason"),
    Phrase(r"\btakes for noise\b", "treats as noise"),
    Phrase(r"\bshares? (?:half|much|part) of their luck\b", "are correlated"),
    Phrase(r"\bsays? nothing about\b", "does not describe, or is not informative about", 4),
    Phrase(r"\btruth values?\b", "booleans", 7),
    Phrase(r"\btold (?:apart|from)\b", "distinguished", 12),
    Phrase(r"\bsome (?:hundred|thousand|ten|twenty)\b", "a few hundred, about twenty", 4),
    Phrase(r"\brising (?:curve|function|fit|step)s?\b", "increasing", 6),
    Phrase(r"\bwithout further thought\b", "by default, or recommended"),
    Phrase(r"\bwhole or not at all\b", "atomically", 1),
    Phrase(r"\bha(?:s|ve) no need of\b", "does not need"),
    Phrase(r"\bdrawn to(?:wards)?\b", "shrunk towards", 5),
    Phrase(r"\btakes? the place of\b", "replaces"),
    Phrase(r"\bspoken for\b", "requested, declined"),
    Phrase(r"\blet through\b", "passes"),
    Phrase(r"\bthe more so the\b", "more so with ..."),
    Phrase(r"\bhowever unsure\b", "whatever its confidence"),
    Phrase(r"\bholds? together with\b", "hold simultaneously"),
    Phrase(r"\bsettles? the matter\b", "resolves this", 2),
    Phrase(r"\bas far as the method has it\b", "that the method supports"),
    Phrase(r"\balarms? that means? something\b", "an alarm with a bounded false-alarm probability"),
    Phrase(r"\bmade if it is not there\b", "created if missing"),
    Phrase(r"\ball that are nothing else\b", "all other columns"),
    Phrase(r"\bruns? against the rest\b", "differs from the rest"),
    Phrase(r"\b(?:is|are) taken as (?:an?|independent|chosen)\b", "is assumed to be, or treated as"),
    Phrase(r"\bwould tell\b", "would settle this, or show it"),
    Phrase(r"\bmake the report again\b", "repeat the report"),
    Phrase(r"\bholds by itself\b", "is valid alone"),
    Phrase(r"\boff by (?:itself|themselves)\b", "shown to be off"),
)


@dataclass(frozen=True)
class Use:
    """One use of a phrase."""

    path: Path
    line: int
    text: str


def files(root: Path) -> list[Path]:
    """The files whose words are checked, from the root."""
    found = {path.relative_to(root) for place in PLACES for path in root.glob(place) if path.is_file()}
    return sorted(path for path in found if not any(fnmatch(path.as_posix(), pattern) for pattern in EXCEPTIONS))


def uses_in(text: str, path: Path, phrase: Phrase) -> Iterator[Use]:
    """Where a text uses a phrase."""
    for found in phrase.expression.finditer(text.lower()):
        yield Use(path, text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()))


def uses(root: Path, phrases: tuple[Phrase, ...] = PHRASES) -> dict[Phrase, list[Use]]:
    """Every use of each phrase."""
    found: defaultdict[Phrase, list[Use]] = defaultdict(list)
    for path in files(root):
        text = (root / path).read_text(encoding="utf8").lower()
        for phrase in phrases:
            found[phrase] += uses_in(text, path, phrase)
    return found


def main(arguments: list[str] | None = None, *, root: Path = ROOT, phrases: tuple[Phrase, ...] = PHRASES) -> int:
    """Name the uses of phrases that are used more often than they are allowed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--counts", action="store_true", help="print how often each phrase is used, and allowed")
    parser.add_argument("--all", action="store_true", help="name every use, also of those that are allowed")
    options = parser.parse_args(arguments)
    found = uses(root, phrases)
    if options.counts:
        print(*(f"{len(found[phrase]):4} {phrase.allowed:4}  {phrase.pattern}" for phrase in phrases), sep="\n")
        return 0
    failed = False
    for phrase in phrases:
        too_many = len(found[phrase]) > phrase.allowed
        failed |= too_many
        if too_many or options.all:
            print(*(f"{use.path}:{use.line}: {use.text!r}: better: {phrase.better}" for use in found[phrase]), sep="\n")
        if too_many and phrase.allowed:
            print(f"    {len(found[phrase])} uses, {phrase.allowed} are allowed (tools/words.py): reword the new ones")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
