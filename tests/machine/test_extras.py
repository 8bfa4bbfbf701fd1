import json
import re
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

from handful.errors import MissingExtraError
from handful.machine import extras
from handful.machine.extras import import_extra, install_command
from handful.workers.cluster import connected


def test_a_missing_package_names_the_extra_to_install(monkeypatch):
    with pytest.raises(MissingExtraError, match=r"'no_such_package'.*run: pip install .*\[images\]\""):
        import_extra("no_such_package.inner", "images")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"\[ray\]"), connected():
        pass


@pytest.mark.parametrize(("system", "small"), [("linux", True), ("darwin", False), ("win32", False)])
def test_the_small_pytorch_is_named_where_the_usual_one_is_large(system, small, monkeypatch):
    monkeypatch.setattr(extras.sys, "platform", system)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"'torch'.* run: pip install --editable \"\.\[torch\]\"") as refused:
        import_extra("torch", "torch")
    assert ("pip install torch --index-url https://download.pytorch.org/whl/cpu; then" in str(refused.value)) == small
    with pytest.raises(MissingExtraError) as refused:
        import_extra("no_such_package", "torch")
    assert "graphics" not in str(refused.value)


def test_a_repository_is_installed_again_from_where_it_is():
    assert install_command("torch") == 'pip install --editable ".[torch]"  # in the folder of the repository'
    assert (extras.ROOT / "src" / "handful").is_dir()


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        (
            {"url": "file:///home/ann%20lee/handful", "dir_info": {}},
            'pip install ".[torch]"  # in the folder of the repository',
        ),
        (
            {"url": "file:///C:/ann%20lee/handful-0.3.0-py3-none-any.whl", "archive_info": {}},
            'pip install "./handful-0.3.0-py3-none-any.whl[torch]"  # in the folder of that file',
        ),
        (
            {"url": "https://example.org/h", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            'pip install "handful[torch] @ git+https://example.org/h"',
        ),
        (
            {"url": "https://example.org/h.whl", "archive_info": {}},
            'pip install "handful[torch] @ https://example.org/h.whl"',
        ),
        (None, 'pip install "handful[torch]"'),
    ],
)
def test_an_extra_comes_from_where_handful_came_from(noted, command, monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "ROOT", tmp_path)
    found = SimpleNamespace(read_text=lambda name: noted and json.dumps(noted))
    monkeypatch.setattr(metadata, "distribution", lambda name: found)
    assert install_command("torch") == command
    assert "ann" not in command


def test_a_copy_that_was_never_installed_still_says_something(monkeypatch, tmp_path):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "ROOT", tmp_path)
    monkeypatch.setattr(metadata, "distribution", missing)
    assert install_command("torch") == 'pip install "handful[torch]"'


def test_no_other_file_writes_the_command_itself():
    written = re.compile(r'pip install "?handful|handful\[\w')
    files = list((extras.ROOT / "src").rglob("*.py"))
    assert len(files) > 100
    assert [path.name for path in files if written.search(path.read_text(encoding="utf-8"))] == []
