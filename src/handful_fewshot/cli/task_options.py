"""Options that the commands about tasks share: banks by name, how tasks are drawn, and which of them are meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handful.cli.options import refuse
from handful.errors import BankError, OptionError

if TYPE_CHECKING:
    from handful import FeatureBank


class Spread(StrEnum):
    """Query rules by name."""

    UNIFORM = "uniform"
    BALANCED = "balanced"
    DIRICHLET = "dirichlet"
    STREAM = "stream"


# Options of some query rules only.
OF_SOME_SPREADS = (
    ((Spread.DIRICHLET, Spread.STREAM), "concentration"),
    ((Spread.STREAM,), "slots"),
    ((Spread.STREAM,), "batches"),
)
SCALES = "Scale of the features: published, found, or a transform by its name"
BANK = "as PATH or NAME=PATH, or clinc150, which comes with the package"


class TaskOptions:
    """Options of commands about tasks, by name."""

    bank: Annotated[list[str] | None, typer.Option("--bank", help=f"A bank, {BANK}. Repeat for several.")] = None
    shots: Annotated[
        list[int] | None, typer.Option(help="Support rows of each class; default: 5. Repeat for several.")
    ] = None
    support_bank: Annotated[
        str | None, typer.Option(help=f"Take all rows of another bank as the support instead of --shots: {BANK}.")
    ] = None
    k_eff: Annotated[
        list[str] | None,
        typer.Option(
            help="Classes that may occur in a query, or a range such as 2-10; default: 5. Repeat for several."
        ),
    ] = None
    n_query: Annotated[
        int | None, typer.Option(min=1, help="Rows to label in each task; default: 75.", show_default=False)
    ] = None
    n_classes: Annotated[
        int | None,
        typer.Option(min=1, help="Classes of a task, drawn again for each; default: all.", show_default=False),
    ] = None
    query: Annotated[
        Spread | None, typer.Option(help="How queries are spread over their classes; default: uniform.")
    ] = None
    concentration: Annotated[
        float | None, typer.Option(help="Concentration of --query dirichlet or stream; default: 2 and 0.1.")
    ] = None
    slots: Annotated[
        int | None, typer.Option(min=1, help="Slots of --query stream; default: 100.", show_default=False)
    ] = None
    batches: Annotated[
        int | None, typer.Option(min=1, help="Batches of one --query stream; default: 20.", show_default=False)
    ] = None
    unknown_classes: Annotated[
        int | None,
        typer.Option(min=1, help="Classes of each query that have no examples; default: none.", show_default=False),
    ] = None
    unknown_share: Annotated[
        list[float] | None, typer.Option(help="Share of the query that these classes have, 0 to 1. Repeat for several.")
    ] = None
    split: Annotated[
        str | None, typer.Option(help="Split whose classes take part; default: all classes.", show_default=False)
    ] = None
    tasks: Annotated[str | None, typer.Option(help="Which tasks: 20 or 0:20 for the first 20.", show_default=False)] = (
        None
    )
    seed: Annotated[int | None, typer.Option(help="Seed of the sequence of tasks.", show_default=False)] = None


def named_place(text: str) -> tuple[str, str]:
    """Return name and path of a bank given as `NAME=PATH` or `PATH`.

    Examples
    --------
    >>> named_place("mini=banks/a.bank"), named_place("banks/birds.bank")
    (('mini', 'banks/a.bank'), ('birds', 'banks/birds.bank'))
    """
    name, equals, place = text.partition("=")
    return (name, place) if equals else (Path(text).stem, text)


def task_numbers(text: str) -> range:
    """Return the tasks that `COUNT` or `FIRST:END` names; END is not included.

    Examples
    --------
    >>> task_numbers("20"), task_numbers("0:20"), task_numbers("5:20")
    (range(0, 20), range(0, 20), range(5, 20))
    """
    first, colon, end = text.partition(":")
    try:
        numbers = range(int(first), int(end)) if colon else range(int(first))
    except ValueError:
        numbers = range(0)
    if not numbers or numbers[0] < 0:
        raise typer.BadParameter(
            f"{text!r} is neither a number of tasks nor FIRST:END with 0 <= FIRST < END; give 100 or 0:100",
            param_hint="--tasks",
        )
    return numbers


def task_count(text: str) -> int:
    """Return how many tasks of a run are wanted; a run begins with task 0."""
    numbers = task_numbers(text)
    if numbers[0]:
        raise typer.BadParameter(
            f"a run begins with task 0, got {text!r}; give {numbers[-1] + 1}", param_hint="--tasks"
        )
    return len(numbers)


def option_grid(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the options given as `NAME=VALUE`; values with commas between them are used in turn, in all combinations.

    Examples
    --------
    >>> option_grid(["public_code=true", "sharpness=10,50.5"])
    [{'public_code': True, 'sharpness': 10}, {'public_code': True, 'sharpness': 50.5}]
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            raise OptionError(f"--option must be NAME=VALUE, got {text!r}")
        if name in found:
            raise OptionError(f"--option {name} is given twice; give it once, with commas between its values")
        found[name] = [_value(value.strip()) for value in values.split(",")]
    return [dict(zip(found, values, strict=True)) for values in product(*found.values())]


def _value(text: str) -> Any:
    """Return a number, True, False or None if the text is one; else the text."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        number = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, int | float) else text


def refuse_unused(context: typer.Context, query: Spread | None, support_bank: str | None) -> None:
    """Refuse options of tasks that the query rule or the support does not use."""
    if support_bank is not None:
        refuse(context, ("--shots",), "the support is the whole of --support-bank")
    for spreads, option in OF_SOME_SPREADS:
        if query not in spreads:
            refuse(context, (f"--{option}",), f"the rule {query or Spread.UNIFORM} has no {option}")


def shipped_banks() -> Mapping[str, Callable[[], FeatureBank]]:
    """Return what opens the banks that come with the package, by name."""
    from handful.datasets import load_clinc150

    return {"clinc150": load_clinc150}


def open_bank(place: str) -> FeatureBank:
    """Open the bank at a path; if there is none, the shipped one of that name."""
    from handful.arguments import did_you_mean
    from handful.reading import read_bank

    if Path(place).exists():
        return read_bank(place)
    shipped = shipped_banks()
    if Path(place).name in shipped:
        return shipped[Path(place).name]()
    raise BankError(
        f"{place} does not exist{did_you_mean(place, shipped)}; check the path, or name a bank that comes with the "
        f"package: {', '.join(shipped)}"
    )


def find_bank(places: Mapping[str, str], name: str) -> FeatureBank | None:
    """Open the bank of that name if it is still in place."""
    place = places.get(name)
    if place is None or not (Path(place).exists() or Path(place).name in shipped_banks()):
        return None
    return open_bank(place)
