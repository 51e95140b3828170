"""The sockets of the HTTP child: one thread, many clients, none of which can hold up another."""

from __future__ import annotations

import errno
import os
import selectors
import signal
import socket
import time

from queen_operator.spool_keeper.log import log
from queen_operator.spool_keeper.pages import Pages, refusal
from queen_operator.spool_keeper.wire import RefusedError, head_is_complete

READ_SECONDS = 2.0
WRITE_SECONDS = 5.0
LINGER_SECONDS = 1.0
MOST_CLIENTS = 64
LOOK_SECONDS = 5.0
# A round of the loop that lasts this long never ends: the kernel ends the process, and the parent starts a new one.
STUCK_SECONDS = 60


class Client:
    """One connection: reads a request, writes the answer, waits a moment for the other side to close."""

    def __init__(self, connection: socket.socket, pages: Pages, now: float) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.deadline = now + READ_SECONDS
        self.wanted = selectors.EVENT_READ
        self.done = False
        self._pages = pages
        self._received = b""
        self._unsent = b""
        self._step = self._read

    def advance(self, now: float) -> None:
        """Do what can be done now without waiting; sets `done`, `deadline` and `wanted`."""
        try:
            self._step(now)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.done = True  # the other side is gone

    def _read(self, now: float) -> None:
        more = self.connection.recv(4096)
        if not more:
            self.done = True
            return
        self._received += more
        try:
            if not head_is_complete(self._received):
                return
            self._unsent = self._pages.answer(self._received)
        except RefusedError as refused:
            self._unsent = refusal(refused)
        self._step, self.wanted = self._write, selectors.EVENT_WRITE
        self.deadline = time.monotonic() + WRITE_SECONDS
        self._write(now)

    def _write(self, now: float) -> None:
        self._unsent = self._unsent[self.connection.send(self._unsent) :]
        if not self._unsent:
            # Closing with unread bytes resets the connection, and the answer could be lost with it.
            self.connection.shutdown(socket.SHUT_WR)
            self._step, self.wanted = self._linger, selectors.EVENT_READ
            self.deadline = time.monotonic() + LINGER_SECONDS

    def _linger(self, now: float) -> None:
        self.done = not self.connection.recv(4096)


class Server:
    """The loop over the listener, the clients, and the pipe from the first process."""

    def __init__(self, listener: socket.socket, told: int, pages: Pages) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._told = told
        self._told_text = b""
        self._pages = pages
        self._clients: dict[int, Client] = {}
        self._orphaned = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(told, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the first process is gone."""
        while not self._orphaned:
            signal.alarm(STUCK_SECONDS)
            now = time.monotonic()
            late = [client for client in self._clients.values() if client.deadline <= now]
            for client in late:
                self._drop(client)
            ready = self._selector.select(self._pause(now))
            if not ready:
                self._pages.why_not_ready()
            for key, _ in ready:
                self._serve(key.fd)

    def _pause(self, now: float) -> float:
        return min([LOOK_SECONDS, *(client.deadline - now for client in self._clients.values())])

    def _serve(self, fd: int) -> None:
        if fd == self._told:
            self._listen_to_parent()
        elif fd == self._listener.fileno():
            self._accept()
        elif fd in self._clients:
            client = self._clients[fd]
            client.advance(time.monotonic())
            if client.done:
                self._drop(client)
            else:
                self._selector.modify(fd, client.wanted)

    def _listen_to_parent(self) -> None:
        more = os.read(self._told, 4096)
        self._orphaned = not more
        *lines, self._told_text = (self._told_text + more).split(b"\n")
        for line in lines:
            self._pages.lock_told(line.decode("utf-8", "replace"))

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS) and self._clients:
                self._drop(self._oldest())
            return
        if len(self._clients) >= MOST_CLIENTS:
            self._drop(self._oldest())
        client = Client(connection, self._pages, time.monotonic())
        self._clients[connection.fileno()] = client
        self._selector.register(connection, client.wanted)

    def _oldest(self) -> Client:
        return next(iter(self._clients.values()))

    def _drop(self, client: Client) -> None:
        fd = client.connection.fileno()
        self._selector.unregister(fd)
        del self._clients[fd]
        client.connection.close()


def open_listener(port: int) -> socket.socket:
    """Listen on all addresses, IPv6 and IPv4, or IPv4 alone where the node has no IPv6. Raises OSError."""
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=MOST_CLIENTS)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise
    return socket.create_server(("", port), backlog=MOST_CLIENTS)


def serve(directory: str, port: int, told: int) -> int:
    """Serve HTTP on `port` until `told`, the pipe from the first process, ends; returns the exit code."""
    try:
        listener = open_listener(port)
    except OSError as error:
        log(f"cannot listen on port {port}: {error.strerror}")
        return 1
    log(f"serving on port {port}")
    Server(listener, told, Pages(directory)).run()
    return 0
