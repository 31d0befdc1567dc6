"""`calibrant serve`: the page of every task."""

import pytest

from tests.cli.commands.tasks import TASKS


@pytest.mark.parametrize("task", ["event", "members", "unlabeled"])
def test_the_page_of_a_task_is_served(invoke, monkeypatch, task):
    served = []
    monkeypatch.setattr("calibrant.cli.serve.serve_page", lambda page, port: served.append((page[:15], port)))
    code, _, err = invoke("serve all.parquet", TASKS[task], "--port 0")
    assert code == 0, err
    assert served == [("<!doctype html>", 0)]
