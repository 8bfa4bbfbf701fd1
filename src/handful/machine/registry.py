"""Registry: what the package has by name, and what other packages and programs add without editing it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from threading import RLock
from typing import Generic, TypeVar

from handful.errors import HandfulWarning, OptionError

T = TypeVar("T")


def package_of(point: EntryPoint) -> str:
    """Return the package that an entry point belongs to."""
    return point.module.partition(".")[0]


def is_there(package: str) -> bool:
    """Whether a package can be imported, as far as can be told without doing it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def points_of(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, those of packages that are not there left out."""
    return [point for point in entry_points(group=group) if is_there(package_of(point))]


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping of names; `register` adds to it, and so do the entry points of a group.

    Entry points are loaded when a name is first looked up, not when the registry is made: a package that offers one
    imports handful itself, possibly first. One that cannot be loaded is left out with a warning.

    Parameters
    ----------
    group : str
        Group of the entry points.
    own : mapping
        What the package has itself; nothing may take these names, which the attribute `own` keeps.
    check : callable
        Takes a name and a value, and raises `OptionError` if the value is not of the right kind.
    own_points : sequence of EntryPoint
        More of what the package has itself, loaded when a name is first looked up, before those of other packages.

    Examples
    --------
    >>> registry = Registry("an.empty.group", {"one": 1}, lambda name, value: None)
    >>> registry.register("two", 2)
    >>> dict(registry)
    {'one': 1, 'two': 2}
    """

    def __init__(
        self,
        group: str,
        own: Mapping[str, T],
        check: Callable[[str, T], None],
        *,
        own_points: Sequence[EntryPoint] = (),
    ) -> None:
        self._group = group
        self._values = dict(own)
        self._check = check
        self._own_points = own_points
        self.own = frozenset({*own, *(point.name for point in own_points)})
        self._loaded = False
        self._loading = RLock()

    def register(self, name: str, value: T) -> None:
        """Add a value, in place of an earlier one that was also added; a name of the package itself is refused."""
        if name in self.own:
            raise OptionError(f"{name!r} is already taken by handful; choose another")
        self._check(name, value)
        self._values[name] = value

    def _load(self) -> None:
        with self._loading:  # another thread waits until all are there
            if self._loaded:
                return
            self._loaded = True  # first, as what is loaded may look up names
            self._values = {**{point.name: point.load() for point in self._own_points}, **self._values}
            for point in points_of(self._group):
                self._add(point)

    def _add(self, point: EntryPoint) -> None:
        """Add what another package offers."""
        if point.name in self._values and point.name not in self.own:
            return  # a program that registered it by hand means its own
        try:
            self.register(point.name, point.load())
        except (Exception, SystemExit) as error:  # another package's fault must not stop this one
            warnings.warn(
                f"the entry point {point.name!r} of {self._group} ({point.value}) was skipped: {error}",
                HandfulWarning,
                stacklevel=5,
            )

    def __getitem__(self, name: str) -> T:
        if name not in self._values:
            self._load()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._values)

    def __len__(self) -> int:
        self._load()
        return len(self._values)
