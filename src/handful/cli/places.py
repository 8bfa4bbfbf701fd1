"""`--on`: where a command does its work, in this process or over a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from handful.errors import OptionError

if TYPE_CHECKING:
    from handful.runs.executors import Executor

On: TypeAlias = Annotated[str, typer.Option(help="Where to run: here, ray (a cluster started here) or ray:ADDRESS.")]
HERE = "here"


def executor_at(on: str, workers: int, only_here: Mapping[str, bool], *, join: bool = True) -> Executor:
    """Make the executor that `--on` asks for.

    Parameters
    ----------
    on : str
        What was given.
    workers : int
        Threads in this process.
    only_here : Mapping[str, bool]
        Options that do not apply to Ray, and whether they were given.
    join : bool
        Whether an interruption waits for what is at work in this process.
    """
    from handful.runs.executors import in_process, on_ray

    place, colon, address = on.partition(":")
    if on == HERE:
        return in_process(workers, join=join)
    if place != "ray" or (colon and not address):
        raise OptionError(f"--on must be here, ray or ray:ADDRESS, got {on!r}")
    for option, given in only_here.items():
        if given:
            raise OptionError(f"{option} is for running here; a Ray cluster uses all its processors: leave it out")
    return on_ray(address or None)
