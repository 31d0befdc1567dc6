"""The demonstration: simulated predictions, and the commands one would run on a file of one's own.

Every command is run as it is shown, in the folder of the demonstration, so that what it prints and the calls on its
pages are those of the files beside them.
"""

from __future__ import annotations

import itertools
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._atomic_write import replacing
from calibrant.cli.console import over_lines, refuse
from calibrant.numerics.arrays import expit
from calibrant.numerics.random_draws import generator

#: Columns of the terminal that the text fits. Derived: those of the narrowest terminal in use, less a margin.
WIDTH = 79
#: Exit codes of a command that has done its work: done, an alarm, too few rows. Derived: `calibrant.cli.commands`.
DONE = (0, 1, 3)
#: The first day, and the days at which fraud in the app rises, the repair is fitted, and the year ends. Derived: the
#: first of November, July and September.
FIRST_DAY, RISE, REPAIRED, YEAR = "2025-11-01", 242, 304, 365
#: Payments of the year. Derived: with 1.6 % fraud, some 300 frauds fall in the two months that the repair is fitted to.
PAYMENTS = 120_000


def run_demo(folder: Path, *, say: Callable[[str], Any] = print) -> list[Path]:
    """Simulate, write the files, run the commands on them; returns the pages, the first one to open first."""
    folder.mkdir(parents=True, exist_ok=True)
    show = _Shown(folder, say)
    say(f"Simulated predictions, and what Calibrant says about them. Folder: {folder}\n")
    for part in (_payments, _forecasts, _leads, _answers):
        part(show)
    say(f"Open {(folder / show.pages[0]).resolve()} in a browser.")
    say("With a file of your own: calibrant report FILE --truth COLUMN --prob COLUMN")
    return [folder / page for page in show.pages]


class _Shown:
    """Files and pages of the demonstration, and what is printed of them."""

    def __init__(self, folder: Path, say: Callable[[str], Any]) -> None:
        self.folder, self.say, self.pages = folder, say, list[str]()

    def heading(self, title: str, text: str) -> None:
        self.say(f"{title}\n{'-' * len(title)}")
        self.say(textwrap.fill(text, WIDTH) + "\n")

    def write(self, name: str, columns: dict[str, Any]) -> None:
        """Write a Parquet file."""
        import pyarrow
        from pyarrow import parquet

        with replacing(self.folder / name) as place:
            parquet.write_table(pyarrow.table(columns), place)

    def run(self, command: str, *, lines: int | None = None) -> None:
        """Show a command, run it, and show what it prints, or the first lines of that."""
        words = shlex.split(command)
        self.say(f"$ {over_lines(command, WIDTH - 2)}")
        call = [sys.executable, "-m", *words, *(["--force"] if "-o" in words else [])]
        done = subprocess.run(call, cwd=self.folder, capture_output=True, text=True, encoding="utf8", check=False)
        refuse(done.returncode not in DONE, f"{command}\n{done.stderr}")
        self.text(done.stdout, lines)
        self.pages += [word for word in words if word.endswith(".html")]

    def python(self, code: str, *results: Any) -> None:
        """Show code, and what it gives."""
        self.say(textwrap.indent(code, ">>> "))
        self.text("\n".join(map(str, results)))

    def text(self, text: str, lines: int | None = None) -> None:
        for line in text.strip().splitlines()[:lines]:
            self.say(textwrap.fill(line, WIDTH, subsequent_indent="  "))
        self.say("")


def _payments(show: _Shown) -> None:
    """A rare event, with groups, months, a drift, an alarm, a repair and what the repair did."""
    from pyarrow import parquet

    from calibrant.data.predictions import Binary
    from calibrant.estimators.validation_study import observed_expected
    from calibrant.inference.intervals import interval
    from calibrant.monitor.monitoring import Monitor
    from calibrant.reporting.monitor_page import save_page

    columns = payments()
    day = (columns["day"] - columns["day"][0]).astype(int)
    show.heading(
        "1. Card payments: can the probability of fraud be trusted?",
        f"{PAYMENTS:,} payments of a year, scored by a model of the year before. From July on, fraud in the app is "
        "more frequent than it was. The model does not know.",
    )
    task = "--truth fraud --prob score"
    for name, rows in {
        "payments.parquet": day < YEAR,
        "summer.parquet": (day >= RISE) & (day < REPAIRED),
        "autumn.parquet": day >= REPAIRED,
    }.items():
        show.write(name, {key: values[rows] for key, values in columns.items()})
    show.run(
        f"calibrant report payments.parquet {task} --by channel --by country --time month --threshold 0.05"
        " --event fraud --row payment -o payments.html"
    )
    monitor = Monitor()
    edges = np.searchsorted(day, np.arange(YEAR + 1))
    for first, last in itertools.pairwise(edges):
        one = slice(first, last)
        status = monitor.update(
            columns["fraud"][one], columns["score"][one], time=columns["day"][first], group=columns["channel"][one]
        )
        if status.alarm:
            break
    show.python(
        "monitor = cal.Monitor()    # and every evening, until there is an alarm:\n"
        "print(monitor.update(fraud, score, time=day, group=channel))",
        status,
    )
    monitor.save(show.folder / "monitor.json")
    save_page(monitor, status, show.folder / "monitor.html", state="monitor.json")
    show.pages.append("monitor.html")
    show.run(
        f"calibrant audit summer.parquet {task} --features channel --features country --features amount"
        " --features account_days --repair repair.json -o audit.html"
    )
    show.run("calibrant apply repair.json autumn.parquet --prob score -o repaired.parquet")
    table = parquet.read_table(show.folder / "repaired.parquet")
    fraud, app = table["fraud"].to_numpy(), table["channel"].to_numpy() == "app"
    found = [
        interval(observed_expected, Binary(fraud[app], table[name].to_numpy()[app]))
        for name in ("score", "score_recalibrated")
    ]
    show.python(
        "ratio = cal.observed_expected    # 1 if as many occur as predicted\n"
        "app = repaired.filter(channel == 'app')    # which the repair has not seen\n"
        "print(cal.interval(ratio, cal.Binary(app.fraud, app.score)))\n"
        "print(cal.interval(ratio, cal.Binary(app.fraud, app.score_recalibrated)))",
        *found,
    )


def payments() -> dict[str, Any]:
    """Payments in the order of their days: features, score, and whether they were fraud."""
    rng = generator(0, "payments of the demo")
    day = np.sort(rng.integers(YEAR, size=PAYMENTS))
    date = np.datetime64(FIRST_DAY) + day
    channel = rng.choice(["app", "web", "store"], PAYMENTS, p=[0.35, 0.4, 0.25])
    country = rng.choice(["BR", "DE", "FR", "PL"], PAYMENTS, p=[0.15, 0.4, 0.3, 0.15])
    amount = np.exp(rng.normal(3.6, 1.1, PAYMENTS)).round(2)
    account_days = rng.exponential(500, PAYMENTS).round().astype(int)
    log_odds = -5.6 + 0.7 * (np.log(amount + 0.01) - 3.6) + 1.2 * np.exp(-account_days / 60)
    log_odds += 0.4 * (channel == "app") + 0.9 * (channel == "web") + 0.5 * (country == "BR")
    log_odds += rng.normal(0, 0.8, PAYMENTS)  # what else the model sees
    risk = log_odds + 1.5 * ((channel == "app") & (day >= RISE)) - 0.5 * (country == "BR")
    return {
        "day": date,
        "month": date.astype("datetime64[M]").astype(str),
        "channel": channel,
        "country": country,
        "amount": amount,
        "account_days": account_days,
        "score": expit(log_odds).round(5),
        "fraud": (rng.random(PAYMENTS) < expit(risk)).astype(int),
    }


def _forecasts(show: _Shown) -> None:
    """A forecast of demand whose spread grows too slowly with its horizon."""
    show.heading(
        "2. Forecasts of demand: are the intervals wide enough?",
        "Daily demand of 400 shops, forecast one to seven days ahead by mean and standard deviation. The spread does "
        "not grow with the horizon as the errors do.",
    )
    rng = generator(0, "forecasts of the demo")
    horizon = np.tile(np.arange(1, 8), 400)
    mean = rng.normal(120, 25, len(horizon)).round(1)
    std = (9 + 0.3 * horizon + rng.uniform(0, 3, len(horizon))).round(2)
    demand = (mean + std * (0.9 + 0.08 * horizon) * rng.standard_normal(len(horizon))).round(1)
    show.write("forecasts.parquet", {"demand": demand, "mean": mean, "std": std, "horizon": horizon})
    show.run(
        "calibrant report forecasts.parquet --truth demand --mean mean --std std --by horizon --row forecast"
        " -o forecasts.html"
    )


def _leads(show: _Shown) -> None:
    """Known customers among leads of unknown outcome."""
    show.heading(
        "3. Leads without negatives: only customers are known",
        "800 known customers, and 6,000 leads of whom some will buy. A survey says 30 %. The scores are too extreme.",
    )
    rng = generator(0, "leads of the demo")
    log_odds = rng.normal(-1.3, 1.5, 40_000)
    buys = rng.random(len(log_odds)) < expit(log_odds)
    known, leads = np.flatnonzero(buys)[:800], np.arange(20_000, 26_000)
    rows = np.concatenate([known, leads])
    label = np.repeat(["customer", "lead"], [len(known), len(leads)])
    score = expit(1.8 * log_odds[rows] + 0.9).round(5)
    show.write("leads.parquet", {"label": label, "score": score})
    show.run(
        "calibrant report leads.parquet --truth label --prob score --labelled customer --prior 0.3 --row lead"
        " -o leads.html"
    )


def _answers(show: _Shown) -> None:
    """Answers of a language model, judged by another, few of them by people."""
    from calibrant.data.judged import Judged
    from calibrant.estimators.proper_scores import accuracy
    from calibrant.inference.intervals import interval

    show.heading(
        "4. Answers of a language model: 3,000 judged, 200 of them by people",
        "A second model judges every answer and agrees with people in nine of ten. Human labels correct its errors.",
    )
    rng = generator(0, "answers of the demo")
    confidence = rng.beta(5, 2, 3000).round(3)
    right = rng.random(3000) < expit(np.log(confidence / (1 - confidence)) - 0.6)
    judge = np.where(rng.random(3000) < 0.9, right, ~right).astype(float)
    gold = np.where(rng.permutation(3000) < 200, right, np.nan)
    show.write("answers.parquet", {"gold": gold, "confidence": confidence, "judge": judge})
    data = Judged(gold, confidence, judge=judge)
    show.python(
        "data = cal.Judged(gold, confidence, judge=judge)\n"
        "print(cal.interval(cal.accuracy, data))                # people and judge\n"
        "print(cal.interval(cal.accuracy, data.labelled()))     # people alone",
        interval(accuracy, data),
        interval(accuracy, data.labelled()),
    )
    show.run("calibrant report answers.parquet --truth gold --prob confidence --judge judge -o answers.html")
