"""A few requests to the API server with nothing but the standard library, for the laboratory's own programs."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(OSError):
    """The API server refused; `code` is the HTTP status, the text is the server's own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class ApiClient:
    """Talks to one API server with a bearer token; made from a kubeconfig that the laboratory wrote."""

    def __init__(self, server: str, certificate: str, token: str) -> None:
        self._server = server
        self._context = ssl.create_default_context(cadata=certificate)
        self._headers = {"Authorization": f"Bearer {token}"}

    @classmethod
    def from_kubeconfig(cls, path: Path) -> ApiClient:
        """Client of the only user in a kubeconfig of the laboratory (JSON, token)."""
        config = json.loads(path.read_text())
        cluster = config["clusters"][0]["cluster"]
        certificate = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(cluster["server"], certificate, config["users"][0]["user"]["token"])

    def answers(self, path: str) -> bool:
        """Whether a GET is answered with 200; OSError while nobody listens."""
        try:
            self._open("GET", path).close()
        except ApiError:
            return False
        return True

    def get(self, path: str) -> Object | None:
        """The object at a path, None when there is none; ApiError otherwise."""
        try:
            with self._open("GET", path) as answer:
                return _parsed(answer.read())
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def send(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        """Send POST, PUT, PATCH or DELETE and return the server's answer; ApiError when refused."""
        with self._open(method, path, json.dumps(body).encode() if body is not None else None, kind) as answer:
            return _parsed(answer.read())

    def watch(self, path: str, seconds: int = 300) -> Iterator[Object]:
        """Events of a collection, beginning with what exists; ends after that time, OSError when the line breaks."""
        with self._open("GET", f"{path}?watch=1&timeoutSeconds={seconds}", timeout=seconds + 30) as answer:
            for line in answer:
                yield _parsed(line)

    def kept(self) -> KeptReader:
        """A reader through one connection, for many looks in quick succession."""
        return KeptReader(self._server, self._context, self._headers)

    def _open(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json", timeout: float = 10
    ) -> Any:
        headers = {**self._headers, "Content-Type": kind} if body is not None else self._headers
        request = urllib.request.Request(f"{self._server}{path}", data=body, headers=headers, method=method)
        try:
            return urllib.request.urlopen(request, context=self._context, timeout=timeout)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            raise ApiError(error.code, _message(text)) from None


class KeptReader:
    """Reads through one connection, which is made anew when it breaks."""

    def __init__(self, server: str, context: ssl.SSLContext, headers: dict[str, str]) -> None:
        address = urlsplit(server)
        self._connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context, timeout=5)
        self._headers = headers

    def get(self, path: str) -> Object:
        """The object at a path; ApiError when refused, another OSError when there is no answer."""
        try:
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise OSError(f"no answer to {path}: {type(error).__name__}") from error
        if answer.status != 200:
            raise ApiError(answer.status, _message(text.decode(errors="replace")))
        return _parsed(text)

    def close(self) -> None:
        """Close the connection; the next look opens another one."""
        self._connection.close()


def _parsed(text: bytes) -> Object:
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise TypeError(f"the API server sent {type(parsed).__name__} instead of an object")
    return parsed


def _message(text: str) -> str:
    try:
        return str(json.loads(text).get("message", text))
    except ValueError:
        return text
