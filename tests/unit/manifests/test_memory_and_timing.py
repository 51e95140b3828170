"""The arithmetic: memory ceilings that fit the limit, time limits that cut nothing short."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from queen_operator.api.units import quantity
from queen_operator.manifests import memory, render, timing
from queen_operator.manifests.context import Context

MakeContext = Callable[..., Context]
EnvOf = Callable[[Mapping[str, Any]], dict[str, Any]]


@pytest.mark.parametrize(
    ("limit", "ceilings"),
    [
        ("1Gi", memory.CacheCeilings(256, 32, 128 * memory.MIB)),
        ("1024Mi", memory.CacheCeilings(256, 32, 128 * memory.MIB)),
        ("256Mi", memory.CacheCeilings(64, 8, 32 * memory.MIB)),
        ("2Gi", memory.CacheCeilings(512, 64, 256 * memory.MIB)),
        ("4Gi", memory.CacheCeilings(512, 64, 256 * memory.MIB)),
        ("2M", memory.CacheCeilings(1, 1, memory.MIB)),
    ],
)
def test_ceilings_follow_the_limit_up_to_the_brokers_own(
    limit: str, ceilings: memory.CacheCeilings, make_context: MakeContext
) -> None:
    assert memory.cache_ceilings(make_context({"resources": {"limits": {"memory": limit}}}).spec.resources) == ceilings


@pytest.mark.parametrize("limit", ["256Mi", "1Gi", "3Gi", "64Gi"])
def test_caches_leave_more_than_half_of_the_limit_for_pushes_that_hang(limit: str, make_context: MakeContext) -> None:
    ceilings = memory.cache_ceilings(make_context({"resources": {"limits": {"memory": limit}}}).spec.resources)
    assert ceilings is not None
    total = (ceilings.dedup_mib + ceilings.ack_registry_mib) * memory.MIB + ceilings.ephemeral_bytes
    assert total * 2 < quantity(limit)


def test_without_a_limit_the_brokers_own_ceilings_hold(make_context: MakeContext, env_of: EnvOf) -> None:
    context = make_context()
    free = context.spec.resources.model_copy(update={"limits": {}})
    spec = context.spec.model_copy(update={"resources": free})
    env = env_of(render.broker_deployment(make_context(spec=spec), 0))
    assert not {"QUEEN_DEDUP_CACHE_MB", "QUEEN_ACK_REGISTRY_MB", "QUEEN_EPHEMERAL_MAX_BYTES"} & env.keys()


@pytest.mark.parametrize(
    ("pop", "longest_pop", "statement", "grace_seconds"),
    [
        ("30s", "60s", "30s", 105),  # the defaults
        ("2m", "60s", "30s", 165),  # the server's default is the longer one
        ("30s", "1500ms", "500ms", 46),
        ("1ms", "1ms", "1ms", 16),  # rounded up, never down
    ],
)
def test_the_grace_period_covers_the_longest_call(
    pop: str, longest_pop: str, statement: str, grace_seconds: int, make_context: MakeContext
) -> None:
    broker = {"popTimeout": pop, "maxPopTimeout": longest_pop, "statementTimeout": statement}
    context = make_context({"broker": broker})
    assert timing.grace_seconds(context.spec) == grace_seconds
    pod = render.broker_deployment(context, 0)["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == grace_seconds


def test_an_absurd_timeout_stays_a_number_that_kubernetes_takes(make_context: MakeContext) -> None:
    context = make_context()
    broker = context.spec.broker.model_copy(update={"max_pop_timeout": "999999h"})
    spec = context.spec.model_copy(update={"broker": broker})
    assert timing.grace_seconds(spec) == timing.progress_deadline_seconds(spec) == 2**31 - 1
