"""Real PostgreSQL servers for tests: one directory made by initdb, copied for each server, a process each."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").is_dir() else []
GENEROUS_SECONDS = 60.0
ADMIN = "admin"
ADMIN_PASSWORD = "admin-password"

HBA = """
local   all all                trust
hostssl all tls_only 127.0.0.1/32 scram-sha-256
host    all tls_only 127.0.0.1/32 reject
host    all stranger 127.0.0.1/32 reject
host    all all      127.0.0.1/32 scram-sha-256
"""


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs, of the newest version there is."""
    return str(PROGRAMS[-1] / name)


def as_owner(*command: str) -> list[str]:
    """Return ``command`` for the user postgres: the server refuses to run as root.

    The kernel ends the process when the test process dies, however it dies.
    """
    if os.geteuid() != 0:
        return ["setpriv", "--pdeathsig", "SIGINT", *command]
    user = ("--reuid", "postgres", "--regid", "postgres", "--clear-groups")
    return ["setpriv", *user, "--pdeathsig", "SIGINT", *command]


def give_to_owner(path: Path) -> None:
    """Make ``path`` (a file or a whole directory) the property of the user that runs the server."""
    if os.geteuid() != 0:
        return
    owner = pwd.getpwnam("postgres")
    for entry in (path, *path.rglob("*")):
        os.chown(entry, owner.pw_uid, owner.pw_gid)


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def make_template(directory: Path) -> Path:
    """Run initdb once; the directory is then copied for each server."""
    template = directory / "template"
    password = directory / "password"
    password.write_text(ADMIN_PASSWORD)
    give_to_owner(directory)
    options = (
        f"--pgdata {template} --username {ADMIN} --pwfile {password} --auth scram-sha-256 --no-sync --wal-segsize 1"
    )
    command = f"{program('initdb')} {options} --encoding UTF8 --locale C --no-instructions"
    subprocess.run(as_owner(*command.split()), check=True, capture_output=True, cwd=directory, timeout=GENEROUS_SECONDS)
    (template / "pg_hba.conf").write_text(HBA)
    return template


def certificate_settings(directory: Path, name: str) -> dict[str, str]:
    """Return the server settings for one of the certificates in ``directory``."""
    return {"ssl_cert_file": str(directory / f"{name}.pem"), "ssl_key_file": str(directory / f"{name}.key")}


@dataclass
class PostgresServer:
    """One server process on 127.0.0.1 and on a Unix socket of its own."""

    directory: Path
    port: int
    settings: dict[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self, *, wait: bool = True) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.directory.parent),
            "fsync": "off",
            "shared_buffers": "16MB",
            "min_wal_size": "2MB",
            "max_connections": "40",
        } | self.settings
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                as_owner(program("postgres"), "-D", str(self.directory), "-p", str(self.port), *options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory.parent,
            )
        if wait:
            self.wait_for_log("ready to accept")

    def start_as_standby(self) -> None:
        """Start in recovery, for ever: there is no primary. What to wait for in the log depends on the settings."""
        (self.directory / "standby.signal").touch()
        self.settings["max_connections"] = "100"  # not below the primary's, which was initdb's
        self.start(wait=False)

    @property
    def log(self) -> Path:
        return self.directory.parent / f"{self.directory.name}.log"

    def wait_for_log(self, words: str) -> None:
        """Wait until the server has logged ``words``, wherever in its log."""
        until = time.monotonic() + GENEROUS_SECONDS
        while words not in self.log.read_text(errors="replace"):
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text(errors="replace")
            assert time.monotonic() < until, self.log.read_text(errors="replace")
            time.sleep(0.02)

    def stop(self) -> None:
        """Shut down fast; the process is gone afterwards."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.wait(GENEROUS_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(GENEROUS_SECONDS)
        self.process = None
        self.log.unlink(missing_ok=True)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run one statement as the administrator, through the Unix socket."""
        command = f"{program('psql')} -X -A -t -v ON_ERROR_STOP=1 -h {self.directory.parent} -p {self.port} -U {ADMIN}"
        done = subprocess.run(
            [*command.split(), "-d", database, "-c", statement],
            check=True,
            capture_output=True,
            text=True,
            timeout=GENEROUS_SECONDS,
        )
        return done.stdout.strip()

    @contextmanager
    def frozen(self, *, backends: bool = False) -> Iterator[None]:
        """Stop the postmaster (the kernel goes on accepting), and its children too when ``backends``."""
        stopped = [self.pid]
        os.kill(self.pid, signal.SIGSTOP)  # first: it could start another child
        if backends:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            stopped += [int(child) for child in children]
            for child in stopped[1:]:
                os.kill(child, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(stopped):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def running(template: Path, name: str, **settings: str) -> Iterator[PostgresServer]:
    """Run a server on a copy of ``template`` and remove both afterwards."""
    server = prepared(template, name, **settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.directory)


def prepared(template: Path, name: str, **settings: str) -> PostgresServer:
    """Return a server on a copy of ``template`` that is not started yet."""
    directory = template.parent / name
    shutil.copytree(template, directory)
    directory.chmod(0o700)
    give_to_owner(directory)
    return PostgresServer(directory, free_port(), settings)
