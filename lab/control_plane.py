"""A real kube-apiserver on etcd, without a node: for everything that needs the API and no running pod."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from lab import api_server
from lab.api_client import ApiClient
from lab.pki import Authority, User, in_base64, write_kubeconfig
from lab.progress import LabError
from lab.supervisor import Supervisor

# etcd and the API server talk through sockets below the state folder, named relative to it (absolute paths may exceed
# the 107 bytes of a socket address); so the only port taken is the one the caller chose.
_ETCD_CLIENT = "unix://etcd.sock:0"
_ETCD_PEER = "unix://etcd-peer.sock:0"


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """A reachable API server and the key material that opens it."""

    server: str
    authority: Authority
    bin_dir: Path

    def with_token(self, path: Path, token: str) -> Path:
        """Write the kubeconfig of somebody with a token."""
        return write_kubeconfig(path, self.server, self.authority.certificate, {"token": token})

    def for_user(self, path: Path, user: str, groups: tuple[str, ...]) -> Path:
        """Write a kubeconfig with a fresh client certificate of that user in those groups."""
        certificate, key = self.authority.client_certificate(User(user, groups))
        credentials = {"client-certificate-data": in_base64(certificate), "client-key-data": in_base64(key)}
        return write_kubeconfig(path, self.server, self.authority.certificate, credentials)

    def for_service_account(self, path: Path, admin: Path, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a fresh token (24 h) of a ServiceAccount; LabError when there is no such account."""
        kubectl = [str(self.bin_dir / "kubectl"), f"--kubeconfig={admin}", f"--namespace={namespace}"]
        argv = [*kubectl, "create", "token", name, "--duration=24h"]
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
        if result.returncode:
            raise LabError(f"no token for the service account {namespace}/{name}: {result.stderr.strip()}")
        return self.with_token(path, result.stdout.strip())


@dataclass(slots=True)
class ControlPlane:
    """A running control plane; it ends with `stop`, with the context manager, or with the process that started it."""

    kubeconfig: Path
    audit_log: Path
    _access: ApiAccess
    _supervisor: Supervisor
    _state_dir: Path
    _made: int = field(default=0)

    @classmethod
    def start(
        cls, state_dir: Path, bin_dir: Path, port: int, *, controllers: bool = False, audit: bool = False
    ) -> ControlPlane:
        """Start etcd and the API server on 127.0.0.1:port and return when the API answers ready.

        controllers adds kube-controller-manager (garbage collection, namespaces, Deployments); audit writes one line
        for each finished request to `audit_log`. state_dir must not exist or be empty. LabError says what failed.
        """
        state = _empty_folder(state_dir)
        authority = Authority(state / "pki")
        tokens = authority.create(api_server.HOSTS, api_server.USERS)
        access = ApiAccess(f"https://127.0.0.1:{port}", authority, bin_dir.resolve())
        admin = access.with_token(state / "kubeconfig", tokens[api_server.ADMIN.name])
        if audit:
            (state / "audit-policy.yaml").write_text(api_server.AUDIT_POLICY)
        plane = cls(admin, state / "audit.log", access, Supervisor(state), state)
        try:
            plane._start_programs(tokens, port, controllers, state if audit else None)
        except BaseException:
            plane.stop()
            raise
        return plane

    def _start_programs(self, tokens: dict[str, str], port: int, controllers: bool, audit: Path | None) -> None:
        state, authority, bin_dir = self._state_dir, self._access.authority, self._access.bin_dir
        endpoints = api_server.Endpoints(_ETCD_CLIENT, _ETCD_PEER, "127.0.0.1", port, "127.0.0.1")
        client = ApiClient.from_kubeconfig(self.kubeconfig)
        start = self._supervisor.start
        start("etcd", api_server.etcd(bin_dir / "etcd", state / "etcd", endpoints), cwd=state)
        program = bin_dir / "kube-apiserver"
        start("kube-apiserver", api_server.kube_apiserver(program, authority, endpoints, audit), cwd=state)
        self._supervisor.wait_until("the API server", lambda: client.answers("/readyz"), 60)
        if controllers:
            user = api_server.CONTROLLER_MANAGER.name
            kubeconfig = self._access.with_token(state / "controller-manager.kubeconfig", tokens[user])
            program = bin_dir / "kube-controller-manager"
            start("kube-controller-manager", api_server.kube_controller_manager(program, kubeconfig, authority))
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            self._supervisor.wait_until("the controllers", lambda: client.answers(account), 60)

    def kubeconfig_for(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A new kubeconfig of that user in those groups, who may do what RBAC gives him."""
        return self._access.for_user(self._next_path(), user, groups)

    def kubeconfig_of_service_account(self, namespace: str, name: str) -> Path:
        """A new kubeconfig with a token of an existing ServiceAccount; LabError when it does not exist."""
        return self._access.for_service_account(self._next_path(), self.kubeconfig, namespace, name)

    def _next_path(self) -> Path:
        self._made += 1
        return self._state_dir / f"user-{self._made}.kubeconfig"

    def stop(self) -> None:
        """End every program and remove etcd's data; logs and the audit log stay in the state folder."""
        self._supervisor.stop()
        shutil.rmtree(self._state_dir / "etcd", ignore_errors=True)

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _empty_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise LabError(f"{path} is not empty; a control plane needs a state folder of its own")
    return path.resolve()
