"""`handful bench tune`: choose the options of methods on validation classes, and write a plan that tests them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from handful.cli.options import HERE, On, given_values, refuse, with_options
from handful.cli.terminal import data
from handful_fewshot.cli.runs import carry_out, end_with_failures
from handful_fewshot.cli.task_options import (
    SCALES,
    Spread,
    TaskOptions,
    named_place,
    open_bank,
    option_grid,
    refuse_unused,
    task_count,
)
from handful_fewshot.errors import PlanError

# Options of the tasks that are tuned on, named like the keys of a plan.
KEYS = ("scale", "split", "shots", "k_eff", "n_classes", "n_query", "query", "concentration", "seed")
# Options that say what is tuned on which tasks; a run that is continued as it is has them already.
OF_A_TUNING = (
    *(f"--{key.replace('_', '-')}" for key in KEYS),
    *("--bank", "--method", "--option", "--tasks", "--budget"),
)


@with_options("bank", "n_query", "concentration", "tasks", "seed", of=TaskOptions)
def tune(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder of the run; the plan is written there as tuned.toml.")],
    method: Annotated[list[str] | None, typer.Option(help="A method to tune. Repeat for several.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="The grid, as NAME=VALUE,VALUE,...; by default the published one. Repeat for several."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help=f"{SCALES}; by default that of the paper's plans.", show_default=False)
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split to tune on; validation if left out.")] = None,
    shots: Annotated[int | None, typer.Option(help="Support rows of each class, 5 if left out.")] = None,
    k_eff: Annotated[int | None, typer.Option(help="Classes that may occur in a query, 5 if left out.")] = None,
    n_classes: Annotated[int | None, typer.Option(min=0, help="Classes of a task, 5 if left out; 0 for all.")] = None,
    query: Annotated[
        Spread | None, typer.Option(help="How queries are spread over their classes; dirichlet if left out.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds of processor time per point of a grid.", show_default=False)
    ] = None,
    on: On = HERE,
    device: Annotated[
        str | None, typer.Option(help="Where tasks are solved: cpu, cuda, cuda:1; cpu if left out.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue the run in --out; without --method, its own plan.")] = False,
    **of_tasks: Any,
) -> None:
    """Run a grid of options on validation tasks, print the best and write a plan for the test classes.

    By default as in the paper: 1,000 tasks with 5 classes, 5 shots and 75 queries. Banks need the splits validation and
    test. The plan has the published options beside the found ones.

    \b
    Examples:
      handful bench tune --bank clinc150 --method laplacian_shot --tasks 20 --out runs/small
      handful bench tune --bank mini=mini.bank --method tim --method laplacian_shot --out runs/tuning
      handful bench tune --bank mini=mini.bank --method oslo --option inlier_temperature=0.1,0.5 --out runs/oslo
      handful bench tune --resume --out runs/tuning
    """
    from handful_fewshot.benchmark.journal import Journal
    from handful_fewshot.benchmark.plan import bound_plan
    from handful_fewshot.reports.tuning import choices, choices_markdown, tuning_plan, write_tuned_plan

    own = resume and not method
    bank = of_tasks["bank"]
    tasks = of_tasks["tasks"]
    if own:
        refuse(context, OF_A_TUNING, "--resume without --method continues the tuning as it is")
    elif not method or not bank:
        raise PlanError("nothing to tune: give --bank and --method, or --resume")
    refuse_unused(context, query or Spread.DIRICHLET, None)
    given = given_values(context)
    keys = {name: given[name] for name in KEYS if name in given}
    keys |= {} if tasks is None else {"tasks": task_count(tasks)}
    keys |= {} if budget is None else {"cpu_budget": budget}

    def ask() -> tuple[dict[str, str], Any, Any]:
        places = Journal(out).bank_places if own else dict(map(named_place, bank or []))
        banks = {name: open_bank(place) for name, place in places.items()}
        if own:
            return places, banks, None
        points = option_grid(option) if option else ()
        return places, banks, bound_plan(tuning_plan(banks, method or [], points, **keys), banks)

    journal = carry_out(context, given, ask)
    for line in choices_markdown(choices(journal)).splitlines():
        data(line)
    data(str(write_tuned_plan(journal)))
    end_with_failures(journal)
