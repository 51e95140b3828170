"""Claims: what of one may still change, and whose messages it holds. No claim is ever deleted here."""

from typing import Any

from queen_operator.api import names
from queen_operator.api.units import quantity
from queen_operator.planning.observed import JsonObject, Observed
from queen_operator.planning.views import annotations
from queen_operator.planning.wanted import Manifest, Wanted


def kept_claim(claim: Manifest, live: JsonObject, moved: bool) -> Manifest:
    """Return what a live claim should look like: labels as wanted, the size upwards once it is bound.

    Access mode and class are fixed at creation. The database annotation says whose messages it holds, and follows the
    spec only when ``moved``: a Ready broker of this database has emptied it.
    """
    spec: dict[str, Any] = dict(live["spec"])
    kept = {key: spec[key] for key in ("accessModes", "storageClassName") if key in spec}
    bound = (live.get("status") or {}).get("phase") == "Bound"
    requests = spec["resources"]["requests"]
    grows = quantity(claim["spec"]["resources"]["requests"]["storage"]) > quantity(requests["storage"])
    resources = claim["spec"]["resources"] if bound and grows else {"requests": requests}
    metadata = dict(claim["metadata"])
    database = annotations(live).get(names.DATABASE_ANNOTATION)
    if database is not None and not moved:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), names.DATABASE_ANNOTATION: database}
    return {**claim, "metadata": metadata, "spec": {**kept, "resources": resources}}


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
    ours = annotations(wanted.claims[index]).get(names.DATABASE_ANNOTATION)
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
