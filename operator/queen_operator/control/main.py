"""The command ``queen-operator``."""

import asyncio
import contextlib
import logging
import os
import signal
import socket

import click

from queen_operator import __version__
from queen_operator.control import logs
from queen_operator.control.process import Options, run


@click.command(context_settings={"auto_envvar_prefix": "QUEEN_OPERATOR"})
@click.version_option(__version__)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    envvar="QUEEN_OPERATOR_NAMESPACES",
    help="Watch only this namespace; may be given several times. All namespaces when not given.",
)
@click.option(
    "--operator-namespace",
    envvar="QUEEN_OPERATOR_NAMESPACE",
    default="queen-system",
    show_default=True,
    help="Namespace of the Lease.",
)
@click.option(
    "--identity",
    envvar="QUEEN_OPERATOR_POD_NAME",
    default=socket.gethostname,
    help="Name of this process in the Lease.",
)
@click.option("--keeper-image", required=True, help="Image of the spool keeper: this operator's own image.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    default=None,
    help="Kubeconfig; the pod's service account when not given.",
)
@click.option("--port", default=8080, show_default=True, help="Port of /metrics, /healthz and /readyz.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option("--log-format", type=click.Choice(["json", "text"]), default="json", show_default=True)
def main(
    namespaces: tuple[str, ...],
    operator_namespace: str,
    identity: str,
    keeper_image: str,
    kubeconfig: str | None,
    port: int,
    log_level: str,
    log_format: str,
) -> None:
    """Run the operator for QueenClusters until it is told to stop."""
    logs.configure(log_level, log_format)
    options = Options(namespaces, operator_namespace, identity, keeper_image, kubeconfig, port)
    logging.getLogger(__name__).info("queen-operator %s starts", __version__)
    if kubeconfig is not None:
        os.environ["KUBECONFIG"] = kubeconfig  # kopf logs in by itself, and by this variable
    asyncio.run(_until_told(options))


async def _until_told(options: Options) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine that runs has a task

    def take_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)

    take_signals()
    with contextlib.suppress(asyncio.CancelledError):
        await run(options, take_signals)
