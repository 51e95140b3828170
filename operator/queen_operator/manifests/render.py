"""The children of a QueenCluster as manifests for server-side apply."""

import base64
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from queen_operator.api import names
from queen_operator.api.spec import QueenClusterSpec
from queen_operator.manifests import metadata, timing
from queen_operator.manifests.canonical import canonical_json, quantities, short_hash
from queen_operator.manifests.config import config_parts
from queen_operator.manifests.context import Context
from queen_operator.manifests.environment import broker_environment
from queen_operator.manifests.images import broker_image
from queen_operator.manifests.pods import placement, pod_values, report_pod
from queen_operator.manifests.references import MESH_SECRET_KEY, Purpose, references
from queen_operator.manifests.templating import rendered

__all__ = [
    "broker_claim",
    "broker_deployment",
    "broker_image",
    "broker_service",
    "client_services",
    "database_identity",
    "disruption_budget",
    "mesh_secret",
    "rendered_hash",
    "report_pod",
    "service_account",
]

Manifest = dict[str, Any]


def broker_deployment(context: Context, index: int, *, replicas: int = 1) -> Manifest:
    """Return the Deployment of broker ``index``; ``replicas`` 0 stops it and keeps its volume.

    While the content of a Secret is not known its template says UNREAD and is not to be handed to a pod: whatever is
    made from it is restarted once the content is known.
    """
    spec = context.spec
    name = names.broker_name(context.name, index)
    deployment = rendered(
        "deployment",
        metadata=metadata.child_metadata(context, name, names.broker_labels(context.name, index)),
        replicas=replicas,
        progress_deadline_seconds=timing.progress_deadline_seconds(spec),
        selector=metadata.deployment_selector(context, index),
        pod_labels=metadata.pod_labels(context, index),
        pod_annotations=metadata.pod_annotations(context, canonical_json(config_parts(context))),
        grace_seconds=timing.grace_seconds(spec),
        **pod_values(context, index),
        **placement(context),
        **_keeper_values(context),
        **_broker_values(context, index),
    )
    deployment["metadata"]["annotations"] = {names.RENDERED_ANNOTATION: rendered_hash(deployment)}
    return deployment


def broker_claim(context: Context, index: int, *, database: str | None = None) -> Manifest:
    """Return the spool claim of broker ``index``, without an owner: it outlives its QueenCluster.

    ``database`` says whose messages the spool holds (``database_identity()``), so that they never go elsewhere.
    """
    spool = context.spec.spool
    annotations = {names.CLUSTER_UID_ANNOTATION: context.uid}
    if database:
        annotations[names.DATABASE_ANNOTATION] = database
    return rendered(
        "claim",
        metadata=metadata.unowned_metadata(
            context,
            names.claim_name(context.name, index),
            names.broker_labels(context.name, index),
            annotations,
        ),
        access_mode=spool.access_mode.value,
        storage_class_name=spool.storage_class_name,
        size=str(spool.size),
    )


def database_identity(context: Context) -> str | None:
    """Return which database the cluster writes to: `host:port/database`, or a hash when a Secret says part of it.

    User and password are no part of it: rotating them leaves the database what it is. None when it is not known.
    """
    postgres = context.spec.postgres
    if postgres.credentials_secret is None:
        return f"{postgres.host}:{postgres.port}/{postgres.database}" if postgres.host else None
    place = {"host": postgres.host, "port": postgres.port} if postgres.host else {}
    told = {Purpose.HOST, Purpose.PORT, Purpose.DATABASE}
    digests = {
        reference.purpose: context.digest(reference.secret, reference.key)
        for reference in references(context.name, context.spec)
        if reference.purpose in told
    }
    if None in digests.values():
        return None
    return f"sha256:{short_hash({'place': place, 'digests': digests})}"


def broker_service(context: Context, index: int) -> Manifest:
    """Return the headless Service of broker ``index``: its name in the mesh, and how the operator reaches it."""
    name = names.broker_name(context.name, index)
    service = rendered(
        "service-broker",
        metadata=metadata.child_metadata(context, name, names.broker_labels(context.name, index)),
        selector=metadata.broker_selector(context, index),
        http_port=names.HTTP_PORT,
        mesh_port=names.MESH_PORT,
        keeper_port=names.KEEPER_PORT,
    )
    return _with_hash(service)


def client_services(context: Context) -> tuple[Manifest, Manifest]:
    """Return the Services of clients: the one of Ready brokers, then the one that takes pushes, Ready or not."""
    everything = _client_service(context, context.name, metadata.serving_selector(context), publish_not_ready=False)
    pushes = _client_service(
        context, names.push_service_name(context.name), metadata.push_selector(context), publish_not_ready=True
    )
    return everything, pushes


def service_account(context: Context) -> Manifest:
    """Return the ServiceAccount of the broker pods: no rights, no token."""
    account_metadata = metadata.child_metadata(context, context.name, names.cluster_labels(context.name))
    return _with_hash(rendered("service-account", metadata=account_metadata))


def disruption_budget(context: Context) -> Manifest | None:
    """Return the PodDisruptionBudget, or None at one broker: there it could hold a node's drain for ever."""
    if context.spec.replicas < 2:
        return None
    budget = rendered(
        "disruption-budget",
        metadata=metadata.child_metadata(context, context.name, names.cluster_labels(context.name)),
        selector=metadata.brokers_selector(context),
    )
    return _with_hash(budget)


def mesh_secret(context: Context, value: str) -> Manifest:
    """Return the generated mesh Secret with a value made elsewhere.

    `data`, not `stringData`: keys that were applied through the latter are never taken away again.
    """
    return rendered(
        "secret",
        metadata=metadata.child_metadata(
            context, names.mesh_secret_name(context.name), names.cluster_labels(context.name)
        ),
        data={MESH_SECRET_KEY: base64.b64encode(value.encode()).decode()},
    )


def rendered_hash(deployment: Mapping[str, Any]) -> str:
    """Return the hash of a pod template as the operator rendered it; equal for quantities spelled differently.

    What the template was made from (the config annotation) is left out: that is told apart by cause.
    """
    template = deepcopy(deployment["spec"]["template"])
    template["metadata"]["annotations"].pop(names.CONFIG_ANNOTATION, None)
    for container in template["spec"]["containers"]:
        resources = container.get("resources", {})
        container["resources"] = {kind: quantities(values) for kind, values in resources.items()}
    return short_hash(template)


def _client_service(context: Context, name: str, selector: metadata.Labels, *, publish_not_ready: bool) -> Manifest:
    wanted = context.spec.service
    service = rendered(
        "service-client",
        metadata=metadata.child_metadata(
            context, name, names.cluster_labels(context.name), metadata.users_own(wanted.annotations)
        ),
        type=wanted.type.value,
        publish_not_ready=publish_not_ready,
        selector=selector,
        http_port=names.HTTP_PORT,
    )
    return _with_hash(service)


def _with_hash(manifest: Manifest) -> Manifest:
    """Add the hash of the whole manifest: what is left out of a later one shows as another hash, and is taken away."""
    annotations = manifest["metadata"].setdefault("annotations", {})
    annotations[names.RENDERED_ANNOTATION] = short_hash(manifest)
    return manifest


def _keeper_values(context: Context) -> dict[str, Any]:
    return {
        "keeper_args": ["hold", "--spool-dir", names.SPOOL_DIRECTORY, "--port", str(names.KEEPER_PORT)],
        "keeper_port": names.KEEPER_PORT,
        "keeper_startup_failures": timing.KEEPER_STARTUP_FAILURES,
    }


def _broker_values(context: Context, index: int) -> dict[str, Any]:
    spec = context.spec
    return {
        "image": broker_image(spec),
        "image_pull_policy": spec.image_pull_policy,
        "http_port": names.HTTP_PORT,
        "mesh_port": names.MESH_PORT,
        "env": broker_environment(context, index),
        "startup_budget_seconds": timing.STARTUP_BUDGET_SECONDS,
        "pre_stop_seconds": timing.PRE_STOP_SECONDS,
        "resources": _resources(spec),
    }


def _resources(spec: QueenClusterSpec) -> dict[str, dict[str, str]]:
    written = {"requests": spec.resources.requests, "limits": spec.resources.limits}
    return {kind: {name: str(value) for name, value in values.items()} for kind, values in written.items() if values}
