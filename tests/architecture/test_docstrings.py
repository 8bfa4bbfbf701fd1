"""Docstrings of the reference are what numpydoc expects, as far as that helps a reader."""

import dataclasses
import inspect

import pytest

from tests.architecture.test_documents import BUILDING, REFERENCE, named

validate = pytest.importorskip("numpydoc.validate", reason="numpydoc comes with requirements-docs.txt")

# Checks that are off everywhere.
OFF = {
    "SA01": "no section See Also: docs/api.rst groups what belongs together",
    "ES01": "no extended summary: one sentence is often enough",
    "SS02": "a summary may begin with a formula or a name",
    "SS05": "takes a plural noun at the beginning for a verb",
}
# What people call by hand: every method has parameters and what it returns; the example of the class shows several. So
# has every function, with an example or the name of one that has it (See Also); in the few-shot part one shows several.
FRONT = {
    "handful.estimators.BatchClassifier",
    "handful.estimators.Answer",
    "handful.estimators.FewClassSplit",
}
# Checks that are off for all other classes: annotations have the types, and the example of a class shows its methods.
OFF_ELSEWHERE = {
    "EX01": "no examples",
    "PR01": "parameters without a section of their own",
    "PR04": "a parameter without a type",
    "RT01": "no section Returns",
    "YD01": "no section Yields",
}


def is_value(thing: object) -> bool:
    """Whether the fields of a class are its arguments; they are documented as attributes."""
    return inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or issubclass(thing, tuple))


def members(name: str) -> list[str]:
    """Methods and properties of a class that this package defines, with the class itself."""
    value, found = named(name), [name]
    for member in dir(value) if inspect.isclass(value) else ():
        owner = next((base for base in value.__mro__ if member in vars(base)), object)
        thing = inspect.getattr_static(value, member)
        explained = callable(thing) or hasattr(thing, "__get__")
        # Fields are documented as attributes; `set_..._request` is what scikit-learn makes for every estimator.
        is_field = is_value(value) and member in getattr(value, "__match_args__", ())
        made = is_field or member.startswith("_") or member.endswith("_request")
        if owner.__module__.startswith("handful.") and explained and not made:
            found.append(f"{name}.{member}")
    return found


def is_property(name: str, full: str) -> bool:
    """Whether a member is read without a call."""
    return full != name and not callable(getattr(named(name), full.rpartition(".")[2]))


def faults(name: str) -> list[str]:
    """Say what is wrong with the docstrings of a class or function."""
    found = []
    for full in members(name):
        strict = name in FRONT or not (inspect.isclass(named(name)) or REFERENCE[name] == BUILDING)
        off = set(OFF) | (set() if strict else set(OFF_ELSEWHERE))
        if full == name and is_value(named(name)):
            off.add("PR01")
        if is_property(name, full):
            off.add("RT01")
        if full != name or name.startswith("handful_fewshot.") or "See Also" in (inspect.getdoc(named(name)) or ""):
            off.add("EX01")
        errors = validate.validate(full)["errors"]
        found += [f"{full}: {code} {message}" for code, message in errors if code not in off]
    return found


def test_docstrings_are_complete():
    assert [fault for name in REFERENCE for fault in faults(name)] == []


def test_a_missing_section_is_found(monkeypatch):
    from handful.estimators import Answer

    monkeypatch.setattr(Answer.top, "__doc__", "Return the most probable classes.")
    found = faults("handful.estimators.Answer")
    assert any("Answer.top: PR01" in fault for fault in found)
    assert any("Answer.top: RT01" in fault for fault in found)
