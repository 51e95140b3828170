"""A TCP forwarder that a test can make deaf: connections that are open then stay open and say nothing any more."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Forwarder:
    """Forwards a port of its own to an address. Connections made after ``swallow`` work; those before never speak.

    Neither side is closed or reset, as behind a load balancer that has lost a connection.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[tuple[socket.socket, socket.socket, threading.Event]] = []
        self._lock = threading.Lock()
        self._let_in = threading.Event()
        self._let_in.set()

    @property
    def port(self) -> int:
        """The port to connect to."""
        return int(self._listener.getsockname()[1])

    def swallow(self) -> int:
        """Make every connection that is open now silent; how many they are."""
        with self._lock:
            alive = [deaf for *_, deaf in self._open if not deaf.is_set()]
        for deaf in alive:
            deaf.set()
        return len(alive)

    def __enter__(self) -> Forwarder:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _end(self._listener)
        self.hang_up()

    def hang_up(self) -> None:
        """Close every connection that is open now."""
        with self._lock:
            ended, self._open = self._open, []
        for outer, inner, _ in ended:
            _end(outer)
            _end(inner)

    def refuse(self) -> None:
        """Hang up and let nobody in until ``accept``."""
        self._let_in.clear()
        self.hang_up()

    def accept(self) -> None:
        """Let everybody in again."""
        self._let_in.set()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed: the test is over
            while True:
                outer, _ = self._listener.accept()
                if not self._let_in.is_set():
                    outer.close()
                    continue
                inner = socket.create_connection(self._target)
                deaf = threading.Event()
                with self._lock:
                    self._open.append((outer, inner, deaf))
                for source, sink in ((outer, inner), (inner, outer)):
                    threading.Thread(target=self._pump, args=(source, sink, deaf), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, deaf: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not deaf.is_set():
                    sink.sendall(data)
        if not deaf.is_set():  # a hang-up is a packet too
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
