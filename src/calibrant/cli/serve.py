"""A report in the browser, from a server that only this machine can reach."""

from __future__ import annotations

import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Names under which this machine calls itself.
_OWN_NAMES = ("127.0.0.1", "localhost")


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
    """The server; port 0 takes any free one.

    It answers requests for this machine by its own name only: a page from elsewhere can make the name of its own host
    mean this machine (DNS rebinding), and would then be allowed to read the answer.
    """
    body = html.encode("utf8")

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self._for_this_machine():
                self._answer(421, b"")
            elif self.path == "/":
                self._answer(200, body)
            else:
                self._answer(404, b"")

        def _for_this_machine(self) -> bool:
            own_port = server.server_address[1]
            return self.headers.get("Host", "").lower() in {f"{name}:{own_port}" for name in _OWN_NAMES}

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Page)
    return server
