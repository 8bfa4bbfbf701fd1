"""Where a review is served: on the loopback address, unless another one is named."""

import os
import socket
import stat
import threading
import time
from contextlib import ExitStack

import pytest

from handful.errors import OptionError
from handful.review import strangers
from handful.review.serve import Address, _listening, _redirect, serve
from handful.review.server import Finished, Page
from tests.review.reviews import Visitor, problem, under_review


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "*", "0", "00", "0x0", "0.0", "0.0.0", "::0", "0::", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"],
)
def test_a_server_for_everybody_must_be_named(host):
    with pytest.raises(OptionError, match="--address ADDRESS"):
        _listening(host, 0)


def test_hosts_of_the_loopback_address_are_its_names():
    listener, hosts = _listening("127.0.0.1", 0)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        assert hosts(80) == {"127.0.0.1:80", "localhost:80", "[::1]:80"}
        with pytest.raises(OptionError, match=r"no server can start.*another program has this port"):
            _listening("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(OptionError, match="check --address"):
        _listening("no.such.host.invalid", 0)


def test_the_token_is_in_a_file_that_only_you_can_read(tmp_path):
    page = _redirect(tmp_path, "http://127.0.0.1:80/?token=a&b='c'")
    assert stat.S_IMODE(os.stat(page).st_mode) == 0o600
    assert "url=http://127.0.0.1:80/?token=a&amp;b=&#x27;c&#x27;'" in page.read_text()


@pytest.fixture
def served(tmp_path):
    """Serve a review on a thread; yield its address, and finish it."""
    announced, addresses = threading.Event(), []

    def announce(address):
        addresses.append(address)
        announced.set()

    with under_review(tmp_path / "review", problem()[0]) as review:
        where = Address(opens=False, announce=announce)
        thread = threading.Thread(
            target=lambda: serve(Page(review, "today"), lambda _, wanted: Finished([]), where), daemon=True
        )
        thread.start()
        assert announced.wait(20)
        yield addresses[0]
        visitor = Visitor(addresses[0])
        visitor.post("finish", number=visitor.get("number")["number"])
        thread.join(20)
        assert not thread.is_alive()


def test_connections_without_the_token_are_closed_and_keep_nobody_out(served, monkeypatch):
    monkeypatch.setattr(strangers, "SECONDS", 1.0)
    visitor = Visitor(served)
    port = int(served.partition("/?")[0].rpartition(":")[2])
    with ExitStack() as opened:
        connections = []
        for begun in STRANGERS:
            for _ in range(60):
                connections.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)))
                connections[-1].sendall(begun)
        begin = time.monotonic()
        assert visitor.get("number") == {"number": 1}
        assert Visitor(served).get("number") == {"number": 1}  # a new connection gets in as well
        assert time.monotonic() - begin < 10
        for one in connections:
            assert ended(one)


# What strangers send: nothing, a header without its end, a body without its end.
STRANGERS = (
    b"",
    b"GET / HTTP/1.1\r\nX: ",
    b"POST /decide HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
)


def ended(connection):
    """Read until the server has closed the connection."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True
