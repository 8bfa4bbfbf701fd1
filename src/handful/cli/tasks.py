"""`handful tasks`: the rows of tasks, by their address."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handful.cli.terminal import data

if TYPE_CHECKING:
    import numpy as np

    from handful.banks import FeatureBank
    from handful.fewshot.tasks import Draw, UnknownClasses
    from handful.fewshot.tasks.query import QueryRule

# Tasks drawn and printed at once.
CHUNK_TASKS = 256

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Tasks: which rows are support and which are query."
)


@app.callback()
def tasks() -> None:
    """Tasks: which rows are support and which are query."""


class Spread(StrEnum):
    """Query rules by name."""

    UNIFORM = "uniform"
    RANGE = "range"
    BALANCED = "balanced"
    DIRICHLET = "dirichlet"
    ARRIVALS = "arrivals"


@app.command("draw")
def draw_tasks(
    context: typer.Context,
    bank: Annotated[Path, typer.Argument(help="A bank, or anything `handful features import` reads.")],
    shots: Annotated[int, typer.Option(help="Support rows of each class.")] = 5,
    support_bank: Annotated[
        Path | None, typer.Option(help="Take all rows of this other bank as the support, instead of --shots.")
    ] = None,
    k_eff: Annotated[int, typer.Option(help="Classes that may occur in a query.")] = 5,
    n_query: Annotated[int, typer.Option(help="Rows to label in each task.")] = 75,
    n_classes: Annotated[
        int | None, typer.Option(help="Classes of a task, drawn again for each; all if left out.")
    ] = None,
    query: Annotated[Spread, typer.Option(help="How queries are spread over their classes.")] = Spread.UNIFORM,
    k_eff_least: Annotated[
        int, typer.Option(help="Smallest number of classes of the range rule; --k-eff is the largest.")
    ] = 1,
    concentration: Annotated[
        float | None, typer.Option(help="Concentration of the rules dirichlet (default 2) and arrivals (default 0.1).")
    ] = None,
    unknown_classes: Annotated[
        int | None, typer.Option(help="Classes of the query that have no support; none if left out.")
    ] = None,
    unknown_share: Annotated[
        float | None, typer.Option(help="Share of the query that these classes have, 0 to 1.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sequence of tasks.")] = 0,
    tasks: Annotated[str, typer.Option(help="Which tasks, as FIRST:END; END is not included.")] = "0:10",
    preview: Annotated[bool, typer.Option(help="Print a summary of each task instead of its rows.")] = False,
) -> None:
    """Draw tasks and print their row numbers, one JSON object per line.

    \b
    Examples:
      handful tasks draw mybank --preview
      handful tasks draw mybank --shots 1 --k-eff 3 --n-query 30 --tasks 0:10000 > tasks.jsonl
      handful tasks draw mybank --unknown-classes 3 --unknown-share 0.3 --preview
      handful tasks draw queries --support-bank library --query dirichlet --preview
    """
    from handful.cli.options import refuse
    from handful.errors import TaskError
    from handful.fewshot.tasks import (
        Arrivals,
        Balanced,
        Dirichlet,
        FixedSupport,
        RangeOverPool,
        ShotsPerClass,
        TaskSpec,
        UniformOverPool,
        draw,
    )
    from handful.reading import read_bank

    if support_bank is not None:
        refuse(context, ("--shots",), "the support is the whole of --support-bank")
    if query is not Spread.RANGE:
        refuse(context, ("--k-eff-least",), f"the rule {query} has one number of classes, --k-eff")
    if query not in (Spread.DIRICHLET, Spread.ARRIVALS):
        refuse(context, ("--concentration",), f"the rule {query} has no concentration")
    source = read_bank(bank)
    library = None if support_bank is None else read_bank(support_bank)
    if library is not None and library.class_names != source.class_names:
        raise TaskError(
            f"{bank} and {support_bank} must have the same classes in the same order, got {source.n_classes} and "
            f"{library.n_classes}; make both with the same class names"
        )
    given = () if concentration is None else (concentration,)
    rules: dict[Spread, Callable[[], QueryRule]] = {
        Spread.UNIFORM: lambda: UniformOverPool(k_eff),
        Spread.RANGE: lambda: RangeOverPool(k_eff, k_eff_least),
        Spread.BALANCED: lambda: Balanced(k_eff),
        Spread.DIRICHLET: lambda: Dirichlet(k_eff, *given),
        Spread.ARRIVALS: lambda: Arrivals(k_eff, *given),
    }
    spec = TaskSpec(
        ShotsPerClass(shots) if library is None else FixedSupport.whole(library.labels),
        rules[query](),
        n_query,
        n_classes,
        _unknown(unknown_classes, unknown_share),
    )
    wanted = _numbers(tasks)
    for start in range(0, len(wanted), CHUNK_TASKS):
        drawn = draw(source.labels, spec, seed, wanted[start : start + CHUNK_TASKS])
        for t in range(drawn.n_tasks):
            data(_summary(source, drawn, t) if preview else _rows(drawn, t))


def _unknown(count: int | None, share: float | None) -> UnknownClasses | None:
    from handful.errors import TaskError
    from handful.fewshot.tasks import UnknownClasses

    if count is not None and share is not None:
        return UnknownClasses(count, share)
    if count is None and share is None:
        return None
    raise TaskError(
        "--unknown-classes and --unknown-share go together: give how many classes the support lacks, and their share "
        "of the query"
    )


def _numbers(text: str) -> range:
    first, _, end = text.partition(":")
    try:
        numbers = range(int(first), int(end))
    except ValueError:
        numbers = range(0)
    if not numbers or numbers[0] < 0:
        raise typer.BadParameter(
            f"{text!r} is not FIRST:END with 0 <= FIRST < END, for instance 0:100", param_hint="--tasks"
        )
    return numbers


def _of_task(values: np.ndarray, t: int) -> np.ndarray:
    """Return row t, or the only row if all tasks share it."""
    row: np.ndarray = values[t if len(values) > 1 else 0]
    return row


def _rows(drawn: Draw, t: int) -> str:
    real = slice(None) if drawn.support_mask is None else _of_task(drawn.support_mask, t)
    task = {
        "task": int(drawn.indices[t]),
        "classes": _of_task(drawn.classes, t).tolist(),
        "support": _of_task(drawn.support, t)[real].tolist(),
        "support_labels": _of_task(drawn.support_labels, t)[real].tolist(),
        "query": drawn.query[t].tolist(),
        "query_labels": drawn.query_labels[t].tolist(),
    }
    return json.dumps(task)


def _summary(bank: FeatureBank, drawn: Draw, t: int) -> str:
    import numpy as np

    truth = drawn.query_labels[t]
    labels, counts = np.unique(truth[truth >= 0], return_counts=True)
    names = [bank.class_names[k] for k in _of_task(drawn.classes, t)[labels]]
    present = ", ".join(
        f"{name} x{count}" for name, count in sorted(zip(names, counts, strict=True), key=lambda p: -p[1])
    )
    n_support = drawn.support.shape[1] if drawn.support_mask is None else int(_of_task(drawn.support_mask, t).sum())
    head = f"task {drawn.indices[t]}: {n_support} support rows of {drawn.n_classes} classes"
    n_unknown = int((truth < 0).sum())
    rest = f"; {n_unknown} of classes without support" if n_unknown else ""
    return f"{head}, {len(truth) - n_unknown} queries of {len(labels)}: {present}{rest}"
