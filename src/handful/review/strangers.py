"""Connections that have not shown the token: they are closed after a few seconds, and only a few are open at a time.

A connection is a stranger until the guard lets one of its requests through. A stranger that says nothing, or whose
request never ends, is closed after `SECONDS`. When more than `MOST` are open, the oldest is closed at once, so a flood
of them never keeps the person out: a browser shows the token within milliseconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 5.0
MOST = 32

# Address and port of the other end.
Client = tuple[str, int]


class Strangers:
    """Connections that have not shown the token, the oldest first."""

    def __init__(self) -> None:
        self._open: dict[Client, asyncio.Transport] = {}

    def came(self, client: Client, transport: asyncio.Transport) -> None:
        """Note a new connection; if there are too many, close the oldest."""
        self._open[client] = transport
        if len(self._open) > MOST:
            oldest = next(iter(self._open))
            self.end(oldest, self._open[oldest])

    def end(self, client: Client, transport: asyncio.Transport) -> None:
        """Close a connection, if it is still a stranger."""
        if self._open.get(client) is transport:
            del self._open[client]
            transport.close()

    def forget(self, client: Client | None) -> None:
        """Note that a connection has shown the token, or has ended."""
        if client is not None:
            self._open.pop(client, None)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return the protocol that a server speaks so that its connections are noted here."""
        strangers = self

        class Watched(H11Protocol):
            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                if self.client is None:
                    transport.close()
                    return
                strangers.came(self.client, transport)
                self.loop.call_later(SECONDS, strangers.end, self.client, transport)

            def connection_lost(self, exc: Exception | None) -> None:
                strangers.forget(self.client)
                super().connection_lost(exc)

        return Watched
