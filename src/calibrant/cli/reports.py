"""What a report takes from files, and the server that shows it on this machine."""

from __future__ import annotations

import json
import math
import re
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.cli.columns import Columns
from calibrant.cli.console import in_shell, over_lines, refuse, require_writable, say, stage, stop, writing
from calibrant.cli.files import Loaded
from calibrant.data.groups import MISSING
from calibrant.data.predictions import Confidence
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.comparison import Comparison
from calibrant.table.bintable import BinTable

if TYPE_CHECKING:
    from calibrant.reporting.model import Report


def by_and_time(found: Any, by: Sequence[str] | None, time: str | None) -> tuple[Any, Any]:
    """The groups of `report`, under the names of their columns, and its times.

    `found` is the `by` of `Loaded` for the groupings of `by` and then `time`: the groups of rows, tables by group, or
    dictionaries of these by grouping.
    """
    wanted = [*(by or ()), *([time] if time is not None else ())]
    if not wanted or found is None:
        return None, None
    columns = _columns(found, wanted)
    times = None if time is None else _in_order(columns[time])
    times = times if times is None or isinstance(times, dict) else {time: times}
    groups = {name: columns[name] for name in by or ()}
    if groups and isinstance(next(iter(groups.values())), dict):
        groups = {f"{name} = {group}": table for name, tables in groups.items() for group, table in tables.items()}
    return groups or None, times


def _columns(found: Any, wanted: Sequence[str]) -> dict[str, Any]:
    """What was found of each column."""
    if not isinstance(found, dict):
        return dict.fromkeys(wanted, found)
    if not all(isinstance(table, BinTable) for table in found.values()):
        return found
    if len(set(wanted)) == 1:
        return {wanted[0]: found}
    columns: dict[str, Any] = {name: {} for name in wanted}
    for label, table in found.items():
        name = max((name for name in wanted if label.startswith(f"{name} = ")), key=len)
        columns[name][label.removeprefix(f"{name} = ")] = table
    return columns


def _in_order(values: Any) -> Any:
    """Times as numbers where all are numbers, else as text; tables in that order. Missing times are None."""
    if isinstance(values, dict):
        known = {name: table for name, table in values.items() if name != MISSING}
        numbers = _numbers(list(known))
        order = sorted(known) if numbers is None else [name for _, name in sorted(zip(numbers, known, strict=True))]
        return {name: known[name] for name in order}
    texts = [None if value == MISSING else str(value) for value in np.asarray(values, dtype=object).tolist()]
    numbers = _numbers([math.nan if text is None else text for text in texts])
    return np.array(texts, dtype=object) if numbers is None else np.array(numbers)


def _numbers(texts: Sequence[str | float]) -> list[float] | None:
    try:
        return [float(text) for text in texts]
    except ValueError:
        return None


#: The map between the two commands.
_MAP = "map.json"
#: Columns that `apply` and Python can name, unlike SQL and patterns.
_COLUMN = re.compile(r"[^\W\d][\w ]*")
#: Of more columns, Python's text would not be read.
#: Test: tests/cli/test_reports_snippets.py::test_up_to_twelve_columns_are_named_in_python.
_NAMED = 12


def with_own_commands(found: Report, files: Sequence[str], columns: Columns) -> Report:
    """The report whose snippets fit the best map to the user's own file, by the user's own options."""
    made = found.recalibration
    if made is None or not made.fitted:
        return found
    where = made.since if columns.where is None or not made.since else f"({columns.where}) and {made.since}"
    fitted = replace(columns, where=where or columns.where)
    text = commands(made.fitted, files, fitted)
    code, names, new = "", _predictions(columns), "p_new"  # for a frame of new rows
    if not (columns.quantiles or columns.members):  # which Python takes as objects, not as columns
        if len(names) <= _NAMED and names and all(map(_COLUMN.fullmatch, names)):
            new = f"new[{json.dumps(names[0] if len(names) == 1 else names, ensure_ascii=False)}]"
            new = f"{new} / 100" if columns.percent else new
        code = f'from calibrant.recalibrate import load\n\nrecalibrated = load("{_MAP}").transform({new})'
    again = replace(made, command=text, code=code)
    sections = tuple(again if section is made else section for section in found.contents.sections)
    return replace(found, contents=replace(found.contents, sections=sections))


def commands(map_class: str, files: Sequence[str], columns: Columns) -> str:
    """Fit a map to files of predictions with outcomes, and apply it to a file of new rows with the same columns.

    The second is left out where predictions are SQL, which `apply` does not take.
    """
    from calibrant.cli.options import PREDICTIONS, in_words

    words = [*map(in_shell, files), in_words(columns), f"--method {map_class.lower()} -o {_MAP}"]
    first = over_lines(f"calibrant recalibrate {' '.join(word for word in words if word)}")
    new = replace(columns, prob=columns.prob or tuple(name for name in (columns.confidence,) if name is not None))
    if not all(_COLUMN.fullmatch(name.replace("*", "")) for name in _predictions(new)):
        return first
    suffix = Path(files[0]).suffix
    suffix, written = suffix or ".csv", suffix if suffix in (".csv", ".parquet", ".arrow", ".jsonl") else ".parquet"
    options = in_words(new, (*PREDICTIONS, "percent", "logits"))
    parts = f"calibrant apply {_MAP} new{suffix}", options, f"-o recalibrated{written}"
    return f"{first}\n{over_lines(' '.join(part for part in parts if part))}"


def _predictions(columns: Columns) -> list[str]:
    """The names that stand for predictions: columns, SQL and patterns, as they were given."""
    given = (columns.confidence, *columns.prob, columns.mean, columns.std, *columns.members)
    return [name for name in (*given, *(item.partition("=")[2] or item for item in columns.quantiles)) if name]


def of_model(columns: Columns, name: str) -> Columns:
    """The columns for the rows of one model alone."""
    own = f"{columns.model} = '{name.replace(chr(39), chr(39) * 2)}'"
    return replace(columns, model=None, where=own if columns.where is None else f"({columns.where}) and {own}")


def compared_answers(loaded: Loaded, *, drop_missing: bool) -> list[Comparison]:
    """Every model against the first, by name; questions that not all of them answered are left out or refused."""
    from calibrant.cli.measures import estimator_of
    from calibrant.inference.comparison import compare_many
    from calibrant.scale.evaluation_logs import by_model

    data = loaded.data
    words = "Name two models: --prob twice; or, of answers, --correct, --confidence, --cluster and --model, the column."
    if loaded.model is None or not isinstance(data, Confidence):
        stop(words)
    refuse(loaded.cluster is None, "Models are compared question by question: --cluster names the column of questions.")
    models = by_model(data, model=loaded.model, question=loaded.cluster, drop_missing=drop_missing)
    left_out = len(data) - sum(map(len, models.values()))
    if left_out:
        say(f"Left out {left_out:,} answers to questions that not every model answered equally often.")
    refuse(len(models) < 2, f"There is only one model, {next(iter(models))!r}: nothing to compare.")
    return compare_many(estimator_of(data), models)


def write_model_reports(
    loaded: Loaded, groups: Any, times: Any, title: str, shared: dict[str, Any], output: Path | None, *,
    force: bool, as_json: bool, files: Sequence[str], columns: Columns,
) -> None:  # fmt: skip
    """One report per model, to files named after it where there is an output, and the comparison of all."""
    from calibrant.cli.measures import sentence
    from calibrant.reporting import report

    reports = {}
    for name in sorted(set(loaded.model.tolist()), key=str):
        rows = loaded.model == name
        part: Any = loaded.data.take(rows)  # with models there are always rows, no tables
        if part.group is not None and len(np.unique(part.group)) == len(part):  # each question was asked once
            part.group = None
        by, time = ({k: v[rows] for k, v in some.items()} if some else None for some in (groups, times))
        with stage(f"Measuring {name}"):
            made = report(part, by=by, time=time, title=f"{title}: {name}", model=str(name), **shared)
            reports[name] = with_own_commands(made, files, of_model(columns, str(name)))
        if output is not None:
            place = output.with_name(f"{output.stem}-{re.sub(r'[^A-Za-z0-9.]+', '-', str(name))}{output.suffix}")
            require_writable(place, force=force, inputs=())
            with writing(place, force=force):
                reports[name].save(place)
            say(f"Wrote {place}")
    several: list[Comparison] = []
    if len(reports) > 1 and loaded.cluster is not None and isinstance(loaded.data, Confidence):
        try:
            several = compared_answers(loaded, drop_missing=columns.drop_missing)
        except InvalidPredictions as error:
            say(f"No comparison. {error}")
    if as_json:
        listed = {"reports": {str(k): json.loads(v.to_json()) for k, v in reports.items()}}
        print(json.dumps({**listed, "comparisons": [one.to_dict() for one in several]}, indent=2))
        return
    print("\n\n".join([*(str(one) if output is None else f"{name}: {one.verdict}" for name, one in reports.items())]))
    print("\n" + "\n\n".join(map(sentence, several)) if several else "")


def serve_page(html: str, port: int) -> None:
    """Serve one page on the loopback address until interrupted."""
    server = make_server(html, port)
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    print(f"Serving on {address}; Ctrl-C stops.")
    webbrowser.open(address)
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()


def make_server(html: str, port: int) -> ThreadingHTTPServer:
    """The server; port 0 takes any free one.

    It answers requests for this machine by its own name only: a page from elsewhere can make the name of its own host
    mean this machine (DNS rebinding), and would then be allowed to read the answer.
    """
    body = html.encode("utf8")

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hosts = {f"{name}:{server.server_address[1]}" for name in ("127.0.0.1", "localhost")}
            status = 421 if self.headers.get("Host", "").lower() not in hosts else 200 if self.path == "/" else 404
            content = body if status == 200 else b""
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Page)
    return server
