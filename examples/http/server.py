"""handful behind HTTP: every request is one batch, labelled against a catalogue that is loaded once, at the start."""

import asyncio
import io
import json
import re
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count, environ

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from starlette.requests import ClientDisconnect
from threadpoolctl import threadpool_limits

from handful.errors import HandfulError, HandfulWarning
from handful.estimators import BatchClassifier

MOST_ROWS = int(environ.get("HANDFUL_MOST_ROWS", 1000))  # in one request
MOST_BYTES = int(environ.get("HANDFUL_MOST_BYTES", 8 * 2**20))  # in the body of one request
MOST_REQUESTS = int(environ.get("HANDFUL_MOST_REQUESTS", 16))  # being received, waiting or being labelled
SECONDS = float(environ.get("HANDFUL_SECONDS", 5))  # for all three
THREADS = int(environ.get("HANDFUL_THREADS", cpu_count() or 1))  # batches labelled at the same time

warnings.simplefilter("ignore", HandfulWarning)  # they are in the answer, as diagnostics
classifier = BatchClassifier.load(environ["HANDFUL_CATALOGUE"])
places, pool = threading.BoundedSemaphore(MOST_REQUESTS), ThreadPoolExecutor(THREADS, "label")
threadpool_limits(1, "blas")  # one thread of NumPy for each of ours
app = FastAPI()
# One vector, and what follows it; 64 bytes are enough for a number and the space around it.
VECTOR = re.compile(rf"\s*(\[[^][]{{0,{64 * classifier.n_features_in_}}}\])\s*([],])")


def vectors(text: str) -> np.ndarray:
    """Read one vector at a time: no other thread runs while `json.loads` reads, not even the event loop."""
    before, _, text = text.partition("[")
    rows, at, end = list[np.ndarray](), 0, "," if not before.strip() else "nothing"
    while end == ",":
        if not (found := VECTOR.match(text, at)):
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
    try:
        X = np.load(io.BytesIO(body), allow_pickle=False) if is_npy else vectors(body.decode())
        X = X.astype(float, casting="same_kind", copy=False)
    except Exception as error:  # bytes from outside make parsers raise nearly anything
        raise HTTPException(422, f"The body must be a JSON list of vectors, or a .npy file: {error}") from error
    if X.shape[:1] > (MOST_ROWS,):
        raise HTTPException(413, f"A request may have {MOST_ROWS} rows, got {len(X)}; label fewer items together.")
    found = classifier.infer(X)
    answer = {
        "labels": found.labels.tolist(),
        "certainty": found.certainty.tolist(),  # chance that each label is right
        "present_classes": found.present_classes.tolist(),
        "unknown": None if np.isnan(found.unknown).any() else found.unknown.tolist(),  # chance to be none of them
        "diagnostics": [{"name": seen.name, "message": seen.message} for seen in found.diagnostics],
    }
    return json.dumps(answer, default=str).encode()


@app.get("/health")
async def health() -> dict[str, int]:
    """Answer from the event loop, which never waits for a batch."""
    return {"classes": len(classifier.classes_), "features": classifier.n_features_in_}


@app.post("/label")
async def label(request: Request) -> Response:
    """Label one batch. Its place is free again when the work is over, not when the caller stops waiting."""
    if not places.acquire(blocking=False):
        raise HTTPException(503, f"{MOST_REQUESTS} requests are in progress; try again soon.", {"Retry-After": "1"})
    work, deadline, body = None, time.monotonic() + SECONDS, bytearray()
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
