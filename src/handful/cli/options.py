"""Options that several commands have; those that do not apply are refused with a sentence, none is ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from handful import __version__
from handful.cli.terminal import data
from handful.errors import OptionError

if TYPE_CHECKING:
    from handful.runs.executors import Executor


Trust = Annotated[
    bool,
    typer.Option("--trust-pickle", help="Open a pickle, which can run any code: only if you trust its author."),
]


SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out any number of rows that cannot be read; by default at most 5 %."),
]


Missing = Annotated[
    str | None,
    typer.Option(
        metavar="mean",
        help="Fill missing numbers of vectors with the mean of the examples' column; by default they are refused.",
    ),
]


Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of .xlsx files; by default the first with a table. Or: book.xlsx/NAME."),
]


HeaderRow = Annotated[
    int | None,
    typer.Option(
        metavar="LINE", help="Line of tables with the names of their columns, counted from 1, if there is more above."
    ),
]


def given_options(context: typer.Context) -> list[str]:
    """Return the options on the command line, in the order of the help."""
    sources = {one.opts[0]: context.get_parameter_source(one.name or "") for one in context.command.params}
    return [option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def given_values(context: typer.Context) -> dict[str, Any]:
    """Return what was given on the command line, by the names of parameters; several values are a list."""
    names = [one.name for one in context.command.params if one.name and one.opts[0] in given_options(context)]
    values = {name: context.params[name] for name in names}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def refuse(context: typer.Context, options: Collection[str], reason: str) -> None:
    """Raise an error if any of these options is given; `reason` says why they do not apply."""
    if found := [option for option in given_options(context) if option in options]:
        raise OptionError(f"{reason}; leave out {', '.join(found)}")


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


def _print_version(asked: bool) -> None:
    if asked:
        data(f"handful {__version__}")
        raise typer.Exit


def no_command(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that belong to no command."""
