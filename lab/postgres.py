"""The node's PostgreSQL: a real server beside the pods, in the node's network, ended with the node.

Any process may use it: everything it knows is in the node's folder and in the server's own pid file.
"""

from __future__ import annotations

import contextlib
import csv
import io
import secrets
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.kubelet import NODE_ADDRESS
from lab.processes import ProcessId, children_of, every_pid
from lab.progress import LabError

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
PORT = 5432
_HOME = Path("/var/lib/lab-postgres")  # as the node sees it: its own folder, reachable for the user postgres
_DATA = _HOME / "data"
_SECONDS = 60
_CUT = "lab_postgres_unreachable"
_HBA = """local all all peer
host all all all scram-sha-256
"""


@dataclass(frozen=True, slots=True)
class Postgres:
    """One server on node.address:5432 and 127.0.0.1:5432 inside the node; max_connections is PostgreSQL's default, 100.

    Every method raises LabError with PostgreSQL's own words when it is refused.
    """

    init: ProcessId  # the node's first process

    @property
    def host(self) -> str:
        """Address for pods and for programs started by `run_inside`."""
        return NODE_ADDRESS

    @property
    def password_file(self) -> Path:
        """File with the password of the superuser postgres, for connections over TCP; made by `start`."""
        return self._outside(_HOME / "superuser.password")

    def password(self) -> str:
        """Password of the superuser postgres; LabError before the first `start`."""
        try:
            return self.password_file.read_text().strip()
        except OSError as error:
            raise LabError("PostgreSQL was never started in this node") from error

    def start(self, settings: dict[str, str] | None = None) -> None:
        """Start the server (the data of an earlier start is kept) and return when it accepts connections.

        settings are for this run only, in the words of postgresql.conf: {"max_connections": "30"}.
        """
        if not self._outside(_DATA / "PG_VERSION").exists():
            self._create()
        lines = [f"{name} = '{value}'\n" for name, value in (settings or {}).items()]
        self._outside(_DATA / "lab.conf").write_text("".join(lines))
        # Without a log file the server would hold this call's pipe open, and the call would never return.
        self._program("pg_ctl", f"--pgdata={_DATA}", f"--log={_HOME}/server.log", f"--timeout={_SECONDS}", "start")

    def _create(self) -> None:
        if not PROGRAMS.is_dir():
            raise LabError(f"PostgreSQL 15 is not installed: no {PROGRAMS}")
        home = self._outside(_HOME)
        home.mkdir(exist_ok=True)
        self.password_file.touch(mode=0o600)
        self.password_file.write_text(secrets.token_hex(16))
        self._inside(["chown", "-R", "postgres:postgres", str(_HOME)], user="root")
        password = f"--pwfile={_HOME}/superuser.password"
        methods = ["--auth-local=peer", "--auth-host=scram-sha-256", "--username=postgres", password]
        self._program("initdb", f"--pgdata={_DATA}", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", *methods)
        self._outside(_DATA / "pg_hba.conf").write_text(_HBA)
        with self._outside(_DATA / "postgresql.conf").open("a") as file:
            # fsync only matters when the machine loses power.
            file.write(f"listen_addresses = '{NODE_ADDRESS},127.0.0.1'\nunix_socket_directories = '{_HOME}'\n")
            file.write("fsync = off\ninclude_if_exists = 'lab.conf'\n")

    def is_running(self) -> bool:
        """Whether the server's main process lives, frozen or not."""
        return self._postmaster() is not None

    def stop(self) -> None:
        """Stop at once: open transactions are rolled back, later connections refused. Nothing to do when stopped."""
        if not self.is_running():
            return
        self.thaw()
        self._program("pg_ctl", f"--pgdata={_DATA}", "--mode=fast", f"--timeout={_SECONDS}", "stop")

    def kill(self) -> None:
        """End it as a crash does: every process by SIGKILL; the next `start` recovers."""
        processes = self._processes()
        for process in processes:
            process.kill(seconds=20)
        # A new server refuses to start while the old one's number is taken, even by a zombie.
        while any(Path(f"/proc/{process.pid}").exists() for process in processes) and self.init.alive():
            time.sleep(0.05)

    def freeze(self) -> None:
        """Stop every process of the server in its tracks: connections are accepted by the kernel, nobody answers."""
        postmaster = self._postmaster()
        if postmaster is None:
            raise LabError("PostgreSQL does not run, so it cannot be frozen")
        # First the one that makes new processes, so that none is missed.
        postmaster.send(signal.SIGSTOP)
        for process in self._processes():
            process.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on; nothing happens to one that is not frozen."""
        for process in reversed(self._processes()):
            process.send(signal.SIGCONT)

    def set_unreachable(self, unreachable: bool) -> None:
        """Drop every packet to the server, as a lost machine or a firewall does: connecting gets no answer at all."""
        # Deleting what may not exist would fail, so it is made first.
        rules = [f"add table inet {_CUT}", f"delete table inet {_CUT}"]
        if unreachable:
            rules.append(f"add table inet {_CUT}")
            rules.append(f"add chain inet {_CUT} input {{ type filter hook input priority filter; }}")
            rules.append(f"add rule inet {_CUT} input tcp dport {PORT} drop")
        self._inside(["nft", "--file", "-"], "\n".join([*rules, ""]), user="root")

    def set_read_only(self, read_only: bool) -> None:
        """Refuse writes (SQLSTATE 25006) from the next transaction on, on open connections too; or allow them again."""
        value = "on" if read_only else "off"
        self.sql(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        self.sql("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 10
        while self.sql("SHOW default_transaction_read_only", own_choice=False) != [[value]]:
            if time.monotonic() > deadline:
                raise LabError("PostgreSQL did not take over default_transaction_read_only")
            time.sleep(0.05)

    def create_database(self, name: str, user: str, password: str) -> None:
        """Create a login role and a database that it owns."""
        self.sql(f"CREATE ROLE {identifier(user)} LOGIN PASSWORD {literal(password)}")
        self.sql(f"CREATE DATABASE {identifier(name)} OWNER {identifier(user)}")

    def set_password(self, user: str, password: str) -> None:
        """Change a role's password; open connections stay."""
        self.sql(f"ALTER ROLE {identifier(user)} PASSWORD {literal(password)}")

    def drop_database(self, name: str, user: str) -> None:
        """Drop a database and a role, ending their connections; absent ones are no error."""
        self.sql(f"DROP DATABASE IF EXISTS {identifier(name)} WITH (FORCE)")
        self.sql(f"DROP ROLE IF EXISTS {identifier(user)}")

    def end_connections(self, database: str) -> int:
        """End every session of a database; returns how many there were."""
        # The list first: in one query the server may call the function on every session before it looks at the rest.
        listed = f"SELECT pid FROM pg_stat_activity WHERE datname = {literal(database)}"  # noqa: S608 - quoted
        others = f"WITH others AS MATERIALIZED ({listed} AND pid <> pg_backend_pid())"
        ended = f"{others} SELECT pid FROM others WHERE pg_terminate_backend(pid)"  # noqa: S608 - quoted above
        return len(self.sql(ended))

    def sql(self, text: str, database: str = "postgres", *, own_choice: bool = True) -> list[list[str]]:
        """Run one statement as superuser; rows of texts, NULL as an empty text.

        own_choice lets it write although the server is set read-only.
        """
        argv = ["psql", "--no-psqlrc", "--csv", "--tuples-only", "--quiet", "--set=ON_ERROR_STOP=1"]
        target = [f"--host={_HOME}", f"--port={PORT}", "--username=postgres", f"--dbname={database}"]
        options = "-c default_transaction_read_only=off" if own_choice else ""
        argv = ["env", f"PGOPTIONS={options}", "PGCONNECT_TIMEOUT=10", str(PROGRAMS / argv[0]), *argv[1:], *target]
        return list(csv.reader(io.StringIO(self._inside(argv, text))))

    def service_manifests(self, namespace: str, name: str) -> list[dict[str, Any]]:
        """A Service without selector and the EndpointSlice that leads it to this server."""
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"ports": [{"name": "postgres", "port": PORT}]},
        }
        slice_labels = {"kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": "lab"}
        endpoints = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": namespace, "labels": slice_labels},
            "addressType": "IPv4",
            "ports": [{"name": "postgres", "port": PORT}],
            "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
        }
        return [service, endpoints]

    # -- how -------------------------------------------------------------

    def _outside(self, path: Path) -> Path:
        return Path(f"/proc/{self.init.pid}/root") / path.relative_to("/")

    def _program(self, name: str, *arguments: str) -> None:
        self._inside([str(PROGRAMS / name), *arguments])

    def _inside(self, argv: Sequence[str], stdin: str = "", user: str = "postgres") -> str:
        if not self.init.alive():
            raise LabError("the node of this PostgreSQL does not run any more")
        enter = ["nsenter", f"--target={self.init.pid}", "--net", "--pid", "--mount", "--ipc", "--uts", "--wd=/"]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"]
        try:
            result = subprocess.run(
                [*enter, *become, *argv],
                input=stdin,
                capture_output=True,
                text=True,
                timeout=_SECONDS + 30,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{argv[0]} did not answer within {error.timeout} s") from error
        if result.returncode:
            raise LabError(f"{Path(argv[0]).name}: {(result.stderr or result.stdout).strip()}")
        return result.stdout

    def _postmaster(self) -> ProcessId | None:
        try:
            inner = int(self._outside(_DATA / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        for pid in every_pid():
            if _number_in_namespace_of(self.init.pid, pid) == inner:
                with contextlib.suppress(LookupError):
                    process = ProcessId.of(pid)
                    return process if _is_postgres(pid) and process.alive() else None
        return None

    def _processes(self) -> list[ProcessId]:
        postmaster = self._postmaster()
        if postmaster is None:
            return []
        found = [postmaster]
        for pid in children_of(postmaster.pid):
            with contextlib.suppress(LookupError):
                found.append(ProcessId.of(pid))
        return found


def _is_postgres(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == "postgres"
    return False


def _number_in_namespace_of(init: int, pid: int) -> int | None:
    """The number a process has in the process namespace of `init`; None when it lives in another one."""
    try:
        if Path(f"/proc/{pid}/ns/pid").readlink() != Path(f"/proc/{init}/ns/pid").readlink():
            return None
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(numbers.split()[-1])


def identifier(name: str) -> str:
    """The name as SQL quotes identifiers."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """The text as SQL quotes strings; ValueError for a backslash, which would need another form."""
    if "\\" in text:
        raise ValueError("no backslash in laboratory passwords and names, please")
    return "'" + text.replace("'", "''") + "'"
