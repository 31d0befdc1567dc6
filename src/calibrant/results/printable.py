"""Text of users, safe to show: names of columns and groups may hold anything."""

from __future__ import annotations

import unicodedata

#: Categories of characters that show nothing but do something: controls, formats (also those that turn the direction
#: of writing), surrogates, private ones, and separators of lines and paragraphs.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
#: Format characters within words and emoji, which do no harm.
_HARMLESS = "\u200c\u200d\u00ad"


def printable(text: object) -> str:
    r"""`text` with control characters written out, so that none of them reaches a terminal, a log or a page.

    Escape sequences can move the cursor, recolour or retitle a terminal, and fake lines; marks of direction can make
    text read other than it is.

    >>> printable("group \x1b[31mred\x1b[0m\nnext")
    'group \\x1b[31mred\\x1b[0m\\nnext'
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNPRINTABLE or character in _HARMLESS:
        return character
    return character.encode("unicode_escape").decode("ascii")
