"""The decision of a round: what is observed and what is wanted in, exactly one action out.

The order is the order of safety. Pods that leave stop getting pushes before anything else; then pushes that hang are
helped into the spool; what is missing is made before anything is changed; a running broker is stopped last, behind
every guard.
"""

from collections.abc import Iterable

from queen_operator.planning.actions import Action, CloseToPushes, OpenToPushes, ReplacePod, Rest, RestartBroker, Wait
from queen_operator.planning.adoption import plan_adoption
from queen_operator.planning.children import out_of_date, plan_children
from queen_operator.planning.deletion import plan_deletion, plan_finalizer
from queen_operator.planning.judgment import judged
from queen_operator.planning.observed import JsonObject, Observed
from queen_operator.planning.reasons import Reason
from queen_operator.planning.removal import plan_removal
from queen_operator.planning.rescue import plan_rescue
from queen_operator.planning.restarts import OutOfDate, plan_restarts
from queen_operator.planning.views import Broker, read_brokers, read_pod
from queen_operator.planning.volumes import plan_growth
from queen_operator.planning.wanted import Wanted


def pods_to_close(items: Iterable[JsonObject]) -> tuple[CloseToPushes, ...]:
    """Pods that are leaving and still get pushes: what is due before anything else of a round is even asked."""
    pods = (read_pod(item) for item in items)
    return tuple(CloseToPushes(pod.name, pod.uid) for pod in pods if pod.leaving and pod.in_push_service)


def decide(observed: Observed, wanted: Wanted) -> Action:
    """Return the one action of this round. Pure: the same inputs give the same action."""
    if wanted.context.spec.paused:
        return Rest()
    brokers = read_brokers(observed, wanted.context.name, wanted.replicas)
    late = out_of_date(observed, wanted, brokers)
    observed = judged(observed, brokers, late)
    leaving = _leaving_pod_gets_pushes(observed)
    if leaving is not None:
        return leaving
    if observed.deleted:
        # Children of a deleted cluster are collected by owner reference; an apply would bring them back.
        return plan_deletion(observed, wanted, brokers)
    prepared = (
        plan_finalizer(observed, wanted)
        or plan_rescue(observed, wanted, brokers)
        or plan_growth(observed, wanted, brokers)
        or plan_children(observed, wanted, brokers)
    )
    return prepared or _change(observed, wanted, brokers, late)


def _change(observed: Observed, wanted: Wanted, brokers: tuple[Broker, ...], late: list[OutOfDate]) -> Action:
    """Claims are taken up, brokers taken away and restarted; what waits keeps none of the others from acting."""
    restart = plan_restarts(observed, wanted, brokers, late)
    opened = _started_pod_without_pushes(observed, brokers[: wanted.replicas], restart)
    if opened is not None:
        return opened
    steps = (plan_adoption(observed, wanted, brokers), plan_removal(observed, wanted, brokers, late), restart)
    acting = next((step for step in steps if step is not None and not isinstance(step, Wait)), None)
    waiting = next((step for step in reversed(steps) if step is not None), None)
    return acting or waiting or Rest()


def _leaving_pod_gets_pushes(observed: Observed) -> CloseToPushes | None:
    """The push Service keeps a terminating pod until its containers end; only the label takes it out."""
    actions = pods_to_close(observed.pods)
    return next((action for action in actions if ("Pod", action.pod) not in observed.refused), None)


def _started_pod_without_pushes(
    observed: Observed, brokers: tuple[Broker, ...], restart: Action | None
) -> OpenToPushes | None:
    """A broker that listens takes pushes, Ready or not, unless it is the one that is being stopped."""
    for broker in brokers:
        pod = broker.pod
        if pod is None or not pod.broker_started or pod.leaving or ("Pod", pod.name) in observed.refused:
            continue
        # Once its Deployment has another template its pod goes, though nobody has marked it yet: opened again, it would
        # take new connections until its end.
        being_stopped = pod.closed_since is not None and (_stops(restart, broker) or pod.config != broker.config)
        out = not pod.in_push_service or pod.cordoned or pod.closed_since is not None
        if not being_stopped and out:
            return OpenToPushes(pod.name, pod.uid)
    return None


def _stops(restart: Action | None, broker: Broker) -> bool:
    """The rollout is at this broker and not held: its pod stays closed."""
    match restart:
        case RestartBroker(index=index) | ReplacePod(index=index):
            return index == broker.index
        case Wait(reason=Reason.RESTARTING, broker=index):
            return index == broker.index
        case _:
            return False
