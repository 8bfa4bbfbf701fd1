import sys

import pytest

from handful.errors import MissingExtraError
from handful.machine.executors import connected
from handful.machine.extras import import_extra


def test_a_missing_package_names_the_extra_to_install(monkeypatch):
    with pytest.raises(MissingExtraError, match=r"'no_such_package'.*pip install 'handful\[images\]'"):
        import_extra("no_such_package.inner", "images")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"handful\[ray\]"), connected():
        pass
