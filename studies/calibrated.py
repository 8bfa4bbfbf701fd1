"""What calibration gains, bank by bank: calibrated PADDLE against nearest prototype and PADDLE at fixed scales.

    python studies/calibrated.py BANK [BANK ...] [--tasks 500] [--scale-tasks 200]
    python studies/calibrated.py --render

For every bank and 1, 5 and 10 shots (omniglot659: 1 and 5): K_eff = 1, 2, 5, 10, 20 and all classes (balanced,
|Q| = 2K), L2 features, |Q| = 75 (less where K_eff classes have fewer rows; a tenth of the tasks at all classes). The
gain over nearest prototype is paired, task by task, with a 95 % interval. At K_eff = 5 also published PADDLE
on unit vectors times 5, and at the best constant factor from 2 to 12 in steps of 0.25, chosen with the true labels, on
the first `--scale-tasks` tasks. Banks with 100 rows per class or more also get |Q| from 10 to 2,000.

Each finished cell is saved in `studies/results/calibrated/<bank>.json`; a saved cell is not run again.
`--render` writes `docs/calibrated_results.md` and the figure `docs/images/accuracy_against_scale.svg` from those files.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import handful
from handful.reading import read_bank
from handful.reports.summary import Estimate

RESULTS = Path(__file__).parent / "results" / "calibrated"
DOCS = Path(__file__).parent.parent / "docs"
TUNING_BANKS = ("clinc150-minilm", "cub200-efflite0", "omniglot659-conv4")
K_EFF: tuple[int | None, ...] = (1, 2, 5, 10, 20, None)
FACTORS = [2 + 0.25 * i for i in range(41)]
N_QUERY = (10, 25, 75, 200, 500, 1000, 2000)
SPARE = 10  # rows a class must have beyond its shots to take part
CHUNK = 25
PRESENT_COUNT = 0.5


def accuracies(
    bank: handful.FeatureBank, spec: handful.TaskSpec, n_tasks: int, n_scale: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Accuracy in percent of every task, and precision and recall of the classes called present, by contender."""
    scores: dict[str, list[Tensor]] = {}
    presence: dict[str, list[Tensor]] = {}
    for start in range(0, n_tasks, CHUNK):
        indices = range(start, min(start + CHUNK, n_tasks))
        task, truth = handful.gather(bank, handful.draw(bank.labels, spec, seed=0, indices=indices))
        task = handful.transform("l2", task)
        answers = {name: handful.solve(name, task) for name in ("nearest_prototype", "calibrated_paddle")}
        called = {"nearest_prototype": _occur(answers["nearest_prototype"].predictions, task.n_classes)}
        called["calibrated_paddle"] = answers["calibrated_paddle"].log_assignments.exp().sum(-2) >= PRESENT_COUNT
        there = _occur(truth, task.n_classes)
        for name, which in called.items():
            both = (which & there).sum(-1)
            presence.setdefault(name, []).append(torch.stack([both / which.sum(-1), both / there.sum(-1)], -1))
        if start < n_scale:
            answers |= {f"factor {f}": paddle_at(f, task) for f in FACTORS}
        elif n_scale > 0:
            answers["factor 5.0"] = paddle_at(5.0, task)
        for name, answer in answers.items():
            scores.setdefault(name, []).append(100 * (answer.predictions == truth).double().mean(-1))
    return {k: torch.cat(v) for k, v in scores.items()}, {k: 100 * torch.cat(v).double() for k, v in presence.items()}


def cell(bank: handful.FeatureBank, shots: int, k_eff: int | None, n_tasks: int, n_scale: int) -> dict[str, Any]:
    """Mean accuracies of one cell, in percent."""
    rule = handful.Balanced(bank.n_classes) if k_eff is None else handful.UniformOverPool(k_eff)
    spare = int(bank.class_sizes.min()) - shots
    n_query = 2 * bank.n_classes if k_eff is None else min(75, spare * k_eff)
    n_tasks = n_tasks if k_eff is not None else max(1, n_tasks // 10)
    spec = handful.TaskSpec(handful.ShotsPerClass(shots), rule, n_query=n_query)
    accuracy, presence = accuracies(bank, spec, n_tasks, n_scale if k_eff == 5 and shots > 1 else 0)
    gain = accuracy["calibrated_paddle"] - accuracy["nearest_prototype"]
    result: dict[str, Any] = {
        "n_classes": bank.n_classes,
        "n_tasks": n_tasks,
        "n_query": n_query,
        "nearest_prototype": accuracy["nearest_prototype"].mean().item(),
        "calibrated_paddle": accuracy["calibrated_paddle"].mean().item(),
        "gain": gain.mean().item(),
        "gain_interval": Estimate.of(gain.numpy()).half_width,
        "presence": {
            name: dict(zip(("precision", "recall"), values.mean(0).tolist(), strict=True))
            for name, values in presence.items()
        },
    }
    if "factor 5.0" in accuracy:
        curve = {f: accuracy[f"factor {f}"][:n_scale] for f in FACTORS}
        best = max(FACTORS, key=lambda f: curve[f].mean().item())
        behind = curve[best] - accuracy["calibrated_paddle"][: len(curve[best])]
        result |= {
            "L2×5": accuracy["factor 5.0"].mean().item(),
            "best_factor": best,
            "best_factor_tasks": len(behind),
            "best_constant": curve[best].mean().item(),
            "behind_best": behind.mean().item(),
            "behind_best_interval": Estimate.of(behind.numpy()).half_width,
            "accuracy_at_factor": {str(f): round(values.mean().item(), 2) for f, values in curve.items()},
        }
    return result


def queries(bank: handful.FeatureBank, k_eff: int, n_query: int, n_tasks: int) -> dict[str, Any]:
    """Mean accuracies at 5 shots and a given number of queries."""
    n_tasks = max(20, min(n_tasks, n_tasks * 75 // n_query))
    spec = handful.TaskSpec(handful.ShotsPerClass(5), handful.UniformOverPool(k_eff), n_query=n_query)
    accuracy, _ = accuracies(bank, spec, n_tasks, 0)
    return {
        "n_tasks": n_tasks,
        **{name: values.mean().item() for name, values in accuracy.items()},
        "interval": Estimate.of(accuracy["calibrated_paddle"].numpy()).half_width,
    }


def paddle_at(factor: float, task: handful.TaskBatch) -> handful.Solution:
    """Solve by published PADDLE, on unit vectors times a constant."""
    return handful.solve("paddle", task.with_features(factor * task.support, factor * task.query))


def _occur(labels: Tensor, n_classes: int) -> Tensor:
    return torch.zeros(len(labels), n_classes, dtype=torch.bool).scatter_(-1, labels, True)


def run(path: Path, n_tasks: int, n_scale: int) -> None:
    """Fill in the cells of a bank that are missing."""
    torch.set_num_threads(1)
    whole = read_bank(path)
    file = RESULTS / f"{path.name}.json"
    done: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def keep(key: str, result: dict[str, Any]) -> None:
        done[key] = result
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(done, indent=1) + "\n")
        print(path.name, key, {k: v for k, v in result.items() if not isinstance(v, dict)}, flush=True)

    for shots in (1, 5) if path.name.startswith("omniglot") else (1, 5, 10):
        bank = whole.classes((whole.class_sizes >= shots + SPARE).nonzero()[0])
        for k_eff in K_EFF:
            key = f"{shots}/{'all' if k_eff is None else k_eff}"
            if key not in done:
                keep(key, cell(bank, shots, k_eff, n_tasks, n_scale))
    if int(whole.class_sizes.min()) >= 100:
        for k_eff in (5, 20):
            for n_query in N_QUERY:
                key = f"queries/{k_eff}/{n_query}"
                if key not in done and n_query <= k_eff * (int(whole.class_sizes.min()) - 5):
                    keep(key, queries(whole, k_eff, n_query, n_tasks))


# ---------------------------------------------------------------------------------------------------------------------


def load() -> dict[str, dict[str, Any]]:
    """Return the finished cells of every bank, the tuning banks first."""
    files = sorted(RESULTS.glob("*.json"), key=lambda file: (file.stem not in TUNING_BANKS, file.stem))
    return {file.stem: json.loads(file.read_text()) for file in files}


def table(header: str, rows: list[str]) -> list[str]:
    """Markdown lines of a table."""
    return [f"| {header} |", "|" + "---|" * (header.count("|") + 1), *(f"| {row} |" for row in rows), ""]


def gains(banks: dict[str, dict[str, Any]], *, tuning: bool) -> list[str]:
    """Rows of the main table for one group of banks."""
    rows = []
    for bank, cells in banks.items():
        for key, c in cells.items():
            if (bank in TUNING_BANKS) == tuning and "gain" in c:
                where = " | ".join([bank, *key.split("/"), str(c["n_tasks"]), str(c["n_query"])])
                accuracy = f"{c['nearest_prototype']:.1f} | {c['calibrated_paddle']:.1f}"
                rows.append(f"{where} | {accuracy} | {c['gain']:+.1f} ± {c['gain_interval']:.1f}")
    return table("bank | shots | K_eff | tasks | queries | nearest prototype | calibrated | gain", rows)


def render() -> None:
    """Write the page and the figure."""
    banks = load()
    at_five = [(b, k.split("/")[0], c) for b, cells in banks.items() for k, c in cells.items() if "best_factor" in c]
    best = [
        f"{bank} | {shots} | {c['L2×5']:.1f} | {c['calibrated_paddle']:.1f} | {c['n_tasks']} "
        f"| {c['best_constant']:.1f} ({c['best_factor']}) "
        f"| {-c['behind_best']:+.1f} ± {c['behind_best_interval']:.1f} | {c['best_factor_tasks']}"
        for bank, shots, c in at_five
    ]
    present = [
        f"{bank} | {shots} | "
        + " | ".join(
            f"{c['presence'][name][what]:.1f}"
            for name in ("nearest_prototype", "calibrated_paddle")
            for what in ("precision", "recall")
        )
        for bank, shots, c in at_five
    ]
    many = [
        f"{bank} | {key.split('/')[1]} | {key.split('/')[2]} | {c['n_tasks']} | {c['nearest_prototype']:.1f} "
        f"| {c['calibrated_paddle']:.1f} ± {c['interval']:.1f}"
        for bank, cells in banks.items()
        for key, c in cells.items()
        if key.startswith("queries")
    ]
    lines = [
        "# Calibrated PADDLE, measured",
        "",
        "How much more accurate is `calibrated_paddle`, the earlier default, than the nearest prototype, which labels",
        "each item alone? `python studies/calibrated.py BANK …` measures, and `python studies/calibrated.py --render`",
        "writes this page. Accuracy is in percent. Gains are paired, with 95 % intervals. All choices were made on",
        "clinc150, cub200 and omniglot659, as they are and made harder by random projection to few dimensions.",
        "",
        "## Banks it was built on",
        "",
        *gains(banks, tuning=True),
        "## Banks it was not built on",
        "",
        "This version was run on them once. Two earlier versions had been run on them as well, and both failed on",
        "tinyimagenet200: one at 5 shots with many classes present, the other at 1 shot with all classes. The fixes",
        "were found on the banks above.",
        "",
        *gains(banks, tuning=False),
        "## Compared with the best constant scale",
        "",
        "K_eff = 5. Published PADDLE on unit vectors times 5, and at the best constant factor for the bank, found on",
        "the test tasks themselves; the difference is calibrated minus best, paired, on the tasks of the last column.",
        "",
        *table("bank | shots | L2×5 | calibrated | tasks | best constant (factor) | difference | tasks", best),
        "![accuracy against scale](images/accuracy_against_scale.svg)",
        "",
        "## Which classes are present",
        "",
        "K_eff = 5: precision and recall, in percent, of the classes called present. For nearest prototype these are",
        "the classes predicted for some query, for calibrated PADDLE those with an expected count of one half or more.",
        "",
        *table(
            "bank | shots | precision, nearest prototype | recall | precision, calibrated | recall",
            present,
        ),
        "## From ten queries to two thousand",
        "",
        *table("bank | K_eff | queries | tasks | nearest prototype | calibrated", many),
    ]
    (DOCS / "calibrated_results.md").write_text("\n".join(lines).rstrip() + "\n")
    draw(at_five)


def draw(at_five: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Accuracy of PADDLE against the scale of unit vectors, calibrated PADDLE as a line; one panel per bank."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "handful", "font.size": 9})
    from matplotlib import pyplot

    panels = [(bank, c) for bank, shots, c in at_five if shots == "5"]
    figure, axes = pyplot.subplots(2, 4, figsize=(10, 4.8), sharex=True, sharey=True, layout="constrained")
    for axis, (bank, c) in zip(axes.flat, panels, strict=False):
        curve = c["accuracy_at_factor"]
        axis.plot([float(f) for f in curve], list(curve.values()), color="#0072B2", label="PADDLE as published")
        axis.axhline(c["calibrated_paddle"], color="#D55E00", label="calibrated, nothing to tune")
        axis.axhline(c["nearest_prototype"], color="0.5", linestyle=":", label="nearest prototype")
        axis.set_title(bank, fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in list(axes.flat)[len(panels) :]:
        axis.axis("off")
    axes.flat[-1].legend(*axes.flat[0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.supxlabel("scale of the unit vectors")
    figure.supylabel("accuracy (%), 5 shots, 5 classes present")
    (DOCS / "images").mkdir(exist_ok=True)
    figure.savefig(DOCS / "images" / "accuracy_against_scale.svg", metadata={"Date": None})


def main() -> None:
    """Run or render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="*", type=Path)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--scale-tasks", type=int, default=200)
    parser.add_argument("--render", action="store_true")
    arguments = parser.parse_args()
    if not arguments.banks and not arguments.render:
        sys.exit("name the banks to run, or --render")
    for bank in arguments.banks:
        run(bank, arguments.tasks, arguments.scale_tasks)
    if arguments.render:
        render()


if __name__ == "__main__":
    main()
