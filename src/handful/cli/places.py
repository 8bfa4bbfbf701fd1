"""`--on`: where a command does its work, in this process or over a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias, TypeVar

import typer

from handful.errors import OptionError

On: TypeAlias = Annotated[str, typer.Option(help="Where to run: here, ray (a cluster started here) or ray:ADDRESS.")]
HERE = "here"
Executor = TypeVar("Executor")


def executor_at(
    on: str, here: Callable[[], Executor], ray: Callable[[str | None], Executor], only_here: Mapping[str, bool]
) -> Executor:
    """Make the executor that `--on` asks for.

    Parameters
    ----------
    on : str
        What was given.
    here, ray : callable
        Make an executor in this process, and one for a cluster's address; None means a cluster started here.
    only_here : Mapping[str, bool]
        Options that do not apply to Ray, and whether they were given.
    """
    place, colon, address = on.partition(":")
    if on == HERE:
        return here()
    if place != "ray" or (colon and not address):
        raise OptionError(f"--on must be here, ray or ray:ADDRESS, got {on!r}")
    for option, given in only_here.items():
        if given:
            raise OptionError(f"{option} is for running here; a Ray cluster uses all its processors: leave it out")
    return ray(address or None)
