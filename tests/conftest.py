"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_cluster_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests away from clusters they did not make: a test that forgets its kubeconfig finds none."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(tmp_path_factory.mktemp("no-cluster") / "kubeconfig"))
        environment.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        yield
