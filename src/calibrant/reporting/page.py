"""The report as one self-contained page: the figures' data and library are inside, nothing is fetched."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__
from calibrant.reporting.model import finite
from calibrant.reporting.text import tables

if TYPE_CHECKING:
    from calibrant.reporting.model import Report

#: Nothing may be loaded from anywhere. The figures' library compiles its expressions, hence 'unsafe-eval'.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def page(report: Report) -> str:
    """The whole HTML text."""
    try:
        import jinja2
    except ImportError as error:
        message = "An HTML report needs jinja2 and altair: pip install 'calibrant[cli]'."
        raise ImportError(message) from error
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_asset("page.html")).render(
        report=report,
        tables=[{"heading": heading, "columns": columns, "rows": rows} for heading, columns, rows in tables(report)],
        policy=POLICY,
        version=__version__,
        style=_asset("style.css"),
        library=_library(),
        app=_asset("app.js"),
        data=script_json({"charts": report.charts, "groups": _forest(report), "estimates": _estimates(report)}),
    )


def script_json(value: Any) -> str:
    """JSON that cannot end its script element or begin a comment, whatever text it holds."""
    text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _estimates(report: Report) -> list[dict[str, Any]]:
    return [_bar(m.estimate.name, m.estimate) for m in report.measures if 0 <= abs(m.estimate) <= 1]


def _forest(report: Report) -> list[dict[str, Any]]:
    return [{**_bar(group.name, group.estimate), "n": group.n, "p": group.p_value} for group in report.groups]


def _bar(name: str, estimate: Any) -> dict[str, Any]:
    interval = estimate.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return {"name": name, "value": float(estimate), "low": low, "high": high}


def _asset(name: str) -> str:
    return files("calibrant.reporting").joinpath("assets", name).read_text(encoding="utf8")


@cache
def _library() -> str:
    """Vega, Vega-Lite and its embedding, as one script."""
    try:
        from vl_convert import javascript_bundle
    except ImportError as error:
        message = "An HTML report needs altair with its offline bundle: pip install 'calibrant[cli]'."
        raise ImportError(message) from error
    bundle: str = javascript_bundle()  # type: ignore[call-arg] # its stub demands what it does not need
    return bundle.replace("</script", "<\\/script")
