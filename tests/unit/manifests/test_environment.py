"""The broker's environment: canonical, in fixed order, byte for byte what the user wrote."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests import render
from queen_operator.manifests.context import Context

MakeContext = Callable[..., Context]
EnvOf = Callable[[Mapping[str, Any]], dict[str, Any]]


def test_a_minimal_cluster_tells_its_broker_everything_it_must_not_guess(
    make_context: MakeContext, env_of: EnvOf
) -> None:
    env = env_of(render.broker_deployment(make_context(), 1))
    assert env["PORT"] == "6632"
    assert env["QUEEN_BIND_ADDR"] == "0.0.0.0"
    assert (env["PG_HOST"], env["PG_PORT"], env["PG_USER"]) == ("pg.orders.svc", "5432", "queen")
    assert env["PG_PASSWORD"] == ("orders-postgres", "password")
    assert env["PG_DATABASE"] == "queen"
    assert env["DB_POOL_SIZE"] == "28"
    assert env["QUEEN_ADMISSION_POOL_RESERVE"] == "8"
    assert env["FILE_BUFFER_DIR"] == names.SPOOL_DIRECTORY
    assert env["QUEEN_SYNC_SECRET"] == ("orders-mesh", "secret")
    assert env["QUEEN_SERVER_ID"] == "orders-1"
    assert env["QUEEN_MESH_ADVERTISE_HOST"] == "orders-1.shop.svc"
    assert not {name for name in env if name.startswith("JWT_")} - {"JWT_ENABLED"}
    assert "QUEEN_ENCRYPTION_KEY" not in env


def test_a_secret_with_everything_is_read_by_the_kubelet_alone(make_context: MakeContext, env_of: EnvOf) -> None:
    env = env_of(render.broker_deployment(make_context(base="full"), 0))
    keys = {"PG_HOST": "host", "PG_PORT": "port", "PG_USER": "user", "PG_PASSWORD": "password", "PG_DATABASE": "dbname"}
    assert {name: env[name] for name in keys} == {name: ("orders-app", key) for name, key in keys.items()}
    assert env["PG_SSL_ROOT_CERT"] == ("orders-ca", "ca.crt")
    assert env["JWT_PUBLIC_KEY"] == ("orders-jwt", "public.pem")
    assert env["QUEEN_ENCRYPTION_KEY"] == ("orders-encryption", "key")
    assert env["QUEEN_SYNC_SECRET"] == ("orders-own-mesh", "token")


def test_a_host_in_the_spec_wins_over_the_secrets(make_context: MakeContext, env_of: EnvOf) -> None:
    context = make_context({"postgres": {"host": "proxy", "port": 6432}}, base="full")
    env = env_of(render.broker_deployment(context, 0))
    assert (env["PG_HOST"], env["PG_PORT"], env["PG_DATABASE"]) == ("proxy", "6432", ("orders-app", "dbname"))


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"broker": {"popTimeout": "1m30s"}}, "DEFAULT_TIMEOUT", "90000"),
        ({"broker": {"statementTimeout": "500ms"}}, "QUEEN_STMT_TIMEOUT_MS", "500"),
        ({"broker": {"statsInterval": "1h"}}, "STATS_INTERVAL_MS", "3600000"),
        ({"broker": {"applySchema": False}}, "QUEEN_APPLY_SCHEMA", "false"),
        ({"broker": {"logLevel": "trace"}}, "RUST_LOG", "trace"),
        ({"broker": {"logJson": False}}, "QUEEN_LOG_JSON", "false"),
        ({"postgres": {"tls": {"enabled": True}}}, "PG_USE_SSL", "true"),
        ({"postgres": {"tls": {"enabled": True, "verify": False}}}, "PG_SSL_REJECT_UNAUTHORIZED", "false"),
        ({"postgres": {"poolSize": 100}}, "DB_POOL_SIZE", "100"),
    ],
)
def test_numbers_and_booleans_are_in_the_one_spelling_that_the_broker_reads(
    changes: dict[str, Any], name: str, value: str, make_context: MakeContext, env_of: EnvOf
) -> None:
    assert env_of(render.broker_deployment(make_context(changes), 0))[name] == value


@pytest.mark.parametrize(
    "value", ["on", "0123", "1e3", "true", "", "ñ✓", "a: b # c", "{{ x }}", "{% raw %}", "line1\nline2", "~", "&a *a"]
)
def test_a_users_value_reaches_the_broker_byte_for_byte(value: str, make_context: MakeContext, env_of: EnvOf) -> None:
    context = make_context({"broker": {"env": [{"name": "MINE", "value": value}]}})
    assert env_of(render.broker_deployment(context, 0))["MINE"] == value


def test_kubernetes_replaces_no_variable_inside_a_value(make_context: MakeContext, env_of: EnvOf) -> None:
    context = make_context({"broker": {"env": [{"name": "MINE", "value": "$(PG_PASSWORD) $$ $"}]}})
    # Kubernetes turns $$ into $ and leaves what follows alone.
    assert env_of(render.broker_deployment(context, 0))["MINE"] == "$$(PG_PASSWORD) $$$$ $$"


def test_a_users_value_takes_the_place_of_a_mere_default_of_ours(make_context: MakeContext, env_of: EnvOf) -> None:
    plain = list(env_of(render.broker_deployment(make_context(), 0)))
    names_and_values = [("QUEEN_DEDUP_CACHE_MB", "16"), ("FILE_BUFFER_EVENTS_PER_FILE", "50")]
    context = make_context({"broker": {"env": [{"name": n, "value": v} for n, v in names_and_values]}})
    env = env_of(render.broker_deployment(context, 0))
    assert list(env) == plain
    assert (env["QUEEN_DEDUP_CACHE_MB"], env["FILE_BUFFER_EVENTS_PER_FILE"]) == ("16", "50")


@pytest.mark.parametrize("name", ["PORT", "FILE_BUFFER_DIR", "PG_DB", "TMPDIR", "QUEEN_SERVER_ID", "QUEEN_UDP_PEERS"])
def test_what_is_the_operators_stays_the_operators(name: str, make_context: MakeContext, env_of: EnvOf) -> None:
    context = make_context({"broker": {"env": [{"name": name, "value": "stolen"}]}})
    assert "stolen" not in env_of(render.broker_deployment(context, 0)).values()


def test_no_name_comes_twice_and_users_come_last_by_name(make_context: MakeContext) -> None:
    entries = [{"name": n, "value": n} for n in ("ZEBRA", "ALPHA", "MIDDLE")] + [{"name": "ALPHA", "value": "last"}]
    deployment = render.broker_deployment(make_context({"broker": {"env": entries}}), 0)
    env = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert env[-3:] == [
        {"name": "ALPHA", "value": "last"},
        {"name": "MIDDLE", "value": "MIDDLE"},
        {"name": "ZEBRA", "value": "ZEBRA"},
    ]
    assert len({entry["name"] for entry in env}) == len(env)


@pytest.mark.parametrize(("replicas", "index", "peers"), [(1, 0, [1, 2]), (3, 1, [0, 2]), (5, 4, [0, 1, 2, 3])])
def test_peers_are_at_least_three_and_never_oneself(
    replicas: int, index: int, peers: list[int], make_context: MakeContext, env_of: EnvOf
) -> None:
    env = env_of(render.broker_deployment(make_context({"replicas": replicas}), index))
    assert env["QUEEN_MESH_PEERS"] == ",".join(f"orders-{peer}.shop.svc:6633" for peer in peers)
