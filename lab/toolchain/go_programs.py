"""Kubernetes, etcd, CoreDNS and the pause program, compiled from the Go modules pinned in ``kubernetes/``."""

import os
from pathlib import Path

from lab import cache, progress

VERSION = "1.34.4"
_MODULE = cache.CHECKOUT / "lab" / "toolchain" / "kubernetes"
_PACKAGES = (
    "./coredns",
    "./pause",
    "k8s.io/kubernetes/cmd/kube-apiserver",
    "k8s.io/kubernetes/cmd/kube-controller-manager",
    "k8s.io/kubernetes/cmd/kube-scheduler",
    "k8s.io/kubernetes/cmd/kubelet",
    "k8s.io/kubernetes/cmd/kube-proxy",
    "go.etcd.io/etcd/server/v3",
)
_ETCD_FILES = ("v3", "server")  # what the compiler calls a program whose package path ends in server/v3
_MAJOR, _MINOR, _ = VERSION.split(".")
_VERSION_PACKAGE = "k8s.io/component-base/version"
_FLAGS = (
    "-mod=readonly",
    "-trimpath",
    "-buildvcs=false",
    # Without these three the API server calls itself v0.0.0 and clients refuse or warn.
    f"-ldflags=-s -w -X {_VERSION_PACKAGE}.gitVersion=v{VERSION}"
    f" -X {_VERSION_PACKAGE}.gitMajor={_MAJOR} -X {_VERSION_PACKAGE}.gitMinor={_MINOR}",
)
PROGRAMS = (
    "coredns",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
    "pause",
)
PART = cache.Part("kubernetes", VERSION, (cache.fingerprint(_MODULE), *_FLAGS, *_PACKAGES))


def make() -> str:
    """Compile the programs unless they are there; one call of the compiler, so that shared packages compile once."""
    return "built" if PART.make(_build) else "already there"


def _build(into: Path) -> None:
    environment = dict(
        os.environ,
        CGO_ENABLED="0",
        GOFLAGS="",
        GOWORK="off",
        GOTOOLCHAIN="local",
        # The compiler is a short-lived program: collecting its garbage less often saves a tenth of the time.
        GOGC="400",
        # Caches of our own: removed after success (3 GB), and nobody else's are cleaned or trusted.
        GOCACHE=str(PART.workshop / "compiled"),
        GOMODCACHE=str(PART.workshop / "modules"),
    )
    command = ["go", "build", "-v", *_FLAGS, f"-o={into}/", *_PACKAGES]
    progress.run_logged(command, PART.log, cwd=_MODULE, env=environment)
    for name in _ETCD_FILES:
        if (into / name).exists():
            (into / name).rename(into / "etcd")
    absent = [name for name in PROGRAMS if not (into / name).exists()]
    if absent:
        raise progress.LabError(f"the compiler made no {', '.join(absent)}")
