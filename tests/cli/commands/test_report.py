"""`calibrant report`, for every task."""

import json

import pytest

from tests.cli.commands.tasks import TASKS

SENTENCES = {
    "event": "Predicted probabilities are too extreme",
    "classes by pattern": "Over-confident",
    "classes by name": "Over-confident",
    "spread": "Predicted spread is too narrow",
    "quantiles": "Predicted intervals are too narrow",
    "quantiles by pattern": "Predicted intervals are too narrow",
    "members": "Predicted spread is too narrow",
    "unlabeled": "positive",
    "single sample": "positive",
}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_verdict_and_a_page(invoke, tmp_path, task):
    code, out, err = invoke("report all.parquet", TASKS[task], "-o report.html")
    assert code == 0, err
    assert SENTENCES[task] in out
    page = (tmp_path / "report.html").read_text(encoding="utf8")
    assert page.startswith("<!doctype html>")


@pytest.mark.no_cover
def test_members_are_reported_by_group_as_json(invoke):
    code, out, err = invoke("report all.parquet", TASKS["members"], "--by g --json")
    assert code == 0, err
    assert json.loads(out)
    assert "even" in out
