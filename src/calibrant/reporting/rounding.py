"""Numbers as readers see them: as many digits as their interval supports, proper signs, no rounded zeros."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from calibrant.results.estimate import Value

MINUS = "\u2212"

#: Units of its last digit that an interval is printed wide, at least, and most decimals of any number.
#: Test: tests/reporting/test_rounding.py::test_decimals_are_the_fewest_that_leave_five_units.
_UNITS, _MOST = 5, 6
#: Numbers from here on are written with a power of ten.
#: Derived: beyond it, double precision does not hold the decimals that would be printed.
_HUGE = 1e15
#: Significant digits when there is no interval.
#: Test: tests/reporting/test_rounding.py::test_rates_have_two_significant_digits.
_DIGITS = 2


@dataclass(frozen=True)
class Rounded:
    """A number and the ends of its interval with the same decimals, as text; ends are empty where not known."""

    value: str
    low: str
    high: str

    @property
    def ends(self) -> str:
        """The interval in words: "0.77 to 0.90"."""
        return f"{self.low} to {self.high}" if self.low and self.high else ""

    @property
    def points(self) -> str:
        """The number as a difference of probabilities: "3.2 points", "1 point"."""
        return f"{self.value} {'point' if self.value in ('1', f'{MINUS}1') else 'points'}"

    @property
    def percentage_points(self) -> str:
        """The same where it stands first: "3.2 percentage points"."""
        return self.points.replace(" ", " percentage ")

    def brackets(self, unit: str = "", *, before: str = "") -> str:
        """The interval in brackets, where there is one: " (0.77 to 0.90)"."""
        return f" ({before}{self.ends}{unit})" if self.ends else ""

    def at(self, level: float = 0.95, unit: str = "") -> str:
        """The interval in brackets with its confidence, where there is one: " (95 % interval 0.77 to 0.90)"."""
        return self.brackets(unit, before=f"{100 * level:.6g} % interval ")

    def with_ends(self, unit: str = "") -> str:
        """The value with its interval: "12 % (10 to 14 %)"."""
        return f"{self.value}{unit}{self.brackets(unit)}"


def decimals(low: float, high: float, *, least: int = 0, apart: float | None = None) -> int:
    """The fewest decimals with which an interval is 5 units wide, and shows whether it includes `apart`.

    What it excludes must differ from both ends when rounded alike; what it includes must lie between the rounded ends.
    """
    width = high - low
    if not math.isfinite(width):
        return least
    found = next((d for d in range(_MOST) if width * 10**d >= _UNITS - 1e-9), _MOST)
    found = max(found, least)
    if apart is None:
        return found
    inside = low <= apart <= high
    while found < _MOST:
        own = apart if inside else round(apart, found)
        if (round(low, found) <= own <= round(high, found)) == inside:
            break
        found += 1
    return found


def rounded(value: Value, *, scale: float = 1.0, least: int = 0, apart: float | None = None) -> Rounded:
    """Value and ends times `scale`, with the decimals that the interval supports; `apart` is unscaled.

    Numbers are rounded to nearest, but the upper end of an interval that begins at 0 is a bound and rounded up. It is
    the rule of a whole page: digits follow from a value and its interval alone, not from the table or sentence where
    it stands, so that a number reads the same everywhere.
    """
    if value.low is None or value.high is None:
        return Rounded(fixed(scale * value.value, max(least, significant(scale * value.value))), "", "")
    low, high = scale * value.low, scale * value.high
    digits = decimals(low, high, least=least, apart=None if apart is None else scale * apart)
    top = _rounded_up(high, digits) if value.low == 0 else fixed(high, digits)
    return Rounded(fixed(scale * value.value, digits), fixed(low, digits), top)


def _rounded_up(number: float, digits: int) -> str:
    if not math.isfinite(number):
        return fixed(number, digits)
    return fixed(math.ceil(number * 10**digits - 1e-6) / 10**digits, digits)


def value_column(
    values: Sequence[Value],
    *,
    scale: float = 1.0,
    least: int = 0,
    at_most: bool = False,
    apart: float | Sequence[float] | None = None,
) -> list[tuple[str, str]]:
    """Value and interval of each row as text, by the rule of `rounded`; a dash for what is not known.

    `apart` is one number for all rows, or one each. With `at_most`, for quantities that cannot be negative, an interval
    that begins at 0 becomes "≤ 0.3".
    """
    each = [apart] * len(values) if apart is None or isinstance(apart, float) else list(apart)
    found = []
    for value, own in zip(values, each, strict=True):
        if value.value != value.value:
            found.append(("–", ""))
        elif at_most and value.low is not None and value.high is not None and value.low <= 0:
            found.append((f"≤ {bound(value.high, scale=scale)}", ""))
        else:
            text = rounded(value, scale=scale, least=least, apart=own)
            found.append((text.value, text.ends))
    return found


def mapped(value: Value, change: Callable[[float], float]) -> Value:
    """The value and its interval on another scale; where this runs the other way, the ends change places."""
    low, high = (None if end is None else change(end) for end in (value.low, value.high))
    return Value(change(value.value), high, low) if change(1.0) < change(0.0) else Value(change(value.value), low, high)


def negated(value: Value) -> Value:
    """The value with the opposite sign, its interval too."""
    return mapped(value, lambda end: -end)


def numbers_of(values: Iterable[Value]) -> list[float]:
    """Every value and every end of an interval that is known."""
    return [one for value in values for one in (value.value, value.low, value.high) if one is not None]


def above(value: Value, limit: float = 0.0) -> bool:
    """Whether the whole interval lies above a limit."""
    return value.low is not None and value.low > limit


def points(value: Value, apart: float | None = 0.0) -> Rounded:
    """An error of probabilities in percentage points, or a relative gain in percent, without the sign."""
    return rounded(value, scale=100, apart=apart)


percent = points


def ratio(value: Value) -> Rounded:
    """A ratio or slope near 1: at least two decimals, and never 1.00 where the interval excludes 1."""
    return rounded(value, least=2, apart=1.0)


def bound(high: float, *, scale: float = 100) -> str:
    """The upper end of what can be as low as 0, rounded up, so that it remains a bound."""
    return _rounded_up(scale * high, decimals(0.0, scale * high))


def at_least(low: float, *, scale: float = 100) -> str:
    """A lower end that stands alone, rounded down."""
    digits = decimals(0.0, scale * low)
    return fixed(math.floor(scale * low * 10**digits + 1e-6) / 10**digits, digits)


def rates(value: Value, apart: float | None = None) -> Rounded:
    """A share with its interval in percent, which visibly excludes the share `apart` where it does."""
    if value.low is None or value.high is None:
        return Rounded(score(value.value).removesuffix(" %"), "", "")
    return rounded(value, scale=100, apart=apart)


def score(share: float) -> str:
    """A share without an interval as readers write it: 20 %, 0.5 %, 12.5 %; at least two significant digits."""
    text = _rate(share)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def span(low: float, high: float, *, word: str = "to") -> str:
    """Two shares as a range, with one sign of percent: "1 to 5 %"."""
    return f"{score(low).removesuffix(' %')} {word} {score(high)}"


def count(number: float) -> str:
    """A whole number with separators; below 10 one decimal where it is not whole."""
    if not math.isfinite(number):
        return fixed(number, 0)
    small = abs(number) < 10 and abs(number - round(number)) > 1e-9
    return fixed(number, 1 if small else 0)


def out_of(some: int, total: int) -> str:
    """How many of how many: "2 of 3", "both", "all 3"."""
    if some == total > 1:
        return "both" if total == 2 else f"all {count(total)}"
    return f"{count(some)} of {count(total)}"


def approximate(number: float) -> str:
    """A rough whole number: two significant digits."""
    if number < 100:
        return fixed(number, 0)
    unit = 10 ** (math.floor(math.log10(number)) - 1)
    return fixed(round(number / unit) * unit, 0)


def p_words(p_value: float, draws: int | None = None) -> str:
    """As it stands in a sentence; the smallest possible value of a simulated test is told as the bound it is."""
    text = p_number(p_value, draws)
    return f"p {text}" if text[0] in "<≤" else f"p = {text}"


def p_number(p_value: float, draws: int | None = None) -> str:
    """The same without the letter, for tables; a dash where there was no test."""
    if math.isnan(p_value):
        return "–"
    if draws is not None and p_value <= 1.0000001 / (draws + 1):
        limit = 1 / (draws + 1)
        return f"≤ {limit:.{max(3, significant(limit, 1))}f}"
    if p_value < 0.001:
        return "< 0.001"
    digits = 3 if p_value < 0.1 else 2
    if round(p_value, digits) == 0.05 and p_value != 0.05:  # on which side of the level it lies must be seen
        digits = 4
    return f"{p_value:.{digits}f}"


def no_break(text: str) -> str:
    """The text with spaces that do not break before signs of percent and within p-values, for pages."""
    for sign in "<≤=":
        text = text.replace(f"p {sign} ", f"p\u00a0{sign}\u00a0")
    return text.replace(" %", "\u00a0%").replace(" : ", "\u00a0:\u00a0")


def loss(value: Value) -> Rounded:
    """A mean score or an AUC, by which models are compared: four significant digits, its interval too."""
    digits = significant(value.value, 4)
    ends = ("" if end is None else fixed(end, digits) for end in (value.low, value.high))
    return Rounded(fixed(value.value, digits), *ends)


def significant(value: float, digits: int = _DIGITS) -> int:
    """The decimals that show this many significant digits."""
    if value == 0 or not math.isfinite(value):
        return 0
    return min(max(0, digits - 1 - math.floor(math.log10(abs(value)) + 1e-12)), _MOST)


def fixed(value: float, digits: int) -> str:
    """With separators and a true minus; never minus zero."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= _HUGE:
        return brief(value)
    text = f"{value:,.{digits}f}"
    if text.startswith("-"):
        text = text[1:] if float(text.replace(",", "")) == 0 else f"{MINUS}{text[1:]}"
    return text


def brief(value: float, digits: int = _DIGITS) -> str:
    """Two significant digits, or so many, however large or small the number is."""
    if value == 0 or not math.isfinite(value) or 10.0**-_MOST <= abs(value) < _HUGE:
        return fixed(value, significant(value, digits))
    leading, power = f"{value:.{digits - 1}e}".split("e")
    return f"{leading}e{int(power)}".replace("-", MINUS)


def _rate(share: float) -> str:
    percent = 100 * share
    if 0 < abs(percent) < 10.0 ** (1 - _MOST):  # zeros alone would not tell it from an impossible event
        return f"{percent:.1g}".replace("-", MINUS).replace("e" + MINUS + "0", "e" + MINUS)
    least = 2 if abs(percent) < 10 else 1
    return fixed(percent, least if percent == 0 else max(least, significant(percent)))
