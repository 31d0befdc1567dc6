"""The demonstration runs as a newcomer would run it."""

import warnings

from calibrant.cli.demo import run_demo
from calibrant.cli.serve import make_server


def test_the_demo_trains_writes_and_reports(tmp_path):
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pages = run_demo(tmp_path / "demo", say=said.append)
    assert [page.name for page in pages] == ["classifier.html", "regressor.html", "positives.html"]
    assert all(page.stat().st_size > 10_000 for page in pages)
    assert "Over-confident" in said[0]


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
