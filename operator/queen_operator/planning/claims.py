"""Claims: what of one may still change, and whose messages it holds. No claim is ever deleted here."""

from collections.abc import Mapping
from typing import Any

from queen_operator.api import names
from queen_operator.planning.observed import JsonObject, Observed
from queen_operator.planning.views import annotations
from queen_operator.planning.wanted import Manifest, Wanted


def kept_claim(claim: Manifest, live: JsonObject, moved: bool) -> Manifest:
    """Return what a live claim should look like: labels as wanted.

    Access mode and class are fixed at creation, and its size has rules of its own (``volumes``). The database
    annotation says whose messages it holds, and follows the spec only when ``moved``: a Ready broker of this database
    has emptied it. Which QueenCluster writes to it was said when it was made, or is not known.
    """
    spec: dict[str, Any] = dict(live["spec"])
    kept = {key: spec[key] for key in ("accessModes", "storageClassName") if key in spec}
    resources = {"requests": spec["resources"]["requests"]}
    metadata = {**claim["metadata"], "annotations": _kept_annotations(annotations(claim), annotations(live), moved)}
    return {**claim, "metadata": metadata, "spec": {**kept, "resources": resources}}


def _kept_annotations(wanted: Mapping[str, str], live: Mapping[str, str], moved: bool) -> dict[str, str]:
    kept = {key: value for key, value in wanted.items() if key != names.CLUSTER_UID_ANNOTATION}
    for key in (names.CLUSTER_UID_ANNOTATION, names.GROWN_FROM_ANNOTATION):
        if key in live:
            kept[key] = live[key]
    if names.DATABASE_ANNOTATION in live and not moved:
        kept[names.DATABASE_ANNOTATION] = live[names.DATABASE_ANNOTATION]
    return kept


def exactly(manifest: Manifest, live: JsonObject) -> Manifest:
    """Correct this object as it was seen, or nothing: never one that was deleted, nor over an edit not yet seen."""
    seen = {field: live["metadata"][field] for field in ("uid", "resourceVersion") if field in live["metadata"]}
    return {**manifest, "metadata": {**manifest["metadata"], **seen}}


def may_be_mounted(observed: Observed, wanted: Wanted, index: int) -> bool:
    """A new pod would mount whatever claim has the name, and replay its files into our database."""
    claim = observed.claims.get(names.claim_name(wanted.context.name, index))
    if claim is None or "deletionTimestamp" in claim["metadata"]:
        return False
    return database_of_others(observed, wanted, index) is None


def database_of_others(observed: Observed, wanted: Wanted, index: int) -> str | None:
    """Return which other database the spool on this broker's claim belongs to, None when it is ours or unmarked."""
    claim = observed.claims.get(names.claim_name(wanted.context.name, index))
    marked = annotations(claim).get(names.DATABASE_ANNOTATION) if claim is not None else None
    ours = annotations(wanted.claims[0]).get(names.DATABASE_ANNOTATION)  # all say the same; this index may be surplus
    return marked if marked is not None and ours is not None and marked != ours else None


def why_not_mounted(observed: Observed, wanted: Wanted, index: int) -> str | None:
    """Return the sentence about a claim whose messages belong to another database."""
    other = database_of_others(observed, wanted, index)
    if other is None:
        return None
    name = names.claim_name(wanted.context.name, index)
    return (
        f"{names.broker_name(wanted.context.name, index)} is not started: its claim {name} holds the spool of another"
        f" database ({other}), whose messages would go into this one. Delete the claim, or take its annotation"
        f" {names.DATABASE_ANNOTATION} off to have them replayed here."
    )
