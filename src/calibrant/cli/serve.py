"""A report in the browser, from a server that only this machine can reach."""

from __future__ import annotations

import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def serve_page(html: str, port: int, *, open_browser: bool = True) -> None:
    """Serve one page on the loopback address until interrupted."""
    server = make_server(html, port)
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    print(f"Serving on {address}; Ctrl-C stops.")
    if open_browser:
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def make_server(html: str, port: int) -> ThreadingHTTPServer:
    """The server; port 0 takes any free one."""
    body = html.encode("utf8")

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body if self.path == "/" else b"")

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return ThreadingHTTPServer(("127.0.0.1", port), Page)
