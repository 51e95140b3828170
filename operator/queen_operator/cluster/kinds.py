"""The kinds of objects that the operator reads or writes, and where the API server serves them."""

from dataclasses import dataclass
from typing import Final

from queen_operator.api import names


@dataclass(frozen=True, slots=True)
class Kind:
    """A namespaced kind: ``prefix`` is ``api/v1`` or ``apis/GROUP/VERSION``."""

    name: str
    prefix: str
    plural: str

    @property
    def api_version(self) -> str:
        """Group and version as an object's ``apiVersion`` says them."""
        return self.prefix.removeprefix("apis/").removeprefix("api/")

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """URL path of the collection, or of one object; all namespaces when ``namespace`` is None."""
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"/{self.prefix}{scope}/{self.plural}" + (f"/{name}" if name else "")


QUEEN_CLUSTER: Final = Kind(names.KIND, f"apis/{names.API_VERSION}", names.PLURAL)
DEPLOYMENT: Final = Kind("Deployment", "apis/apps/v1", "deployments")
POD: Final = Kind("Pod", "api/v1", "pods")
CLAIM: Final = Kind("PersistentVolumeClaim", "api/v1", "persistentvolumeclaims")
SERVICE: Final = Kind("Service", "api/v1", "services")
SERVICE_ACCOUNT: Final = Kind("ServiceAccount", "api/v1", "serviceaccounts")
SECRET: Final = Kind("Secret", "api/v1", "secrets")
BUDGET: Final = Kind("PodDisruptionBudget", "apis/policy/v1", "poddisruptionbudgets")
EVENT: Final = Kind("Event", "api/v1", "events")

# Kinds of which only the operator's own objects are watched, by a label that the API server filters on.
CHILDREN: Final = (DEPLOYMENT, POD, CLAIM, SERVICE, SERVICE_ACCOUNT, BUDGET)
BY_NAME: Final = {kind.name: kind for kind in (*CHILDREN, SECRET)}
