"""The address of a catalogue: the same after a restart, read by its owner alone, and nothing that others wrote."""

import json
import os
import stat

import pytest

from handful.review.addresses import KeptAddress, keep_address, kept_address, state_folder
from handful.review.guard import Guard, derived, new_token

TOKEN = new_token()


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "birds.handful"


def kept_file():
    (file,) = state_folder().iterdir()
    return file


def test_an_address_is_kept_for_each_catalogue(catalogue):
    new = kept_address(catalogue)
    assert (new.port, len(new.token)) == (0, len(TOKEN))
    assert kept_address(catalogue) != new  # nothing is kept yet
    keep_address(catalogue, KeptAddress(8123, TOKEN))
    assert kept_address(catalogue) == KeptAddress(8123, TOKEN)
    assert kept_address(catalogue.with_name("fish.handful")).port == 0
    assert kept_address(None).port == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_only_its_owner_reads_it_and_one_that_others_could_read_does_not_count(catalogue):
    keep_address(catalogue, KeptAddress(8123, TOKEN))
    file = kept_file()
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    file.chmod(0o644)
    assert kept_address(catalogue).port == 0
    keep_address(catalogue, KeptAddress(8124, TOKEN))
    assert kept_address(catalogue) == KeptAddress(8124, TOKEN)


@pytest.mark.parametrize(
    "said",
    ["", "[]", "{}", {"port": 0, "token": TOKEN}, {"port": True, "token": TOKEN}, {"port": 8123, "token": "short"}],
)
def test_what_is_no_address_does_not_count(catalogue, said):
    keep_address(catalogue, KeptAddress(8123, TOKEN))
    kept_file().write_text(said if isinstance(said, str) else json.dumps(said))
    assert kept_address(catalogue).port == 0


def test_secrets_that_follow_from_a_token_differ_and_do_not_tell_it():
    guards = [Guard(None, frozenset(), token) for token in (TOKEN, TOKEN, new_token())]
    assert guards[0].path == guards[1].path != guards[2].path
    assert guards[0].cookie == guards[1].cookie != guards[2].cookie
    found = {derived(TOKEN, what) for what in ("path", "cookie", "proof")}
    assert len(found) == 3
    assert TOKEN not in "".join(found)
