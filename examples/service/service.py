"""handful behind HTTP: every request is one batch, labelled by a model that may be replaced while the service runs."""

import asyncio
import io
import json
import logging
import re
import threading
import time
import warnings
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from os import cpu_count, environ, stat

import numpy as np
import prometheus_client as prometheus
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from threadpoolctl import threadpool_limits

import handful
from handful.errors import HandfulError, HandfulWarning

MOST_ROWS = int(environ.get("HANDFUL_MOST_ROWS", 1000))  # in one request
MOST_BYTES = int(environ.get("HANDFUL_MOST_BYTES", 8 * 2**20))  # in the body of one request
MOST_REQUESTS = int(environ.get("HANDFUL_MOST_REQUESTS", 16))  # being received, waiting or being labelled
SECONDS = float(environ.get("HANDFUL_SECONDS", 5))  # for all three
THREADS = int(environ.get("HANDFUL_THREADS", cpu_count() or 1))  # batches labelled at the same time
LOOK_SECONDS = float(environ.get("HANDFUL_LOOK_SECONDS", 5))  # between two looks at the file of the model
MODEL = environ["HANDFUL_MODEL"]

log = logging.getLogger("uvicorn.error")
REQUESTS = prometheus.Counter("handful_requests", "Requests for labels, by status.", ["status"])
ITEMS = prometheus.Counter("handful_items", "Items that were labelled.")
UNKNOWN = prometheus.Counter("handful_unknown_items", "Items that look like none of the classes.")
DIAGNOSTICS = prometheus.Counter(
    "handful_diagnostics", "Batches that look wrong, by the name of the diagnostic.", ["name"]
)
DURATION = prometheus.Histogram("handful_seconds", "Seconds from a request to its answer.")
IN_USE = prometheus.Gauge(
    "handful_model", "1 for the model in use, by its hash and the version of handful.", ["model", "version"]
)
REFUSED = prometheus.Counter("handful_refused_models", "Models that were put in place and cannot be used.")


class Model:
    """A fitted classifier, the version of its file, and a pattern of one vector in JSON and of what follows it."""

    def __init__(self) -> None:
        self.file = file_version()
        self.classifier = handful.BatchClassifier.load(MODEL)
        self.hash: str = self.classifier.model_.content_hash
        self.dim: int = self.classifier.n_features_in_
        self.classifier.infer(np.eye(2, self.dim))  # what cannot label is refused here, and not in a request
        # 64 bytes are enough for a number and the space around it.
        self.vector = re.compile(rf"\s*(\[[^][]{{0,{64 * self.dim}}}\])\s*([],])")
        IN_USE.clear()
        IN_USE.labels(self.hash, handful.__version__).set(1)


def file_version() -> tuple[int, int, int]:
    """Return what is another one when the file was replaced."""
    about = stat(MODEL)
    return about.st_mtime_ns, about.st_size, about.st_ino


warnings.simplefilter("ignore", HandfulWarning)  # they are in the answer, as diagnostics
places, pool = threading.BoundedSemaphore(MOST_REQUESTS), ThreadPoolExecutor(THREADS, "label")
threadpool_limits(1, "blas")  # one thread of NumPy for each of ours
model = Model()


async def follow_the_file() -> None:
    """Take a new model between two requests; one that cannot be used changes nothing."""
    global model
    seen = model.file
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            if (now := file_version()) == seen:
                continue
            seen = now
            model = await asyncio.to_thread(Model)
            log.info("the model is now %s", model.hash)
        except (HandfulError, OSError) as error:
            REFUSED.inc()
            log.error("the model is not replaced: %s", error)


def vectors(text: str, pattern: re.Pattern[str]) -> np.ndarray:
    """Read one vector at a time: no other thread runs while `json.loads` reads, not even the event loop."""
    before, _, text = text.partition("[")
    rows, at, end = list[np.ndarray](), 0, "," if not before.strip() else "nothing"
    while end == ",":
        if not (found := pattern.match(text, at)):
            raise ValueError(f"row {len(rows)} is not a list of numbers")
        rows.append(np.array(json.loads(found[1]), dtype=float))
        at, end = found.end(), found[2]
    if end != "]" or text[at:].strip():
        raise ValueError("there is something before or after the list")
    return np.stack(rows)


def labelled(body: bytearray, is_npy: bool, deadline: float) -> bytes:
    """Read one batch, label it and write the answer, on a thread of the pool."""
    if time.monotonic() > deadline:
        raise TimeoutError  # the caller already got 504
    own = model  # another one may be taken meanwhile
    try:
        X = np.load(io.BytesIO(body), allow_pickle=False) if is_npy else vectors(body.decode(), own.vector)
        X = X.astype(float, casting="same_kind", copy=False)
    except Exception as error:  # bytes from outside make parsers raise nearly anything
        raise HTTPException(422, f"The body must be a JSON list of vectors, or a .npy file: {error}") from error
    if X.shape[:1] > (MOST_ROWS,):
        raise HTTPException(413, f"A request may have {MOST_ROWS} rows, got {len(X)}; label fewer items together.")
    found = own.classifier.infer(X)
    ITEMS.inc(len(X))
    UNKNOWN.inc(int(found.rejected.sum()))
    for seen in found.diagnostics:
        DIAGNOSTICS.labels(seen.name).inc()
    answer = {
        "labels": found.labels.tolist(),
        "certainty": found.certainty.tolist(),  # chance that each label is right
        "present_classes": found.present_classes.tolist(),
        "unknown": None if np.isnan(found.unknown).any() else found.unknown.tolist(),  # chance to be none of them
        "diagnostics": [{"name": seen.name, "message": seen.message} for seen in found.diagnostics],
        "model": own.hash,
    }
    return json.dumps(answer, default=str).encode()


async def health(_: Request) -> Response:
    """Answer from the event loop, which never waits for a batch."""
    return JSONResponse({"classes": len(model.classifier.classes_), "features": model.dim})


async def ready(_: Request) -> Response:
    """Say whether there is room for a request."""
    free = places.acquire(blocking=False)
    if free:
        places.release()
    return JSONResponse({"ready": free}, 200 if free else 503)


async def version(_: Request) -> Response:
    """Say by what labels are made."""
    return JSONResponse({"version": handful.__version__, "model": model.hash})


async def metrics(_: Request) -> Response:
    """Return counts in the text format of Prometheus."""
    return Response(prometheus.generate_latest(), media_type=prometheus.CONTENT_TYPE_LATEST)


async def label(request: Request) -> Response:
    """Label one batch, and count the answer."""
    begun = time.monotonic()
    try:
        found = await answer_to(request, begun + SECONDS)
    except HTTPException as error:
        found = JSONResponse({"detail": error.detail}, error.status_code, dict(error.headers or {}))
    REQUESTS.labels(found.status_code).inc()
    DURATION.observe(time.monotonic() - begun)
    return found


async def answer_to(request: Request, deadline: float) -> Response:
    """Label one batch. Its place is free again when the work is over, not when the caller stops waiting."""
    if not places.acquire(blocking=False):
        raise HTTPException(503, f"{MOST_REQUESTS} requests are in progress; try again soon.", {"Retry-After": "1"})
    work, body = None, bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, f"A request may have {MOST_BYTES} bytes; label fewer items together.")
            work = pool.submit(labelled, body, request.headers.get("content-type") == "application/x-npy", deadline)
            answer = asyncio.wrap_future(work)
            answer.add_done_callback(lambda done: done.exception())  # otherwise asyncio complains if nobody waits
            await asyncio.wait([answer])  # which does not cancel it
            return Response(answer.result(), media_type="application/json")
    except HandfulError as error:  # another number of features, NaN, infinity
        raise HTTPException(422, str(error)) from error
    except (TimeoutError, ClientDisconnect):
        raise HTTPException(504, f"No answer within {SECONDS:g} seconds; try again, or send fewer rows.") from None
    finally:
        work.add_done_callback(lambda _: places.release()) if work else places.release()


@asynccontextmanager
async def following(_: Starlette) -> AsyncIterator[None]:
    """Look at the file of the model as long as the service runs."""
    task = asyncio.create_task(follow_the_file())
    yield
    task.cancel()


ROUTES = [Route(f"/{one.__name__}", one) for one in (health, ready, version, metrics)]
app = Starlette(routes=[*ROUTES, Route("/label", label, methods=["POST"])], lifespan=following)
