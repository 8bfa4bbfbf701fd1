"""Method: the whole interface between an algorithm and the rest of the library."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handful.arguments import option
from handful.errors import OptionError
from handful_fewshot.solution import Solution
from handful_fewshot.task import TaskBatch

# Scales that every method has, besides the names in `TRANSFORMS`.
PUBLISHED = "published"
FOUND = "found"
FOUND_TRANSFORM = "found_scale"
# Published transforms that are not the default: this one fits few features but those of the paper, where the batch
# collapses into a class or is spread over all.
FITS_FEW = frozenset({"range_scale_public_code"})


@dataclass(frozen=True)
class Method:
    """A name, a frozen dataclass of options, a pure function and its citation.

    Attributes
    ----------
    name : str
        Key in `METHODS`.
    options : type
        Class of its `Options`; the defaults are the values of the paper.
    transform : str
        Name in `TRANSFORMS` of the feature transform that published results used. `solve` does not apply it.
    solve : callable
        `(TaskBatch, options) -> Solution`; solves each task on its own and does not modify its arguments.
    citation : str
        Paper and venue.
    support_arrays : int
        Number of arrays of shape [support, class] in memory at the same time; zero if the support is summed once.
    rejects : bool
        Whether the method says of each query how sure it is that none of the classes fits, in `Solution.unknown`.
    names : bool
        Whether the method reads the names of classes, `TaskBatch.names`. If a task has none, class means of the support
        stand for them; with one row per class, that row may be the vector of a name.

    Examples
    --------
    >>> import handful_fewshot as fewshot
    >>> method = fewshot.METHODS["paddle"]
    >>> method.transform, method.make_options(max_iter=20).max_iter
    ('range_scale_public_code', 20)
    """

    name: str
    options: type[Any]
    transform: str
    solve: Callable[[TaskBatch, Any], Solution]
    citation: str
    support_arrays: int = 0
    rejects: bool = False
    names: bool = False

    def transform_at(self, scale: str = "") -> str:
        """Return the name of the transform at a scale, the same wherever the method is called by its name.

        `published` is the transform of the published results, `found` is `found_scale`, and any other is itself.
        Without a scale it is the published one; or the found one if that fits few features, see `FITS_FEW`.

        Examples
        --------
        >>> import handful_fewshot as fewshot
        >>> paddle, tim = fewshot.METHODS["paddle"], fewshot.METHODS["tim"]
        >>> paddle.transform_at(), paddle.transform_at("published"), tim.transform_at(), tim.transform_at("found")
        ('found_scale', 'range_scale_public_code', 'l2', 'found_scale')
        """
        if scale == FOUND or (not scale and self.transform in FITS_FEW):
            return FOUND_TRANSFORM
        return self.transform if scale in ("", PUBLISHED) else scale

    def make_options(self, **values: object) -> Any:
        """Build the options; raise `OptionError` for unknown names and for values of the wrong type.

        NumPy numbers become Python numbers; a bool is not accepted as a number.
        """
        known = [field.name for field in dataclasses.fields(self.options)]
        for name in values:
            if name not in known:
                raise OptionError(f"{self.name} has no option {name!r}; it has {', '.join(known) or 'none'}")
        hints = typing.get_type_hints(self.options) if values else {}
        return self.options(**{name: option(name, hints[name], value) for name, value in values.items()})


@dataclass(frozen=True)
class Options:
    """Options of a method; a field may say which values are possible, see `limited`."""

    def __post_init__(self) -> None:
        """Refuse values that are not possible."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            holds = field.metadata.get("holds")
            if holds is not None and value is not None and not holds(value):
                optional = "None or " if field.default is None else ""
                raise OptionError(f"{field.name} must be {optional}{field.metadata['expected']}, got {value!r}")


def limited(holds: Callable[[Any], bool], expected: str, default: Any) -> Any:
    """Declare an option whose values must fulfil a condition, unless they are None; `expected` is that in words."""
    return dataclasses.field(default=default, metadata={"holds": holds, "expected": expected})


def above(bound: int, default: Any) -> Any:
    """Declare a number above a bound."""
    return limited(lambda value: value > bound, f"above {bound}", default)


def at_least(bound: int, default: Any) -> Any:
    """Declare a number of at least a bound."""
    return limited(lambda value: value >= bound, f"at least {bound}", default)


def among(names: tuple[str, ...], default: str) -> Any:
    """Declare one of some names."""
    return limited(lambda value: value in names, f"one of {names}", default)
