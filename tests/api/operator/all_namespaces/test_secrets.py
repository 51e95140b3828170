"""Secrets of the user: awaited, named when something is wrong with them, never written, and never shown."""

from __future__ import annotations

import base64
import json

import pytest

from lab.control_plane import ControlPlane
from lab.kubectl import Kubectl
from tests.support import audit
from tests.support.clusters import (
    UNTOUCHED,
    children,
    condition,
    generations,
    has,
    make_settled,
    not_ready_because,
    queen_cluster,
    rests,
    secret,
)
from tests.support.objects import Object, Objects
from tests.support.operators import OperatorProcess, writes
from tests.support.waiting import wait_until

SOON_SECONDS = 20
KEY = "0123456789abcdef" * 4


def _replace(objects: Objects, item: Object) -> None:
    objects.delete("Secret", item["metadata"]["name"])
    objects.make(item)


def test_the_secret_its_key_and_its_value_are_named_as_long_as_they_are_missing(
    objects: Objects, plane: ControlPlane, operator: OperatorProcess
) -> None:
    before = audit.position(plane.audit_log)
    objects.make(queen_cluster())
    rest = {child for child in children() if child[0] != "Deployment"}
    wait_until("everything but brokers", has(objects, rest))
    wait_until("the Secret to be named", not_ready_because(objects, "SecretMissing", "Secret pg", "does not exist"))

    objects.make(secret(another="x"))
    wait_until(
        "the key to be named", not_ready_because(objects, "SecretMissing", "password", "Secret pg", "is missing")
    )

    objects.patch("Secret", "pg", {"data": {"password": ""}})
    wait_until(
        "emptiness to be named", not_ready_because(objects, "SecretMissing", "password", "Secret pg", "is empty")
    )
    assert condition(objects, "Stalled")["reason"] == "SecretMissing"
    assert objects.all("Deployment") == {}

    _replace(objects, secret())
    wait_until("the brokers", has(objects, children()), seconds=SOON_SECONDS)
    wait_until("the condition to go", lambda: rests(objects) and not condition(objects, "Stalled"))
    written = writes(plane, operator.account.user, before, objects.namespace)
    assert [what for what in written if " secrets/" in what] == ["patch secrets/orders-mesh"]


def test_a_secret_that_is_deleted_and_made_again_with_the_same_value_restarts_nothing(objects: Objects) -> None:
    make_settled(objects)

    objects.delete("Secret", "pg")
    wait_until("the loss to be named", not_ready_because(objects, "SecretMissing", "Secret pg"), SOON_SECONDS)
    objects.make(secret())
    wait_until("the loss to be forgotten", lambda: not condition(objects, "Stalled"), SOON_SECONDS)

    wait_until("the operator to rest", lambda: rests(objects))
    assert condition(objects, "RestartPending")["reason"] == "NothingPending"
    assert generations(objects) == UNTOUCHED


def test_a_key_that_goes_is_named_and_restarts_nothing_while_a_new_value_is_tried_by_one_broker(
    objects: Objects,
) -> None:
    make_settled(objects)

    objects.patch("Secret", "pg", {"data": {"password": None}})
    wait_until(
        "the key to be named", not_ready_because(objects, "SecretMissing", "password", "Secret pg"), SOON_SECONDS
    )
    assert condition(objects, "RestartPending")["reason"] == "NothingPending"
    assert generations(objects) == UNTOUCHED

    # PostgreSQL cannot be reached here: a change of the connection is then tried by one broker, the others wait.
    objects.patch("Secret", "pg", secret(password="another"))
    wait_until("one broker to try it", lambda: sorted(generations(objects).values()) == [1, 1, 2], SOON_SECONDS)
    wait_until("the others to wait", lambda: condition(objects, "RestartPending").get("reason") == "ChangesWait")
    wait_until("the wait to be told", not_ready_because(objects, "ConnectionTried", "tries the new connection"))
    assert sorted(generations(objects).values()) == [1, 1, 2]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (KEY[:-1], "is not 64 hexadecimal digits (it has 63 characters); the broker would store plaintext."),
        (KEY + "\n", "ends in a newline or a blank; the broker would take it as no key and store plaintext."),
    ],
    ids=["63 digits", "a newline at the end"],
)
def test_no_broker_is_made_with_an_encryption_key_that_it_would_take_as_none(
    value: str, words: str, objects: Objects, operator: OperatorProcess
) -> None:
    objects.make(secret(), secret("enc", key=value))
    objects.make(queen_cluster(encryption={"keySecret": {"name": "enc", "key": "key"}}))

    wait_until("the condition", not_ready_because(objects, "SecretInvalid", "key of the Secret enc", words))
    assert condition(objects, "Stalled")["reason"] == "SecretInvalid"
    assert objects.all("Deployment") == {}
    assert value.strip() not in operator.log()

    objects.patch("Secret", "enc", secret("enc", key=KEY))
    wait_until("the brokers", has(objects, children()), seconds=SOON_SECONDS)


def test_no_secret_value_is_in_any_object_but_secrets_nor_in_the_log(
    objects: Objects, operator: OperatorProcess
) -> None:
    password = "pa55-of-the-database"
    objects.make(secret(password=password), secret("enc", key=KEY), secret("jwt", key="jwt-s3cret-of-the-user"))
    make_settled(
        objects,
        encryption={"keySecret": {"name": "enc", "key": "key"}},
        auth={"enabled": True, "secret": {"name": "jwt", "key": "key"}},
    )
    # A change and a fault, so that events and conditions have something to tell.
    objects.patch("Secret", "enc", secret("enc", key="f" * 63))
    wait_until("the fault to be named", not_ready_because(objects, "SecretInvalid"))
    objects.patch("Secret", "enc", secret("enc", key=KEY.upper()))
    wait_until("the fault to be forgotten", lambda: condition(objects, "Ready")["reason"] != "SecretInvalid")
    mesh = base64.b64decode(next(iter(objects.there("Secret", "orders-mesh")["data"].values()))).decode()
    values = [password, KEY, KEY.upper(), "f" * 63, "jwt-s3cret-of-the-user", mesh]

    kubectl = Kubectl(objects.kubeconfig)
    kinds = kubectl.run("api-resources", "--namespaced", "--verbs=list", "--output=name").split()
    dumped = kubectl.run(
        "get", ",".join(kinds), f"--namespace={objects.namespace}", "--output=json", "--show-managed-fields"
    )
    items = json.loads(dumped)["items"]

    assert {"QueenCluster", "Deployment", "Pod", "ReplicaSet", "Event", "Secret"} <= {item["kind"] for item in items}
    shown = json.dumps([item for item in items if item["kind"] != "Secret"]) + operator.log()
    for value in values:
        assert len(value) > 15
        assert value not in shown
        assert base64.b64encode(value.encode()).decode().rstrip("=") not in shown
