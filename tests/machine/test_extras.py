import pytest

from handful.errors import MissingExtraError
from handful.machine.extras import import_extra


def test_a_missing_one_names_the_extra_to_install():
    with pytest.raises(MissingExtraError, match=r"'no_such_package'.*pip install 'handful\[images\]'"):
        import_extra("no_such_package.inner", "images")
