"""`handful tasks`: the rows of tasks, by their address."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handful.cli.options import SectionGroup, given_values, with_options
from handful.cli.terminal import data
from handful_fewshot.cli.task_options import BANK, TaskOptions, named_place, open_bank, refuse_unused, task_numbers

if TYPE_CHECKING:
    import numpy as np

    from handful import FeatureBank
    from handful_fewshot.tasks import Draw

# Tasks drawn and printed at once.
CHUNK_TASKS = 256
DEFAULT_TASKS = "10"
# Options of tasks as they are elsewhere; the others have one value here.
OF_A_DRAW = (
    *("support_bank", "n_query", "n_classes", "query", "concentration", "slots", "batches"),
    *("unknown_classes", "split", "tasks", "seed"),
)

app = typer.Typer(
    cls=SectionGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Tasks: which rows are support and which are query.",
)


@app.callback()
def tasks() -> None:
    """Tasks: which rows are support and which are query."""


@app.command("draw")
@with_options(*OF_A_DRAW, of=TaskOptions)
def draw_tasks(
    context: typer.Context,
    bank: Annotated[str, typer.Option(help=f"A bank, {BANK}.")],
    shots: Annotated[int | None, typer.Option(help="Support rows of each class; default: 5.")] = None,
    k_eff: Annotated[
        str | None, typer.Option(help="Classes that may occur in a query, or a range such as 2-10; default: 5.")
    ] = None,
    unknown_share: Annotated[
        float | None, typer.Option(help="Share of the query that these classes have, 0 to 1.")
    ] = None,
    preview: Annotated[bool, typer.Option(help="Print a summary of each task instead of its rows.")] = False,
    **of_tasks: Any,
) -> None:
    """Draw tasks and print their row numbers, one JSON object per line.

    With --split, rows are numbered within the classes of the split.

    \b
    Examples:
      handful tasks draw --bank clinc150 --preview
      handful tasks draw --bank mybank --shots 1 --k-eff 3 --n-query 30 --tasks 10000 > tasks.jsonl
      handful tasks draw --bank mybank --unknown-classes 3 --unknown-share 0.3 --preview
      handful tasks draw --bank queries --support-bank library --query dirichlet --preview
    """
    from handful.errors import TaskError
    from handful_fewshot.benchmark.plan import ENTRY_DEFAULTS, task_spec
    from handful_fewshot.tasks import draw

    support_bank, unknown_classes, split = (of_tasks[name] for name in ("support_bank", "unknown_classes", "split"))
    refuse_unused(context, of_tasks["query"], support_bank)
    if (unknown_classes is None) != (unknown_share is None):
        raise TaskError(
            "--unknown-classes and --unknown-share go together: give how many classes the support lacks, and their "
            "share of the query"
        )
    wanted = task_numbers(DEFAULT_TASKS if of_tasks["tasks"] is None else of_tasks["tasks"])
    whole = open_bank(named_place(bank)[1])
    source = whole.split(split) if split else whole
    banks = {} if support_bank is None else {"support": open_bank(named_place(support_bank)[1])}
    if banks and banks["support"].class_names != whole.class_names:
        raise TaskError(
            f"{bank} and {support_bank} must have the same classes in the same order, got {whole.n_classes} and "
            f"{banks['support'].n_classes}; make both with the same class names"
        )
    entry = {name: value for name, value in given_values(context).items() if name in ENTRY_DEFAULTS}
    spec = task_spec({**entry, **({"support_bank": "support"} if banks else {})}, banks)
    for start in range(0, len(wanted), CHUNK_TASKS):
        drawn = draw(source.labels, spec, of_tasks["seed"] or 0, wanted[start : start + CHUNK_TASKS])
        for t in range(drawn.n_tasks):
            data(_summary(source, drawn, t) if preview else _rows(drawn, t))


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
