"""Where a review is served: on the loopback address, unless another one is named."""

import os
import stat

import pytest

from handful.errors import OptionError
from handful.review.serve import _listening, _redirect


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "*"])
def test_a_server_for_everybody_must_be_named(host):
    with pytest.raises(OptionError, match="--host ADDRESS"):
        _listening(host, 0)


def test_hosts_of_the_loopback_address_are_its_names():
    listener, hosts = _listening("127.0.0.1", 0)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        assert hosts(80) == {"127.0.0.1:80", "localhost:80", "[::1]:80"}
        with pytest.raises(OptionError, match="no server can start"):
            _listening("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(OptionError, match="check --host"):
        _listening("no.such.host.invalid", 0)


def test_the_token_is_in_a_file_that_only_you_can_read(tmp_path):
    page = _redirect(tmp_path, "http://127.0.0.1:80/?token=a&b='c'")
    assert stat.S_IMODE(os.stat(page).st_mode) == 0o600
    assert "url=http://127.0.0.1:80/?token=a&amp;b=&#x27;c&#x27;'" in page.read_text()
