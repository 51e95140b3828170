"""The operator's own HTTP door: metrics, liveness that turns red when rounds stop, readiness."""

from collections.abc import Callable, Iterable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

Problems = Callable[[], Iterable[str]]


async def serve(port: int, live: Problems, ready: Problems) -> web.AppRunner:
    """Serve ``/metrics``, ``/healthz`` and ``/readyz`` until the runner is cleaned up.

    ``live`` and ``ready`` return sentences of what is wrong; none means 200, some mean 503 with them as text.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def answer(problems: Problems) -> Callable[[web.Request], object]:
        async def respond(_: web.Request) -> web.Response:
            found = list(problems())
            return web.Response(status=503 if found else 200, text="\n".join(found) or "ok")

        return respond

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", answer(live))  # type: ignore[arg-type]
    app.router.add_get("/readyz", answer(ready))  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", port).start()  # noqa: S104 - a pod's own port
    return runner
