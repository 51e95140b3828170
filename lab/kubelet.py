"""Configuration of the node's own programs (containerd, kubelet, kube-proxy, CoreDNS): pure text, nothing starts here.

Every path is the program's usual one: inside the node's mount namespace /run, /var/lib and /var/log are its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.api_server import POD_CIDR

NODE_NAME = "node"
NODE_ADDRESS = "10.99.0.1"
CONTAINERD_SOCKET = Path("/run/containerd/containerd.sock")
CNI_PLUGINS = Path("/usr/lib/cni")
PAUSE_IMAGE = "docker.io/local/pause:1"
CLUSTER_DOMAIN = "cluster.local"


def containerd_config(conf_dir: Path, snapshotter: str) -> str:
    """Text of containerd's configuration; conf_dir holds the network configuration."""
    return f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Without CAP_SYS_RESOURCE a lower score cannot be set, and every pod would fail to start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{conf_dir}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""


def network_config() -> str:
    """Pod network: one routed veth pair per pod.

    No bridge between pods: the kernel would switch the answer of a Service's endpoint past the address translation
    where the module br_netfilter is missing, and a bridge changes its hardware address as pods come and go.
    """
    ipam = {"type": "host-local", "ranges": [[{"subnet": POD_CIDR}]], "routes": [{"dst": "0.0.0.0/0"}]}
    plugins = [
        {"type": "ptp", "ipMasq": False, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}, indent=1)


def kubelet_config(resolv_conf: Path, cgroup_root: str) -> str:
    """KubeletConfiguration; all pods live below the cgroup of that name, so that two nodes never share one."""
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup_root}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(resolv_conf),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # A full disk of the developer's machine must not evict pods of a test.
        "evictionHard": {"memory.available": "1%", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "maxPods": 200,
        "nodeStatusUpdateFrequency": "4s",
        "syncFrequency": "10s",
        "volumeStatsAggPeriod": "0s",
    }
    return json.dumps(config, indent=1)


def proxy_config(kubeconfig: Path) -> str:
    """KubeProxyConfiguration: nftables, and no touching of the connection table's sizes."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": POD_CIDR,
        "hostnameOverride": NODE_NAME,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    return json.dumps(config, indent=1)


def corefile(kubeconfig: Path) -> str:
    """CoreDNS configuration: names of the cluster only, everything else does not exist here."""
    return f""".:53 {{
  bind {NODE_ADDRESS}
  kubernetes {CLUSTER_DOMAIN} in-addr.arpa {{
    kubeconfig {kubeconfig} lab
    ttl 5
  }}
}}
"""
