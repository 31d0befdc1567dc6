"""Columns of groups and of time for a report, and its page, served for this machine only."""

import http.client
import threading

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli.reports import by_and_time, make_server
from calibrant.data.groups import MISSING

TABLE = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.8]), cal.table.Distinct())


def test_nothing_asked_for():
    assert by_and_time(None, None, None) == (None, None)


def test_one_grouping_keeps_its_name():
    rows = np.array(["a", "b"])
    groups, times = by_and_time(rows, ["land"], None)
    assert groups == {"land": rows}
    assert times is None


def test_time_is_told_from_groups():
    found = {"land": np.array(["a", "b"]), "month": np.array(["10", "9"])}
    groups, times = by_and_time(found, ["land"], "month")
    assert list(groups) == ["land"]
    assert times["month"].tolist() == [10.0, 9.0]
    both, again = by_and_time(np.array(["x", MISSING]), ["day"], "day")
    assert list(both) == ["day"]
    assert again["day"].tolist() == ["x", None]
    alone, only = by_and_time(np.array(["1", MISSING]), None, "day")
    assert alone is None
    assert np.isnan(only["day"][1])


def test_tables_are_named_by_column_and_ordered_by_time():
    groups, times = by_and_time({"a": TABLE, "b": TABLE}, ["land"], None)
    assert list(groups) == ["land = a", "land = b"]
    flat = {"land = a": TABLE, "month = 10": TABLE, "month = 9": TABLE, f"month = {MISSING}": TABLE}
    groups, times = by_and_time(flat, ["land"], "month")
    assert list(groups) == ["land = a"]
    assert list(times) == ["9", "10"]
    _, dated = by_and_time({"2025-02": TABLE, "2025-01": TABLE}, None, "day")
    assert list(dated) == ["2025-01", "2025-02"]


@pytest.fixture
def server():
    server = make_server("<p>report</p>", 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def ask(server, host, path="/"):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    try:
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host.format(port=server.server_address[1]))
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"])
def test_the_server_answers_this_machine(server, host):
    assert server.server_address[0] == "127.0.0.1"
    assert ask(server, host) == (200, b"<p>report</p>")
    assert ask(server, host, "/other") == (404, b"")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost", "", None]
)
def test_other_names_of_this_machine_are_refused(server, host):
    assert ask(server, host) == (421, b"")
