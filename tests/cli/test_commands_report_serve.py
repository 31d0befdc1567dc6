"""`calibrant serve`, with the page of every task, and `calibrant demo`."""

import pytest

from tests.cli.tasks import TASKS


@pytest.mark.parametrize("task", ["event", "members", "unlabeled"])
def test_the_page_of_a_task_is_served(invoke, monkeypatch, task):
    served = []
    monkeypatch.setattr("calibrant.cli.reports.serve_page", lambda page, port: served.append((page[:15], port)))
    code, _, err = invoke("serve all.parquet", TASKS[task], "--port 0")
    assert code == 0, err
    assert served == [("<!doctype html>", 0)]


def test_the_folder_is_passed_on(invoke, monkeypatch):
    asked = []
    monkeypatch.setattr("calibrant.cli.demo.run_demo", lambda folder: asked.append(str(folder)))
    assert invoke("demo --folder there")[0] == 0
    assert asked == ["there"]
