"""Runs of the benchmark: start or continue one, and say how to go on after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from handful.cli.options import HERE, is_here, workers_at
from handful.cli.terminal import Interrupted
from handful.errors import OptionError
from handful.machine.command_line import typed
from handful.progress import lines
from handful_fewshot.cli.task_options import named_place

if TYPE_CHECKING:
    from handful_fewshot.benchmark.journal import Journal
    from handful_fewshot.benchmark.plan import Banks, Plan


def carry_out(
    context: typer.Context, given: Mapping[str, Any], ask: Callable[[], tuple[dict[str, str], Banks, Plan | None]]
) -> Journal:
    """Start or continue the run in a folder, as the options of `bench run` say.

    `ask` returns the paths of the banks, the banks and the plan; None if the run continues with its own.
    """
    from handful.machine.outputs import refuse_overwriting
    from handful_fewshot.benchmark.completion import complete, refuse_a_mix
    from handful_fewshot.benchmark.journal import PLAN_FILE, Journal
    from handful_fewshot.benchmark.run import CPU, usable_device

    out = Path(given["out"])
    on = given.get("on", HERE)
    resume = given.get("resume", False)
    device = usable_device(given.get("device", CPU))
    workers = workers_at(on)
    in_files = [method for method in given.get("method", ()) if ".py:" in method]
    if in_files and not is_here(on):
        raise OptionError(f"a cluster needs methods in a package; leave out --on, or install {', '.join(in_files)}")
    refuse_overwriting(_read(given, in_files), {"run": out})
    begun = False
    there = (out / PLAN_FILE).exists()
    try:
        places, banks, cells = ask()
        absolute = {name: str(Path(place).absolute()) for name, place in places.items()}
        go_on = resume and there
        journal = Journal(out) if cells is None or go_on else Journal.create(out, cells, absolute)
        with journal.writing():
            if go_on and cells is not None:
                refuse_a_mix(journal, cells)  # before its plan is changed
                journal.extend(cells, absolute)
            begun = True
            with lines():
                complete(journal, banks, workers, device=device)
    except KeyboardInterrupt:
        if not (begun or (not there and (out / PLAN_FILE).exists())):
            raise Interrupted("interrupted before anything was changed; run the same command again") from None
        command = ["handful", "bench", str(context.command.name), "--resume", "--out", str(out)]
        command += ["--on", on] if on != HERE else []
        command += ["--device", device] if device != CPU else []
        again = "the same command and --resume" if in_files else typed(command)
        raise Interrupted(f"interrupted; rows that were written are kept. Continue with: {again}") from None
    return journal


def end_with_failures(journal: Journal) -> None:
    """Exit with 1 if there is something to try again, or a cell without a single answer."""
    from handful_fewshot.benchmark.completion import progress

    if any(state.done < state.wanted or 0 < state.failed == state.done for state in progress(journal)):
        raise typer.Exit(1)


def _read(given: Mapping[str, Any], in_files: Sequence[str]) -> dict[str, str | Path | None]:
    """Return the paths that a run reads, by what a message calls them: plan, banks, and methods in files."""
    from handful_fewshot.benchmark.journal import banks_at

    banks = [*given.get("bank", ()), *([given["support_bank"]] if "support_bank" in given else [])]
    files = {f"method {name}": name.rpartition(":")[0] for name in in_files}
    return {"plan": given.get("plan"), **banks_at(dict(map(named_place, banks))), **files}
