"""TCP between a client and a real PostgreSQL that spoils one thing on the way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.unit.broker.listeners import listening

READY_FOR_QUERY = b"Z\x00\x00\x00\x05I"


@dataclass
class Spoiled:
    """Where a spoiled PostgreSQL listens, and whether the client has left after it was frozen out."""

    port: int = 0
    left_alone: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def proxy(
    port: int,
    *,
    rewrite: Callable[[bytes], bytes] = lambda answer: answer,
    freeze_when: Callable[[bytes], bool] = lambda answer: False,
    hang_up_when: Callable[[bytes], bool] = lambda answer: False,
) -> AsyncIterator[Spoiled]:
    """Listen on a free port of 127.0.0.1 and pass everything on to ``port``.

    ``rewrite`` changes the server's bytes; what follows the first answer for which ``freeze_when`` holds is passed to
    nobody, in both directions; ``hang_up_when`` closes the client's connection after that answer.
    """

    spoiled = Spoiled()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        asked = asyncio.create_task(_pass_on(reader, server_writer))
        try:
            while answer := await server_reader.read(65536):
                writer.write(rewrite(answer))
                if freeze_when(answer):
                    await _stop(asked)
                    await reader.read()  # until the client goes
                    spoiled.left_alone.set()
                    return
                if hang_up_when(answer):
                    return
        finally:
            await _stop(asked)
            server_writer.close()

    async with listening(connected) as spoiled.port:
        yield spoiled


async def _stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while asked := await reader.read(65536):
            writer.write(asked)
    writer.close()
