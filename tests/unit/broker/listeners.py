"""TCP servers on loopback that leave nothing behind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handle: Handler, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Let ``handle`` talk to each client, hang up after it, and yield the port (a free one when it is 0).

    At the end all clients have been hung up on; a handler that still talks is stopped.
    """
    talks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):  # the client had enough
                await handle(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.create_task(connected(reader, writer)))

    server = await asyncio.start_server(accepted, host, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


def raw(sent: bytes) -> Handler:
    """Send these bytes, whatever they are, and hang up."""

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()

    return handle


def hang(sent: bytes = b"") -> Handler:
    """Send these bytes and then nothing until the client has gone."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()
        await reader.read()

    return handle
