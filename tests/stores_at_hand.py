"""An object store on this machine: moto's S3 server, and the settings with which processes find it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handful.machine.folders import file_system, opened_system

BUCKET = "s3://handful-tests"


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
