"""Patterns that name several columns at once: ``p_*`` is every column whose name starts with ``p_``."""

from __future__ import annotations

import re
from collections.abc import Collection

from calibrant.cli.formats import UsageError

#: What may stand on either side of the star; anything else is SQL.
_SIDE = re.compile(r"[\w.\- ]*")
_NUMBER = re.compile(r"[-+]? ?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def matching(name: str, header: Collection[str], option: str) -> dict[str, str] | None:
    """The columns that a pattern names, in the order of the file, and what its star stands for; None for other names.

    A column of that very name is no pattern, and neither is a product of columns or numbers.

    >>> matching("p_*", ["y", "p_cat", "p_dog"], "--prob")
    {'p_cat': 'cat', 'p_dog': 'dog'}
    >>> matching("score*100", ["y", "score"], "--prob") is None
    True
    """
    before, star, after = name.partition("*")
    if name in header or not star or not (_SIDE.fullmatch(before) and _SIDE.fullmatch(after)):
        return None
    if before.strip() and after.strip() and all(_is_operand(side.strip(), header) for side in (before, after)):
        return None
    found = {
        column: column[len(before) : len(column) - len(after)]
        for column in header
        if len(column) > len(before) + len(after) and column.startswith(before) and column.endswith(after)
    }
    if not found and before.strip() and after.strip():
        return None  # SQL may know better
    if not found:
        message = f"No column fits the pattern {option} {name!r}; the file has {', '.join(map(repr, header))}."
        raise UsageError(message)
    return found


def expanded(names: Collection[str], header: Collection[str], option: str) -> tuple[str, ...]:
    """The names, every pattern replaced by the columns that it names; each column once.

    >>> expanded(["mean", "m_*"], ["m_1", "m_2", "mean"], "--members")
    ('mean', 'm_1', 'm_2')
    """
    found = [column for name in names for column in (matching(name, header, option) or (name,))]
    return tuple(dict.fromkeys(found))


def classes_of(names: Collection[str], header: Collection[str]) -> tuple[str, ...]:
    """The class that each column of probabilities belongs to: what the star of its pattern stands for, or its name.

    >>> classes_of(["p_*"], ["y", "p_cat", "p_dog"]), classes_of(["cat", "dog"], ["y", "cat", "dog"])
    (('cat', 'dog'), ('cat', 'dog'))
    """
    found: dict[str, str] = {}
    for name in names:
        for column, label in (matching(name, header, "--prob") or {name: name}).items():
            found.setdefault(column, label)
    return tuple(found.values())


def separated(text: str, header: Collection[str], option: str) -> tuple[str, ...]:
    """The names between the commas of an option, those within brackets or quotes aside; each once.

    A column that has the whole name wins.

    >>> separated("country, least(a, b)", ["country", "a", "b"], "--by")
    ('country', 'least(a, b)')
    """
    if text in header:
        return (text,)
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    names = [part.strip() for part in (*parts, text[start:])]
    if "" in names:
        message = f"{option} {text!r} has an empty name between its commas."
        raise UsageError(message)
    return tuple(dict.fromkeys(names))


def _is_operand(text: str, header: Collection[str]) -> bool:
    return text in header or _NUMBER.fullmatch(text) is not None
