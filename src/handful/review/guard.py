"""Only you get in: what every request to a review must show before any route sees it.

- The Host is the address that the server was started on: under DNS rebinding a foreign page has another one.
- The Origin, which browsers send with every POST, is the same address.
- The token, 192 random bits, comes once in the address that the command prints and opens, and then as a cookie that no
  script can read and no other site can send.
- Bodies are small, and requests are few: beyond that the answer is 413 or 429, and nothing is kept.

No answer allows another origin anything, and the page may load nothing but the program, pictures and data of this
server.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_BYTES = 24
# Bytes of a body: an answer about 20,000 items with their labels.
MOST_BYTES = 2**21
# Requests that may come at once, and per second after that.
AT_ONCE, PER_SECOND = 600.0, 200.0
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


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(TOKEN_BYTES)


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
    clock : callable
        Seconds that have passed.
    """

    def __init__(
        self, app: ASGIApp, hosts: frozenset[str], token: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.app, self.hosts, self.token, self.clock = app, hosts, token, clock
        self._left, self._since = AT_ONCE, clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refusal(scope)
            if refused is None:
                await self.app(scope, _bounded(receive), _with_headers(send))
            else:
                await refused(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> Any:
        """Return the answer to a request that is not let through; None if it is."""
        headers = dict[str, list[str]]()
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host, origin = headers.get("host", []), headers.get("origin", [])
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return _refused(403, "this server answers only at the address it was started on")
        writes = scope["method"] not in ("GET", "HEAD")
        if (writes and len(origin) != 1) or any(one.lower() != f"http://{host[0].lower()}" for one in origin):
            return _refused(403, "requests of other pages are refused")
        if any(one not in ("same-origin", "none") for one in headers.get("sec-fetch-site", [])) and writes:
            return _refused(403, "requests of other pages are refused")
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if scope["path"] == "/" and not writes and len(asked) == 1 and self._is_token(asked[0]):
            return self._welcome(host[0])
        if not self._is_token(_cookie(headers.get("cookie", []), cookie_name(host[0]))):
            return _refused(401, "open the address that the command printed; it has the token")
        length = headers.get("content-length", ["0"])[0]
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return _refused(413, f"a request may have {MOST_BYTES:,} bytes")
        if not self._has_room():
            return _refused(429, "too many requests; wait a second", {"Retry-After": "1"})
        return None

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode(), self.token.encode())

    def _welcome(self, host: str) -> Any:
        """Turn the token in the address into a cookie, and take it out of the address."""
        answer = RedirectResponse("/", 303)
        answer.set_cookie(cookie_name(host), self.token, httponly=True, samesite="strict", path="/")
        return answer

    def _has_room(self) -> bool:
        now = self.clock()
        self._left, self._since = min(AT_ONCE, self._left + (now - self._since) * PER_SECOND), now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def cookie_name(host: str) -> str:
    """Return the name of the cookie: browsers send a cookie to all ports of a host."""
    return f"handful-review-{host.rpartition(':')[2]}"


def _cookie(headers: list[str], name: str) -> str:
    try:
        found = SimpleCookie("; ".join(headers)).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _refused(status: int, error: str, headers: dict[str, str] | None = None) -> JSONResponse:
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
