"""What other packages add by entry points: methods for `classify`, one by one or several in a mapping."""

from importlib.metadata import EntryPoint

import pytest

from handful import extensions
from handful.errors import MissingExtraError, OptionError


def majority():
    return "an estimator that says the most frequent class"


SEVERAL = {"median": lambda: "median", "mode": lambda: "mode"}


@pytest.fixture
def offered(monkeypatch):
    """Entry points of the group of methods: a function, a mapping of functions."""
    values = {"majority": "majority", "of_theirs": "SEVERAL"}
    points = [EntryPoint(name, f"{__name__}:{value}", extensions.METHODS) for name, value in values.items()]
    monkeypatch.setattr(extensions, "points_of", lambda group: points if group == extensions.METHODS else [])
    return points


def test_a_method_is_a_function_or_one_of_a_mapping(offered):
    assert extensions.method_classifier("majority") == majority()
    assert [extensions.method_classifier(name) for name in SEVERAL] == ["median", "mode"]


def test_a_method_that_nobody_offers_is_refused_with_those_that_are_offered(offered):
    with pytest.raises(OptionError, match=r"no method is called 'mod' \(did you mean 'mode'\?\); choose from majority"):
        extensions.method_classifier("mod")


def test_what_a_package_lacks_is_said(offered):
    offered.insert(0, EntryPoint("x", "a_package_that_is_not_here:x", extensions.METHODS))
    with pytest.raises(MissingExtraError, match=r"'a_package_that_is_not_here' is not installed; run: pip install"):
        extensions.method_classifier("majority")
