"""`handful bench`: make a plan, run what is left of it, say how far it is, compare methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from handful.benchmark.completion import Progress as CellProgress
from handful.benchmark.completion import complete, progress
from handful.benchmark.journal import Journal
from handful.benchmark.local import in_process
from handful.benchmark.on_ray import on_ray
from handful.benchmark.paper import PAPER_PLANS
from handful.benchmark.plan import Banks, Plan, bound_plan, grid, read_plan
from handful.cli.banks import open_bank
from handful.cli.places import HERE, On, executor_at
from handful.cli.rate import Rate
from handful.cli.terminal import data
from handful.errors import OptionError, PlanError
from handful.reports.summary import columns_of, paired_difference, results

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Benchmarks: many methods on the same tasks, resumable."
)


@app.callback()
def bench() -> None:
    """Benchmarks: many methods on the same tasks, resumable."""


@app.command("run")
def run(
    out: Annotated[Path, typer.Option(help="Folder of the run.")],
    plan: Annotated[Path | None, typer.Argument(help="A plan in TOML.", show_default=False)] = None,
    paper: Annotated[
        str | None, typer.Option(help=f"A plan of the paper: {', '.join(PAPER_PLANS)}.", show_default=False)
    ] = None,
    bank: Annotated[
        list[str] | None,
        typer.Option(help="A bank, as PATH or NAME=PATH; clinc150 comes with the package. Repeat for several."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="A method; with --paper, only these of its methods. Repeat for several.")
    ] = None,
    shots: Annotated[list[int] | None, typer.Option(help="Support rows of each class. Repeat for several.")] = None,
    k_eff: Annotated[list[int] | None, typer.Option(help="Classes that may occur in a query. Repeatable.")] = None,
    n_query: Annotated[int, typer.Option(help="Rows to label in each task.")] = 75,
    split: Annotated[str, typer.Option(help="Split whose classes take part; all classes if left out.")] = "",
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Tasks of each cell; by default what the plan says.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the sequence of tasks.", show_default=False)] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Seconds of processor time a cell may take; the first tasks are done.", show_default=False),
    ] = None,
    on: On = HERE,
    workers: Annotated[int, typer.Option(min=1, help="Threads when running here; each range of tasks uses one.")] = 1,
    resume: Annotated[
        bool, typer.Option(help="Go on with the run in --out; its own plan holds if none is given.")
    ] = False,
) -> None:
    """Run a plan: a TOML file, one of the paper's, or a grid of methods, shots and K_eff.

    Exits with 1 if every task of some cell failed.

    \b
    Examples:
      handful bench run --bank clinc150 --method paddle --method tim_adm --k-eff 2 --k-eff 10 --tasks 50 --out runs/one
      handful bench run --paper table1 --bank mini=mini.bank --bank tiered=tiered.bank --budget 3600 --out runs/table1
      handful bench run --paper table1 --bank mini=mini.bank --method paddle --method baseline --out runs/two_rows
      handful bench run plan.toml --out runs/mine --on ray
      handful bench run --resume --out runs/mine
    """
    executor = executor_at(on, lambda: in_process(workers), on_ray, {"--workers": workers != 1})
    places = dict(map(_named, bank or []))
    changes = {"tasks": tasks, "seed": seed, "cpu_budget": budget}
    given = {name: value for name, value in changes.items() if value is not None}
    if plan is not None and (paper is not None or method):
        raise PlanError("a plan in TOML says all by itself; leave out --paper and --method")
    if plan is not None:
        entries, in_file = read_plan(plan)
        places = {**in_file, **places}
    elif method and paper is None:
        kinds = {"shots": shots or [5], "k_eff": k_eff or [5], "method": method}
        entries = [{"bank": list(places), "split": split, "n_query": n_query, **kinds}]
    elif paper is None and resume:
        if given:
            raise PlanError("to change a run give its plan again, with --resume; --resume alone goes on as before")
        places = {**Journal(out).bank_places, **places}
    elif paper is None:
        raise PlanError("nothing to run: give a plan in TOML, --paper NAME, or --bank and --method")
    banks = {name: open_bank(place) for name, place in places.items()}
    if plan is None and paper is None and not method:
        journal = Journal(out)
    else:
        cells = (
            _paper_plan(paper, banks, given, method or [])
            if paper is not None
            else grid([{**entry, **given} for entry in entries], banks)
        )
        journal = _journal(out, bound_plan(cells, banks), places, resume=resume)
    with _bars(progress(journal)) as on_progress:
        complete(journal, banks, executor, on_progress=on_progress)
    status(out)
    if any(0 < state.failed == state.done for state in progress(journal)):
        raise typer.Exit(1)  # a cell without a single answer


@app.command("status")
def status(run: Annotated[Path, typer.Argument(help="Folder of a run.")]) -> None:
    """Print how far each cell is: method, tasks done and wanted, failures, mean accuracy, seconds a task.

    \b
    Examples:
      handful bench status runs/one
    """
    journal = Journal(run)
    states = {state.cell.content_hash: state for state in progress(journal)}
    for column in columns_of(results(journal)):
        data(column.title)
        for result in column.results:
            state = states[result.cell.content_hash]
            accuracy, seconds = result.estimate(), result.estimate("seconds")
            said = (
                f"{100 * accuracy.mean:5.1f} ± {100 * accuracy.half_width:.1f} %  {seconds.mean:.2g} s a task"
                if accuracy.n
                else ""
            )
            failed = f", {state.failed} failed" if state.failed else ""
            ended = " (budget used up)" if state.over_budget and state.done < state.cell.n_tasks else ""
            data(f"  {result.label:<32} {state.done}/{state.wanted}{ended}{failed}  {said}".rstrip())
            if state.failed:
                data(f"    the first failed with: {result.first_error}")


@app.command("compare")
def compare(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    methods: Annotated[str, typer.Option(help="Two methods, as A,B.")],
) -> None:
    """Print A minus B in accuracy on the tasks both have, in percentage points with a 95 % interval.

    \b
    Examples:
      handful bench compare runs/one --methods paddle,tim_adm
    """
    names = [name.strip() for name in methods.split(",")]
    if len(names) != 2:
        raise OptionError(f"--methods must be two names with a comma between, got {methods!r}")
    found = columns_of(results(Journal(run)))
    pairs = [(column, *(_only(column.results, name) for name in names)) for column in found]
    compared = [(column, a, b) for column, a, b in pairs if a is not None and b is not None]
    if not compared:
        there = sorted({result.label for column in found for result in column.results})
        raise OptionError(f"no tasks of this run have both {names[0]} and {names[1]}; it has {', '.join(there)}")
    for column, a, b in compared:
        difference = paired_difference(a, b)
        verdict = "tie" if difference.holds_zero else (names[0] if difference.mean > 0 else names[1])
        points = f"{100 * difference.mean:+.2f} ± {100 * difference.half_width:.2f}"
        data(f"{column.title}: {points} points on {difference.n} tasks: {verdict}")


def _only(found: Sequence[Any], name: str) -> Any:
    """Return the result whose label or method this is."""
    exact = [result for result in found if result.label == name]
    return next(iter(exact or [result for result in found if result.cell.method == name]), None)


def _paper_plan(name: str, banks: Banks, given: dict[str, Any], methods: Sequence[str]) -> Plan:
    if name not in PAPER_PLANS:
        raise PlanError(f"the paper has no {name!r}; there are {', '.join(PAPER_PLANS)}")
    sizes = {("n_tasks" if key == "tasks" else key): value for key, value in given.items()}
    plan = PAPER_PLANS[name](banks, **sizes)
    there = list(dict.fromkeys(cell.method for cell in plan))
    if absent := set(methods) - set(there):
        raise PlanError(f"the paper's {name} has no {', '.join(sorted(absent))}; it has {', '.join(there)}")
    return tuple(cell for cell in plan if cell.method in (methods or there))


def _named(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    return (name, place) if equals else (Path(text).stem, text)


def _journal(out: Path, plan: Plan, places: dict[str, str], *, resume: bool) -> Journal:
    """Start the run, or give one that is there this plan."""
    if resume and out.exists():
        journal = Journal(out)
        journal.extend(plan)
        return journal
    return Journal.create(out, plan, {name: str(Path(place).absolute()) for name, place in places.items()})


@contextmanager
def _bars(states: list[CellProgress]) -> Iterator[Callable[[CellProgress], None]]:
    """Show how far the run and the cell at work are, with rate and time left; silent where nobody looks."""
    console = Console(stderr=True)
    counts = {state.cell.content_hash: (state.done, state.wanted) for state in states}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate("tasks"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, speed_estimate_period=30) as bars:
        overall = bars.add_task("all cells", completed=sum(n for n, _ in counts.values()))
        one = bars.add_task("")
        shown = ""

        def report(state: CellProgress) -> None:
            nonlocal shown
            key = state.cell.content_hash
            if key != shown:
                words = f"{state.cell.method} on {state.cell.bank}"
                bars.reset(one, description=words, completed=counts[key][0], total=state.wanted)
                shown = key
            counts[key] = (state.done, state.wanted)
            bars.update(one, completed=state.done, total=state.wanted)
            done, wanted = (sum(numbers) for numbers in zip(*counts.values(), strict=True))
            bars.update(overall, completed=done, total=wanted)

        yield report
