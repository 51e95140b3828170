import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.broker.postgres_server import (
    PROGRAMS,
    PostgresServer,
    certificate_settings,
    give_to_owner,
    make_template,
    prepared,
    running,
)


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """A PostgreSQL data directory for copying. Not below pytest's own directories: the user postgres may not enter."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed on this machine")
    directory = Path(tempfile.mkdtemp(prefix="queen-pg-"))
    directory.chmod(0o755)
    try:
        yield make_template(directory)
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def postgres(template: Path) -> Iterator[PostgresServer]:
    """A healthy server without TLS."""
    with running(template, "healthy") as server:
        server.sql("CREATE ROLE queen LOGIN PASSWORD 'a-good-secret'")
        server.sql("CREATE DATABASE queen OWNER queen")
        yield server


@pytest.fixture(scope="session")
def certificates(template: Path) -> Path:
    """A CA, a server certificate of it for ``localhost``, one with only a common name, and a CA of somebody else."""
    directory = template.parent / "certificates"
    directory.mkdir()
    for name in ("ca", "stranger"):
        _openssl(
            directory,
            f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name}"
            f" -keyout {name}.key -out {name}.pem",
        )
    (directory / "san").write_text("subjectAltName=DNS:localhost\n")
    for name, extensions in (("server", " -extfile san"), ("nameless", "")):
        _openssl(
            directory,
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
            f" -keyout {name}.key -out {name}.csr",
        )
        _openssl(
            directory,
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out {name}.pem{extensions}",
        )
        (directory / f"{name}.key").chmod(0o600)  # the server takes no other
    give_to_owner(directory)
    return directory


@pytest.fixture(scope="session")
def tls_postgres(template: Path, certificates: Path) -> Iterator[PostgresServer]:
    """A healthy server with TLS; the role tls_only may not come without it."""
    with running(template, "tls", ssl="on", **certificate_settings(certificates, "server")) as server:
        server.sql("CREATE ROLE tls_only LOGIN PASSWORD 'a-good-secret'")
        yield server


@pytest.fixture
def own_postgres(template: Path) -> Iterator[PostgresServer]:
    """A data directory of one test, not started yet."""
    server = prepared(template, "own")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.directory)


@pytest.fixture
def full_port() -> Iterator[int]:
    """A port whose queue of waiting connections is full: the kernel drops what comes, as a lossy network does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        try:
            while True:
                client = socket.socket()
                waiting.append(client)
                client.settimeout(0.3)
                try:
                    client.connect(listener.getsockname())
                except TimeoutError:
                    break
            yield listener.getsockname()[1]
        finally:
            for client in waiting:
                client.close()


def _openssl(directory: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=directory, check=True, capture_output=True, timeout=60)
