"""Registry: its own names are safe, additions are checked, and entry points come last, whole or not at all."""

import re
import sys
import threading
from importlib.metadata import EntryPoint

import pytest

from handful.errors import HandfulWarning, OptionError
from handful.machine import registry as module
from handful.machine.registry import Registry


def a_number(name, value):
    if not isinstance(value, int):
        raise OptionError(f"{name} must be a number")


def offered(monkeypatch, **values):
    """Entry points by name; their values are looked up in this module."""
    points = [EntryPoint(name, f"{__name__}:{value}", "some.group") for name, value in values.items()]
    monkeypatch.setattr(module, "entry_points", lambda group: points if group == "some.group" else [])


TWO, NOT_A_NUMBER = 2, "two"


def test_names_are_added_and_replaced_but_not_those_of_the_package():
    found = Registry("none", {"one": 1}, a_number)
    found.register("two", 2)
    found.register("two", 22)
    assert dict(found) == {"one": 1, "two": 22}
    assert found.own == {"one"}
    with pytest.raises(OptionError, match="'one' is already taken by handful; choose another"):
        found.register("one", 11)
    with pytest.raises(OptionError, match="three must be a number"):
        found.register("three", "3")
    assert dict(found) == {"one": 1, "two": 22}
    assert "three" not in found
    assert found.get("three") is None


@pytest.mark.parametrize("look", [list, len, lambda found: found["two"], lambda found: found.get("no")])
def test_entry_points_are_loaded_when_a_name_is_looked_up(monkeypatch, look):
    offered(monkeypatch, two="TWO")
    found = Registry("some.group", {"one": 1}, a_number)
    assert found["one"] == 1  # needs no entry point
    look(found)
    assert dict(found) == {"one": 1, "two": 2}


def test_what_cannot_be_loaded_is_left_out_with_a_warning(monkeypatch):
    offered(monkeypatch, bad="NOT_A_NUMBER", gone="NOWHERE", one="TWO", two="TWO")
    found = Registry("some.group", {"one": 1}, a_number)
    with pytest.warns(HandfulWarning) as told:
        assert dict(found) == {"one": 1, "two": 2}
    said = [re.search(r"entry point '(\w+)' of some.group .* was skipped: (.+)", str(one.message)) for one in told]
    assert [one[1] for one in said] == ["bad", "gone", "one"]
    assert said[0][2] == "bad must be a number"
    assert list(found) == ["one", "two"]  # without a second warning


@pytest.mark.parametrize("fault", ["raise RuntimeError('no licence')", "raise SystemExit('no licence')", "1 +"])
def test_a_module_that_fails_while_it_is_imported_is_left_out(monkeypatch, tmp_path, fault):
    (tmp_path / "faulty_plugin.py").write_text(fault)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "faulty_plugin", raising=False)
    points = [EntryPoint("bad", "faulty_plugin:value", "some.group")]
    monkeypatch.setattr(module, "entry_points", lambda group: points)
    with pytest.warns(HandfulWarning, match="entry point 'bad' of some.group .* was skipped"):
        assert dict(Registry("some.group", {"one": 1}, a_number)) == {"one": 1}


def test_what_a_program_registered_by_hand_stays(monkeypatch):
    offered(monkeypatch, two="TWO")
    found = Registry("some.group", {}, a_number)
    found.register("two", 22)
    assert dict(found) == {"two": 22}


def test_what_the_package_has_is_loaded_late_and_keeps_its_name(monkeypatch):
    offered(monkeypatch, three="TWO", two="NOT_A_NUMBER")
    found = Registry("some.group", {"one": 1}, a_number, own_points=[EntryPoint("two", f"{__name__}:TWO", "")])
    assert found.own == {"one", "two"}
    with pytest.raises(OptionError, match="'two' is already taken by handful"):
        found.register("two", 22)
    with pytest.warns(HandfulWarning, match="'two' of some.group .* was skipped: 'two' is already taken"):
        assert dict(found) == {"one": 1, "two": 2, "three": 2}
    broken = Registry("some.group", {}, a_number, own_points=[EntryPoint("two", f"{__name__}:NOWHERE", "")])
    with pytest.raises(AttributeError):  # a fault of the package itself is no warning
        list(broken)


def test_a_second_thread_waits_until_all_are_loaded(monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        name, value, module = "two", "os:elsewhere", "os"

        def load(self):
            begun.set()
            go_on.wait(10)
            return 2

    monkeypatch.setattr(module, "entry_points", lambda group: [Slow()])
    found = Registry("some.group", {"one": 1}, a_number)
    seen = []
    first, second = (threading.Thread(target=lambda: seen.append(dict(found))) for _ in range(2))
    first.start()
    assert begun.wait(10)
    second.start()
    second.join(0.1)
    assert not seen
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert seen == [{"one": 1, "two": 2}] * 2
