"""Write pages from what `banks_study.py` kept: python studies/study_page.py.

They are `docs/measured/study.md`, and the table of `docs/understand/methods/paddle.md` that has the paper's numbers
beside ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from banks_study import K_EFFS, QUICK, SLOW
from handful_fewshot import METHODS
from handful_fewshot.benchmark.paper import PAPER_METHODS, SHOTS, TRANSFORMS, printed_accuracy
from handful_fewshot.reports import plots
from handful_fewshot.reports.summary import FEW_MARK, FEW_TASKS, footnotes
from handful_fewshot.reports.tables import markdown_table
from handful_fewshot.transforms import method_at, scale_name
from pages import Page, mean
from study_kept import PADDLE_LABEL, SCALED_LABEL, Kept, Study, load, value_of

QUESTION = """\
What do the methods of the paper gain on data that anyone can get? The table has points gained over `nearest_prototype`
on the same tasks, as means over the banks that a method was run on. All K classes of a bank are in the support, and a
query has 75 items, or as many as the smallest classes allow. In brackets is the scale of the features. Settings are the
published ones; *unit length × 5* is PADDLE on unit vectors times 5, a number found on some of these banks."""
MADE = """\
Seven banks: sentences (clinc150, banking77, hwu64) encoded by MiniLM, photographs (caltech101, cub200, tinyimagenet200)
by EfficientNet-Lite0, and the characters of omniglot659 by a Conv-4 that was not trained on their alphabets. Quick
methods have 40 tasks per cell, slow ones the first of these, as many as six CPU seconds allow and two at least. The
stages, among them those on |Q|, on λ and on the slow methods, are in the docstring of `studies/banks_study.py`."""
COLUMNS = {
    "5 shots, K_eff = 5": (5, True),
    "10 shots, K_eff = 5": (10, True),
    "20 shots, K_eff = 5": (20, True),
    "5 shots, all K allowed": (5, False),
}
PADDLE_PAGE = Path(__file__).resolve().parents[1] / "docs" / "understand" / "methods" / "paddle.md"
BESIDE = ("<!-- table by studies/study_page.py -->\n\n", "\n\n<!-- end of table -->")
# Columns of the paper with ResNet-18, and of ours: many classes of photographs, of species, and of sentences.
PAPER_COLUMNS = {"mini": "mini-ImageNet, K = 20", "tiered": "tiered-ImageNet, K = 160", "inat": "iNat, K = 227"}
OUR_COLUMNS = {
    "tinyimagenet200-efflite0": "tinyimagenet200, K = 200",
    "cub200-efflite0": "cub200, K = 200",
    "clinc150-minilm": "clinc150, K = 150",
}


def part(study: Study, shots: int, few: bool) -> Study:
    """Return the cells with five classes present, or with all of them."""
    usual = study.where(weighted=False, shots=shots).usual
    return Study([r for r in usual.found if (value_of(r, "k_eff") == 5 if few else value_of(r, "k_eff") not in K_EFFS)])


def gains(study: Study, label: str) -> list[float]:
    """Points that a method gains over nearest prototype, cell by cell."""
    return [100 * r.gain.mean for r in study.where(label=label).found if "gain" in r.entry]


def mark(study: Study, label: str) -> str:
    """Mark a method that has few tasks in some cell."""
    return FEW_MARK if any(r.gain.mark for r in study.where(label=label).found if "gain" in r.entry) else ""


def table(study: Study) -> str:
    """Render mean gains by method."""
    parts = {title: part(study, *which) for title, which in COLUMNS.items()}
    lines = []
    for label in study.labels:
        found = [(gains(of, label), mark(of, label)) for of in parts.values()]
        if not label.startswith("nearest_prototype"):
            lines.append([label, *(f"{mean(of):+.1f}{few} ({len(of)})" if of else "–" for of, few in found)])
    text = markdown_table(["method", *(f"{title} (banks)" for title in COLUMNS)], lines)
    few = f"{FEW_MARK} Fewer than {FEW_TASKS} tasks on at least one bank, too few to rank methods that are close."
    measured = {r.cell.method for r in study.found}
    missing = [name for name in (*QUICK, *SLOW) if name not in measured]
    return "\n\n".join([text, *([f"Not yet measured: {', '.join(missing)}."] if missing else []), few])


def beside_the_paper(study: Study) -> str:
    """Render accuracies with 5, 10 and 20 shots: the columns of the paper's tables, then ours."""
    lines = []
    for method, name in PAPER_METHODS.items():
        ours = Study([r for r in study.where(method=method).found if r.label != SCALED_LABEL])
        paper = [_printed(bank, method) for bank in PAPER_COLUMNS]
        measured = [_measured(ours.where(bank=bank)) for bank in OUR_COLUMNS]
        theirs = scale_name(TRANSFORMS.get(method, METHODS[method].transform))
        (here,) = {r.scale for r in ours.found}
        scale = here if here == theirs else f"paper's code: {theirs}; here: {here}"
        lines.append([method_at(name, scale), *paper, *measured])
    titles = [f"paper: {title}" for title in PAPER_COLUMNS.values()] + [
        f"here: {title}" for title in OUR_COLUMNS.values()
    ]
    text = markdown_table(["method", *titles], lines)
    return "\n\n".join([text, *footnotes(text)])


def _printed(bank: str, method: str) -> str:
    shots = (None,) if bank == "inat" else SHOTS
    found = [printed_accuracy(bank, of, method) for of in shots]
    return " / ".join("–" if accuracy is None else f"{accuracy:.1f}" for accuracy in found)


def _measured(study: Study) -> str:
    return " / ".join(r.estimate().percent.text() for shots in SHOTS for r in part(study, shots, True).found)


def write_beside_the_paper() -> None:
    """Put the table into the page of PADDLE."""
    text = PADDLE_PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BESIDE[0])
    after = rest.split(BESIDE[1])[1]
    table = beside_the_paper(load().where(weighted=False))
    PADDLE_PAGE.write_text(before + BESIDE[0] + table + BESIDE[1] + after, encoding="utf-8")


def shows(study: Study) -> str:
    """Say what was found; the numbers are taken from the cells."""
    few = Study([r for shots in (5, 10, 20) for r in part(study, shots, True).found])
    everything = part(study, 5, False)
    return (
        f"With five classes present, PADDLE as published is above nearest prototype in {_above(few, PADDLE_LABEL)} "
        f"columns (bank and shots), and on unit vectors times 5 in {_above(few, SCALED_LABEL)}: the scale of the "
        "features decides, and nothing in the published method finds it. The gain comes from the partition term, as in "
        f"the paper: {_partition(few)}. Methods that expect balance are misled by few classes. "
        f"With all classes allowed, PADDLE as published gains {_range(gains(everything, PADDLE_LABEL))} points, "
        f"on unit vectors times 5 {_range(gains(everything, SCALED_LABEL))}, EM for the prior at the published scale "
        f"{_range([100 * r.gain.mean for r in everything.where(method='prior_em').found])}. More "
        "queries may help or ruin it: from 75 queries of ten classes to the most a bank has, PADDLE as published "
        f"changes by {_growth(study, PADDLE_LABEL)} points."
    )


def _above(study: Study, label: str) -> str:
    found = study.where(label=label).found
    return f"{sum(r.gain.mean > r.gain.half_width for r in found)} of {len(found)}"


def _range(values: Sequence[float]) -> str:
    return f"{min(values):+.1f} to {max(values):+.1f}"


def _partition(study: Study) -> str:
    apart = [
        100 * (with_it.estimate().mean - without.estimate().mean)
        for with_it in study.where(label=PADDLE_LABEL).found
        for without in study.where(method="soft_kmeans", bank=with_it.cell.bank).found
        if without.cell.spec == with_it.cell.spec
    ]
    return f"without it, accuracy is {mean(apart):.1f} points lower on average ({_range(apart)})"


def _growth(study: Study, label: str) -> str:
    swept, changes = study.where(shots=5, k_eff=10, label=label), []
    for bank in swept.banks:
        by_size = {value_of(r, "n_query"): 100 * r.estimate().mean for r in swept.where(bank=bank).found}
        if max(by_size) > 75:
            changes.append(by_size[max(by_size)] - by_size[75])
    return _range(changes)


def rows(found: Iterable[Kept]) -> list[dict[str, object]]:
    """Return one row per cell."""
    return [
        {
            **{name: value_of(r, name) for name in ("bank", "shots", "k_eff", "n_query")},
            "method": r.label,
            "lambda": r.cell.options.get("complexity_weight", ""),
            "transform": r.entry["applied"],
            "tasks": r.entry["n_tasks"],
            **{name: [100 * v for v in r.entry[name]] for name in ("accuracy", "gain") if name in r.entry},
            "cpu_seconds": r.entry["cpu_seconds"][0],
        }
        for r in found
    ]


def page() -> Page:
    """Make the page."""
    study = load()

    def figure() -> object:
        quick = [r for r in study.where(weighted=False, shots=5).usual.found if r.cell.method in QUICK]
        return plots.accuracy_against_k_eff(Study(quick).columns)

    return Page(
        name="study",
        title="The paper's study on open features",
        question=QUESTION,
        alt="Accuracy against the number of classes present, 5 shots, one panel per bank",
        figure=figure,
        table=table(study.where(weighted=False)),
        shows=shows(study.where(weighted=False)),
        limits=(
            "Slow methods have 2 to 30 tasks per bank, so their rows may be wrong by several points. Intervals and "
            "numbers of tasks are in the file."
        ),
        made=MADE,
        commands=[
            "python studies/banks_study.py run RUN BANK ... --tasks 40 --budget-minutes 0.1",
            "python studies/banks_study.py keep RUN",
            "python studies/study_page.py",
        ],
        rows=rows(study.found),
    )


if __name__ == "__main__":
    page().write()
    write_beside_the_paper()
