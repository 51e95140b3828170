"""kubectl and helm against one cluster."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import cache, progress


@dataclass(frozen=True)
class Kubectl:
    """The cluster of a kubeconfig. Methods raise LabError with the program's own words when it refuses."""

    kubeconfig: Path

    def run(self, *arguments: str, stdin: str = "", program: str = "kubectl") -> str:
        """Run kubectl (or helm) and return what it printed."""
        command = [str(cache.bin_dir() / program), *arguments]
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env=dict(os.environ, KUBECONFIG=str(self.kubeconfig)),
        )
        if done.returncode != 0:
            raise progress.LabError(f"{program} {' '.join(arguments[:4])}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def apply(self, objects: Sequence[dict[str, Any]], namespace: str = "default") -> None:
        """Apply objects on the server side, also over what other managers wrote."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self._apply("-", namespace, manifest)

    def apply_file(self, file: Path, namespace: str) -> None:
        """Apply a manifest file into a namespace."""
        self._apply(str(file), namespace)

    def _apply(self, source: str, namespace: str, stdin: str = "") -> None:
        options = ["--server-side", "--force-conflicts", "--field-manager=lab", f"--namespace={namespace}"]
        self.run("apply", *options, f"--filename={source}", stdin=stdin)

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any] | None:
        """Return an object, None when it does not exist."""
        printed = self.run("get", kind, name, f"--namespace={namespace}", "--ignore-not-found", "--output=json")
        return dict(json.loads(printed)) if printed.strip() else None

    def items(self, kind: str, namespace: str, selector: str) -> list[dict[str, Any]]:
        """Return the objects of a kind that a label selector matches."""
        printed = self.run("get", kind, f"--namespace={namespace}", f"--selector={selector}", "--output=json")
        return list(json.loads(printed)["items"])
