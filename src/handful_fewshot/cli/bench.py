"""`handful bench`: make a plan, run what is left of it, show its progress, compare methods."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handful.cli.options import HERE, On, SectionGroup, given_values, refuse, with_options
from handful.cli.terminal import data
from handful.errors import OptionError
from handful.progress import bars
from handful_fewshot.cli.runs import carry_out, end_with_failures
from handful_fewshot.cli.task_options import (
    SCALES,
    TaskOptions,
    find_bank,
    named_place,
    open_bank,
    option_grid,
    refuse_unused,
    task_count,
)
from handful_fewshot.errors import PlanError

if TYPE_CHECKING:
    from handful_fewshot.benchmark.plan import Banks as BanksByName
    from handful_fewshot.benchmark.plan import Plan

# Plans of the paper. Written out here because the module that makes them imports torch, which help should not wait for;
# a test compares.
PAPER_NAMES = (
    *("table1", "table2", "accuracy_against_k_eff", "partition_term", "optimisation", "accuracy_against_weight"),
    *("best_weight_against_n_query", "tuning"),
)
# Where a plan comes from.
TOML = "toml"
PAPER = "paper"
GRID = "grid"
RUN = "run"
# Options that make a grid.
OF_A_GRID = (
    *("--shots", "--support-bank", "--k-eff", "--n-query", "--n-classes", "--query"),
    *("--concentration", "--slots", "--batches"),
    *("--unknown-classes", "--unknown-share", "--split", "--scale", "--option"),
)
# Options that cannot be combined with such a plan, and why.
NOT_BESIDE: Mapping[str, tuple[str, Sequence[str]]] = {
    TOML: ("a plan in TOML is complete", ("--paper", "--method", *OF_A_GRID)),
    PAPER: ("a plan of the paper defines its own tasks", OF_A_GRID),
    GRID: ("", ()),
    RUN: (
        "--resume alone continues the run as it is; to change it, give its plan again with --resume",
        (*OF_A_GRID, "--tasks", "--seed", "--budget", "--keep", "--as-published"),
    ),
}


class Keep(StrEnum):
    """What rows may keep."""

    PREDICTIONS = "predictions"


app = typer.Typer(
    cls=SectionGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Benchmarks: many methods on the same tasks, resumable.",
)


@app.callback()
def bench() -> None:
    """Benchmarks: many methods on the same tasks, resumable."""


@app.command("run")
@with_options(*TaskOptions.__annotations__, of=TaskOptions)
def run(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    plan: Annotated[Path | None, typer.Argument(help="A plan in TOML.", show_default=False)] = None,
    paper: Annotated[
        str | None, typer.Option(help=f"A plan of the paper: {', '.join(PAPER_NAMES)}.", show_default=False)
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A method, or FILE.py:NAME of your own; with --paper, only these of its methods. Repeat for several."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the methods, as NAME=VALUE or NAME=VALUE,VALUE. Repeat for several."),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{SCALES}; default: found for paddle and its kin, published for others. Repeat for several."
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Seconds of processor time per cell; tasks are solved in order until then.", show_default=False
        ),
    ] = None,
    keep: Annotated[
        Keep | None, typer.Option(help="Keep labels and probabilities of every query in the rows.", show_default=False)
    ] = None,
    as_published: Annotated[
        bool, typer.Option(help="Say that the banks are the paper's, so that its numbers are printed beside them.")
    ] = False,
    on: On = HERE,
    device: Annotated[
        str | None, typer.Option(help="Where tasks are solved: cpu, cuda, cuda:1; default: cpu.", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Continue the run in --out, if it exists; with its own plan if none is given.")
    ] = False,
    **of_tasks: Any,
) -> None:
    """Run a plan: a TOML file, one of the paper's, or a grid of methods, scales, shots and K_eff.

    It says where a method at the published scale falls below the nearest prototype on the same tasks.
    Exits with 1 if every task of some cell failed, or if the machine failed on some tasks: --resume tries those again.

    \b
    Examples:
      handful bench run --bank clinc150 --method paddle --method batch_classifier --k-eff 2 --tasks 50 --out runs/one
      handful bench run --bank clinc150 --method tim --option marginal_weight=0.5 --scale found --out runs/two
      handful bench run --bank clinc150 --method oslo --unknown-classes 3 --unknown-share 0.3 --out runs/open
      handful bench run --paper table1 --bank mini=mini.bank --bank tiered=tiered.bank --budget 3600 --out runs/table1
      handful bench run --paper table1 --bank mini=mini.bank --method paddle --method baseline --out runs/two_rows
      handful bench run plan.toml --on ray --out runs/mine
      handful bench run --resume --out runs/mine
    """
    given = given_values(context)
    if of_tasks["tasks"] is not None:
        given["tasks"] = task_count(of_tasks["tasks"])
    source = _source(given)
    reason, refused = NOT_BESIDE[source]
    refuse(context, refused, reason)
    if source == GRID:
        refuse_unused(context, of_tasks["query"], of_tasks["support_bank"])
    journal = carry_out(context, given, lambda: _asked(source, given))
    status(out)
    end_with_failures(journal)


@app.command("status")
def status(run: Annotated[Path, typer.Argument(help="Folder of a run.")]) -> None:
    """Print the progress of each cell: method, transform, tasks, failures, accuracy, seconds of processor time.

    \b
    Examples:
      handful bench status runs/one
    """
    from handful_fewshot.benchmark.completion import progress
    from handful_fewshot.benchmark.journal import Journal
    from handful_fewshot.reports.control import below_nearest
    from handful_fewshot.reports.summary import columns_of, footnotes, results

    journal = Journal(run)
    states = {state.cell.content_hash: state for state in progress(journal)}
    columns = columns_of(results(journal))
    method_width = max((len(result.label) for column in columns for result in column.results), default=0)
    transform_width = max((len(result.transform_text) for column in columns for result in column.results), default=0)
    printed = []
    for column in columns:
        data(column.title)
        for result in column.results:
            state = states[result.cell.content_hash]
            wanted = state.cell.n_tasks
            accuracy = result.estimate().percent
            seconds = result.estimate("cpu_seconds").mean
            said = f"{accuracy.text(unit='%'):>12}  {seconds:.2g} CPU s per task" if accuracy.n else ""
            printed.append(said)
            failed = f", {state.failed} failed" if state.failed else ""
            ended = f" (budget of {state.cell.cpu_budget:g} CPU s used up)" if state.over_budget else ""
            ended = ended if state.done < wanted else ""
            method = f"{result.label:<{method_width}}  {result.transform_text:<{transform_width}}"
            data(f"  {method}  {state.done}/{wanted}{ended}{failed}  {said}".rstrip())
            if result.n_failed:
                data(f"    the first failed with: {result.first_error}")
    told = below_nearest(journal, partial(find_bank, journal.bank_places))
    for sentence in (*footnotes("".join(printed)), *told):
        data(sentence)


@app.command("compare")
def compare(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    methods: Annotated[
        str,
        typer.Option(help="Two methods as A,B, or FILE.py:NAME; each with its options and scale if several were run."),
    ],
) -> None:
    """Print A minus B in accuracy on the tasks both have, in percentage points with a 95% interval.

    \b
    Examples:
      handful bench compare runs/one --methods paddle,batch_classifier
    """
    from handful_fewshot.benchmark.journal import Journal
    from handful_fewshot.reports.summary import columns_of, footnotes, paired_difference, results, verdict

    names = [_named(name.strip()) for name in re.split(r",(?![^(]*\))", methods)]  # not the commas between options
    if len(names) != 2:
        raise OptionError(f"--methods must be two names separated by a comma, got {methods!r}")
    found = columns_of(results(Journal(run)))
    pairs = [(column, *(_only(column.results, name) for name in names)) for column in found]
    compared = [(column, a, b) for column, a, b in pairs if a is not None and b is not None]
    if not compared:
        there = sorted({result.label for column in found for result in column.results})
        raise OptionError(f"no tasks of this run have both {names[0]} and {names[1]}; it has {', '.join(there)}")
    lines = []
    for column, a, b in compared:
        difference = paired_difference(a, b).percent
        tasks = f" on {difference.n} tasks" if difference.has_interval else ""
        points = f"{difference.text(2, '+', ' points')}{tasks}: " if difference.n else ""
        said = f"{points}{verdict(difference, a.label, b.label)}"
        lines.append(f"{column.title}: {a.label} − {b.label}: {said}")
    for line in (*lines, *footnotes("".join(lines))):
        data(line)


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[
        Path, typer.Option(help="Folder for the page, its figures, its numbers as CSV and a table in LaTeX.")
    ],
) -> None:
    """Write one self-contained page about a run, and print where it is.

    If the run compares PADDLE with its projected gradient, and its banks are still in place, a task is solved again for
    the convergence figure.

    \b
    Examples:
      handful report runs/first --out reports/first
    """
    from handful_fewshot.benchmark.journal import Journal
    from handful_fewshot.reports.page import write_report

    with bars(f"reporting {run}"):
        journal = Journal(run)
        page = write_report(journal, out, partial(find_bank, journal.bank_places))
    data(str(page))


def _only(found: Sequence[Any], name: str) -> Any:
    """Return the result of this name, which may lack scale and options if no other has them differently."""
    for names in map(attrgetter, ("label", "variant", "cell.method")):
        same = [result for result in found if names(result) == name]
        if len(labels := dict.fromkeys(result.label for result in same)) > 1:
            raise OptionError(f"this run has {', '.join(labels)}: say which {name} is meant, with what is in brackets")
        if same:
            return same[0]
    return None


def _named(text: str) -> str:
    """Return the name of a method that is given as FILE.py:NAME, with what is in brackets after it; else the text."""
    from handful_fewshot.benchmark.plan import is_place, load_method

    name, bracket, rest = text.partition(" (")
    return f"{load_method(name)}{bracket}{rest}" if is_place(name) else text


def _source(given: Mapping[str, Any]) -> str:
    """Return where the plan comes from."""
    for name, source in (("plan", TOML), ("paper", PAPER), ("method", GRID), ("resume", RUN)):
        if given.get(name):
            return source
    raise PlanError("nothing to run: give a plan in TOML, --paper NAME, or --bank and --method")


def _asked(source: str, given: Mapping[str, Any]) -> tuple[dict[str, str], BanksByName, Plan | None]:
    """Paths of the banks, the banks, and the plan; None if the run continues with its own."""
    from handful_fewshot.benchmark.journal import Journal
    from handful_fewshot.benchmark.plan import bound_plan, grid, read_plan

    places = dict(map(named_place, given.get("bank", ())))
    entries = list[dict[str, Any]]()
    named = set(places)
    if source == TOML:
        entries, in_file = read_plan(given["plan"])
        places = {**in_file, **places}
    elif source == RUN:
        places = {**Journal(given["out"]).bank_places, **places}
    elif source == GRID:
        if not places:
            raise PlanError("--method needs a bank to run on: give --bank as well")
        entries = [_grid_entry(given, places)]
    banks = {name: open_bank(place) for name, place in places.items()}
    keys = {"tasks": "tasks", "seed": "seed", "budget": "cpu_budget", "keep": "keep", "as_published": "as_published"}
    changes = {key: given[name] for name, key in keys.items() if name in given}
    if source == PAPER:
        cells = _paper_plan(given["paper"], banks, changes, given.get("method", []))
    else:
        cells = Journal(given["out"]).plan if source == RUN else grid([{**e, **changes} for e in entries], banks)
    used = {name for cell in cells for name in (cell.bank, cell.support_bank) if name}
    if unused := named - used:
        raise PlanError(
            f"no cell of the plan uses a bank named {', '.join(sorted(unused))}; it uses {', '.join(sorted(used))}: "
            "leave it out, or say which it is with --bank NAME=PATH"
        )
    return places, banks, None if source == RUN else bound_plan(cells, banks)


def _grid_entry(given: Mapping[str, Any], places: dict[str, str]) -> dict[str, Any]:
    """Return the options of a grid as an entry of a plan; a support bank is added to the places of banks."""
    names = [option.strip("-").replace("-", "_") for option in OF_A_GRID]
    entry: dict[str, Any] = {"bank": list(places), **{name: given[name] for name in names if name in given}}
    options = option_grid(entry.pop("option", []))
    varied = {key: entry.pop(key, 5) for key in ("shots", "k_eff")}
    if support := entry.get("support_bank"):
        name, place = named_place(support)
        entry["support_bank"] = name
        places[name] = place
    return {**entry, **varied, "method": given["method"], "options": options}


def _paper_plan(name: str, banks: BanksByName, given: dict[str, Any], methods: Sequence[str]) -> Plan:
    from handful_fewshot.benchmark.paper import PAPER_PLANS

    if name not in PAPER_PLANS:
        raise PlanError(f"the paper has no {name!r}; choose from {', '.join(PAPER_PLANS)}")
    sizes = {("n_tasks" if key == "tasks" else key): value for key, value in given.items()}
    plan = PAPER_PLANS[name](banks, **sizes)
    there = list(dict.fromkeys(cell.method for cell in plan))
    if absent := set(methods) - set(there):
        raise PlanError(f"the paper's {name} has no {', '.join(sorted(absent))}; it has {', '.join(there)}")
    return tuple(cell for cell in plan if cell.method in (methods or there))
