"""Start the server of a review on the loopback address, open its page, and wait until it is finished or interrupted."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import tempfile
import threading
import warnings
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import NamedTuple

import uvicorn

from handful.errors import HandfulWarning, OptionError
from handful.machine.outputs import refusal
from handful.review.addresses import KeptAddress, keep_address, kept_address
from handful.review.guard import LOOPBACK, derived
from handful.review.server import Finish, Finished, Page, Routes, make_app
from handful.review.strangers import Strangers
from handful.review.watching import Watching

# Seconds in which a batch that is quick, or wrong, is opened before its address is told. [s; convention]
QUICK = 1.0
# Seconds for the last answer to reach the page before the server ends.
LAST_ANSWER = 0.5


def _warned(note: str) -> None:
    """Warn of what a person should know."""
    warnings.warn(HandfulWarning(note), stacklevel=3)


class Address(NamedTuple):
    """Where a review is served: a name or address of this machine, a port (0 for any that is free), and who opens it.

    `host` is the loopback address unless the caller wants others to reach it. `opens` says whether a browser is opened,
    `announce` is called with the address and its token, and `tell` with what a person should know.
    """

    host: str = "127.0.0.1"
    port: int = 0
    opens: bool = True
    announce: Callable[[str], None] = lambda address: None
    tell: Callable[[str], None] = _warned


def serve(
    page: Page,
    finish: Finish,
    where: Address = Address(),  # noqa: B008 (a constant)
    *,
    catalogue: Path | None = None,
    watching: Watching | None = None,
) -> Finished | None:
    """Serve a review until it is finished; None if it was interrupted, in which case the same command goes on.

    Parameters
    ----------
    page, finish
        What is shown, and what writes the results.
    where
        Where it is served.
    catalogue
        The file of the catalogue, whose address stays the same.
    watching
        What brings the batch while the page is open; the page has it already if this is left out.
    """
    kept = kept_address(catalogue)
    try:
        listener, hosts = _listening(where.host, where.port or kept.port)
    except OptionError:
        if where.port or not kept.port:
            raise
        listener, hosts = _listening(where.host, 0)  # another review of the catalogue is open, or another program
    port = listener.getsockname()[1]
    token = kept.token
    page.proof = derived(token, "proof")
    if not kept.port:
        keep_address(catalogue, KeptAddress(port, token))
    ended = list[Finished]()
    done = threading.Event()

    def on_finished(found: Finished) -> None:
        ended.append(found)
        done.set()

    strangers = Strangers()
    app = make_app(Routes(page, finish, on_finished), hosts(port), token, strangers.forget)
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=strangers.protocol(),
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    # A notebook has a loop of its own on the main thread.
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    name = f"[{where.host}]" if ":" in where.host else where.host
    address = f"http://{name}:{port}/?token={token}"
    if watching is None:
        for note in page.review.notes:
            where.tell(note)
    try:
        if watching is not None:
            watching.start(QUICK, where.tell)
        where.announce(address)
        _wait(thread, done, where, address, watching)
    except KeyboardInterrupt:
        pass
    finally:
        if watching is not None:
            watching.stop()
        with suppress(KeyboardInterrupt):  # it is finished
            threading.Event().wait(LAST_ANSWER if ended else 0)
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
    return ended[0] if ended else None


def _wait(
    thread: threading.Thread, done: threading.Event, where: Address, address: str, watching: Watching | None
) -> None:
    """Open the page, and wait until the review is finished."""
    with tempfile.TemporaryDirectory(prefix="handful-") as folder:
        if where.opens:
            webbrowser.open(_redirect(Path(folder), address).as_uri())
        while thread.is_alive() and not done.wait(0.2):
            if watching is not None:
                watching.check(where.tell)


def _listening(host: str, port: int) -> tuple[socket.socket, Callable[[int], frozenset[str]]]:
    """Return a socket, and what requests may call this server, by its port."""
    everybody = OptionError(
        f"{host!r} means all addresses of this machine; name the one at which others reach it: --address ADDRESS"
    )
    if host in ("", "*"):
        raise everybody
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OptionError(f"there is no address {host!r} ({error}); check --address") from error
    family, kind, protocol, _, place = found[0]
    address = ipaddress.ip_address(str(place[0]).partition("%")[0])
    # `0`, `0x0`, `::0` and others, and names that stand for them.
    if address.is_unspecified or getattr(address, "ipv4_mapped", None) == ipaddress.IPv4Address(0):
        raise everybody
    listener = socket.socket(family, kind, protocol)
    try:
        # On Windows, SO_REUSEADDR would let two programs listen at one port.
        only = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        listener.setsockopt(socket.SOL_SOCKET, only, 1)
        listener.bind(place)
        listener.listen(128)
    except OSError as error:
        listener.close()
        taken = "another program has this port; leave it out of --address, or name another"
        reason = taken if error.errno == errno.EADDRINUSE else refusal(error)
        raise OptionError(f"no server can start at {host}, port {port}: {reason}") from error
    named = f"[{host}]" if ":" in host else host.lower()
    names = {named, *LOOPBACK} if address.is_loopback else {named}
    return listener, lambda port: frozenset(f"{name}:{port}" for name in names)


def _redirect(folder: Path, address: str) -> Path:
    """Write a page that leads to the address: arguments of a browser can be seen by other users, this file cannot."""
    page = folder / "open.html"
    handle = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(f"<!doctype html><meta http-equiv='refresh' content='0; url={escape(address)}'>")
    return page
