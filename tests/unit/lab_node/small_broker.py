"""An HTTP server that answers as a test says: for answers that a real broker gives only on a broken machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Takes method, path and parsed body; gives status and body, or None to close the connection without an answer.
Answers = Callable[[str, str, Any], tuple[int, Any] | None]


@contextmanager
def small_broker(answers: Answers, *, closes: bool = False) -> Iterator[tuple[str, list[object]]]:
    """Serve on a loopback port; yields the URL and the list of connections seen so far.

    closes ends each connection after its answer, unannounced, as a broker that drains ends those that are idle.
    """
    connections: list[object] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.client_address)

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = answers(self.command, self.path, json.loads(text) if text else None)
            if answer is None:
                self.close_connection = True
                return
            status, body = answer
            payload = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
            self.close_connection = self.close_connection or closes

        do_GET = do_POST  # noqa: N815 - the name is the base class's

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", connections
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def pushed(status: str, body: Any) -> tuple[int, Any]:
    """The broker's answer to a push of one item."""
    return 201, [{"index": 0, "transaction_id": body["items"][0]["transactionId"], "status": status}]
