"""`calibrant monitor`: add a file of outcomes to the state of a watched model, and say whether there is an alarm."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.columns import Columns
from calibrant.cli.commands.application import Command, app, loaded_from
from calibrant.cli.console import refuse, require_writable, say, stage, stop, writing
from calibrant.cli.options import PREDICTIONS, TASK, Files, Force, Json, option, takes

if TYPE_CHECKING:
    from calibrant.monitor.monitoring import Monitor


@app.command(cls=Command)
@takes(*(name for name in TASK if name not in ("cluster", "labelled", "prior", "single_sample")), "by")
def monitor(
    files: Files,
    columns: Columns,
    *,
    state: Annotated[Path, option("FILE", "The state (JSON); created if missing.")],
    time: Annotated[str | None, option("COLUMN", "Date or number of the period of each row: column or SQL.")] = None,
    cluster: Annotated[str | None, option("COLUMN", "Rows that belong together: column or SQL.")] = None,
    alpha: Annotated[float | None, option("SHARE", "Probability of ever raising a false alarm [0.05].")] = None,
    arl: Annotated[float | None, option("PERIODS", "Instead: mean periods to a false alarm.")] = None,
    tolerance: Annotated[float | None, option("SHARE", "Tolerated relative error of the odds [0.1].")] = None,
    points: Annotated[float | None, option("SHARE", "Tolerated error of a probability [0].")] = None,
    horizon: Annotated[int | None, option("PERIODS", "Periods until an outcome is final [0].")] = None,
    today: Annotated[str | None, option("DATE", "For --horizon; the date of today by default.")] = None,
    batch: Annotated[str | None, option("TEXT", "Name of this delivery; by default its contents.")] = None,
    html: Annotated[Path | None, option("FILE", "Page to write: evidence, curve, groups, what to do.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Monitor calibration: add rows with known outcomes. Exit codes: 0 no alarm, 1 alarm, 3 not enough rows yet."""
    from calibrant._atomic_write import folder_locked
    from calibrant.cli.reports import by_and_time

    refuse(len(columns.by) > 1, "Give one --by; several columns in it, separated by commas, are crossed.")
    require_writable(html, force=force, inputs=[*files, state])
    settings = {"alpha": alpha, "arl": arl, "tolerance": tolerance, "points": points, "horizon": horizon}
    given = {name: value for name, value in settings.items() if value is not None}
    by = [*columns.by, *([] if cluster is None else [cluster])]
    loaded = loaded_from(files, replace(columns, by=tuple(dict.fromkeys([*by, *([] if time is None else [time])]))))
    groups, times = by_and_time(loaded.by, by, time)
    with stage("Watching"), folder_locked(state):
        watched = _opened(state, given, _names(columns, time, cluster))
        today = today or (datetime.now(UTC).date().isoformat() if watched.horizon else None)
        named = {"batch": batch or _digest(loaded.data, groups, times), "today": _number_or_text(today), "force": force}
        for rows in _deliveries(loaded.data, groups, times, columns.by, time, cluster):
            found = watched.update(**rows, **named)
            named["batch"] = f"{named['batch']}, next"
        watched.save(state)
    if html is not None:
        from calibrant.reporting.monitor_page import save_page

        with stage("Writing"), writing(html, force=force):
            save_page(watched, found, html, state=str(state))
        say(f"Wrote {html}")
    print(json.dumps(found.to_dict(), indent=2) if as_json else found)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _opened(state: Path, given: dict[str, Any], names: dict[str, str]) -> Monitor:
    """The monitor in a file, whose settings and columns must be those given; a new one if there is no file."""
    from calibrant.monitor.monitoring import Monitor

    if not state.exists():
        made = Monitor(**given)
        made.columns = names
        return made
    found = Monitor.load(state)
    for name, value in given.items():
        if getattr(found, name) != value:
            stop(f"{state} watches with {name} {getattr(found, name)}, not {value}: use another --state.")
    if found.columns != names:
        both = (found.columns, names)
        before, now = (", ".join(f"--{option} {name}" for option, name in one.items()) for one in both)
        stop(f"{state} watches {before}; this is {now}. Use another --state for another model.")
    return found


def _names(columns: Columns, time: str | None, cluster: str | None) -> dict[str, str]:
    """The columns that make a model what it is; the others may change from file to file."""
    options: dict[str, Any] = {name: getattr(columns, name) for name in ("truth", *PREDICTIONS)}
    options |= {"time": time, "by": columns.by, "cluster": cluster}
    return {option: name if isinstance(name, str) else ", ".join(name) for option, name in options.items() if name}


def _deliveries(
    data: Any, groups: Any, times: Any, by: tuple[str, ...], time: str | None, cluster: str | None
) -> Iterator[dict[str, Any]]:
    """What `update` takes: all rows at once or, where they came as tables, the table of each period."""
    from calibrant.data.groups import groups as cluster_names
    from calibrant.table.bintable import BinTable

    if isinstance(data, BinTable):
        if groups:
            stop("More than two million rows with --by or --cluster: give them in parts, e.g. a file for each day.")
        yield from ({"y_true": table, "time": _number_or_text(name)} for name, table in (times or {None: data}).items())
        return
    if cluster is not None:
        data = copy.copy(data)
        data.group = cluster_names("--cluster", groups[cluster], length=len(data))
    yield {"y_true": data, "time": None if time is None else times[time], "group": groups[by[0]] if by else None}


def _number_or_text(text: str | None) -> Any:
    return int(text) if text is not None and text.lstrip("-").isdigit() else text


def _digest(data: Any, *others: Any) -> str:
    """A name for the delivery that is made of its contents."""
    found = sha256()
    for name, values in sorted(vars(data).items()):
        if hasattr(values, "tobytes"):
            text = repr(values.tolist()).encode() if values.dtype == object else values.tobytes()
            found.update(name.encode() + text)
    for one in others:
        lists = {name: getattr(values, "tolist", lambda: "")() for name, values in (one or {}).items()}
        found.update(repr(lists).encode())
    return found.hexdigest()
