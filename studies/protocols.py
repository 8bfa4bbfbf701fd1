"""Protocols of today: every method where the number of classes, their order and their membership vary.

    python studies/protocols.py DATA [--tasks 100] [--seconds 20] [--banks clinc150 ...] [--methods paddle ...]
    python studies/protocols.py --render

DATA is a folder that holds the banks. Tasks have 5 examples of each class of the bank.

- **Ranges**: batches of 64 with 1-4, 2-10 or 5-25 classes, and of 1,000 with 25-50 or 50-100; the number is drawn for
  each task, then rows from the pooled rows of that many classes.
- **All classes**: 1,000 rows of the pool of all classes.
- **Balanced, Dirichlet**: batches of 75 with 5 classes, the same number of each or in shares of a Dirichlet of
  parameter 2.
- **Streams**: batches of 64 of streams of 20; all classes take part. The items of each class are spread over 100 slots
  in proportions of a Dirichlet of parameter 0.1, 0.01 or 0.001.
- **Open**: batches of 75 with 5 classes of the catalogue; three classes are taken out of it and have 30% of the batch.

The ranges are those of StatA (CVPR 2025), with examples in place of names. Of its streams the slots are assumed: their
number, and that classes follow one another within a slot.

Methods have their default options; those that weigh distances against nats stand at the found scale too. A cell is a
method on a protocol of a bank. Its tasks are the first of one list, the same for every method: as many as asked for, or
as fit in `--seconds` of CPU time, at least one. A kept cell is measured again if it has fewer tasks than asked for now,
unless it was stopped by as long a time. Figures of fewer than five tasks are not shown.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import handful
import handful_fewshot as fewshot
from handful_fewshot.benchmark.score import score
from handful_fewshot.reports.summary import FEW_TASKS, TaskMean, footnotes
from handful_fewshot.reports.tables import markdown_table
from handful_fewshot.transforms import method_at, parameters_of, scale_name
from pages import Page, dots, file_of, keep, kept, mean

RESULTS = Path(__file__).parent / "results" / "protocols"
BANKS = {"clinc150": "clinc150-minilm", "caltech101": "caltech101-efflite0", "cub200": "cub200-efflite0"}
SHOTS = fewshot.ShotsPerClass(5)
ENOUGH = 1000  # rows and classes with which a bank has every protocol
RANGES = {64: ((1, 4), (2, 10), (5, 25)), 1000: ((25, 50), (50, 100))}
CORRELATIONS = (0.1, 0.01, 0.001)
OPEN = fewshot.UnknownClasses(count=3, share=0.3)
# Methods that a table of protocols cannot have, and why.
EXCLUDED: Mapping[str, str] = {}
# Methods whose features have unit length or are centred, and whose constants are tuned to that, are not at the found
# scale; these weigh distances against nats, so that the scale is one of their options.
SCALED = ("nearest_prototype", "paddle", "soft_kmeans", "prior_em", "paddle_gd", "sparse_em")
FOUND = "found_scale"
CHUNK_TASKS, FEWEST_TASKS = 20, 5
OPEN_FIGURES = ("unknown_auroc", "known_rejected")
Cell = dict[str, Any]


def protocols(sizes: npt.NDArray[np.int64]) -> dict[str, fewshot.TaskSpec]:
    """Return the protocols that a bank with classes of these sizes has rows for, whatever classes are drawn."""
    n_classes = len(sizes)
    free = np.sort(sizes) - SHOTS.shots
    found = {
        f"{low}-{high} of {size:,}": fewshot.TaskSpec(SHOTS, fewshot.UniformOverPool((low, high)), size)
        for size, ranges in RANGES.items()
        for low, high in ranges
        if high <= n_classes and free[:low].sum() >= size
    }
    found["all of 1,000"] = fewshot.TaskSpec(SHOTS, fewshot.UniformOverPool(n_classes), 1000)
    found["5 balanced"] = fewshot.TaskSpec(SHOTS, fewshot.Balanced(5), 75)
    found["5 Dirichlet"] = fewshot.TaskSpec(SHOTS, fewshot.Dirichlet(5), 75)
    for c in CORRELATIONS:
        found[f"stream {c:g}"] = fewshot.TaskSpec(SHOTS, fewshot.CorrelatedStream(n_classes, concentration=c), 64)
    found["open"] = fewshot.TaskSpec(SHOTS, fewshot.UniformOverPool(5), 75, unknown=OPEN)
    return found


@dataclass(frozen=True)
class Row:
    """A method at a scale."""

    method: str
    transform: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """How the page calls it."""
        return method_at(self.method, scale_name(self.transform), *(f"{k}={v}" for k, v in self.options.items()))


def rows_of_methods() -> Iterator[Row]:
    """Yield all methods at their own transform, or unit length if that needs base classes, and some at another."""
    for name, method in fewshot.METHODS.items():
        if name in EXCLUDED:
            continue
        own = "l2" if "base_mean" in parameters_of(method.transform) else method.transform
        yield Row(name, own)
        if name in SCALED and own != FOUND:
            yield Row(name, FOUND)
        if name == "eol":
            yield Row(name, own, {"marginal_weight": 0.0})


def measured(bank: handful.FeatureBank, row: Row, spec: fewshot.TaskSpec, n_tasks: int, seconds: float) -> Cell:
    """Solve the first tasks of a protocol, as many as fit in the time."""
    found: dict[str, list[float]] = {}
    began, done, step = time.process_time(), 0, 1
    while done < n_tasks:
        more = min(step, n_tasks - done)
        spent = time.process_time() - began
        if done and spent * (done + more) / done > seconds:
            break
        drawn = fewshot.draw(bank.labels, spec, 0, range(done, done + more))
        task, truth = fewshot.gather(bank, drawn)
        scores = score(fewshot.solve(row.method, fewshot.transform(row.transform, task), **row.options), truth)
        for name in ("accuracy", *(OPEN_FIGURES if spec.unknown else ())):
            found.setdefault(name, []).extend(getattr(scores, name).tolist())
        done += more
        step = min(2 * step, CHUNK_TASKS)
    figures = {name: TaskMean.of(np.array(values)).percent for name, values in found.items()}
    return {
        **{
            name: [round(of.mean, 3), round(of.half_width, 3)]
            for name, of in figures.items()
            if np.isfinite(of.half_width)
        },
        "tasks": done,
        "asked": n_tasks,
        "cpu_seconds": round((time.process_time() - began) / done, 4),
        "seconds": seconds,
    }


def measure(data: Path, name: str, n_tasks: int, seconds: float, methods: Sequence[str]) -> None:
    """Measure the cells of a bank that are not kept, and keep each at once."""
    import_module("sklearn.metrics")  # takes seconds, which would count for the first open batch
    bank = handful.read_bank(data / BANKS[name])
    found: dict[str, dict[str, Cell]] = kept(RESULTS, [name]).get(name, {})
    for row in rows_of_methods():
        for protocol, spec in protocols(np.bincount(bank.labels)).items():
            known = found.get(row.title, {}).get(protocol, {"tasks": 0, "asked": 1, "seconds": 0})
            stopped = known["tasks"] < known["asked"] and known["seconds"] >= seconds
            if row.method not in methods or known["tasks"] >= n_tasks or stopped:
                continue
            cell = measured(bank, row, spec, n_tasks, seconds)
            found = kept(RESULTS, [name]).get(name, {})
            found.setdefault(row.title, {})[protocol] = cell
            keep(file_of(RESULTS, name), found)
            print(name, row.title, protocol, cell, flush=True)


# ---------------------------------------------------------------------------------------------------------------------

Found = Mapping[str, Mapping[str, Mapping[str, Cell]]]


def titles(found: Found) -> list[str]:
    """Return the rows of the table: those that were measured, in the order of `METHODS`."""
    there = {title for of in found.values() for title in of}
    return [row.title for row in rows_of_methods() if row.title in there]


def columns(found: Found) -> list[str]:
    """Return the protocols that were measured, in their order."""
    order = protocols(np.full(ENOUGH, ENOUGH))  # a bank that has all of them
    return [name for name in order if any(name in cells for of in found.values() for cells in of.values())]


def having(found: Found) -> str:
    """Say which banks have a protocol that not all have."""
    of = {
        name: [bank for bank, rows in found.items() if any(name in c for c in rows.values())] for name in columns(found)
    }
    return "; ".join(f"{name} only {' and '.join(banks)}" for name, banks in of.items() if len(banks) < len(found))


def over_banks(found: Found, title: str, protocol: str, figure: str = "accuracy") -> TaskMean | None:
    """Mean over the banks that have the protocol, `√(Σ h_b²) / B` as half width, and the fewest tasks of a bank."""
    cells = [of.get(title, {}).get(protocol) for of in found.values() if any(protocol in c for c in of.values())]
    if not cells or any(cell is None or figure not in cell or cell["tasks"] < FEWEST_TASKS for cell in cells):
        return None
    means, halves = zip(*(cell[figure] for cell in cells if cell), strict=True)
    half_width = float(np.sqrt(np.square(halves).sum()) / len(halves))
    return TaskMean(mean(means), half_width, min(cell["tasks"] for cell in cells if cell))


def entry(estimate: TaskMean | None) -> str:
    """Return an estimate as the table has it."""
    return "–" if estimate is None else estimate.text()


def table(found: Found) -> str:
    """Methods down, protocols across; of open batches the accuracy on known items, the AUROC and what is rejected."""
    names = columns(found)
    extra = ["AUROC", "known rejected"] if "open" in names else []
    lines = []
    for title in titles(found):
        line = [title, *(entry(over_banks(found, title, name)) for name in names)]
        lines.append(line + [entry(over_banks(found, title, "open", figure)) for figure in OPEN_FIGURES[: len(extra)]])
    text = markdown_table(["method", *names, *extra], lines)
    return "\n\n".join([text, *footnotes(text)])


def best(found: Found, protocol: str, figure: str = "accuracy") -> str:
    """Say which method has the highest mean, and that of the nearest prototype."""
    means = {title: over_banks(found, title, protocol, figure) for title in titles(found)}
    there = {title: estimate for title, estimate in means.items() if estimate is not None}
    if not there:
        return ""
    title = max(there, key=lambda name: there[name].mean)
    return f"{protocol}: `{title}` {there[title].text()}"


def shows(found: Found) -> str:
    """Say who is highest where, and what a threshold does beside methods made for open batches."""
    highest = "; ".join(filter(None, (best(found, name) for name in columns(found))))
    said = f"Highest means ({highest})."
    aurocs = {title: over_banks(found, title, "open", "unknown_auroc") for title in titles(found)}
    rejecting = {title: of for title, of in aurocs.items() if of and fewshot.METHODS[title.split(" ")[0]].rejects}
    if rejecting:
        said += " AUROC of unknown items of methods that reject: "
        said += ", ".join(f"`{title}` {of.text()}" for title, of in rejecting.items()) + "."
    eol = [over_banks(found, t, "5 Dirichlet") for t in titles(found) if t.startswith("eol")]
    if len(eol) == 2 and all(eol):
        with_it, without = (of.text() for of in eol if of)
        said += (
            f" `eol` raises the classes that do not occur: with 5 classes in shares of a Dirichlet it has {with_it}, "
            f"and {without} without the term that does so."
        )
    return said


def runs(found: Found) -> Iterator[str]:
    """Yield what the command was told: the shortest time for all methods, longer ones for some."""
    given: dict[tuple[float, int], dict[str, None]] = {}
    for title, cells in (row for of in found.values() for row in of.items()):
        for cell in cells.values():
            given.setdefault((cell["seconds"], cell["asked"]), {})[title.split(" ")[0]] = None
    for place, ((seconds, asked), methods) in enumerate(sorted(given.items())):
        only = f" --methods {' '.join(methods)}" if place else ""
        yield f"--tasks {asked:g} --seconds {seconds:g}{only}"


def page() -> Page:
    """Make the page from what was kept."""
    found: Found = kept(RESULTS, BANKS)
    few = sum(cell["tasks"] < FEW_TASKS for of in found.values() for cells in of.values() for cell in cells.values())
    n_cells = sum(len(cells) for of in found.values() for cells in of.values())
    names = columns(found)
    absent = [
        f"`{row.title}` ({', '.join(banks)})"
        for row in rows_of_methods()
        if (banks := [bank for bank, of in found.items() if row.title not in of])
    ] + [bank for bank in BANKS if bank not in found]

    return Page(
        name="protocols",
        title="Protocols of today",
        question=(
            "What is left of each method where the number of classes varies, where batches are pieces of a stream, and "
            "where some items have no class? Accuracy in percent, the mean over "
            f"{', '.join(found)} with the 95% interval over tasks; batches of 64 or 1,000 items have the number of "
            "classes in the column's name. *stream* has the concentration of the Dirichlet slots: the smaller, the "
            "fewer classes a batch has. *5 balanced*, *5 Dirichlet* and *open* are batches of 75; of *open*, accuracy "
            "is that of known items, and the last two columns have the AUROC of the unknown ones and the share of "
            "known ones that are rejected. A bank whose smallest classes have too few rows lacks a protocol: "
            f"{having(found) or 'none is missing'}."
        ),
        alt="Accuracy of every method on every protocol: one dot per protocol, a mark for the mean",
        figure=lambda: dots(
            {
                title: {"accuracy": accuracies}
                for title in titles(found)
                if (accuracies := [of.mean for name in names if (of := over_banks(found, title, name)) is not None])
            },
            "percent right: a dot per protocol, and their mean\n"
            "(† most have fewer than 100 tasks; some lack large batches)",
        ),
        table=table(found),
        shows=shows(found),
        limits=(
            f"Of {n_cells} cells {few} have fewer than {FEW_TASKS} tasks: a time budget stops slow methods. No option "
            "was tuned on these protocols, but `batch_classifier` and `found_scale` were built on these banks. The "
            "batches of a stream are solved one by one: no method carries anything from one to the next. "
            + (f"Not measured yet: {', '.join(absent)}. " if absent else "")
            + " ".join(f"`{name}` is left out: {why}." for name, why in EXCLUDED.items())
        ).strip(),
        made=(
            "The ranges of classes and the streams are those of StatA (CVPR 2025), with five examples of each class in "
            "place of its name, so its published figures do not stand beside these. That a stream has 100 slots, and "
            "that classes follow one another within a slot, is assumed. `cl2n` needs base classes, so `l2` stands in "
            "its place. The docstring of `studies/protocols.py` has the rest."
        ),
        commands=[
            *(f"python studies/protocols.py DATA --banks {' '.join(found)} {more}" for more in runs(found)),
            "python studies/protocols.py --render",
        ],
        rows=[
            {
                "bank": bank,
                "method": title,
                "protocol": protocol,
                **{name: tuple(value) if isinstance(value, list) else value for name, value in cell.items()},
            }
            for bank, of in found.items()
            for title, cells in of.items()
            for protocol, cell in cells.items()
        ],
    )


def main() -> None:
    """Measure what is missing, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="folder that holds the banks")
    parser.add_argument("--tasks", type=int, default=1000, help="tasks of each cell")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds of each cell")
    parser.add_argument("--banks", nargs="+", choices=list(BANKS), default=list(BANKS))
    parser.add_argument("--methods", nargs="+", choices=list(fewshot.METHODS), default=list(fewshot.METHODS))
    parser.add_argument("--render", action="store_true", help="write the page from what is kept")
    given = parser.parse_args()
    if given.data is None and not given.render:
        parser.error("name the data, or --render")
    torch.set_num_threads(1)
    with warnings.catch_warnings(action="ignore"):
        for name in given.banks if given.data is not None else ():
            measure(given.data, name, given.tasks, given.seconds, given.methods)
    page().write()


if __name__ == "__main__":
    main()
