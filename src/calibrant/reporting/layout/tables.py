"""Tables with drawings in their cells: maps, score ranges, and rows at the decision threshold."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.reporting.contents import Bin, MapRow, Recalibration, Threshold, Value
from calibrant.reporting.drawing.forest import HELPS, QUIET, Forest, share_bar
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.ranges import range_name, score_range
from calibrant.reporting.layout.elements import pill, plain_table, quiet, with_interval
from calibrant.reporting.names import remaining_error
from calibrant.reporting.rounding import count, rate, score, value_column


def map_table(section: Recalibration) -> Markup:
    """The maps, best first: what error remains, and by how much the loss falls."""
    maps = section.maps
    forest = Forest.of_differences([_percent(m.gain) for m in maps], most=4)
    remaining = value_column([m.remaining for m in maps], scale=100, at_most=True)
    gains = value_column([m.gain for m in maps], scale=100, least=1, apart=0.0)
    what, unit = remaining_error(section.loss)
    capital = section.loss if section.loss == "CRPS" else section.loss.capitalize()
    head: tuple[Child, ...] = (
        "Map",
        joined([f"Remaining {what},", tag("br"), unit]),
        joined([tag("span", "Improvement", class_="vh"), forest.head(104)]),
        f"{capital} lower by, %",
        tag("span", "Effect", class_="vh"),
    )
    rows = [
        (
            m.name,
            with_interval(error),
            forest.cell(_percent(m.gain), HELPS if m.effect in ("best", "helps") else QUIET, width=104, height=28),
            with_interval(gain),
            _effect(m),
        )
        for m, error, gain in zip(maps, remaining, gains, strict=True)
    ]
    return plain_table(head, rows, ("name", "n nw", "g hide", "n nw", "hide"), "forest")


def _effect(m: MapRow) -> Markup:
    return pill(m.effect, {"best": "ok", "helps": "ok", "makes it worse": "bad"}.get(m.effect, ""))


def range_table(ranges: Sequence[Bin]) -> Markup:
    """Where the error sits: the share of it that each range of scores carries."""
    rows = [
        (
            range_name(b, ranges),
            count(b.n),
            rate(b.predicted),
            rate(b.observed.value),
            "" if b.share is None else joined([share_bar(b.share), f" {100 * b.share:.0f} %"]),
        )
        for b in ranges
    ]
    head = ("Predicted", "Rows", "Mean", "Observed", "Share of the error")
    return plain_table(head, rows, ("nw", "n", "n nw", "n nw", "nw"))


def threshold_table(threshold: Threshold) -> Markup:
    """Rows around and above the decision threshold."""
    rows: list[Sequence[Child]] = []
    if threshold.around is not None:
        where = score_range(threshold.around.low, threshold.around.high)
        rows.append((f"Scored {where}", *_predicted_and_observed(threshold.around)))
    if threshold.above is not None:
        rows.append((f"Scored {score(threshold.at)} and above", *_predicted_and_observed(threshold.above)))
    head = (tag("span", "Rows", class_="vh"), "Predicted", "Observed (95 % interval)")
    return plain_table(head, rows, ("", "n nw", "n nw"))


def _predicted_and_observed(b: Bin) -> tuple[Child, Child]:
    ((value, ends),) = value_column([b.observed], scale=100)
    return rate(b.predicted), joined([f"{value} %", quiet(f" ({ends})") if ends else None])


def _percent(gain: Value) -> Value:
    ends = (None if end is None else 100 * end for end in (gain.low, gain.high))
    return Value(100 * gain.value, *ends)
