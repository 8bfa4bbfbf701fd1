"""`handful demo`: tasks of the packaged bank, five methods, one page, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handful.cli.terminal import data, waiting

if TYPE_CHECKING:
    from handful.fewshot.reports.summary import Column

# One that labels each item alone, and four that label jointly: three cheap ones and the default.
YARDSTICK = "nearest_prototype"
METHODS = (YARDSTICK, "laplacian_shot", "soft_kmeans", "paddle", "roll_call")
K_EFF = (2, 5, 20)
NEXT = """\
What to do next:
  handful classify --help    label your own photographs, sentences or vectors
  handful bench run --help   compare methods on your own data
  handful doctor             list what is installed, and any problems with it
  python -m pydoc handful.BatchClassifier
                             the same in Python, with an example"""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the run and its page; it must not exist yet.")] = Path(
        "handful-demo"
    ),
    tasks: Annotated[int, typer.Option(min=2, help="Tasks for each method and each number of classes present.")] = 30,
) -> None:
    """Compare five methods on real sentences, write a report, and suggest what to do next. Takes about a minute.

    \b
    Examples:
      handful demo
      handful demo --tasks 10 --out /tmp/demo
    """
    from handful.datasets import load_clinc150
    from handful.fewshot.benchmark.completion import complete
    from handful.fewshot.benchmark.journal import Journal
    from handful.fewshot.benchmark.plan import Cell, bound_plan
    from handful.fewshot.reports.page import write_report
    from handful.fewshot.reports.summary import columns_of, results
    from handful.fewshot.tasks import Balanced, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, draw
    from handful.machine.extras import import_extra

    import_extra("matplotlib", "plots")  # checked before the work, which would be lost
    bank = load_clinc150()
    data(
        f"A catalogue of {bank.n_classes} intents of a voice assistant, five sentences each.\n"
        f"A batch of 75 new ones arrives, in which {', '.join(map(str, K_EFF[:-1]))} or {K_EFF[-1]} of them occur.\n"
        f"{tasks} such tasks each; accuracy in percent, and the gain over labelling each sentence alone."
    )
    # One catalogue for all batches, as a user has one: `roll_call` then trains once and not for every batch.
    drawn = draw(bank.labels, TaskSpec(ShotsPerClass(5), Balanced(1), 1), seed=0, indices=[0])
    catalogue = FixedSupport(drawn.support[0])
    cells = [
        Cell("clinc150", TaskSpec(catalogue, UniformOverPool(k_eff), 75), method, n_tasks=tasks)
        for k_eff in K_EFF
        for method in METHODS
    ]
    banks = {"clinc150": bank}
    journal = Journal.create(out / "five-methods", bound_plan(cells, banks))
    with waiting("solving"):
        complete(journal, banks)
        columns = columns_of(results(journal))
        page = write_report(journal, out / "report")
    for column in columns:
        data("")
        for line in _lines(column):
            data(line)
    data(f"\nThe report: {page}\n\n{NEXT}")


def _lines(column: Column) -> list[str]:
    """One line per method: its accuracy, and the gain from the batch."""
    from handful.fewshot.reports.summary import paired_difference

    alone = next(result for result in column.results if result.label == YARDSTICK)
    lines = [f"{column.spec.query.k_eff} intents occur"]
    for result in column.results:
        difference = paired_difference(result, alone).percent
        gain = "each sentence alone" if result is alone else f"{difference.said(sign='+'):>10}"
        if not len(result.tasks):
            lines.append(f"  {result.label:<20}failed on every task: {result.first_error}")
            continue
        believed = result.estimate("n_predicted").mean
        lines.append(
            f"  {result.label:<20}{100 * result.estimate().mean:5.1f}  {gain:<20}  finds {believed:.1f} intents"
        )
    return lines
