"""Command lines of the control plane's programs, and the users they log in as: pure, nothing is started here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.pki import Authority, User

SERVICE_CIDR = "10.96.0.0/16"
SERVICE_IP = "10.96.0.1"  # the Service `kubernetes`: always the first address of the range
POD_CIDR = "10.244.0.0/24"

ADMIN = User("admin", ("system:masters",))
CONTROLLER_MANAGER = User("system:kube-controller-manager")
SCHEDULER = User("system:kube-scheduler")
KUBELET = User("system:node:node", ("system:nodes",))
PROXY = User("system:kube-proxy")
# CoreDNS and the provisioner run outside pods; no built-in role fits them, and the laboratory trusts itself.
DNS = User("lab:dns", ("system:masters",))
PROVISIONER = User("lab:provisioner", ("system:masters",))
USERS = (ADMIN, CONTROLLER_MANAGER, SCHEDULER, KUBELET, PROXY, DNS, PROVISIONER)

HOSTS = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
         "kubernetes.default.svc.cluster.local", SERVICE_IP)  # fmt: skip

# Who did what, without bodies. The first stage of a request is left out, so that one line is one finished request.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where one control plane listens: etcd's two URLs, the API server's address and port."""

    etcd_client: str
    etcd_peer: str
    bind_address: str
    port: int
    advertise_address: str


def etcd(program: Path, data: Path, endpoints: Endpoints) -> list[str]:
    """Command line of etcd; nothing in it survives a power cut, which the laboratory does not need."""
    return [
        str(program),
        f"--data-dir={data}",
        f"--listen-client-urls={endpoints.etcd_client}",
        f"--advertise-client-urls={endpoints.etcd_client}",
        f"--listen-peer-urls={endpoints.etcd_peer}",
        f"--initial-advertise-peer-urls={endpoints.etcd_peer}",
        f"--initial-cluster=default={endpoints.etcd_peer}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def kube_apiserver(program: Path, authority: Authority, endpoints: Endpoints, audit: Path | None) -> list[str]:
    """Command line of the API server: RBAC and the default admission plugins; audit is the folder of policy and log."""
    argv = [
        str(program),
        f"--etcd-servers={endpoints.etcd_client}",
        f"--bind-address={endpoints.bind_address}",
        f"--secure-port={endpoints.port}",
        f"--advertise-address={endpoints.advertise_address}",
        f"--tls-cert-file={authority.serving_certificate}",
        f"--tls-private-key-file={authority.serving_key}",
        f"--client-ca-file={authority.certificate}",
        f"--token-auth-file={authority.tokens}",
        f"--service-account-key-file={authority.service_account_key}",
        f"--service-account-signing-key-file={authority.service_account_key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        "--profiling=false",
    ]
    if endpoints.advertise_address.startswith("127."):
        # A loopback address is no valid endpoint: the reconciler would log an error every ten seconds.
        argv.append("--endpoint-reconciler-type=none")
    if audit is not None:
        argv += [f"--audit-policy-file={audit / 'audit-policy.yaml'}", f"--audit-log-path={audit / 'audit.log'}"]
    return argv


def kube_controller_manager(
    program: Path, kubeconfig: Path, authority: Authority, extra: Sequence[str] = ()
) -> list[str]:
    """Command line of the controller manager, one instance, every default controller."""
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={authority.service_account_key}",
        f"--root-ca-file={authority.certificate}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        *extra,
    ]


def kube_scheduler(program: Path, kubeconfig: Path) -> list[str]:
    """Command line of the scheduler, one instance."""
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
    ]
