"""The report in the browser, for this machine only."""

import http.client
import threading

import pytest

from calibrant.cli.serve import make_server


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
