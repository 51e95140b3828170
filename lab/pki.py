"""Keys, certificates and tokens of one laboratory control plane, made with the openssl program."""

from __future__ import annotations

import base64
import csv
import json
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.progress import LabError

_CONFIG = """[req]
distinguished_name = subject
prompt = no
[subject]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = {usage}
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
{names}
"""
_VALID_DAYS = "30"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may talk to the API server."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Authority:
    """A folder of key material: certificate authority, serving certificate, service account key, tokens."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """Certificate of the authority, PEM."""
        return self.folder / "ca.crt"

    @property
    def serving_certificate(self) -> Path:
        """Certificate of the API server, PEM."""
        return self.folder / "server.crt"

    @property
    def serving_key(self) -> Path:
        """Key of the API server, PEM."""
        return self.folder / "server.key"

    @property
    def service_account_key(self) -> Path:
        """Key that signs service account tokens, PEM."""
        return self.folder / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        """Static tokens in the form of kube-apiserver's --token-auth-file."""
        return self.folder / "tokens.csv"

    def create(self, hosts: Sequence[str], users: Sequence[User]) -> dict[str, str]:
        """Make everything; the server's certificate is valid for these host names and IPs. Returns user -> token."""
        self.folder.mkdir(parents=True, mode=0o700)
        # kube-apiserver reads the public half only from this older form of a key file.
        _openssl(self.folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.service_account_key)
        self._certificate("ca", "/CN=queen-lab", "authority", "", "", signed=False)
        is_ip = [host.replace(".", "").isdigit() for host in hosts]
        names = ",".join(f"{'IP' if ip else 'DNS'}:{host}" for ip, host in zip(is_ip, hosts, strict=True))
        self._certificate("server", "/CN=kube-apiserver", "leaf", "serverAuth", f"subjectAltName = {names}")
        tokens = {user.name: secrets.token_hex(16) for user in users}
        with self.tokens.open("w", newline="") as file:
            writer = csv.writer(file)
            for user in users:
                writer.writerow([tokens[user.name], user.name, user.name, ",".join(user.groups)])
        return tokens

    def client_certificate(self, user: User) -> tuple[str, str]:
        """Certificate and key (PEM texts) that prove to the API server to be this user in these groups."""
        subject = "".join(f"/O={_escaped(group)}" for group in user.groups) + f"/CN={_escaped(user.name)}"
        name = f"client-{secrets.token_hex(4)}"
        self._certificate(name, subject, "leaf", "clientAuth", "")
        return (self.folder / f"{name}.crt").read_text(), (self.folder / f"{name}.key").read_text()

    def _certificate(
        self, name: str, subject: str, section: str, usage: str, names: str, *, signed: bool = True
    ) -> None:
        config = self.folder / f"{name}.cnf"
        config.write_text(_CONFIG.format(usage=usage or "serverAuth", names=names))
        signer = ["-CA", "ca.crt", "-CAkey", "ca.key"] if signed else []
        output = ["-keyout", f"{name}.key", "-out", f"{name}.crt", "-days", _VALID_DAYS, "-subj", subject]
        form: list[str | Path] = ["-config", config, "-extensions", section]
        _openssl(self.folder, "req", "-x509", "-newkey", *_EC_REQUEST, "-nodes", *form, *output, *signer)


_EC_REQUEST = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def _escaped(part: str) -> str:
    return part.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")


def _openssl(folder: Path, *arguments: str | Path) -> None:
    result = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LabError(f"openssl {arguments[0]} failed: {result.stderr.strip()}")


def write_kubeconfig(path: Path, server: str, authority: Path, credentials: dict[str, str]) -> Path:
    """Write a self-contained kubeconfig (JSON, which is YAML too), readable by its owner only.

    credentials are the fields of a kubeconfig user: {"token": ...}, or client-certificate-data and client-key-data.
    """
    cluster = {"server": server, "certificate-authority-data": in_base64(authority.read_text())}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "lab", "user": credentials}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))
    return path


def in_base64(text: str) -> str:
    """The text in the base64 form that kubeconfigs and Secrets want."""
    return base64.b64encode(text.encode()).decode()
