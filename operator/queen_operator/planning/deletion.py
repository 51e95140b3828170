"""The end of a QueenCluster. By default it ends at once and its claims stay; with DeleteWhenEmpty it is drained first.

Only then does the resource carry a finalizer, which is ours alone: nothing else ever keeps a deletion waiting.
"""

from queen_operator.api import names
from queen_operator.api.spool_spec import OnDelete
from queen_operator.planning.actions import Action, Rest, SetFinalizer, Wait
from queen_operator.planning.observed import Observed
from queen_operator.planning.proof import LOOK_AGAIN_SECONDS
from queen_operator.planning.reasons import Reason
from queen_operator.planning.removal import plan_removal
from queen_operator.planning.rescue import plan_rescue
from queen_operator.planning.views import Broker
from queen_operator.planning.wanted import Wanted


def has_finalizer(observed: Observed) -> bool:
    """The resource waits for us before it goes."""
    return names.DRAIN_FINALIZER in (observed.resource["metadata"].get("finalizers") or ())


def _refusal(observed: Observed, wanted: Wanted) -> str | None:
    return observed.refused.get((names.KIND, wanted.context.name))


def plan_finalizer(observed: Observed, wanted: Wanted) -> SetFinalizer | None:
    """Put the finalizer on or take it off, as the spec says; before anything of a cluster is made."""
    drains = wanted.context.spec.spool.on_delete is OnDelete.DELETE_WHEN_EMPTY
    if drains == has_finalizer(observed) or _refusal(observed, wanted) is not None:
        return None  # refused: the status tells its words, and the rest of the cluster goes on
    if drains:
        return SetFinalizer(True, "With onDelete: DeleteWhenEmpty a deletion waits until every spool is empty.")
    return SetFinalizer(False, "With onDelete: Retain a deletion waits for nothing; the claims stay.")


def plan_deletion(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...]) -> Action:
    """Return the next step of a deleted cluster: nothing without the finalizer, else the drain, then its release.

    Claims that are going already, as in a namespace that is being deleted, cannot be saved: they hold nothing up.
    """
    if not has_finalizer(observed):
        return Rest()
    refusal = _refusal(observed, wanted)
    if refusal is not None:
        words = f"The finalizer {names.DRAIN_FINALIZER} cannot be taken off: {refusal}"
        return Wait(Reason.DELETING, words, LOOK_AGAIN_SECONDS, stalled=True)
    if wanted.context.spec.spool.on_delete is OnDelete.RETAIN:
        return SetFinalizer(False, "With onDelete: Retain the deletion waits for nothing; the claims stay.")
    step = plan_rescue(observed, wanted, brokers) or plan_removal(observed, wanted, brokers)
    if step is not None:
        return step
    known = (observed.resource.get("status") or {}).get("brokers") or ()
    unproved = ", ".join(broker["name"] for broker in known)
    if unproved:
        words = f"Nothing of {unproved} is left to drain: their claims were deleted by others, unproved."
        return SetFinalizer(False, words, unproved=True)
    return SetFinalizer(False, "Every broker is drained and every claim was proved empty.")
