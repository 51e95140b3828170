"""The node's door: a TCP port of the machine's loopback that leads to the API server inside the node.

The listening socket is made outside and inherited; a socket stays in the network it was made in.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


async def serve(listener: socket.socket, host: str, port: int) -> None:
    """Forward every connection on the listener to host:port until cancelled."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
        inner_writer.close()
        writer.close()

    server = await asyncio.start_server(forward, sock=listener)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Command line: --fd N of the inherited listener, --to HOST:PORT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--to", required=True)
    arguments = parser.parse_args()
    host, _, port = arguments.to.rpartition(":")
    asyncio.run(serve(socket.socket(fileno=arguments.fd), host, int(port)))


if __name__ == "__main__":
    main()
