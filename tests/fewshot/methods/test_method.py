"""The record that stands for a method."""

import dataclasses
import math
import typing

import numpy as np
import pytest

from handful.errors import OptionError
from handful_fewshot import METHODS


def test_the_table_is_read_only():
    with pytest.raises(TypeError):
        METHODS["mine"] = METHODS["paddle"]


@pytest.mark.parametrize("method", METHODS)
def test_values_of_another_type_are_refused_with_a_sentence(method):
    words = {int: "a whole number", float: "a finite number", bool: "True or False", str: "text"}
    wrong = {int: ["3", 2.5, True, None], float: ["3", True, math.nan, math.inf], bool: [1, "yes"], str: [3, None]}
    for name, hint in typing.get_type_hints(METHODS[method].options).items():
        kind = next(k for k in (bool, int, float, str) if k is hint or k in typing.get_args(hint))
        for value in wrong[kind]:
            with pytest.raises(OptionError, match=f"{name} must be {words[kind]}.*, got "):
                METHODS[method].make_options(**{name: value})


def test_numbers_of_numpy_become_pythons():
    options = METHODS["paddle"].make_options(max_iter=np.int64(3), tol=np.float32(0.5), record=np.True_)
    assert options == METHODS["paddle"].make_options(max_iter=3, tol=0.5, record=True)
    assert [type(options.max_iter), type(options.tol), type(options.record)] == [int, float, bool]
    assert METHODS["paddle"].make_options(complexity_weight=None).complexity_weight is None


@pytest.mark.parametrize("method", METHODS)
def test_options_outside_their_range_are_refused(method):
    for field in dataclasses.fields(METHODS[method].options):
        if "holds" in field.metadata:
            outside = [value for value in (-1, 0, 2.0, "random") if kind_of(field.default, value)]
            wrong = [value for value in outside if not field.metadata["holds"](value)]
            assert wrong, field.name
            for value in wrong:
                with pytest.raises(OptionError, match=f"{field.name} must be .*{field.metadata['expected'][:5]}"):
                    METHODS[method].make_options(**{field.name: value})


def kind_of(default: object, value: object) -> bool:
    """Whether a value may be of the type of an option with this default; None stands for a number."""
    return isinstance(value, str) == isinstance(default, str) and not (
        type(default) is int and isinstance(value, float)
    )
