"""The demonstration runs, prints what fits a terminal, and writes what it says."""

import re

import pytest

from calibrant.cli import demo
from calibrant.cli.console import UsageError, over_lines


@pytest.mark.slow
def test_the_demo_writes_pages_and_tells_of_the_drift_the_alarm_and_the_repair(tmp_path):
    said = []
    pages = demo.run_demo(tmp_path / "demo", say=said.append)
    names = ["payments.html", "monitor.html", "audit.html", "forecasts.html", "leads.html", "answers.html"]
    assert [page.name for page in pages] == names
    assert all(page.stat().st_size > 10_000 for page in pages)
    text = "\n".join(said)
    assert max(len(line) for line in text.splitlines() if str(tmp_path) not in line) <= 80
    assert "changed from Jul 2026 on" in " ".join(text.split())
    assert re.search(r"Alarm on 2026-07-\d\d: off since about 2026-0[67]-\d\d", text)
    before, after = map(float, re.findall(r"^([\d.]+) \(95% interval", text, flags=re.M)[:2])
    assert before > 2
    assert 0.8 < after < 1.2
    assert "too narrow" in text
    assert "Over-confident: 59 % of answers are right" in text
    assert "payments.html in a browser" in text


def test_a_command_is_shown_over_lines_that_a_shell_takes_and_no_option_loses_its_value():
    command = "calibrant report payments.parquet " + " ".join(f"--by column_{k}" for k in range(9))
    shown = "$ " + over_lines(command, demo.WIDTH - 2)
    assert max(map(len, shown.splitlines())) <= demo.WIDTH
    assert all(line.endswith(" \\") for line in shown.splitlines()[:-1])
    assert not re.search(r"--by \\$", shown, flags=re.M)
    assert shown.replace("\\\n    ", "").count("--by column_") == 9


def test_a_command_that_fails_stops_the_demo_with_its_words(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.parquet"):
        demo._Shown(tmp_path, print).run("calibrant measure nothing.parquet")


def test_the_payments_have_the_drift_that_the_text_names():
    found = demo.payments()
    late = found["day"] >= found["day"][0] + demo.RISE
    app = found["channel"] == "app"
    ratio = {when: found["fraud"][app & rows].sum() / found["score"][app & rows].sum() for when, rows in
             {"before": ~late, "after": late}.items()}  # fmt: skip
    assert ratio["before"] < 1.1
    assert ratio["after"] > 2
