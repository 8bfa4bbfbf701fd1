"""An object store on this machine: moto's S3 server, and the settings with which processes find it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from handful.machine.folders import file_system, opened_system

BUCKET = "s3://handful-tests"
# The last of so many requests fails.
ONE_IN = 10


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Start the server with an empty bucket; set its environment variables here, and yield them."""
    pytest.importorskip("s3fs")
    pytest.importorskip("flask")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        try:
            host, port = server.get_host_and_port()
            settings = {
                "AWS_ENDPOINT_URL": f"http://{host}:{port}",
                "AWS_ACCESS_KEY_ID": "nobody",
                "AWS_SECRET_ACCESS_KEY": "nothing",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
            for name, value in settings.items():
                patch.setenv(name, value)
            opened_system.cache_clear()  # those of an earlier server
            with file_system(BUCKET) as (system, path):
                system.mkdir(path)
            yield settings
        finally:
            server.stop()


def upload(folder: Path, url: str) -> str:
    """Copy the files of a folder to a URL."""
    with file_system(url) as (system, path):
        for file in folder.iterdir():
            system.put_file(str(file), f"{path}/{file.name}")
    return url


class _Flaky(BaseHTTPRequestHandler):
    """Passes requests on to a server; one in ten is answered with an error, or not at all."""

    protocol_version = "HTTP/1.1"
    server: Any

    def _passed_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        number = next(self.server.numbers)
        if number % ONE_IN == ONE_IN - 1:
            self.close_connection = True
            if number // ONE_IN % 2:
                self.send_response(500)
                self.send_header("Content-Length", "0")
                self.end_headers()
            return
        connection = HTTPConnection(*self.server.behind, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("expect", "connection")}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response_only(answer.status, answer.reason)
        length = answer.headers.get("Content-Length", str(len(content))) if self.command == "HEAD" else len(content)
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _passed_on

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def flaky_s3_server() -> Iterator[Any]:
    """Start an S3 server behind a proxy that fails one request in ten; yield what counts the requests."""
    with s3_server() as settings, pytest.MonkeyPatch.context() as patch:
        address = urlsplit(settings["AWS_ENDPOINT_URL"])
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), _Flaky)
        vars(proxy).update(numbers=itertools.count(), behind=(address.hostname, address.port))
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.server_port}")
        opened_system.cache_clear()
        try:
            yield proxy
        finally:
            opened_system.cache_clear()
            proxy.shutdown()
            proxy.server_close()
