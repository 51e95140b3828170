"""What the children should look like, made once per change of the spec or of a Secret and then compared each round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queen_operator.manifests import config, render
from queen_operator.manifests.context import Context

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rendered children of one cluster. ``deployments`` and ``claims`` are by broker index."""

    context: Context
    parts: Mapping[str, str]
    rendered: tuple[str, ...]
    deployments: tuple[Manifest, ...]
    claims: tuple[Manifest, ...]
    services: tuple[Manifest, ...]
    service_account: Manifest
    disruption_budget: Manifest | None

    @property
    def replicas(self) -> int:
        """Number of brokers wanted."""
        return self.context.spec.replicas


def render_wanted(context: Context) -> Wanted:
    """Render every child for this context. Pure and deterministic, so that it may be kept as long as the context."""
    indexes = range(context.spec.replicas)
    deployments = tuple(render.broker_deployment(context, index) for index in indexes)
    identity = render.database_identity(context)
    return Wanted(
        context=context,
        parts=config.config_parts(context),
        rendered=tuple(render.rendered_hash(deployment) for deployment in deployments),
        deployments=deployments,
        claims=tuple(render.broker_claim(context, index, database=identity) for index in indexes),
        services=(*render.client_services(context), *(render.broker_service(context, index) for index in indexes)),
        service_account=render.service_account(context),
        disruption_budget=render.disruption_budget(context),
    )
