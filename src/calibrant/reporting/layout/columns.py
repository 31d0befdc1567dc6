"""Columns of tables: one number of decimals for all rows, so that digits line up."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.reporting.contents import Value
from calibrant.reporting.drawing.markup import Markup, joined
from calibrant.reporting.layout.elements import quiet
from calibrant.reporting.rounding import bound, decimals, fixed, significant

#: Decimals that no column exceeds.
_MOST = 3


def value_column(
    values: Sequence[Value], *, scale: float = 1.0, least: int = 0, at_most: bool = False, apart: float | None = None
) -> list[tuple[str, str]]:
    """Value and interval of each row as text, all with the decimals of the row that needs most, but at most three.

    An interval that excludes the number `apart` does not print as if it touched it, as far as three decimals can tell.
    With `at_most`, for quantities that cannot be negative, an interval that begins at 0 becomes "≤ 0.3".

    Examples
    --------
    >>> value_column([Value(0.83, 0.77, 0.9), Value(1.5, 1.0, 2.5)], least=2)
    [('0.83', '0.77 to 0.90'), ('1.50', '1.00 to 2.50')]
    >>> value_column([Value(0.001, 0.0, 0.0031)], scale=100, at_most=True)
    [('≤ 0.31', '')]
    """
    digits = min(max([_decimals(value, scale, least, apart) for value in values], default=least), max(_MOST, least))
    return [_shown(value, scale, digits, at_most=at_most) for value in values]


def with_interval(found: tuple[str, str], *, hide: bool = False) -> Markup:
    """A value with its interval after it; `hide` leaves the interval out on a phone."""
    value, ends = found
    return joined([value, quiet(f" ({ends})", "q hide" if hide else "q") if ends else None])


def _decimals(value: Value, scale: float, least: int, apart: float | None) -> int:
    if value.low is None or value.high is None:
        return max(least, significant(scale * value.value))
    return decimals(scale * value.low, scale * value.high, least=least, apart=apart)


def _shown(value: Value, scale: float, digits: int, *, at_most: bool) -> tuple[str, str]:
    if value.value != value.value:
        return "–", ""
    if value.low is None or value.high is None:
        return fixed(scale * value.value, digits), ""
    if at_most and value.low <= 0:
        return f"≤ {bound(value.high, scale=scale)}", ""
    low, high = fixed(scale * value.low, digits), fixed(scale * value.high, digits)
    return fixed(scale * value.value, digits), f"{low} to {high}"
