"""Dynamic provisioner of the node's volumes: a directory for each claim, wiped when the claim is gone, grown on demand.

It runs inside the node's mount namespace, so that a size-limited volume (a tmpfs) is seen by kubelet and containers.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from lab import volumes
from lab.api_client import APPLY_PATCH, MERGE_PATCH, ApiClient, ApiError, Object

_CLAIMS = "/api/v1/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_RETRY_SECONDS = 0.5


class Provisioner:
    """Compares claims and volumes with the directories below one folder; every round begins from what the API says."""

    def __init__(self, client: ApiClient, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._refused: set[tuple[str, str]] = set()

    def create_classes(self) -> None:
        """Create the laboratory's storage classes."""
        for storage_class in volumes.storage_classes():
            name = storage_class["metadata"]["name"]
            self._client.send("PATCH", f"{_CLASSES}/{name}?fieldManager=lab&force=true", storage_class, APPLY_PATCH)

    def round(self) -> None:
        """Do everything that claims and volumes ask for now; OSError when the API server is away."""
        classes = {item["metadata"]["name"]: item for item in self._items(_CLASSES)}
        existing = {item["metadata"]["name"]: item for item in self._items(_VOLUMES)}
        for claim in self._items(_CLAIMS):
            storage_class = classes.get(claim["spec"].get("storageClassName", ""))
            if storage_class is None or storage_class["provisioner"] != volumes.PROVISIONER:
                continue
            volume = existing.get(volumes.volume_name(claim))
            if volume is not None:
                self._grow(claim, volume)
            elif volumes.waits_for_volume(claim, storage_class):
                self._provide(claim, storage_class)
        for volume in existing.values():
            if volumes.is_ours(volume) and volumes.may_be_wiped(volume):
                self._wipe(volume)

    def _items(self, path: str) -> list[Object]:
        answer = self._client.get(path)
        return answer["items"] if answer else []

    def _provide(self, claim: Object, storage_class: Object) -> None:
        why = volumes.why_refused(claim, storage_class)
        if why is not None:
            self._report_refusal(claim, why)
            return
        directory = self._folder / volumes.volume_name(claim)
        directory.mkdir(parents=True, exist_ok=True)
        if volumes.is_sized(claim) and not directory.is_mount():
            size = volumes.quantity_bytes(volumes.requested(claim))
            _mount("-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(directory))
        try:
            self._client.send("POST", _VOLUMES, volumes.volume_for(claim, storage_class, str(directory)))
        except ApiError as error:
            if error.code != 409:
                raise

    def _report_refusal(self, claim: Object, why: str) -> None:
        metadata = claim["metadata"]
        if (metadata["uid"], why) in self._refused:
            return
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        reference |= {key: metadata[key] for key in ("namespace", "name", "uid")}
        event = {
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": reference,
            "type": "Warning",
            "reason": "ProvisioningFailed",
            "message": f"failed to provision volume: {why}",
            "source": {"component": volumes.PROVISIONER},
            "lastTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self._client.send("POST", f"/api/v1/namespaces/{metadata['namespace']}/events", event)
        self._refused.add((metadata["uid"], why))

    def _grow(self, claim: Object, volume: Object) -> None:
        size = volumes.wanted_growth(claim, volume) if claim["status"].get("phase") == "Bound" else None
        if size is None:
            return
        directory = Path(volume["spec"]["local"]["path"])
        if directory.is_mount():
            _mount("-o", f"remount,size={volumes.quantity_bytes(size)}", str(directory))
        capacity = {"capacity": {"storage": size}}
        self._client.send("PATCH", f"{_VOLUMES}/{volume['metadata']['name']}", {"spec": capacity}, MERGE_PATCH)
        metadata = claim["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/persistentvolumeclaims/{metadata['name']}/status"
        self._client.send("PATCH", path, {"status": capacity}, MERGE_PATCH)

    def _wipe(self, volume: Object) -> None:
        directory = Path(volume["spec"]["local"]["path"])
        if directory.is_mount():
            subprocess.run(["umount", str(directory)], check=True)
        if directory.exists():
            shutil.rmtree(directory)
        self._client.send("DELETE", f"{_VOLUMES}/{volume['metadata']['name']}")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _wake_on_change(client: ApiClient, path: str, wake: threading.Event) -> None:
    while True:
        try:
            for _ in client.watch(path):
                wake.set()
        except OSError:
            time.sleep(_RETRY_SECONDS)
        wake.set()


def main() -> None:
    """Command line: --kubeconfig of the laboratory, --volumes folder of the directories; runs for ever."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--volumes", type=Path, required=True)
    arguments = parser.parse_args()
    client = ApiClient.from_kubeconfig(arguments.kubeconfig)
    provisioner = Provisioner(client, arguments.volumes)
    provisioner.create_classes()
    wake = threading.Event()
    for path in (_CLAIMS, _VOLUMES):
        threading.Thread(target=_wake_on_change, args=(client, path, wake), daemon=True).start()
    while True:
        wake.wait()
        wake.clear()
        try:
            provisioner.round()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"round failed, trying again: {error}", flush=True)
            time.sleep(_RETRY_SECONDS)
            wake.set()


if __name__ == "__main__":
    main()
