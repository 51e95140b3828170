"""The first process inside a node's namespaces: starts the node's programs, and ends all of them when one ends.

Not for people: `lab.node.Node` starts it. Being process 1 of its own process namespace, its end is the end of every
process in there, containers included.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import api_server, cgroups, kubelet, namespace
from lab.api_client import ApiClient
from lab.control_plane import ApiAccess
from lab.pki import Authority
from lab.progress import LabError
from lab.supervisor import Supervisor

API_PORT = 6443
_ENDPOINTS = api_server.Endpoints(
    etcd_client="http://127.0.0.1:2379",
    etcd_peer="http://127.0.0.1:2380",
    bind_address="0.0.0.0",  # the node's own network: the address, the loopback door and the Service `kubernetes`
    port=API_PORT,
    advertise_address=kubelet.NODE_ADDRESS,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the outside decides about a node before it starts."""

    name: str
    bin_dir: str
    tokens: dict[str, str]
    audit: bool

    def write(self, path: Path) -> None:
        """Store for the process inside; the file holds tokens, so only its owner may read it."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Settings:
        """Counterpart of `write`."""
        return cls(**json.loads(path.read_text()))


class Boot:
    """Starts the programs in an order in which none has to try again."""

    def __init__(self, state: Path, settings: Settings, door: int) -> None:
        self.state = state
        self.settings = settings
        self.door = door
        self.bin_dir = Path(settings.bin_dir)
        self.config = state / "config"
        self.supervisor = Supervisor(state / "logs")
        self.authority = Authority(state / "pki")
        self.access = ApiAccess(f"https://127.0.0.1:{API_PORT}", self.authority, self.bin_dir)

    def run(self) -> None:
        """Return when the node is Ready and names resolve; LabError or OSError when something cannot start."""
        self.config.mkdir()
        self._api_server()
        self._containerd()
        client = ApiClient.from_kubeconfig(self._kubeconfig("admin", api_server.ADMIN.name))
        self.supervisor.wait_until("the API server", lambda: client.answers("/readyz"), 90)
        self._controllers()
        self.supervisor.wait_until("containerd", kubelet.CONTAINERD_SOCKET.exists, 60)
        self._kubelet()
        self.supervisor.wait_until("CoreDNS", _names_resolve, 60)
        self.supervisor.wait_until("the node to be Ready", lambda: _node_is_ready(client), 90)

    def _kubeconfig(self, name: str, user: str) -> Path:
        return self.access.with_token(self.config / f"{name}.kubeconfig", self.settings.tokens[user])

    def _api_server(self) -> None:
        self.supervisor.start("etcd", api_server.etcd(self.bin_dir / "etcd", self.state / "etcd", _ENDPOINTS))
        audit = self.state if self.settings.audit else None
        argv = api_server.kube_apiserver(self.bin_dir / "kube-apiserver", self.authority, _ENDPOINTS, audit)
        self.supervisor.start("kube-apiserver", argv)
        door = [sys.executable, "-m", "lab.door", f"--fd={self.door}", f"--to=127.0.0.1:{API_PORT}"]
        self.supervisor.start("door", door, pass_fds=[self.door])

    def _containerd(self) -> None:
        (self.config / "cni").mkdir()
        (self.config / "cni/10-pods.conflist").write_text(kubelet.network_config())
        on_overlay = namespace.filesystem_type(self.state) == "overlayfs"
        # Overlays cannot be stacked: inside a container image's file system containerd has to copy instead.
        snapshotter = "native" if on_overlay else "overlayfs"
        config = self.config / "containerd.toml"
        config.write_text(kubelet.containerd_config(self.config / "cni", snapshotter))
        self.supervisor.start("containerd", ["containerd", f"--config={config}"])

    def _controllers(self) -> None:
        kubeconfig = self._kubeconfig("controller-manager", api_server.CONTROLLER_MANAGER.name)
        nodes = [f"--cluster-cidr={api_server.POD_CIDR}", "--allocate-node-cidrs=true", "--node-cidr-mask-size=24"]
        program = self.bin_dir / "kube-controller-manager"
        argv = api_server.kube_controller_manager(program, kubeconfig, self.authority, nodes)
        self.supervisor.start("kube-controller-manager", argv)
        kubeconfig = self._kubeconfig("scheduler", api_server.SCHEDULER.name)
        argv = api_server.kube_scheduler(self.bin_dir / "kube-scheduler", kubeconfig)
        self.supervisor.start("kube-scheduler", argv)

    def _kubelet(self) -> None:
        resolv_conf = self.state / "resolv.conf"
        config = self.config / "kubelet.yaml"
        config.write_text(kubelet.kubelet_config(resolv_conf, self.settings.name))
        kubeconfig = self._kubeconfig("kubelet", api_server.KUBELET.name)
        argv = [str(self.bin_dir / "kubelet"), f"--config={config}", f"--kubeconfig={kubeconfig}"]
        identity = [f"--node-ip={kubelet.NODE_ADDRESS}", f"--hostname-override={kubelet.NODE_NAME}"]
        self.supervisor.start("kubelet", [*argv, *identity])

        config = self.config / "kube-proxy.yaml"
        config.write_text(kubelet.proxy_config(self._kubeconfig("proxy", api_server.PROXY.name)))
        self.supervisor.start("kube-proxy", [self.bin_dir / "kube-proxy", f"--config={config}"])

        config = self.config / "Corefile"
        config.write_text(kubelet.corefile(self._kubeconfig("coredns", api_server.DNS.name)))
        self.supervisor.start("coredns", [self.bin_dir / "coredns", "-conf", str(config)])

        kubeconfig = self._kubeconfig("provisioner", api_server.PROVISIONER.name)
        volumes = Path("/var/lib/lab-volumes")
        argv = [sys.executable, "-m", "lab.provisioner", f"--kubeconfig={kubeconfig}", f"--volumes={volumes}"]
        self.supervisor.start("provisioner", argv)


def _names_resolve() -> bool:
    return namespace.resolves(f"kubernetes.default.svc.{kubelet.CLUSTER_DOMAIN}", kubelet.NODE_ADDRESS)


def _node_is_ready(client: ApiClient) -> bool:
    node = client.get(f"/api/v1/nodes/{kubelet.NODE_NAME}")
    conditions = node["status"].get("conditions", []) if node else []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _reap_orphans(own: frozenset[int]) -> None:
    """Collect ended processes whose parent has gone; process 1 inherits them, and nobody else will."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return
        os.waitpid(ended.si_pid, 0)


def main() -> int:
    """Run the node until one of its programs ends; the exit code is never 0 unless SIGTERM asked for the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state", type=Path)
    parser.add_argument("--door", type=int, required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    state: Path = arguments.state
    settings = Settings.read(state / "settings.json")
    package = Path(__file__).resolve().parent.parent
    needed = [state, Path(settings.bin_dir), package, Path(sys.prefix), Path(sys.base_prefix)]
    boot = Boot(state, settings, arguments.door)
    try:
        namespace.cover_shared_folders(state, [path.resolve() for path in needed])
        namespace.bring_up_network()
        cgroups.create(settings.name)
        boot.run()
        (state / "ready").touch()
        while True:
            boot.supervisor.raise_if_one_died()
            _reap_orphans(boot.supervisor.pids)
            time.sleep(0.25)
    except (LabError, OSError) as error:
        print(f"the node stops: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
