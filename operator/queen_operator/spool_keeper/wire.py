"""The little of HTTP/1.1 (RFC 9112) that a read-only server needs: one request, one answer, then the end."""

from __future__ import annotations

import time

HEAD_LIMIT_BYTES = 8192
END_OF_HEAD = b"\r\n\r\n"
PHRASES = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class RefusedError(Exception):
    """A request that gets no page: a status and a sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def head_is_complete(received: bytes) -> bool:
    """Whether the request line and all header fields are here. Raises RefusedError when they are too long."""
    if END_OF_HEAD in received[:HEAD_LIMIT_BYTES].lstrip(b"\r\n"):
        return True
    if len(received) >= HEAD_LIMIT_BYTES:
        raise RefusedError(431, f"the request is longer than {HEAD_LIMIT_BYTES} bytes")
    return False


def read_head(received: bytes) -> tuple[str, str]:
    """Return (method, path) of a complete head; the query is dropped. Raises RefusedError."""
    head = received.lstrip(b"\r\n").partition(END_OF_HEAD)[0].decode("latin-1")
    request_line, *fields = head.split("\r\n")
    parts = request_line.split(" ")
    if len(parts) != 3 or not all(parts):
        raise RefusedError(400, "the request line is not: method, target, version")
    method, target, version = parts
    if not version.startswith("HTTP/"):
        raise RefusedError(400, "the request is not HTTP")
    if not version.startswith("HTTP/1."):
        raise RefusedError(505, "this server speaks HTTP/1.1")
    names = [_field_name(field) for field in fields]
    if version != "HTTP/1.0" and names.count("host") != 1:
        raise RefusedError(400, "an HTTP/1.1 request has one Host field")
    return method, _path(target)


def _field_name(field: str) -> str:
    name, colon, _ = field.partition(":")
    if not colon or not name or name != name.strip():
        raise RefusedError(400, "a header field is not: name, colon, value")
    return name.lower()


def _path(target: str) -> str:
    if target.startswith("http://"):  # what a proxy is asked for
        target = "/" + target.removeprefix("http://").partition("/")[2]
    if not target.startswith("/"):
        raise RefusedError(400, "the target is not a path")
    return target.partition("?")[0]


def answer(status: int, content_type: str, body: str, *, without_body: bool = False, allow: str = "") -> bytes:
    """Return a whole answer; `without_body` for HEAD, whose header fields are those of GET."""
    payload = body.encode("utf-8", "backslashreplace")
    fields = [
        f"HTTP/1.1 {status} {PHRASES[status]}",
        "Date: " + time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
        f"Content-Type: {content_type}",
        f"Content-Length: {len(payload)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if allow:
        fields.append(f"Allow: {allow}")
    head = "\r\n".join(fields).encode("ascii") + END_OF_HEAD
    return head if without_body else head + payload
