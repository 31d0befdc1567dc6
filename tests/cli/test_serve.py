"""The report in the browser, for this machine only."""

from calibrant.cli.serve import make_server


def test_the_server_listens_on_this_machine_only():
    import threading
    import urllib.request

    server = make_server("<p>report</p>", 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    host, port = server.server_address[:2]
    assert host == "127.0.0.1"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
        assert answer.read() == b"<p>report</p>"
    server.shutdown()
    server.server_close()
