"""Requests to the API server with raw objects: one connection pool, a time limit on every call, four kinds of errors.

::

    ApiError
      NotFound       404: the object is gone; for a delete that is success
      Conflict       409: a stale version, or a UID that no longer fits
      Refused        400, 403, 422 and the server's 500 for a malformed apply: permanent until something changes
      Unavailable    everything else: no answer, 429, 5xx; worth another try
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from queen_operator.api import names
from queen_operator.cluster.kinds import Kind
from queen_operator.manifests.yaml_json import yaml_json

CALL_TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
# Bookmarks come about once a minute: a stream that is silent for longer is dead, however alive TCP believes it.
WATCH_SILENCE_SECONDS: Final = 90
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Object = dict[str, Any]


class ApiError(Exception):
    """An answer of the API server that is not success; ``message`` is its own sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class NotFound(ApiError):  # noqa: N818 - a name, not a fault
    """The object does not exist."""


class Conflict(ApiError):  # noqa: N818
    """The object changed or was replaced meanwhile."""


class Refused(ApiError):  # noqa: N818
    """The server will not take this, however often it is sent."""


class Unavailable(ApiError):  # noqa: N818
    """No answer, or one that may be different soon."""


class Gone(ApiError):  # noqa: N818
    """410: the watch's starting point is too old; list again."""


def _error(status: int, text: str) -> ApiError:
    try:
        message = str(json.loads(text).get("message") or text)
    except (ValueError, AttributeError):
        message = text[:500]
    # A failed typed patch answers 500 and will do so for ever: duplicate env names, fields that are not declared.
    malformed = status == 500 and "failed to create typed patch object" in message
    if status == 404:
        return NotFound(status, message)
    if status == 409:
        return Conflict(status, message)
    if status == 410:
        return Gone(status, message)
    if status in (400, 403, 405, 415, 422) or malformed:
        return Refused(status, message)
    return Unavailable(status, message)


class Api:
    """The API server. Made by ``connect``; every method raises ``ApiError`` and nothing else for trouble."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    async def close(self) -> None:
        """Close the connection pool."""
        await self.client.close()

    async def get(self, kind: Kind, namespace: str, name: str, *, metadata_only: bool = False) -> Object:
        """Read one object."""
        accept = METADATA_ONLY if metadata_only else "application/json"
        return await self._call("GET", kind.path(namespace, name), accept=accept)

    async def get_path(self, path: str) -> Object:
        """Read whatever a path answers, for discovery."""
        return await self._call("GET", path)

    async def list_page(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str], *, metadata_only: bool = False
    ) -> Object:
        """Read one page of a collection."""
        accept = METADATA_LIST if metadata_only else "application/json"
        return await self._call("GET", kind.path(namespace), query=query, accept=accept)

    async def apply(self, kind: Kind, manifest: Mapping[str, Any]) -> Object:
        """Server-side apply of a child that is ours: fields set here are ours, by force; the rest is left alone."""
        meta = manifest["metadata"]
        return await self._call(
            "PATCH",
            kind.path(meta["namespace"], meta["name"]),
            query={"fieldManager": names.FIELD_MANAGER, "force": "true"},
            # The server reads an apply as YAML, which takes JSON's escapes of characters beyond 16 bits for errors;
            # with its charset named the library sends the text as it is.
            body=yaml_json(manifest),
            content_type="application/apply-patch+yaml; charset=utf-8",
        )

    async def merge(self, kind: Kind, namespace: str, name: str, body: Mapping[str, Any]) -> Object:
        """Merge-patch an object; put its UID into metadata to be sure that it is the one that was seen."""
        return await self._call(
            "PATCH",
            kind.path(namespace, name),
            query={"fieldManager": names.FIELD_MANAGER},
            body=body,
            content_type="application/merge-patch+json",
        )

    async def replace_spec(self, kind: Kind, namespace: str, name: str, uid: str, spec: Mapping[str, Any]) -> Object:
        """Write a whole spec over that of the object with this UID; what the server allocated itself it keeps."""
        return await self._call(
            "PATCH",
            kind.path(namespace, name),
            query={"fieldManager": names.FIELD_MANAGER},
            body=[
                {"op": "test", "path": "/metadata/uid", "value": uid},
                {"op": "replace", "path": "/spec", "value": spec},
            ],
            content_type="application/json-patch+json",
        )

    async def write_status(self, namespace: str, name: str, body: Mapping[str, Any]) -> Object:
        """Replace the status of a QueenCluster; a stale resourceVersion is a Conflict."""
        path = names_path(namespace, name) + "/status"
        return await self._call("PUT", path, query={"fieldManager": names.FIELD_MANAGER}, body=body)

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> Object:
        """Create an object."""
        return await self._call("POST", kind.path(namespace), body=body)

    async def delete(self, kind: Kind, namespace: str, name: str, uid: str, *, version: str | None = None) -> None:
        """Delete exactly the object with this UID; never with a grace period of our own. Gone already is success.

        With ``version`` also only as it was seen: a Conflict when it has changed since.
        """
        conditions = {"uid": uid} | ({"resourceVersion": version} if version is not None else {})
        body = {"preconditions": conditions, "propagationPolicy": "Background"}
        try:
            await self._call("DELETE", kind.path(namespace, name), body=body)
        except NotFound:
            return

    async def watch(
        self, kind: Kind, namespace: str | None, query: Mapping[str, str], *, metadata_only: bool = False
    ) -> AsyncIterator[Object]:
        """Stream events of a collection until the server ends the stream.

        Raises Gone when the starting point is too old, Unavailable when the stream is silent or breaks.
        """
        accept = METADATA_ONLY if metadata_only else "application/json"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=WATCH_SILENCE_SECONDS)
        full = {**query, "watch": "true", "allowWatchBookmarks": "true"}
        response = await self._send("GET", kind.path(namespace), query=full, accept=accept, timeout=timeout)
        try:
            if response.status != 200:
                raise _error(response.status, await response.text())
            async for line in response.content:
                event: Object = json.loads(line)
                if event.get("type") == "ERROR":
                    fault = event.get("object") or {}
                    raise _error(int(fault.get("code", 500)), json.dumps(fault))
                yield event
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Unavailable(0, f"the watch of {kind.plural} broke: {error!r}") from error
        finally:
            response.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | list[Object] | str | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        response = await self._send(method, path, query=query, body=body, content_type=content_type, accept=accept)
        try:
            text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(0, f"the API server broke off: {error!r}") from error
        if not 200 <= response.status <= 299:
            raise _error(response.status, text)
        answer: Object = json.loads(text)
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | list[Object] | str | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: aiohttp.ClientTimeout = CALL_TIMEOUT,  # noqa: ASYNC109 - handed to the transport
    ) -> aiohttp.ClientResponse:
        try:
            request = await self.client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": accept, "Content-Type": content_type},
                body=dict(body) if isinstance(body, Mapping) else body,
                auth_settings=["BearerToken"],
            )
            answer = await self.client.call_api(*request, _request_timeout=timeout)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(0, f"the API server does not answer: {error!r}") from error
        response: aiohttp.ClientResponse = answer.response
        return response


def names_path(namespace: str, name: str) -> str:
    """URL path of one QueenCluster."""
    return f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.PLURAL}/{name}"


async def connect(kubeconfig: str | None = None) -> Api:
    """Connect with a kubeconfig when one is given, else as the pod's service account.

    The service account's token is read again every minute, so that its rotation goes unnoticed.
    """
    configuration = type.__call__(Configuration)
    # Every watch holds a connection: with the default of 100, sixteen namespaces would leave none for requests.
    configuration.connection_pool_maxsize = 0
    if kubeconfig is not None:
        path = await asyncio.to_thread(lambda: str(Path(kubeconfig).expanduser()))
        await config.load_kube_config(config_file=path, client_configuration=configuration, persist_config=False)
    else:
        config.load_incluster_config(client_configuration=configuration)
    return Api(ApiClient(configuration=configuration))
