"""Results: an estimate with its interval, the outcome of a test, and user text that is safe to print.

Names of columns and groups may hold anything, so control characters are written out before a result shows them.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from calibrant.data.validation import fail
from calibrant.results.target import Target

if TYPE_CHECKING:
    from calibrant.numerics.arrays import Floats
    from calibrant.table.bintable import BinTable


Side = Literal["two-sided", "lower", "upper"]


def _finite(value: Any) -> Any:
    """The value, or None for a number that JSON has no word for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_fields(result: Any) -> dict[str, Any]:
    """The fields of a result as plain types, ready for JSON: arrays are lists, and numbers that are not finite None."""

    def plain(value: Any) -> Any:
        if hasattr(value, "to_dict"):
            return value.to_dict()
        return [_finite(x) for x in value.tolist()] if hasattr(value, "tolist") else _finite(value)

    return {field.name: plain(getattr(result, field.name)) for field in fields(result)}


def text_table(lines: Sequence[Sequence[str]], *, left: Container[int] = (0,)) -> list[str]:
    """Lines of cells in columns of equal width; those numbered in `left` are left-aligned, the others right-aligned."""
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        [cell.ljust(w) if k in left else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, wide, strict=True))]
        for line in lines
    ]
    return ["  ".join(row).rstrip() for row in rows]


@dataclass(frozen=True)
class Interval:
    """A confidence interval with its level, method, side and target. It need not contain the estimate.

    Attributes
    ----------
    low, high : float
    level : float
        The nominal confidence, e.g. 0.95.
    method : str
        How it was computed.
    side : {"two-sided", "lower", "upper"}
        For a lower bound only `low` is informative, for an upper bound only `high`.
    assumption : str
        The condition under which it covers.
    target : Target or None
        What it covers.

    Examples
    --------
    >>> interval = Interval(0.01, 0.05, level=0.95, method="Bootstrap(draws=999, seed=0)", target=Target("mean score"))
    >>> 0.03 in interval, str(interval), str(interval.target)
    (True, '[0.01, 0.05]', 'mean score')
    >>> low, high = interval
    """

    low: float
    high: float
    level: float
    method: str
    side: Side = "two-sided"
    assumption: str = ""
    target: Target | None = None

    def __post_init__(self) -> None:
        if self.low > self.high:
            fail(f"An interval needs low <= high, got low={self.low!r}, high={self.high!r}.", ValueError)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __iter__(self) -> Iterator[float]:
        """Both ends: ``low, high = interval``."""
        return iter((self.low, self.high))

    def __str__(self) -> str:
        return f"[{self.low:.4g}, {self.high:.4g}]"

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; an end that is not limited is None."""
        ends = {"low": _finite(self.low), "high": _finite(self.high)}
        return {**asdict(self), **ends, "target": None if self.target is None else self.target.to_dict()}


@dataclass(frozen=True)
class Component:
    """One of the statements that a test combines: its own p-value, and the part of the error budget that is its own.

    Attributes
    ----------
    name : str
        What it is about: "level", "slope", "shape" of probabilities; "bias", "spread", "tails", ... of forecasts.
    p_value : float
        Of this statement alone.
    share : float
        The share of alpha that it has whatever the others say: the test rejects at alpha where this p-value is at most
        `share` times alpha.
    direction : {-1, 0, 1}
        1 where what was predicted is too large (a level too high, probabilities too extreme, a spread too wide), -1
        where it is too small, 0 where there is no direction.

    Examples
    --------
    >>> Component("level", p_value=0.004, share=0.25, direction=1)
    Component(name='level', p_value=0.004, share=0.25, direction=1)
    """

    name: str
    p_value: float
    share: float = 1.0
    direction: Literal[-1, 0, 1] = 0


@dataclass(frozen=True)
class Significance:
    """The result of a test; a small `p_value` is strong evidence against the null hypothesis.

    `draws` is the number of simulated samples behind the p-value, or None if it comes from a formula. A test that
    combines several components lists them; `decided` is the one that determines the p-value, None if there is only one.

    >>> Significance(statistic=2.5, p_value=0.0124, method="Spiegelhalter z", n=500)
    <Spiegelhalter z: statistic 2.5, p = 0.0124, n=500>
    """

    statistic: float
    p_value: float
    method: str
    n: int
    null: str = "calibrated"
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    draws: int | None = None
    components: tuple[Component, ...] = ()
    decided: Component | None = None

    def __repr__(self) -> str:
        return f"<{self.method}: statistic {self.statistic:.4g}, p = {self.p_value:.4g}, n={self.n:_}>"

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import significance_html

        return significance_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; numbers that are not finite are None."""
        plain = asdict(self)
        details = {name: _finite(detail) for name, detail in self.details.items()}
        return {**plain, "statistic": _finite(self.statistic), "p_value": _finite(self.p_value), "details": details}


class Estimate(float):
    """An estimate: a float that also says how it was computed.

    Arithmetic gives plain floats, so a new number never carries the description of an old one by accident. The data are
    not kept. `print` and f-strings show the interval where there is one; JSON, `float` and formats such as
    ``f"{e:.3f}"`` give the number.

    Attributes
    ----------
    name : str
        What is estimated, e.g. ``"ECE"``.
    method : str
        What was done, e.g. ``"EqualMass(n=15)"``.
    n : int
        Number of rows.
    target : Target or None
        The quantity that is estimated, with its norm.
    interval : Interval or None
        Filled in by `calibrant.interval`.
    bins : BinTable or None
        The sums the number was made from.
    details : Mapping
        Further numbers of this estimator, e.g. the null reference of ENCE.

    Examples
    --------
    >>> e = Estimate(0.25, name="ECE (L1)", method="EqualMass(n_bins=2)", n=8)
    >>> e
    <ECE (L1) 0.25, n=8, EqualMass(n_bins=2)>
    >>> e < 0.3, f"{e:.3f}", str(e), type(e + 0)
    (True, '0.250', '0.25', <class 'float'>)
    >>> print(e.with_interval(Interval(0.2, 0.31, level=0.95, method="Inversion()")))
    0.25 (95% interval 0.20 to 0.31)
    """

    __slots__ = ("bins", "details", "interval", "method", "n", "name", "target")
    name: str
    method: str
    n: int
    target: Target | None
    interval: Interval | None
    bins: BinTable | None
    details: Mapping[str, Any]

    def __new__(
        cls,
        value: float,
        *,
        name: str,
        method: str,
        n: int,
        target: Target | None = None,
        interval: Interval | None = None,
        bins: BinTable | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Estimate:
        """See the class."""
        self = super().__new__(cls, value)
        fields = {
            "bins": bins,
            "details": dict(details or {}),
            "interval": interval,
            "method": method,
            "n": int(n),
            "name": name,
            "target": target,
        }
        for name_of_field, given in fields.items():
            object.__setattr__(self, name_of_field, given)
        return self

    @property
    def value(self) -> float:
        """The bare number."""
        return float(self)

    @property
    def clipped(self) -> float:
        """max(0, value), for estimates that may come out below zero."""
        return max(0.0, float(self))

    @property
    def note(self) -> str:
        """Why the estimate lies outside its interval; empty where it does not, or the interval has no target."""
        interval = self.interval
        if interval is None or interval.target is None or self.value in interval or self.value != self.value:
            return ""
        target = f"the {interval.target}"
        if self.value < 0 <= interval.low:
            return f"the estimate is below zero by chance; the interval is for {target}, which is never negative"
        where = "above" if self.value > interval.high else "below"
        return f"the estimate lies {where} the interval, which is for {target} and free of the estimator's bias"

    def with_interval(self, interval: Interval) -> Estimate:
        """The same estimate with its interval filled in."""
        return Estimate(self.value, **{**self._fields(), "interval": interval})

    def moved(self, value: float) -> Estimate:
        """The same estimate with another value, such as one moved inside its interval."""
        return self if value == self.value else Estimate(value, **self._fields())

    def with_target(self, target: Target) -> Estimate:
        """The same estimate with its target filled in, and that of its interval where this has none."""
        interval = self.interval
        if interval is not None and interval.target is None:
            interval = replace(interval, target=target)
        return Estimate(self.value, **{**self._fields(), "interval": interval, "target": target})

    def renamed(self, name: str, method: str) -> Estimate:
        """The same estimate under another name, with other words for how it was made."""
        return Estimate(self.value, **{**self._fields(), "name": name, "method": method})

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON: numbers that are not finite are None, and `note` says what they were."""
        return {
            "name": self.name,
            "value": _finite(self.value),
            "method": self.method,
            "n": self.n,
            "target": None if self.target is None else self.target.to_dict(),
            "interval": None if self.interval is None else self.interval.to_dict(),
            "note": self.note or ("" if math.isfinite(self.value) else f"the value is {self.value}: {self.method}"),
            "details": {name: _finite(detail) for name, detail in self.details.items()},
        }

    def plot(self, ax: Any = None, **style: Any) -> Any:
        """Draw the reliability diagram behind this estimate (needs matplotlib)."""
        from calibrant.plot import reliability_diagram

        return reliability_diagram(self, ax=ax, **style)

    def _fields(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self.__slots__}

    def __repr__(self) -> str:
        value = f"{self.value:.4g}"
        if self.interval is not None:
            value += f" {self.interval} at {100 * self.interval.level:.6g}%"
        note = f"; {self.note}" if self.note else ""
        return f"<{self.name} {value}, n={self.n:_}, {self.method}{note}>"

    def __str__(self) -> str:
        if self.interval is None:  # all digits, as of any float: csv files and logs stay machine-readable
            return float.__repr__(self)
        value, low, high = _rounded_alike((self.value, *self.interval))
        level = f"{100 * self.interval.level:.6g}%"
        if self.interval.side == "two-sided":
            return f"{value} ({level} interval {low} to {high})"
        return f"{value} ({level} {self.interval.side} bound {low if self.interval.side == 'lower' else high})"

    def _repr_html_(self) -> str:
        from calibrant.reporting.notebook import estimate_html

        return estimate_html(self)

    def __setattr__(self, name: str, value: object) -> None:
        message = f"{type(self).__name__} is immutable."
        raise AttributeError(message)

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:  # pickle and deepcopy keep the fields
        return (self.value,), self._fields()

    def __getstate__(self) -> None:
        return None


def _rounded_alike(numbers: tuple[float, float, float]) -> list[str]:
    """A value and its ends with the same decimals: those of two significant digits of their range."""
    known = [number for number in numbers if math.isfinite(number)]
    apart = max(known) - min(known) if known else 0.0
    if apart == 0:
        return [f"{number:.4g}" for number in numbers]
    return [f"{number:.{max(0, 1 - math.floor(math.log10(apart)))}f}" for number in numbers]


#: Categories of characters that show nothing but do something: controls, formats (also those that turn the direction
#: of writing), surrogates, private ones, and separators of lines and paragraphs.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
#: Format characters within words and emoji, which do no harm.
_HARMLESS = "\u200c\u200d\u00ad"


def printable(text: object) -> str:
    """`text` with control characters written out, so that none of them reaches a terminal, a log or a page.

    They can move the cursor, recolour a terminal, fake lines, and make text read other than it is.
    """
    text = str(text)
    if text.isprintable():
        return text
    acting = {one for one in text if unicodedata.category(one) in _UNPRINTABLE and one not in _HARMLESS}
    return text.translate({ord(one): one.encode("unicode_escape").decode("ascii") for one in acting})


@dataclass(frozen=True)
class Value:
    """A number with the two ends of its interval; ends that are None are not known."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, estimate: Estimate, least: float = -math.inf) -> Value:
        """An estimate with its interval; neither is below `least`.

        With such a bound it is an error, whose estimate is moved inside the interval: noise can put it beside.
        """
        found, value = estimate.interval, max(float(estimate), least)
        if found is None:
            return cls(value)
        low, high = max(float(found.low), least), float(found.high)
        return cls(value if math.isinf(least) else min(max(value, low), high), low, high)

    @classmethod
    def rows(cls, value: Floats, low: Floats, high: Floats) -> list[Value]:
        """One per entry of three arrays."""
        return [cls(*row) for row in zip(value.tolist(), low.tolist(), high.tolist(), strict=True)]

    def excludes(self, ideal: float) -> bool:
        """Whether `ideal` lies outside the interval; false where an end is not known."""
        return self.low is not None and self.high is not None and not self.low <= ideal <= self.high
