"""Reports that contradict themselves: the numbers of a page as they are printed, checked against each other.

A page is read as a person reads it: its sentences and tables, from Markdown and HTML. `contradictions` lists what does
not agree; ``python -m tests.fuzz --only "any pages" --seed 17 --cases 1`` makes a page again. "any pages" are of every
task and have every option; "pages" are of fewer, and "strange pages" of worlds unlike these. Those that once failed
are tests.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import calibrant as cal
from calibrant.reporting.model import Report
from tests.fuzz.page_worlds import any_page_world, page_world
from tests.fuzz.printed import printed_differently, recorded
from tests.fuzz.strange_worlds import strange_page_world

NUMBER = r"[−]?\d[\d,]*(?:\.\d+)?"
#: A value with its interval: "0.85 (95 % interval 0.82 to 0.88)", "7.5 points, 6.0 to 10.2 %", ...
TRIPLE = re.compile(
    rf"(?<![\d.−])({NUMBER})(?: %|(?: percentage)? points?| times [^().;:]{{1,60}}| predicted standard deviations)?"
    rf"(?: (?!intervals)[a-z -]{{1,40}})?(?: on average)?(?: \(|, )(?:[\d.]+ % interval )?"
    rf"({NUMBER}) to ({NUMBER})(?: %)?(?:\)|,)"
)
P_VALUE = re.compile(r"\bp ([=<≤]) (0?\.?\d+(?:\.\d+)?)")
#: How strong the evidence is said to be, up to which p-value.
STRENGTHS = {"Strong": 0.001, "Clear": 0.01, "Some": 0.05}
BY_ITSELF = "alone, "
SEVERAL = "among several numbers"


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def digits(text):
    return len(text.partition(".")[2])


@dataclass(frozen=True)
class Table:
    """A table as it is printed."""

    heading: str
    columns: list[str]
    rows: list[list[str]]
    note: str

    def column(self, start):
        found = [k for k, name in enumerate(self.columns) if name.startswith(start)]
        return found[0] if found else None


def with_infinite_ends(node: Any) -> Any:
    """JSON has no infinity: a value or upper end that is missing beside a lower end is infinite."""
    if isinstance(node, list):
        return [with_infinite_ends(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {name: with_infinite_ends(one) for name, one in node.items()}
    if found.get("low") is not None:
        found |= {name: math.inf for name in ("value", "high") if name in found and found[name] is None}
    return found


@dataclass(frozen=True, eq=False)
class Page:
    """A report as readers meet it."""

    report: Report

    @cached_property
    def raw(self) -> dict[str, Any]:
        return with_infinite_ends(json.loads(self.report.to_json()))

    @cached_property
    def markdown(self) -> str:
        text = re.sub(r"\\(.)", r"\1", self.report.to_markdown())
        return html.unescape(text)

    @cached_property
    def html(self) -> str:
        text = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", self.report.to_html(), flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"</(td|th|p|h\d|li)>", " | ", text))).split())

    @cached_property
    def tables(self) -> dict[str, Table]:
        found = {}
        for part in self.markdown.split("\n## ")[1:]:
            heading, *lines = part.splitlines()
            table = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
            note = " ".join(line for line in lines if line and not line.startswith(("|", "-")))
            if len(table) > 2:
                found[heading] = Table(heading, table[0], table[2:], note)
        return found

    @property
    def verdict(self):
        return self.report.verdict

    @property
    def said(self) -> str:
        """All sentences of the verdict."""
        found = self.verdict
        return " ".join((found.sentence, found.second, found.how_sure, found.what_it_means, found.what_to_do))

    @cached_property
    def findings(self) -> dict[str, str]:
        return {one.code: one.text for one in self.report.findings}

    def big(self, name) -> dict[str, Any] | None:
        """One of the large numbers, by how its name begins."""
        return next((one for one in self.raw["numbers"] if one["name"].startswith(name)), None)

    @cached_property
    def triples(self) -> list[tuple[float, float, float]]:
        """Every number with its interval that is behind the page."""
        found: list[tuple[float, float, float]] = []

        def walk(node):
            if isinstance(node, dict):
                if node.get("low") is not None and node.get("high") is not None and node.get("value") is not None:
                    found.append((node["value"], node["low"], node["high"]))
                inner = node.get("interval")
                if isinstance(inner, dict) and node.get("value") is not None:
                    low, high = inner["low"], inner["high"]
                    found.append((node["value"], -math.inf if low is None else low, math.inf if high is None else high))
                for value in node.values():
                    walk(value)
            elif isinstance(node, list):
                for value in node:
                    walk(value)

        walk(self.raw)
        found += list(self._derived())
        return found + [(-value, -high, -low) for value, low, high in found]

    def _derived(self) -> Iterator[tuple[float, float, float]]:
        """Numbers that follow from others: the mean gap, the ratio of the rarer outcome, errors of the base rate."""
        facts, ratio = self.raw["facts"], self.big("Observed : expected")
        rate, mean = facts.get("base_rate"), facts.get("mean_prediction")
        if rate is None or mean is None:
            return
        if ratio is not None and ratio["value"]["low"] is not None:
            low, high = ratio["value"]["low"], ratio["value"]["high"]
            yield mean - rate, mean * (1 - high), mean * (1 - low)
            yield rate, mean * low, min(mean * high, 1.0)
            if mean < 1:
                yield (1 - rate) / (1 - mean), (1 - mean * high) / (1 - mean), (1 - mean * low) / (1 - mean)
        gap = self.big("Confidence")
        if gap is not None and gap["value"]["low"] is not None:
            yield rate, mean - gap["value"]["high"], mean - gap["value"]["low"]
        error = self.big("Calibration error")
        rarer = min(rate, 1 - rate)
        if error is not None and rarer > 0 and error["value"]["low"] is not None:
            value = error["value"]
            yield value["value"] / rarer, value["low"] / rarer, value["high"] / rarer


def is_rounding(text, raw, *, up=False):
    """Whether a printed number is one rounded to nearest, or `up`."""
    unit = 10.0 ** -digits(text)
    away = (number(text) - raw) / unit
    slack = 1e-6 * max(1.0, abs(raw) / unit) + 1e-6
    return -slack <= away <= 1 + slack if up else abs(away) <= 0.5 + slack


def is_rounded_triple(texts, raw):
    """Whether printed value and ends are one raw triple: to nearest, but an upper end above 0 rounded up."""
    value, low, high = raw
    begins_at_zero = low == 0
    return (
        is_rounding(texts[0], value)
        and is_rounding(texts[1], low)
        and is_rounding(texts[2], high, up=begins_at_zero)
        and (not begins_at_zero or number(texts[2]) >= high - 1e-6 * max(1.0, abs(high)))
    )


def printed_twice(page: Page) -> Iterator[str]:
    """A number with an interval that is not a number behind the page, rounded by the one rule."""
    scaled = [tuple(scale * end for end in raw) for raw in page.triples for scale in (1, 100)]
    for where, text in (("Markdown", page.markdown), ("HTML", page.html)):
        for found in TRIPLE.finditer(text.replace(page.findings.get("CAL303", "none"), "")):
            texts = found.groups()
            if not any(is_rounded_triple(texts, raw) for raw in scaled):
                yield f"{where}: no number of the report is {found.group(0)!r}"


def bounds_agree(page: Page) -> Iterator[str]:
    """The upper end of the error, wherever it stands alone."""
    for name in ("Calibration error", "Top-label calibration error"):
        error = page.big(name)
        if error is None or error["value"]["low"] is None or error["value"]["low"] > 0:
            continue
        high = error["value"]["high"]
        rarer = min(page.raw["facts"]["base_rate"], 1 - page.raw["facts"]["base_rate"])
        known = [100 * end for end in (high, high / rarer if rarer else high)]
        for where in (page.verdict.sentence, page.verdict.how_sure, *page.findings.values()):
            for text, _ in re.findall(rf"error (?:is|of) (?:at most|up to) ({NUMBER})( %)?", where):
                if not any(is_rounding(text, end, up=True) for end in known):
                    yield f"the error is at most {100 * high}, but it says {text} in {where!r}"


def interval_of(texts):
    """Both ends of "0.82 to 0.88 %", or None."""
    found = re.search(rf"({NUMBER}) to ({NUMBER})", texts)
    return None if found is None else (number(found[1]), number(found[2]))


def unexplained(page: Page) -> Iterator[str]:
    """Intervals that exclude their nominal value on a page that says "not significant", without a word about it."""
    quiet = page.verdict.state == "not significant"
    for one in page.raw["numbers"]:
        value, ideal = one["value"], one["ideal"]
        if value["low"] is None or one["name"].startswith("Largest share"):
            continue
        if not value["low"] <= ideal <= value["high"] and quiet and SEVERAL not in page.said:
            yield f"not significant, but {one['name']} is {value} and should be {ideal}"
        shown = next(row for row in page.tables["In numbers"].rows if row[0] == one["name"])
        ends = interval_of(shown[2]) if len(shown) > 2 else None
        scale = 100 if one["unit"] in ("points", "percent") else 1
        excluded = not value["low"] <= ideal <= value["high"]
        if ends and excluded and ends[0] <= scale * ideal <= ends[1]:
            yield f"{one['name']} excludes {ideal}, but is printed as {shown}"
    for table in page.tables.values():
        yield from unexplained_rows(page, table, quiet=quiet)


def unexplained_rows(page: Page, table: Table, *, quiet: bool) -> Iterator[str]:
    """Rows of a table that exclude their nominal value and are not flagged."""
    ends, off = table.column("95 % interval"), []
    for row in table.rows:
        excluded = False
        if ends is None and table.heading.startswith("Recalibration"):
            found = interval_of(row[2])
            excluded = quiet and found is not None and found[0] > 0
        elif ends is None or not row[ends]:
            continue
        elif table.column("O:E") is not None or table.column("Ratio") is not None:
            low, high = interval_of(row[ends])
            excluded = not low <= 1 <= high and ("not flagged" in row or (table.column("") and "flagged" not in row))
        elif table.columns[0] in ("Nominal", "Predicted"):
            low, high = interval_of(row[ends])
            nominal = number(row[0 if table.columns[0] == "Nominal" else table.column("Mean")].removesuffix(" %"))
            excluded = quiet and not low <= nominal <= high
        if excluded:
            off.append(row)
    if off and BY_ITSELF not in table.note:
        yield f"{table.heading}: not significant, but {off[0]}"


def sureness(page: Page) -> Iterator[str]:
    """P-values, their strength, and the state that they decide."""
    said, state = page.verdict.how_sure, page.verdict.state
    wrong = state in ("not calibrated", "small")
    if wrong and said.startswith("No significant"):
        yield f"{state}, but how sure: {said}"
    if state == "not significant" and re.match("Strong|Clear|Some", said):
        yield f"{state}, but how sure: {said}"
    if wrong and not re.match("Strong|Clear|Some", said) and page.verdict.rule not in ("B4",):
        yield f"{state}, but nothing says how sure: {said!r}"
    for word, sign, p in re.findall(r"(Strong|Clear|Some) evidence[^.]*?\bp ([=<≤]) (\d?\.\d+)", said):
        if not number(p) <= STRENGTHS[word] + (1e-12 if sign != "=" else 5e-4):
            yield f"{word} evidence of p {sign} {p}"
    tests = page.tables.get("Tests")
    listed = set() if tests is None else {row[tests.column("p-value")] for row in tests.rows}
    shown = {text if sign == "=" else f"{sign} {text}" for sign, text in P_VALUE.findall(said)}
    groups = {row[-1] for table in page.tables.values() if "Adjusted p" in table.columns for row in table.rows}
    adjusted = {
        row[table.column("Adjusted p")]
        for table in page.tables.values()
        if "Adjusted p" in table.columns
        for row in table.rows
    }
    adjusted |= groups
    change = (page.report.over_time.change if page.report.over_time is not None else None) is not None
    if shown and not shown & (listed | adjusted) and not change:
        yield f"how sure says p {sorted(shown)}, the tests say {sorted(listed)}"
    first = None if tests is None else tests.rows[0][tests.column("p-value")]
    for code in ("CAL201", "CAL202", "CAL211"):
        found = P_VALUE.search(page.findings.get(code, ""))
        text = None if found is None else found[2] if found[1] == "=" else f"{found[1]} {found[2]}"
        if text is not None and text != first:
            yield f"{code} says p {text}, the test of the verdict {first}"


def error_and_gap(page: Page) -> Iterator[str]:
    """The mean absolute error is at least the absolute mean error: of estimates and of lower ends."""
    facts, ratio = page.raw["facts"], page.big("Observed : expected")
    error, gap = page.big("Calibration error"), None
    if page.report.contents.kind == "classes":
        error, gap = page.big("Top-label calibration error"), page.big("Confidence")
        gap = None if gap is None else tuple(gap["value"][key] for key in ("value", "low", "high"))
    elif ratio is not None and page.report.contents.kind == "binary" and ratio["value"]["low"] is not None:
        mean = facts["mean_prediction"]
        gap = mean - facts["base_rate"], mean * (1 - ratio["value"]["high"]), mean * (1 - ratio["value"]["low"])
    if gap is None or error is None or error["value"]["low"] is None or gap[1] is None:
        return
    least = max(gap[1], -gap[2], 0.0)
    if error["value"]["low"] < least - 1e-9:
        yield f"lower end of the error {error['value']['low']}, of the mean gap {least}"
    if least > 0 and error["value"]["value"] < abs(gap[0]) - 1e-9:
        yield f"error {error['value']['value']}, mean gap {gap[0]}"


def directions(page: Page) -> Iterator[str]:
    """Words of direction against the numbers beside them."""
    found, kind = page.verdict, page.report.contents.kind
    ratio, slope = page.big("Observed : expected"), page.big("Calibration slope")
    slope = slope if slope and slope["value"]["value"] is not None else None  # infinite
    spread, held = page.big("Error-to-spread"), page.big("Coverage")
    sides = {
        "too high": ratio and ratio["value"]["value"] < 1,
        "too low": ratio and ratio["value"]["value"] > 1,
        "too extreme": slope and slope["value"]["value"] < 1,
        "too moderate": slope and slope["value"]["value"] > 1,
    }
    if kind in ("binary", "unlabeled") and found.rule not in ("BG", "BC") and sides.get(found.direction) is False:
        yield f"{found.direction}, but ratio {ratio} and slope {slope}"
    if kind == "regression" and found.direction in ("too narrow", "too wide") and found.rule not in ("RG", "RC"):
        narrow = found.direction == "too narrow"
        agree = [] if not spread else [(spread["value"]["value"] > 1) is narrow]
        agree += [] if held is None else [(held["value"]["value"] < held["ideal"]) is narrow]
        if agree and not any(agree):
            yield f"{found.direction}, but ratio {spread} and coverage {held}"


def advice(page: Page) -> Iterator[str]:
    """What to do against the gain, the state and the groups."""
    found, made = page.verdict, page.report.recalibration
    gain = re.search(
        rf"lowers cross-validated [a-zA-Z ]+ by ({NUMBER}) % \(({NUMBER}) to ({NUMBER}) %\)", found.what_to_do
    )
    if gain is not None and (number(gain[2]) <= 0 or number(gain[3]) > 100):
        yield f"advice of a map: {found.what_to_do}"
    flagged = [row.name for section in page.report.groups for row in section.rows if row.flagged]
    nothing = "Nothing needs to be done" in found.what_to_do and "Usually" not in found.what_to_do
    if nothing and (found.state not in ("not significant",) or flagged):
        yield f"{found.state}, groups {flagged}, but: {found.what_to_do}"
    if nothing and "cannot rule out" in found.sentence:
        yield f"{found.sentence} {found.what_to_do}"
    if flagged and found.rule in ("BG", "RG", "MG") and not any(str(name) in found.what_to_do for name in flagged):
        yield f"groups {flagged} are not in what to do: {found.what_to_do}"
    if nothing and audited_by(page) and (audited_by(page)["significant"] or audited_by(page)["segments"]):
        yield f"{audited_by(page)['sentence']} But: {found.what_to_do}"
    if made is not None and made.maps and made.maps[0].gain.low is not None:
        best = made.maps[0].gain
        if "Recalibration may not help" in found.what_to_do and best.low > 0:
            yield f"{found.what_to_do} but gain {best}"
    if "More rows would settle this" in found.what_to_do and found.state == "small":
        yield f"small, but: {found.what_to_do}"


def impossible(page: Page) -> Iterator[str]:
    """Ends that no such quantity can have."""
    for one in page.raw["numbers"]:
        low, high = one["value"]["low"], one["value"]["high"]
        least, most = {"points": (-1, 1), "ratio": (None, None), "percent": (0, None)}.get(one["unit"], (None, None))
        if one["name"].startswith("Coverage"):
            most = 1
        if one["name"].startswith(("Observed", "Error-to-spread", "ENCE")):
            least = 0
        if low is not None and ((least is not None and low < least) or (most is not None and high > most)):
            yield f"{one['name']} cannot be {one['value']}"
        value = one["value"]["value"]
        if low is not None and not low - 1e-12 <= value <= high + 1e-12:
            yield f"{one['name']} {value} is outside of {low} to {high}"
    for section in page.raw["sections"]:
        for key in ("maps",):
            for row in section.get(key, ()):
                if row["gain"]["high"] is not None and row["gain"]["high"] > 1 + 1e-12:
                    yield f"{row['name']} cannot gain {row['gain']}"
                remaining = row["remaining"]
                if remaining["low"] is not None and not remaining["low"] <= remaining["value"] <= remaining["high"]:
                    yield f"remaining error of {row['name']}: {remaining}"
    for text in re.findall(rf"({NUMBER}) %", page.said):
        if not -100 <= number(text) <= 100 and "base rate" not in page.said and "rarer" not in page.said:
            yield f"{text} % in {page.said!r}"


def outside(page: Page) -> Iterator[str]:
    """Estimates outside of their own interval, without the reason."""
    table = page.tables.get("Estimates")
    if table is None or table.column("95 % interval") is None:
        return
    for row in table.rows:
        ends = row[table.column("95 % interval")]
        found, value = interval_of(ends), re.match(NUMBER, row[1])
        if found is None or value is None or "range of" in ends:
            continue
        if not found[0] <= number(value[0]) <= found[1] and "outside" not in row[-1] + table.note:
            yield f"{row[:3]} is outside of its interval, and nothing says why"


def audited_by(page: Page) -> dict[str, Any] | None:
    """The section of the audit by features, as JSON."""
    return next((one for one in page.raw["sections"] if one["section"] == "Audited"), None)


def features(page: Page) -> Iterator[str]:
    """The audit: its sentence against its p-value, its segments, and the verdict."""
    found = audited_by(page)
    if found is None:
        return
    off = re.search("off by (at least|an unknown)", found["sentence"]) is not None
    if off != found["significant"] or found["significant"] != (found["p_value"] <= 0.05):
        yield f"p = {found['p_value']}, but: {found['sentence']}"
    if (off or found["segments"]) and found["sentence"] not in page.verdict.second:
        yield f"the verdict does not say: {found['sentence']}"
    for one in found["segments"]:
        seen, said = one["observed"], one["predicted"]
        if not found["significant"] and "detects no miscalibration" not in found["sentence"]:
            yield f"{one['name']} is off, but: {found['sentence']}"
        if (one["direction"] == "too high") != (seen["value"] < said) or one["adjusted"] > 0.05:
            yield f"{one['name']} is {one['direction']}, p {one['adjusted']}: predicted {said}, observed {seen}"
        if not seen["low"] <= seen["value"] <= seen["high"] or seen["low"] <= said <= seen["high"]:
            yield f"{one['name']}: predicted {said}, observed {seen}"


def groups(page: Page) -> Iterator[str]:
    """Flags of groups and classes against their p-values and directions."""
    for section in page.raw["sections"]:
        for row in section["rows"] if section["section"] in ("Groups", "Classes") else ():
            off, p, ratio = row["direction"] != "not flagged", row["p_value"], row["ratio"]
            if off != row["flagged"] or (row["flagged"] and not p < 0.05):
                yield f"{row['name']} is {row['direction']}, flagged {row['flagged']}, p {p}"
            low = {"too wide": row["ideal"] == 1, "too narrow": row["ideal"] != 1}
            if page.report.contents.kind != "regression":
                low = {"too high": True, "too low": False}
            side = low.get(row["direction"])
            if side is not None and ratio["value"] is not None and (ratio["value"] < row["ideal"]) is not side:
                yield f"{row['name']} is {row['direction']}, but {ratio} where {row['ideal']} is right"


def said_of_rows(page: Page) -> Iterator[str]:
    """What the verdict says that some rows show, on a page that says "not significant"."""
    if page.verdict.state != "not significant" or BY_ITSELF in page.said or SEVERAL in page.said:
        return
    ends = rf"(?:95 % interval )?({NUMBER}) to ({NUMBER}) %"
    told = rf"{NUMBER} % [^.;()]+\({ends}\)(?:; the (?:predictions|confidence) says?|, where) ({NUMBER})"
    for low, high, said in re.findall(told, page.verdict.what_it_means):
        if not number(low) <= number(said) <= number(high):
            yield f"not significant, but: {page.verdict.what_it_means}"


def untrue_words(page: Page) -> Iterator[str]:
    """Scores above 100 %, a test that does not exist, simulated models that did not deviate as much as others."""
    if "(above 100 %)" in page.said:
        yield f"no score is above 100 %: {page.verdict.what_it_means}"
    if not page.report.tests and "the test allows" in page.said:
        yield f"there is no test: {page.verdict.what_it_means}"
    told = re.search(r"(none|[\d,]+) of ([\d,]+) simulated", page.verdict.how_sure)
    if told is not None and page.report.tests:
        rank, p = (0 if told[1] == "none" else number(told[1])) + 1, page.report.tests[0].p_value
        if not (rank == 1 and p * (1 + number(told[2])) <= 1) and abs(p * (1 + number(told[2])) - rank) > 1e-6:
            yield f"p = {p}, but: {page.verdict.how_sure}"
    few = page.report.contents.kind == "binary" and "Too few rows" in page.verdict.what_to_do
    if few and page.raw["facts"]["rows"] >= 100:
        yield f"{page.raw['facts']['rows']} rows, but: {page.verdict.what_to_do}"


def decisions(page: Page) -> Iterator[str]:
    """The decision curve: it cannot be worth more than the base rate, and treating everyone has a formula."""
    for found in page.raw["sections"]:
        if found["section"] != "NetBenefit":
            continue
        rate = page.raw["facts"]["base_rate"]
        for at, value, everyone in zip(found["thresholds"], found["values"], found["treat_all"], strict=True):
            expected = rate - (1 - rate) * at / (1 - at)
            if abs(everyone - expected) > 1e-9:
                yield f"treating everyone at {at} is worth {everyone}, not {expected}"
            if value["value"] > rate + 1e-9:
                yield f"net benefit {value} at {at}, base rate {rate}"
            if value["low"] is not None and not value["low"] <= value["value"] <= value["high"]:
                yield f"net benefit {value} at {at}"


def parts_against_truth(page: Page, world) -> Iterator[str]:
    """Groups, changes and segments of calibrated data, and a ratio that is known, beyond any chance."""
    clusters = page.raw["facts"]["clusters"]
    for what, name in (("ratio", "Observed : expected"), ("error", "Calibration error")):
        right, found = world.details.get(what), page.big(name)
        if right is not None and found is not None and found["value"]["low"] is not None and (clusters or 30) >= 30:
            low, high = found["value"]["low"], found["value"]["high"]
            if not low - 3 * (high - low) <= right <= high + 3 * (high - low):
                yield f"the {what} is {right}, not {found['value']}"
    if not world.calibrated:
        return
    for section in page.report.groups:
        for row in section.rows:
            if row.flagged and row.p_value < 1e-6:
                yield f"calibrated, but {section.column} {row.name}: p = {row.p_value}"
    change = None if page.report.over_time is None else page.report.over_time.change
    if change is not None and change.p_value < 1e-6:
        yield f"calibrated, but a change, p = {change.p_value}"
    found = audited_by(page)
    if found is not None and found["p_value"] is not None and found["p_value"] < 1e-6:
        yield f"calibrated, but {found['sentence']}"


def against_truth(page: Page, world) -> Iterator[str]:
    """What cannot be chance: a calibrated model condemned at p < 1e-6, or the opposite of the truth in the headline."""
    yield from parts_against_truth(page, world)
    tests = [test.p_value for test in page.report.tests[:1]]
    wrong = page.verdict.state in ("not calibrated", "small")
    if world.calibrated and wrong and tests and tests[0] < 1e-6:
        yield f"calibrated, but p = {tests[0]}: {page.verdict.sentence}"
    if wrong and tests and tests[0] < 1e-6:
        for word in world.never:
            if word in page.verdict.sentence and "too high at" not in page.verdict.sentence:
                yield f"{world.fault}, but: {page.verdict.sentence}"


RULES = (
    printed_twice,
    bounds_agree,
    unexplained,
    sureness,
    error_and_gap,
    directions,
    advice,
    impossible,
    outside,
    features,
    groups,
    said_of_rows,
    untrue_words,
    decisions,
)


def contradictions(page: Page) -> list[str]:
    """What does not agree on a page."""
    return [f"{rule.__name__}: {found}" for rule in RULES for found in rule(page)]


def any_pages(rng, folder):
    """A page of any task, with any options."""
    pages(rng, folder, any_page_world)


def strange_pages(rng, folder):
    """A page of a world unlike the others."""
    pages(rng, folder, strange_page_world)


def pages(rng, folder, page_world=page_world):
    """A page of a random world."""
    world = page_world(rng)
    with recorded() as printed:
        page = Page(cal.report(world.data, **world.options))
        texts = (page.html, page.markdown, str(page.report))
    assert all(texts)
    found = contradictions(page) + list(against_truth(page, world)) + list(printed_differently(printed, page.raw))
    assert not found, f"{type(world.data).__name__}, {world.fault}, {sorted(world.options)}: " + "; ".join(found)
