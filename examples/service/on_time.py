"""The head of a request must come in time; uvicorn alone waits for it without end. Use: --http on_time:OnTime."""

from os import environ
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

SECONDS = float(environ.get("HANDFUL_SECONDS", 5))  # for the head of a request


class OnTime(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Close connections on which no request has begun since the last look, and none is being answered."""

    def connection_made(self, transport: Any) -> None:
        """Look at the connection for the first time when the head of a request should be there."""
        super().connection_made(transport)
        self.loop.call_later(SECONDS, self.look, self.cycle)

    def look(self, before: Any) -> None:
        """Look again and again; a cycle is a request whose head is complete, and its answer."""
        if self.cycle is before and (before is None or before.response_complete):
            self.transport.close()
        if not self.transport.is_closing():
            self.loop.call_later(SECONDS, self.look, self.cycle)
