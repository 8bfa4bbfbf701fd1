"""Checks of arguments and options, each with an error message that says what is expected.

A whole number is what `operator.index` accepts, except a bool: NumPy integers pass, and 2.5, "3" and True do not.
"""

from __future__ import annotations

import difflib
import inspect
import math
import operator
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from handful.errors import HandfulError, OptionError

# The largest int64.
LARGEST_WHOLE = 2**63 - 1
# Names that an error lists at most, and those that it lists of more.
MOST_NAMED = 6
FEW_NAMED = 3
WORDS = {int: "a whole number", float: "a finite number", bool: "True or False", str: "text"}


Function = TypeVar("Function", bound=Callable[..., Any])


def takes(known: type, before: str | None = None) -> Callable[[Function], Function]:
    """Show the entries of a TypedDict as keyword arguments of a function, so that notebooks complete them.

    Type checkers and editors take them from the annotation `Unpack[known]`; this is for those that ask the function.
    They stand in front of the argument `before`, or last.

    Examples
    --------
    >>> class Size(typing.TypedDict, total=False):
    ...     width: float
    ...     height: float
    >>> @takes(Size)
    ... def draw(shape, **size: typing.Unpack[Size]): ...
    >>> str(inspect.signature(draw))
    "(shape, *, width: 'float' = None, height: 'float' = None)"
    """

    def shown(function: Function) -> Function:
        own = inspect.signature(function)
        named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        entries = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=getattr(hint, "__forward_arg__", hint)
            )
            for name, hint in known.__annotations__.items()
        ]
        at = len(named) if before is None else [p.name for p in named].index(before)
        vars(function)["__signature__"] = own.replace(parameters=[*named[:at], *entries, *named[at:]])
        return function

    return shown


def whole(name: str, value: object, *, least: int, error: type[HandfulError]) -> int:
    """Return `value` as an int of at least `least`, or raise `error`."""
    number = _plain(int, value)
    if number is None or not least <= number <= LARGEST_WHOLE:
        raise error(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(number)


def option(name: str, hint: Any, value: object) -> Any:
    """Return the value of an option in the type of its annotation: int, float, bool or str, or None if allowed.

    Raises `OptionError` for a value of another type, and for numbers that are not finite.
    """
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds = typing.get_args(hint) if union else (hint,)
    if value is None and types.NoneType in kinds:
        return None
    (kind,) = (k for k in kinds if k is not types.NoneType)
    plain = _plain(kind, value)
    if plain is None:
        wanted = WORDS[kind] + (" or None" if types.NoneType in kinds else "")
        raise OptionError(f"{name} must be {wanted}, got {value!r}")
    return plain


def _plain(kind: type, value: object) -> Any:
    """Return the value as a plain Python `kind`, or None if it is not of that kind."""
    if kind is bool:
        return bool(value) if isinstance(value, bool | np.bool_) else None
    if kind is str:
        return value if isinstance(value, str) else None
    if isinstance(value, bool | np.bool_):
        return None
    if kind is int:
        try:
            return operator.index(value)  # type: ignore[arg-type]  # a TypeError is expected here
        except TypeError:
            return None
    return float(value) if isinstance(value, Real) and math.isfinite(value) else None


def column_names(argument: str, asked: Any) -> tuple[str, ...]:
    """Return the columns that an argument names: one, or several; refuse values in the place of names.

    Examples
    --------
    >>> column_names("group_by", "site"), column_names("group_by", ["site", "day"])
    (('site',), ('site', 'day'))
    >>> column_names("sequence", [0, 1])
    Traceback (most recent call last):
        ...
    handful.errors.OptionError: sequence must name a column of the batch, or several, got [0, 1]; put ...
    """
    names = (asked,) if isinstance(asked, str) else tuple(asked) if isinstance(asked, Iterable) else (asked,)
    if not all(isinstance(name, str) for name in names):
        raise OptionError(
            f"{argument} must name a column of the batch, or several, got {asked!r:.60}; put the values into a column, "
            "or give them to BatchClassifier.infer"
        )
    return tuple(map(str, names))


def some_of(names: Iterable[Any]) -> str:
    """List names in an error: all if there are at most six, otherwise three and how many more there are.

    Names that end in a digit come last: in a wide table they are the many columns of the vectors.

    Examples
    --------
    >>> some_of(["id", "text"]), some_of([*(f"emb_{i}" for i in range(384)), "intent"])
    ('id, text', 'intent, emb_0, emb_1 and 382 more')
    """
    listed = sorted(map(str, names), key=lambda name: name[-1:].isdigit())
    if len(listed) <= MOST_NAMED:
        return ", ".join(listed)
    return f"{', '.join(listed[:FEW_NAMED])} and {len(listed) - FEW_NAMED:,} more"


def counted(n: int, what: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "item"), counted(2000, "item"), counted(3, "class")
    ('1 item', '2,000 items', '3 classes')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}{'es' if what.endswith('s') else 's'}"


def did_you_mean(name: object, names: Iterable[Any]) -> str:
    """Return a question with the name that is spelled most alike, to go on with in an error; empty if none is.

    Examples
    --------
    >>> did_you_mean("Lost luggage", ["recipe", "lost_luggage"]), did_you_mean("recipe", ["weather"])
    (" (did you mean 'lost_luggage'?)", '')
    """
    alike = {_folded(one): one for one in names}
    found = difflib.get_close_matches(_folded(name), alike, n=1)
    return f" (did you mean {alike[found[0]]!r}?)" if found else ""


def _folded(name: object) -> str:
    return unicodedata.normalize("NFKC", str(name)).casefold().strip()
