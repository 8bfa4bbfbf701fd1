"""The routes of a review: the page, its data, pictures by opaque ids, and the decisions of a person."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from handful.classification.labelled import about_of
from handful.classification.page import notices
from handful.classification.page_data import (
    SMALL,
    embedded,
    example_data,
    explanations,
    item_data,
    label_data,
    shortened,
    thumbnail,
)
from handful.classification.page_frame import review_frame
from handful.classification.page_program import REVIEW, page_program, page_style
from handful.errors import BehindError, HandfulError, StorageError
from handful.estimators import Answer
from handful.machine.untrusted import parse_json
from handful.progress import Progress
from handful.reading.contents import Contents, FolderFiles, pick
from handful.review.batch_review import BatchReview
from handful.review.guard import Guard
from handful.session import similar_names

# Pixels of the longer side of a picture of an item, and of one that fills a screen.
LARGE = 320
FULL = 2048
# Pictures that are kept in memory; each takes about 10 kB.
MOST_PICTURES = 4000
# Seconds that a body may take to arrive.
SECONDS = 10.0
TEXT = (str, type(None))


class Finished(NamedTuple):
    """What finishing a review did.

    Attributes
    ----------
    written : list of str
        The files that were written.
    next_batch : str
        The command that reviews the next batch with the catalogue.
    """

    written: list[str]
    next_batch: str = ""


class Wanted(NamedTuple):
    """What a person wants besides the table: a folder per class, and keywords next to the photographs."""

    folder: bool = False
    keywords: bool = False


def offers_of(review: BatchReview) -> list[str]:
    """Return what can be written besides tables: photographs in folders have a folder per class, and keywords."""
    return list(Wanted._fields) if isinstance(review.batch.contents, FolderFiles) else []


# Writes what a review found.
Finish = Callable[[BatchReview, Wanted], Finished]


class Media:
    """Pictures by ids that say nothing: keyed hashes of what they stand for, made when a page may ask for them."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._sources = dict[str, tuple[Contents, int, int]]()
        self._drawn: OrderedDict[str, bytes | None] = OrderedDict()

    def ids(self, source: Contents, positions: Sequence[int], size: int) -> list[str | None]:
        """Return ids of pictures; items and examples differ by their size."""
        found = list[str | None]()
        for position in positions:
            of = source.names[position] if isinstance(source, FolderFiles) else f"{id(source)} {position}"
            about = f"{size} {of}".encode("utf-8", "surrogatepass")
            name = hmac.digest(self._key, about, hashlib.sha256)[:16].hex()
            self._sources[name] = source, position, size
            found.append(name)
        return found

    def picture(self, name: str, *, full: bool = False) -> bytes | None:
        """Return a JPEG, small, or as large as a screen; None if there is no such id, or the image cannot be read."""
        if name not in self._sources:
            return None
        source, position, size = self._sources[name]
        if full:
            return _drawn(source, position, FULL)
        if name not in self._drawn:
            self._drawn[name] = _drawn(source, position, size)
            if len(self._drawn) > MOST_PICTURES:
                self._drawn.popitem(last=False)
        return self._drawn[name]


def _drawn(source: Contents, position: int, size: int) -> bytes | None:
    """Return a JPEG of an image; None if the file is gone, or is no longer a file with an image."""
    chosen = pick(source, [position])
    if isinstance(chosen, FolderFiles) and not (chosen.root / chosen.names[0]).is_file():
        return None  # to open a pipe would never end
    try:
        (content,) = chosen
    except OSError:
        return None
    drawn = thumbnail(content, size) if isinstance(content, bytes) else None
    return None if drawn is None else base64.b64decode(drawn)


class Page:
    """What the page of a review shows.

    Parameters
    ----------
    review : BatchReview or None
        The batch under review; None if it is still being opened.
    title : str
        What it is called.
    out : str
        Where the labels will be written, as shown; empty if the program that opened the page gets them.
    catalogue : str
        The catalogue that keeps the answers, as shown.
    """

    def __init__(self, review: BatchReview | None, title: str, *, out: str = "", catalogue: str = "") -> None:
        self.title = title
        self.out = out
        self.catalogue = catalogue
        self.media = Media()
        self.proof = ""
        self.opening: Progress | None = None
        self.asked_at = time.monotonic()
        self.pictures: Callable[[int], list[str | None]] = lambda done: []
        # Requests see one review from beginning to end, even if more items come meanwhile.
        self.lock = threading.RLock()
        self._review: BatchReview | None = None
        self._news: list[str] = []
        self._n_shown = 0
        if review is not None:
            self.show(review)

    @property
    def is_open(self) -> bool:
        """Whether there is a review to show."""
        return self._review is not None

    @property
    def review(self) -> BatchReview:
        """The batch under review."""
        if self._review is None:
            raise HTTPException(503, "the batch is still being opened; wait until the page shows it")
        return self._review

    def show(self, review: BatchReview) -> None:
        """Show a review, the same batch with more items; what is on the page then has other places."""
        with self.lock:
            review.generation = self._n_shown
            self._n_shown += 1
            self._items = review.on_page.tolist()
            self._place = {item: at for at, item in enumerate(self._items)}
            self._news = list(dict.fromkeys([*self._news, *review.notes]))
            self._review = review

    def failed(self, why: str) -> None:
        """Tell once why what is new could not be brought."""
        if why not in self._news:
            self._news.append(why)

    def begun(self) -> dict[str, Any]:
        """Return how far the opening is."""
        found = self.opening
        done, total = (0, 0) if found is None else (found.done, found.total)
        left = "" if found is None else found.said[2]
        return {"done": done, "total": total, "left": left, "pictures": self.pictures(done)}

    def html(self) -> str:
        """Return the page without its items."""
        head = "<link rel='stylesheet' href='review.css'>"
        return review_frame(self.title, head, "<script type='module' src='review.js'></script>")

    def whole(self) -> dict[str, Any]:
        """Return the items, and what is said about them."""
        answer = self.review.answer
        data = item_data(answer, self.review.on_page, self.title) | self.state()
        data |= {"words": list(self.review.words), "proof": self.proof}
        contents = about_of(answer).batch.contents
        if contents is not None and data["texts"] is None:
            data["pictures"] = self.media.ids(contents, self._items, LARGE)
        return data

    def state(self, changed: Sequence[int] = (), *, undone: Sequence[int] | None = None) -> dict[str, Any]:
        """Return what is said about the items, and what comes next; `changed` are those whose labels changed."""
        review = self.review
        answer = self.review.answer
        place = self._place
        data = label_data(answer, review.on_page)
        if about_of(answer).shown is not None:
            data["examples"], _ = example_data(answer, data, [], self.media.ids)
        return data | {
            "number": review.number,
            "notices": [*self._news, *notices(review.first)],
            "n_steps": review.n_steps,
            "decisions": [
                [place[item], one.kind, one.label, one.was] for item, one in review.decisions.items() if item in place
            ],
            "ask": self._ask(),
            "changed": [place[item] for item in changed if item in place],
            "undid": undone is not None,
            "back": place.get(undone[0], -1) if undone else -1,
            "explains": about_of(answer).batches is not None,
            "progress": review.progress(),
            "out": self.out,
            "catalogue": self.catalogue,
            "offers": offers_of(self.review),
            "offered": list(map(str, review.session.names)) if review.session.from_nothing else [],
        }

    def _ask(self) -> dict[str, Any] | None:
        """Return what to look at next; None if everything has been seen that is on the page."""
        request = self.review.session.ask()
        items = [] if request is None else [self._place[item] for item in request.items if item in self._place]
        if request is None or not items:
            return None
        labels = dict(zip(request.items, request.labels, strict=True))
        exceptions = self.review.session.exceptions
        return {
            "items": items,
            "label": None if request.label is None else str(request.label),
            "labels": [None if labels[self._items[at]] is None else str(labels[self._items[at]]) for at in items],
            "choices": list(map(str, request.choices)),
            "corrects": request.corrects,
            "marked": request.items[0] in exceptions,
            "asks_name": request.asks_name,
            "oddest": request.oddest,
            "waiting": [self._place[item] for item in request.waiting if item in self._place],
        }

    def history(self) -> list[dict[str, Any]]:
        """Return every answer, the last one first: what was said, by whom and when, and about which items."""
        session = self.review.session
        said = session.file.said
        found = []
        for event in reversed(session.events):
            items = [at for item in session.positions(event.answered) if (at := self._place.get(item)) is not None]
            label: str | None = event.about.get("label")
            if label is not None and event.kind == "named":
                label = said.name_now(event, label)
            found.append(
                {
                    "event": event.event,
                    "time": event.time,
                    "person": event.person,
                    "kind": event.kind,
                    "label": label,
                    "into": event.about.get("into"),
                    "items": items,
                }
            )
        return found

    def why(self, at: int) -> dict[str, Any]:
        """Return why the item at a place on the page has its label, and the examples near it."""
        answer = self.review.answer
        found = explanations(answer, {self._items[at]: at}).get(at)
        if found is None:
            return {"why": [], "near": []}
        said, numbers = found
        return {"why": numbers, "near": [self._near(answer, *one) for one in said.nearest]}

    def _near(self, answer: Answer, position: int, label: Any, distance: float) -> list[Any]:
        shown = about_of(answer).shown
        if shown is None or position >= len(shown.names):  # an item of the batch that a person labelled
            return [str(label), round(distance, 3), None, ""]
        if isinstance(shown.contents, tuple):
            content: str | None = shortened(shown.contents[position])
        else:
            (content,) = self.media.ids(shown.contents, [position], SMALL)
        return [str(label), round(distance, 3), content, shown.names[position]]


class Routes:
    """What answers requests that the guard lets through.

    Parameters
    ----------
    page : Page
        What is shown.
    finish : callable
        Writes what the review found.
    on_finished : callable
        Called once that is done.
    """

    def __init__(self, page: Page, finish: Finish, on_finished: Callable[[Finished], None]) -> None:
        self.page = page
        self.finish = finish
        self.on_finished = on_finished
        self._one_at_a_time = asyncio.Lock()

    @property
    def review(self) -> BatchReview:
        """The batch under review."""
        return self.page.review

    def all(self) -> list[Route]:
        """Return all routes."""
        return [
            Route("/", self.index),
            Route("/review.js", self.program),
            Route("/review.css", self.style),
            Route("/number", self.number),
            Route("/state", self.state),
            Route("/why/{at:int}", self.why),
            Route("/history", self.history),
            Route("/media/{name}", self.media),
            Route("/full/{name}", self.full),
            Route("/decide", self.decide, methods=["POST"]),
            Route("/similar", self.similar, methods=["POST"]),
            Route("/merge", self.merge, methods=["POST"]),
            Route("/remove", self.remove, methods=["POST"]),
            Route("/undo", self.undo, methods=["POST"]),
            Route("/take-back", self.take_back, methods=["POST"]),
            Route("/finish", self.end, methods=["POST"]),
        ]

    async def index(self, request: Request) -> Response:
        """Return the page without its items."""
        return HTMLResponse(await run_in_threadpool(self.page.html))

    async def program(self, request: Request) -> Response:
        """Return the program of the page."""
        return Response(page_program(REVIEW), media_type="text/javascript")

    async def style(self, request: Request) -> Response:
        """Return how the page looks."""
        return Response(page_style(REVIEW), media_type="text/css")

    async def number(self, request: Request) -> Response:
        """Return the number of the newest state: a page that shows another one is behind."""

        def work() -> dict[str, Any]:
            self.page.asked_at = time.monotonic()
            if not self.page.is_open:
                return {"number": -1}
            self.review.refresh()
            return {"number": self.review.number}

        return await self._alone(work)

    async def state(self, request: Request) -> Response:
        """Return all that the page shows, also what was said in another process."""

        def work() -> dict[str, Any]:
            self.page.asked_at = time.monotonic()
            if not self.page.is_open:
                return {"opening": self.page.begun()}
            self.review.refresh()
            return self.page.whole()

        return await self._alone(work)

    async def why(self, request: Request) -> Response:
        """Return why an item has its label."""
        at = int(request.path_params["at"])
        if at >= len(self.review.on_page):
            raise HTTPException(404)
        return await self._alone(lambda: self.page.why(at))

    async def media(self, request: Request) -> Response:
        """Return a small picture."""
        return await self._picture(request, full=False)

    async def full(self, request: Request) -> Response:
        """Return a picture that fills a screen."""
        return await self._picture(request, full=True)

    async def _picture(self, request: Request, *, full: bool) -> Response:
        name = request.path_params["name"]
        found = await run_in_threadpool(lambda: self.page.media.picture(name, full=full))
        if found is None:
            raise HTTPException(404, "this picture cannot be read: its file is gone, or is no longer an image")
        return Response(found, media_type="image/jpeg")

    async def decide(self, request: Request) -> Response:
        """Keep a decision, and return the labels that follow."""
        body = await _body(request)
        on_page = self.review.on_page
        items = on_page[_places(body, "items", len(on_page))].tolist()
        wrong = on_page[_places(body, "wrong", len(on_page))].tolist()
        number = _whole(body, "number")
        label = body.get("label")
        if type(label) not in TEXT:
            raise HTTPException(422, "label must be a text or null")
        return await self._says(lambda: self.review.decide(number, items, str(body.get("said")), label, wrong))

    async def similar(self, request: Request) -> Response:
        """Return the names said before that look like one that is about to be said."""
        name = _text(await _body(request), "name")
        return await self._alone(lambda: {"similar": similar_names(name, self.review.session.names)})

    async def merge(self, request: Request) -> Response:
        """Keep that two names are one class, and return the labels that follow."""
        body = await _body(request)
        number = _whole(body, "number")
        label = _text(body, "label")
        into = _text(body, "into")
        return await self._says(lambda: self.review.merge(number, label, into), renamed={label: into})

    async def remove(self, request: Request) -> Response:
        """Keep that a class is none, and return the labels that follow."""
        body = await _body(request)
        number = _whole(body, "number")
        label = _text(body, "label")
        return await self._says(lambda: self.review.remove(number, label))

    async def history(self, request: Request) -> Response:
        """Return every answer, the last one first."""
        return await self._alone(lambda: {"history": self.page.history()})

    async def take_back(self, request: Request) -> Response:
        """Take one answer back, whichever it is, and return the labels that follow."""
        body = await _body(request)
        number = _whole(body, "number")
        event = _text(body, "event")
        return await self._says(lambda: self.review.take_back(number, event), undoes=True)

    async def undo(self, request: Request) -> Response:
        """Take the last step back, and return the labels from before."""
        number = _whole(await _body(request), "number")
        return await self._says(lambda: self.review.undo(number), undoes=True)

    async def end(self, request: Request) -> Response:
        """Write the labels, and end the review."""
        body = await _body(request)
        number = _whole(body, "number")
        wanted = Wanted(*(body.get(name) is True for name in Wanted._fields))
        found = list[Finished]()

        def work() -> dict[str, Any]:
            self.review.refuse_behind(number)
            found.append(self.finish(self.review, wanted))
            return found[0]._asdict()

        answer = await self._alone(work)
        self.on_finished(found[0])
        return answer

    async def _says(
        self, say: Callable[[], Sequence[int]], *, renamed: Mapping[str, str] | None = None, undoes: bool = False
    ) -> Response:
        """Keep what a person says, and return the labels that follow; `say` returns the items that it is about."""

        def work() -> dict[str, Any]:
            before = self.review.answer
            items = say()
            changed = self.review.changed_since(before, items, renamed)
            return self.page.state(changed, undone=items if undoes else None)

        return await self._alone(work)

    async def _alone(self, work: Callable[[], dict[str, Any]]) -> Response:
        """Do one piece of work at a time, on a thread."""

        def undisturbed() -> dict[str, Any]:
            with self.page.lock:
                return work()

        async with self._one_at_a_time:
            data = await run_in_threadpool(undisturbed)
        return Response(embedded(data).encode("utf-8", "backslashreplace"), media_type="application/json")


def make_app(
    routes: Routes,
    hosts: frozenset[str],
    token: str,
    on_known: Callable[[tuple[str, int]], None] = lambda client: None,
) -> Guard:
    """Return the application, behind its guard."""
    handlers: Any = {HandfulError: _said, HTTPException: _failed, ClientDisconnect: _failed}
    return Guard(Starlette(routes=routes.all(), exception_handlers=handlers), hosts, token, on_known=on_known)


async def _said(request: Request, error: Exception) -> Response:
    """Turn an error of handful into its sentence."""
    status = 409 if isinstance(error, BehindError) else 507 if isinstance(error, StorageError) else 422
    return JSONResponse({"error": str(error)}, status)


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code)
    return JSONResponse({"error": "the request is too long, or did not arrive"}, 413)


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "the body must be JSON")
    try:
        async with asyncio.timeout(SECONDS):
            body = parse_json((await request.body()).decode())
    except TimeoutError:
        raise HTTPException(408, "the body did not arrive in time") from None
    except ValueError as error:
        raise HTTPException(422, f"the body must be JSON: {error}") from None
    if not isinstance(body, dict):
        raise HTTPException(422, "the body must be an object")
    return body


def _whole(body: dict[str, Any], name: str) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise HTTPException(422, f"{name} must be a whole number")
    return value


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise HTTPException(422, f"{name} must be a text")
    return value


def _places(body: dict[str, Any], name: str, most: int) -> list[int]:
    places = body.get(name, [])
    if not isinstance(places, list):
        raise HTTPException(422, f"{name} must be a list of places on the page")
    if any(isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < most for at in places):
        raise HTTPException(422, f"{name} must be places on the page, from 0 to {most - 1}")
    return places
