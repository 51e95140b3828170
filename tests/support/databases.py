"""A database of one test's own, and how it finds the server well."""

from __future__ import annotations

from dataclasses import dataclass

from lab.postgres import Postgres

SERVICE = "postgres"
SECRET = "postgres"


@dataclass(frozen=True)
class Database:
    """A database of one test's own; pods reach it as `host`, its credentials lie in the Secret `secret`.

    The keys of the Secret are those of CloudNativePG: host, port, dbname, user, password.
    """

    name: str
    user: str
    password: str
    host: str = SERVICE
    secret: str = SECRET

    def credentials(self) -> dict[str, str]:
        """The content of the Secret."""
        return {
            "host": self.host,
            "port": "5432",
            "dbname": self.name,
            "user": self.user,
            "password": self.password,
        }


def make_well(server: Postgres) -> None:
    """Start it, thaw it, let everybody reach it and write."""
    server.set_unreachable(False)
    server.thaw()
    if not server.is_running():
        server.start()
    if server.sql("SHOW default_transaction_read_only", own_choice=False) != [["off"]]:
        server.set_read_only(False)
