"""kopf as alarm clock: events of QueenClusters wake their worker. No state handlers, so no annotation, no finalizer."""

import os
from typing import Any

import kopf

from queen_operator.api import names
from queen_operator.control.workers import Workers


def register(registry: kopf.OperatorRegistry, workers: Workers) -> None:
    """Register the one handler that the operator has, and how kopf finds the API server: as our own client does.

    kopf logs in again after a 401, so a service account token that was rotated is read anew.
    """
    kopf.on.login(registry=registry)(login)

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)  # type: ignore[arg-type,untyped-decorator,unused-ignore]
    async def queen_cluster_changed(event: dict[str, Any], body: kopf.Body, **_: Any) -> None:
        resource = dict(event["object"])
        meta = resource["metadata"] = {k: v for k, v in resource["metadata"].items() if k != "managedFields"}
        if event["type"] == "DELETED":
            workers.forget(meta["namespace"], meta["name"], meta["uid"])
        else:
            workers.take(resource)


def login(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
    """Use the kubeconfig that the process was started with, else the pod's service account."""
    if "KUBECONFIG" in os.environ:
        return kopf.login_with_kubeconfig(settings=settings)
    return kopf.login_with_service_account(settings=settings)


def settings() -> kopf.OperatorSettings:
    """Settings of the watch: limits, so that a silent stream is noticed, and nothing posted by kopf itself."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.scanning.disabled = True  # no watch of namespaces and CRDs: rights that only this would need
    chosen.watching.server_timeout = 300
    chosen.watching.client_timeout = 330
    chosen.watching.connect_timeout = 20
    chosen.networking.request_timeout = 20
    chosen.queueing.worker_limit = 50
    chosen.queueing.idle_timeout = 0.05  # with a limit, workers must end at once or the next object waits for them
    return chosen
