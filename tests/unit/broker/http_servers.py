"""Real HTTP servers on 127.0.0.1 that answer as a broker or a keeper does on its good and on its bad days."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.unit.broker.listeners import Handler, listening


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class HttpServer:
    """Where the server listens, what it was asked, and how many requests it had at most at the same time."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def asked(self) -> list[tuple[str, str]]:
        return sorted((request.method, request.path) for request in self.requests)

    async def arrived(self, count: int) -> None:
        """Wait until ``count`` requests have come."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.requests) >= count)

    async def take(self, request: Request) -> None:
        async with self._news:
            self.requests.append(request)
            self._news.notify_all()


def answer(body: bytes | str, status: int = 200, headers: Mapping[str, str] | None = None) -> Handler:
    """Answer properly."""
    content = body.encode() if isinstance(body, str) else body

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await writer.drain()

    return handle


@asynccontextmanager
async def serving(routes: Mapping[str, Handler], host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[HttpServer]:
    """Serve ``routes`` on a port (a free one when it is 0); every other path is a 404."""
    server = HttpServer()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.at_once += 1
        server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            request = await _read(reader)
            await server.take(request)
            await routes.get(request.path, answer("no such page", 404))(reader, writer)
        finally:
            server.at_once -= 1

    async with listening(connected, host, port) as server.port:
        yield server


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ")
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, value in pairs}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
