"""Named namespaces: no right of the whole cluster, and nothing beyond them. What a missing right does: test_time.py."""

from __future__ import annotations

from collections.abc import Callable

from lab.control_plane import ControlPlane
from tests.support.clusters import make_settled, queen_cluster, secret, status
from tests.support.objects import Objects
from tests.support.operators import Operators, install_account


def test_named_namespaces_need_no_right_of_the_whole_cluster_and_others_are_ignored(
    plane: ControlPlane, new_namespace: Callable[[], Objects], operators: Operators
) -> None:
    watched, also_watched, ignored = new_namespace(), new_namespace(), new_namespace()
    account = install_account(plane, f"{watched.namespace}-ops", [watched.namespace, also_watched.namespace])
    bindings = watched.all("ClusterRoleBinding").values()
    assert not [item for item in bindings if account.namespace in str(item.get("subjects"))]
    ignored.make(secret(), queen_cluster())
    process = operators.working(account)

    make_settled(watched)
    make_settled(also_watched)

    assert process.page("/healthz") == (200, "ok")
    assert ignored.all("Deployment") == {}
    assert ignored.all("Service") == {}
    assert "plan" not in status(ignored)
    assert "forbidden" not in process.log().lower()


def test_sixteen_named_namespaces_leave_room_for_requests_beside_their_watches(
    plane: ControlPlane, new_namespace: Callable[[], Objects], operators: Operators
) -> None:
    watched = [new_namespace() for _ in range(16)]
    account = install_account(plane, f"{watched[0].namespace}-ops", [item.namespace for item in watched])
    operators.working(account)

    for objects in (watched[0], watched[-1]):
        make_settled(objects)
