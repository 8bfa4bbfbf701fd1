"""Only you get in: what every request to a review must show before any route sees it.

- The Host is the address that the server was started on: under DNS rebinding a foreign page has another one.
- The Origin, which browsers send with every POST, is the same address.
- The token, 192 random bits, comes once in the address that the command prints and opens. The answer leads to the path
  of this review, `/RANDOM/`, with a cookie for that path alone. The cookie is another secret than the token, no script
  can read it, and no other site can send it. Browsers send cookies to all ports of a host; no other server has this
  path, so none is sent the cookie. The token of a catalogue stays the same, and path and cookie follow from it, so that
  an open window goes on after a restart.
- A window whose server has ended asks at `/back`, without its cookie, whether the server is there again. Only who has
  the token can answer what it asks: the program of somebody else, who took the port meanwhile, learns nothing.
- Bodies are small, and requests are few: beyond that the answer is 413 or 429, and nothing is kept.

No answer allows another origin anything, and the page may load nothing but the program, pictures and data of this
server.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_BYTES = 24
COOKIE = "handful-review"
# Bytes of a body: an answer about 20,000 items with their labels.
MOST_BYTES = 2**21
# Requests that may come at once, and per second after that.
AT_ONCE = 600.0
PER_SECOND = 200.0
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# What a person reads who opens an address of an earlier start.
OLD_ADDRESS = (
    "This address is not, or no longer, that of an open review. Open the one that the command printed last: it has the "
    "token. If the command has ended, run it again; everything that you said is kept."
)


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def derived(token: str, what: str) -> str:
    """Return another secret that follows from a token, and does not tell it."""
    return base64.urlsafe_b64encode(hmac.digest(token.encode(), what.encode(), hashlib.sha256)).decode().rstrip("=")


class Guard:
    """Let requests through to an application that show what they must.

    Parameters
    ----------
    app : ASGI application
        What answers requests that are let through.
    hosts : set of str
        Values of the header Host, each with its port.
    token : str
        The token.
    on_known : callable
        Called with address and port of a client that has shown the token or the cookie.
    clock : callable
        Seconds that have passed.

    Attributes
    ----------
    path, cookie : str
        The path below which the application is, and the value of the cookie for it.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str],
        token: str,
        *,
        on_known: Callable[[tuple[str, int]], None] = lambda client: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.token = token
        self.clock = clock
        self.on_known = on_known
        self.path = f"/{derived(token, 'path')}/"
        self.cookie = derived(token, "cookie")
        self._proof = derived(token, "proof")
        self._left = AT_ONCE
        self._since = clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refusal(scope)
            if refused is None:
                inside = {**scope, "path": f"/{scope['path'].removeprefix(self.path)}", "root_path": ""}
                await self.app(inside, _bounded(receive), _with_headers(send))
            else:
                await refused(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> Any:
        """Return the answer to a request that is not let through; None if it is."""
        headers = dict[str, list[str]]()
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        origin = headers.get("origin", [])
        wants_page = scope["method"] == "GET" and any("text/html" in one for one in headers.get("accept", []))
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return _refused(403, "This server answers only at the address it was started on.", wants_page)
        writes = scope["method"] not in ("GET", "HEAD")
        if (writes and len(origin) != 1) or any(one.lower() != f"http://{host[0].lower()}" for one in origin):
            return _refused(403, "Requests of other pages are refused.", wants_page)
        if any(one not in ("same-origin", "none") for one in headers.get("sec-fetch-site", [])) and writes:
            return _refused(403, "Requests of other pages are refused.", wants_page)
        if scope["path"] == "/favicon.ico" and not writes:  # browsers ask for it by themselves
            return Response(status_code=204)
        if scope["path"] == "/back" and not writes:
            return self._back(scope, host[0].lower())
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if scope["path"] == "/" and not writes and len(asked) == 1 and _equal(asked[0], self.token):
            self._known(scope)
            return self._welcome()
        cookie = _cookie(headers.get("cookie", []))
        if not scope["path"].startswith(self.path) or not _equal(cookie, self.cookie):
            return _refused(401, OLD_ADDRESS, wants_page)
        self._known(scope)
        length = headers.get("content-length", ["0"])[0]
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return _refused(413, f"A request may have {MOST_BYTES:,} bytes.", wants_page)
        if not self._has_room():
            return _refused(429, "Too many requests; wait a second.", wants_page, {"Retry-After": "1"})
        return None

    def _known(self, scope: Scope) -> None:
        if scope.get("client") is not None:
            self.on_known(tuple(scope["client"]))

    def _back(self, scope: Scope, host: str) -> Response:
        """Prove to a window that this is the server of its review: with a secret that both have, about what it asks."""
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("nonce", [""])[0]
        proof = hmac.digest(self._proof.encode(), f"{host} {asked}".encode(), hashlib.sha256)
        return JSONResponse({"proof": proof.hex()})

    def _welcome(self) -> Any:
        """Turn the token in the address into a cookie, and take it out of the address."""
        answer = RedirectResponse(self.path, 303)
        answer.set_cookie(COOKIE, self.cookie, httponly=True, samesite="strict", path=self.path)
        return answer

    def _has_room(self) -> bool:
        now = self.clock()
        self._left = min(AT_ONCE, self._left + (now - self._since) * PER_SECOND)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _equal(value: str, secret: str) -> bool:
    return hmac.compare_digest(value.encode(), secret.encode())


def _cookie(headers: list[str]) -> str:
    try:
        found = SimpleCookie("; ".join(headers)).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _refused(status: int, error: str, as_page: bool, headers: dict[str, str] | None = None) -> Response:
    """Return why a request was refused: a page for a person at a browser, JSON for a program."""
    if as_page:
        page = (
            f"<!doctype html><html lang=en><title>handful review</title><h1>handful review</h1><p>{escape(error)}</p>"
        )
        return HTMLResponse(page, status, headers)
    return JSONResponse({"error": error}, status, headers)


def _bounded(receive: Receive) -> Receive:
    """Stop reading a body that is longer than its header says or than it may be."""
    left = MOST_BYTES

    async def bounded() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return bounded


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sent
