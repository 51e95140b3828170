"""One client's HTTP connection to a broker, kept open or made anew for each request; standard library only."""

from __future__ import annotations

import http.client
import json
import select
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit


class NotConnectedError(OSError):
    """No connection came about, so the broker has certainly not seen the request."""


class NoAnswerError(OSError):
    """The request was sent, the answer did not come: the broker may or may not have done it."""


@dataclass(slots=True)
class BrokerConnection:
    """Requests to one URL such as http://10.96.3.4:6632; a connection that failed is replaced at the next request.

    So is a kept one that the broker has closed meanwhile, as HTTP clients do: a draining broker closes idle ones.
    """

    url: str
    keep: bool = True
    timeout_seconds: float = 40.0
    connect_seconds: float = 5.0
    token: str = ""
    _open: http.client.HTTPConnection | None = field(default=None)

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and parsed JSON (None for an empty body, text when it is no JSON).

        NotConnectedError or NoAnswerError, both OSError, when there is no answer.
        """
        connection = self._connected()
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if not self.keep:
            headers["Connection"] = "close"
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise NoAnswerError(type(error).__name__) from error
        if not self.keep or answer.will_close:
            self.close()
        return answer.status, _parsed(text)

    def _connected(self) -> http.client.HTTPConnection:
        if self._open is not None and _has_ended(self._open):
            self.close()
        if self._open is None:
            parts = urlsplit(self.url)
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=self.connect_seconds)
            try:
                connection.connect()
            except OSError as error:
                connection.close()
                raise NotConnectedError(type(error).__name__) from error
            if connection.sock is not None:
                connection.sock.settimeout(self.timeout_seconds)
            self._open = connection
        return self._open

    def close(self) -> None:
        """Close the connection, if one is open."""
        if self._open is not None:
            self._open.close()
            self._open = None


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """Whether an idle connection has something to read: only its end can be there before a request."""
    if connection.sock is None:
        return True
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return bool(waiting.poll(0))


def path_of(*parts: str, **query: str | int | bool) -> str:
    """A path of quoted parts with a query string; booleans become true and false, empty texts are left out."""
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in query.items()}
    given = urlencode({key: text for key, text in texts.items() if text})
    return "/" + "/".join(quote(part, safe="") for part in parts) + (f"?{given}" if given else "")


def _parsed(text: bytes) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
