"""The status of a monitor as one page: the answer, the evidence over time, reliability then and now, and groups."""

from __future__ import annotations

import json
import math
import os
from functools import partial

import numpy as np

from calibrant._atomic_write import replacing
from calibrant.inference.reliability import ReliabilityCurve, reliability_curve
from calibrant.monitor.monitoring import Monitor
from calibrant.monitor.status import Status
from calibrant.plot.scales import Scale, covering, probability_scale
from calibrant.reporting.contents import Number, Severity
from calibrant.reporting.drawing.canvas import ROOMY, Canvas, Figure, plain_tick
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.reliability import named_curves
from calibrant.reporting.layout.elements import Block, code_box, data_table, fold, rich
from calibrant.reporting.layout.page import answer_block, numbers_block, whole_page
from calibrant.reporting.names import listed
from calibrant.reporting.rounding import count, mapped
from calibrant.reporting.sections.reliability import RARE
from calibrant.reporting.text import Table
from calibrant.results.estimate import Value

_KINDS = {"binary": "binary probabilities", "multiclass": "class probabilities", "forecast": "forecasts"}


def save_page(monitor: Monitor, status: Status, path: str | os.PathLike[str], *, state: str = "state.json") -> None:
    """Write the page, all of it or nothing; `state` is the file of the monitor, for the code that it shows."""
    with replacing(path) as place:
        place.write_text(monitor_page(monitor, status, state=state), encoding="utf8")


def monitor_page(monitor: Monitor, status: Status, *, state: str = "state.json") -> str:
    """The whole HTML text: it loads nothing, sends nothing, and works with scripts off."""
    title = "Is the model still calibrated?"
    sections = (
        _evidence(monitor, status),
        *_curves(monitor, status),
        *_groups(monitor, status),
        _guarantee(monitor, state),
    )  # fmt: skip
    main = (_answer(monitor, status), numbers_block(_numbers(status)), *(section.html() for section in sections))
    kind = f"Calibration monitor · {_KINDS[status.kind]}"
    return whole_page(f"{title} Calibration monitor", kind, title, _facts(monitor, status), *main)


def _facts(monitor: Monitor, status: Status) -> list[tuple[str, str]]:
    periods = f"{monitor.period_name(0)} to {status.now}"
    tolerance = f"{100 * monitor.tolerance:g} % of the odds"
    if monitor.points:
        tolerance += f" and {100 * monitor.points:g} points"
    facts = [("Rows", count(status.rows)), ("Period", periods), ("Tolerance", tolerance)]
    if columns := monitor.columns:
        facts.append(("Columns", ", ".join(columns.values())))
    return facts


def _answer(monitor: Monitor, status: Status) -> Markup:
    severity: Severity = "problem" if status.alarm else "note"
    state = "Alarm" if status.alarm else "No alarm"
    if not status.alarm and not status.enough:
        severity, state = "caution", "Not enough rows yet"
    three = _three(monitor, status)
    return answer_block(severity, state, status.headline, three, name="Status", second=status.remarks)


def _three(monitor: Monitor, status: Status) -> list[tuple[str, str]]:
    if monitor.arl is not None:
        promise = f"A calibrated model raises a false alarm at most once in {monitor.arl:,.0f} periods on average."
    else:
        promise = f"The probability that a calibrated model ever raises an alarm is at most {100 * monitor.alpha:g} %."
    if status.alarm:
        means = f"Since {status.since}, outcomes have differed from the predictions by more than the tolerance."
        do = "Look for what changed then. Recalibrate, deploy, and start a new monitor for the repaired model."
    elif status.enough:
        means = "An error far above the tolerance would probably have raised an alarm by now."
        do = "Nothing. Add the next outcomes when they are known."
    else:
        means = "There are not enough rows yet for the absence of an alarm to mean much."
        do = "Add more rows with known outcomes."
    return [("How sure", promise), ("What it means", means), ("What to do", do)]


def _numbers(status: Status) -> list[Number]:
    gap, ratio = Value.of(status.gap), status.observed_expected
    since = f"{status.series or 'All rows'}, since {status.window}. The interval is valid at every look."
    if status.kind == "forecast":
        share = mapped(gap, lambda end: 0.5 + end)
        return [Number("Outside the central half", share, 0.5, "percent", "too wide", "too narrow", since)]
    sides = ("too high", "too low", since)
    found = [Number(status.gap.name, gap, 0.0, "points", *sides)]
    return found if math.isnan(ratio) else [*found, Number(ratio.name, Value.of(ratio), 1.0, "ratio", *sides)]


def _evidence(monitor: Monitor, status: Status) -> Block:
    """The evidence at every look, and what an alarm needs."""
    limit = math.log10(monitor.arl or 1 / monitor.alpha)
    rows = [(monitor.period_name(period), _times(evidence)) for period, evidence in monitor.history]
    when = f"passed the limit on {status.first_alarm}" if status.alarm else "is below the limit"
    text = (
        f"Bets against calibration have multiplied their stake by {_times(status.evidence)} so far; an alarm needs "
        f"{10**limit:,.0f}. Against a calibrated model, such bets win nothing on average."
    )
    draw, table = partial(_chart, monitor, status, limit), Table("Evidence", ("Period", "Evidence"), rows)
    figure = Figure.of(draw, 1040, "Evidence over time.", f"The evidence {when}", text, table)
    return Block.of("evidence", "Evidence", figure, text)


def _times(evidence: float) -> str:
    """A power of ten as a factor; very large ones are not told apart."""
    if evidence > 6:
        return "more than a million"
    return f"{10**evidence:.2g}" if evidence < 2 else f"{10**evidence:,.0f}"


def _chart(monitor: Monitor, status: Status, limit: float, width: float) -> Canvas:
    roomy = width > ROOMY
    periods, evidence = zip(*monitor.history, strict=True)
    shown = [min(max(one, -2.0), limit + 4) for one in evidence]
    across = Scale(periods[0] - 0.5, max(periods[-1], periods[0] + 1) + 0.5)
    canvas = Canvas(width, 280, (52, 26, 14, 34), across, covering([*shown, limit, 0.0], "linear", pad=0.08))
    canvas.y_ticks(lambda power: plain_tick(10.0**power) if power >= 0 else f"{10.0**power:g}", most=5)
    canvas.line(canvas.left, canvas.y(limit), canvas.right, canvas.y(limit), "thr")
    canvas.text(canvas.left + 6, canvas.y(limit) - 6, "alarm", "m halo")
    if status.alarm and monitor.alarmed is not None:
        at = canvas.x(monitor.alarmed)
        canvas.line(at, canvas.top, at, canvas.bottom, "ref")
    canvas.curve(periods, shown, "curve")
    for place, anchor in ((periods[0], "start"), (periods[-1], "end")):
        x = canvas.left if anchor == "start" else canvas.right
        canvas.text(x, canvas.bottom + 20, monitor.period_name(place), "", anchor)  # type: ignore[arg-type]
    if roomy:
        canvas.text(0, 12, "evidence against calibration", "t")
    return canvas


def _curves(monitor: Monitor, status: Status) -> list[Block]:
    """Reliability before the change and since; of a model without an alarm, of all rows and lately."""
    if status.kind != "binary":
        return []
    earlier, now = monitor.tables()
    before = None if earlier is None else reliability_curve(earlier)
    title = f"Reliability since {status.window}{' and before' if before else ''}"
    text = "Observed frequency against predicted probability; a calibrated model lies on the diagonal."
    figure = Figure.of(partial(_diagram, before, reliability_curve(now)), 384, "Reliability then and now.", title, text)
    return [Block.of("reliability", "Reliability", figure, text)]


def _diagram(before: ReliabilityCurve | None, now: ReliabilityCurve, width: float) -> Canvas:
    values = np.concatenate([now.predicted, now.observed]).tolist()
    rare = float(now.observed @ now.share) < RARE
    named = ((before, "curve", "before", "m halo"), (now, "curve2", "now", "a halo"))
    lines = [
        (list(zip(curve.predicted, curve.observed, strict=True)), kind, "", words, style)
        for curve, kind, words, style in named
        if curve is not None
    ]
    return named_curves(width, probability_scale(values, log_odds=rare), lines)


def _groups(monitor: Monitor, status: Status) -> list[Block]:
    found = monitor.by_series()
    if not found:
        return []
    rows = [
        (
            name,
            count(round(one.n)),
            f"{one.ratio:.2f}",
            _times(math.log10(one.evidence)),
            "yes" if name in status.groups else "",
        )
        for name, one in sorted(found.items(), key=lambda item: -item[1].evidence)
    ]
    columns = ("Group", "Rows", f"O:E since {status.window}", "Evidence", "Shown to be off")
    named = listed(status.groups) or "none"
    lead = f"Shown to be off: {named}. The more groups there are, the more evidence each one needs."
    table = data_table(Table("Groups", columns, rows), "Groups", ("", "n", "n", "n", ""))
    off = len(status.groups)
    title = f"{off} of {len(rows)} groups {'is' if off == 1 else 'are'} shown to be off"
    return [Block("groups", "Groups", title, lead, table)]


def _guarantee(monitor: Monitor, state: str) -> Block:
    """What the guarantee rests on, and how to go on."""
    conditions = (
        "**Outcomes that become known earlier for one result** (fraud at once, its absence after weeks): deliver whole "
        "periods once all outcomes are final, with `--horizon`.",
        "**Dependence between rows of one delivery**: name what they share with `--cluster`.",
        "**Overlapping windows of time**: predict, or deliver, windows that do not overlap.",
    )
    code = 'import calibrant as cal\n\nmonitor = cal.Monitor.load(STATE)\nmonitor.repair().save("map.json")'
    code = code.replace("STATE", json.dumps(state))
    parts: list[Child] = [tag("p", rich(text)) for text in conditions]
    body = joined([fold("What breaks the guarantee, and what to do about it", *parts)])
    if monitor.kind == "binary":
        body = joined([code_box("Recalibrate on the rows since the change", code), body])
    return Block("next", "What to do", "What to do next", "", body)
