"""Options that do not apply: each is refused with a sentence, none is ignored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

import typer

from handful.errors import OptionError

Trust = Annotated[
    bool,
    typer.Option("--trust-pickle", help="Open a pickle, which can run any code: only if you trust its author."),
]


SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out any number of rows that cannot be read; by default at most 5 %."),
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
