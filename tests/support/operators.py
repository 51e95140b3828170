"""The real operator as a process of its own, with the rights that the chart gives it and no others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab import cache
from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from tests.support import audit
from tests.support.objects import Objects
from tests.support.ports import free_port
from tests.support.waiting import wait_until

_CHART = cache.CHECKOUT / "charts" / "queen-operator"
_RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
ACCOUNT = "queen-operator"
KEEPER_IMAGE = "k:1"


@dataclass(frozen=True)
class Account:
    """An operator's ServiceAccount in its own namespace, and what it watches (nothing named: every namespace)."""

    namespace: str
    kubeconfig: Path
    watched: tuple[str, ...] = ()

    @property
    def user(self) -> str:
        """Its name in the audit log."""
        return f"system:serviceaccount:{self.namespace}:{ACCOUNT}"


def rights_of_the_chart(plane: ControlPlane, namespace: str, watched: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The chart's account, roles and bindings, as helm renders them."""
    values = f"--set-json=watchNamespaces={json.dumps(list(watched))}"
    arguments = ("template", ACCOUNT, str(_CHART), f"--namespace={namespace}", values)
    rendered = Kubectl(plane.kubeconfig).run(*arguments, program="helm")
    return [item for item in yaml.safe_load_all(rendered) if item and item["kind"] in _RIGHTS]


def install_account(plane: ControlPlane, namespace: str, watched: Sequence[str] = ()) -> Account:
    """Make the operator's namespace and its account with the chart's rights."""
    Objects(plane.kubeconfig, namespace).make({"kind": "Namespace", "metadata": {"name": namespace}})
    for item in rights_of_the_chart(plane, namespace, watched):
        Objects(plane.kubeconfig, item["metadata"].get("namespace", namespace)).make(item)
    return Account(namespace, plane.kubeconfig_of_service_account(namespace, ACCOUNT), tuple(watched))


def writes(plane: ControlPlane, user: str, since: int, namespace: str) -> list[str]:
    """What a user wrote in a namespace after a position of the audit log, each as ``verb resource/name``.

    Refused writes count too; renewals of a Lease do not.
    """
    found = []
    for entry in audit.requests_of(plane.audit_log, user, since):
        about = entry.get("objectRef", {})
        if entry["verb"] in ("get", "list", "watch") or about.get("namespace") != namespace:
            continue
        if about["resource"] != "leases":
            part = f"/{about['subresource']}" if "subresource" in about else ""
            found.append(f"{entry['verb']} {about['resource']}{part}/{about.get('name', '')}")
    return found


def written_on_children(plane: ControlPlane, user: str, since: int, namespace: str) -> set[str]:
    """What a user wrote in a namespace, Events and the status of a QueenCluster aside."""
    told = ("create events/", "update queenclusters/status/")
    return {what for what in writes(plane, user, since, namespace) if not what.startswith(told)}


class OperatorProcess:
    """One operator process; its output goes to a file. It dies with the test process, however that ends."""

    def __init__(self, account: Account, log: Path, identity: str, kubeconfig: Path | None = None) -> None:
        self.account = account
        self.identity = identity
        self.port = free_port()
        self._log = log
        watched = [f"--namespace={name}" for name in account.watched]
        arguments = [
            f"--kubeconfig={kubeconfig or account.kubeconfig}",
            f"--operator-namespace={account.namespace}",
            f"--identity={identity}",
            f"--keeper-image={KEEPER_IMAGE}",
            f"--port={self.port}",
            "--log-format=text",
            *watched,
        ]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "queen_operator", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={**os.environ, "PYTHONPATH": str(cache.CHECKOUT / "operator")},
            )

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def log(self) -> str:
        """Everything that it wrote so far."""
        return self._log.read_text(errors="replace")

    def page(self, path: str, seconds: float = 5) -> tuple[int, str]:
        """Status and text of one of its own pages; (0, "") while nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=seconds) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def rounds(self) -> int:
        """How many rounds went well so far."""
        mark = 'controller_runtime_reconcile_total{result="success"} '
        counted = (line.removeprefix(mark) for line in self.page("/metrics")[1].splitlines() if line.startswith(mark))
        return int(float(next(counted, "0")))

    def leads(self) -> bool:
        """Whether it holds the Lease and works."""
        assert self.running, f"the operator ended with code {self._process.returncode}"
        return "leader_election_master_status{" in self.page("/metrics")[1]

    def wait_until_it_works(self, seconds: float = 60) -> None:
        """Return when it leads and has listed everything that it watches."""
        try:
            wait_until("the operator to lead", self.leads, seconds)
            wait_until("the operator to be ready", lambda: self.page("/readyz")[0] == 200, seconds)
        except AssertionError as error:
            error.add_note(self.explain())
            raise

    def stop(self, seconds: float = 10) -> int:
        """End it as Kubernetes does and return its exit code; TimeoutExpired after that many seconds."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End it at once, without a last word."""
        self._process.kill()
        self._process.wait()

    def explain(self) -> str:
        """What a failed test shows of it."""
        state = "runs" if self.running else f"ended with code {self._process.returncode}"
        tail = "\n".join(self.log().splitlines()[-80:])
        return f"--- operator {self.identity} of {self.account.namespace} {state}; the end of its log:\n{tail}"


class Operators:
    """Starts operators of a test's own and ends them with it."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.started: list[OperatorProcess] = []

    def start(self, account: Account, identity: str = "own", *, kubeconfig: Path | None = None) -> OperatorProcess:
        """Start one and return at once."""
        log = self._logs / f"{len(self.started)}-{identity}.log"
        self.started.append(OperatorProcess(account, log, identity, kubeconfig))
        return self.started[-1]

    def working(self, account: Account, identity: str = "own", *, kubeconfig: Path | None = None) -> OperatorProcess:
        """Start one and return when it works."""
        process = self.start(account, identity, kubeconfig=kubeconfig)
        process.wait_until_it_works()
        return process
