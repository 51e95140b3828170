"""Run in network and mount namespaces of its own: a name server that behaves badly, and one look through it.

Prints the state and the message of the look as JSON.
"""

import asyncio
import fcntl
import json
import socket
import struct
import sys
import threading

from queen_operator.broker.database import Connection, look
from tests.unit.broker.loops import NOW

SIOCSIFFLAGS = 0x8914
IFF_UP = 1
CODES = {"no such name": 3, "failure": 2}


def serve(behavior: str) -> None:
    """Answer each question with a response code of RFC 1035, or not at all when ``behavior`` is silence."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def answer() -> None:
        while True:
            question, client = server.recvfrom(4096)
            if behavior in CODES:
                flags = struct.pack("!H", 0x8180 | CODES[behavior])
                server.sendto(
                    question[:2] + flags + struct.pack("!HHHH", 1, 0, 0, 0) + without_extras(question), client
                )

    threading.Thread(target=answer, daemon=True).start()


def without_extras(question: bytes) -> bytes:
    """Return the question section of a query: a name, a type, a class."""
    return question[12 : question.index(b"\0", 12) + 5]


def main(behavior: str) -> None:
    """Bring the loopback interface up, serve, look, print."""
    with socket.socket() as handle:
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    if behavior != "absence":
        serve(behavior)
    connection = Connection("orders-db.example", 5432, "queen", "queen", "a-good-secret", False, True, None)
    database = asyncio.run(look(connection, NOW, timeout_seconds=0.5 if behavior == "silence" else 10.0))
    sys.stdout.write(json.dumps([database.state, database.message]))


if __name__ == "__main__":
    main(sys.argv[1])
