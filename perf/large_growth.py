"""How the time of a streamed run grows with |Q| and K, and the cost model: `python perf/large_growth.py`.

Runs `perf/large.py` over |Q| = 10⁴, 10⁵, 10⁶ and K = 10³, 10⁴, 10⁵ as far as |Q|K stays within --most. The figures of
a size are in the file perf/results/large/k…-q….json, which `perf/large.py --json` may have written as well; sizes that
have one are not run again. Prints a table, writes the model's rates to docs/figures/large_growth.json and draws
the runs log-log with the model's lines. With n iterations, lists of m and s shots the model is

    T = a |Q|Kd + b |Q|m  (compare)  +  c |Q|m n  (iterate)  +  e |Q|d + f |Q|m  (add up, answer)
        +  g Ksd  (sum the catalogue)  +  the time to fit the head, as measured

and its rates are the non-negative ones with the least squared relative error, stage by stage.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls

import large
from handful.large.solve import list_length_for
from handful.machine.extras import import_extra

SIZES_Q, SIZES_K = (10_000, 100_000, 1_000_000), (1_000, 10_000, 100_000)
DIM, SHOTS = 384, 5
RESULTS = Path(__file__).resolve().parent / "results" / "large"
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
LATER_STAGES = ("add up", "answer")


def main() -> None:
    """Run what is missing, fit, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=1e9, help="largest |Q|K to run; 1e11 is everything")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for data and runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    runs: list[dict[str, Any]] = []
    for k in SIZES_K:
        for q in SIZES_Q:
            file = RESULTS / f"k{k}-q{q}.json"
            if q * k <= arguments.most and not is_measured(file):
                with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
                    large.measure(settings(k, q, file), Path(folder))
            if is_measured(file):
                runs.append(json.loads(file.read_text()))
    rates = fit(runs)
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / "large_growth.json").write_text(json.dumps({"rates": rates}, indent=1) + "\n")
    print("| K | \\|Q\\| | CPU s | model | bare pass | ratio | accuracy | nearest | presence recall | nearest |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for run in runs:
        found, nearest = run["exact"], run["nearest"]
        print(
            f"| {run['k']:,} | {run['q']:,} | {found['cpu']:.1f} | {predicted(run, rates):.1f} | {nearest['cpu']:.1f} "
            f"| {found['ratio']:.2f} | {found['accuracy']:.4f} | {nearest['accuracy']:.4f} "
            f"| {found['presence_recall']:.4f} | {nearest['presence_recall']:.4f} |"
        )
    draw(runs, rates)


def is_measured(file: Path) -> bool:
    """Whether a run of that size was finished; the bare pass is recorded earlier."""
    return file.exists() and "exact" in json.loads(file.read_text())


def settings(k: int, q: int, file: Path) -> argparse.Namespace:
    """Arguments of perf/large.py for one size."""
    return argparse.Namespace(
        k=k,
        q=q,
        d=DIM,
        k_eff=None,
        shots=SHOTS,
        spread=1.0,
        even=False,
        list_length=None,
        faiss=[],
        paddle=False,
        progress=False,
        json=file,
    )


def counted(run: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return, by stage, what each of its rates is multiplied with."""
    k, q, d, found = run["k"], run["q"], run["d"], run["exact"]
    m = list_length_for(q, k)
    return {
        "compare": {"a": q * k * d, "b": q * m},
        "iterate": {"c": q * m * found["n_iter"]},
        "later": {"e": q * d, "f": q * m},
        "catalogue": {"g": k * SHOTS * d},
    }


def spent(run: dict[str, Any]) -> dict[str, float]:
    """CPU seconds by stage."""
    stages, catalogue = run["exact"]["stages"], run["catalogue_cpu"]
    later = sum(stages.get(stage, 0.0) for stage in LATER_STAGES)
    # The comparison is reported together with what comes before it: sums and head of the catalogue.
    return {
        "compare": max(1e-3, stages["compare"] - catalogue - run["head_cpu"]),
        "iterate": stages["iterate"],
        "later": later,
        "catalogue": catalogue,
    }


def fit(runs: list[dict[str, Any]]) -> dict[str, float]:
    """CPU seconds that each unit of each term costs."""
    rates: dict[str, float] = {}
    for stage, terms in counted(runs[0]).items():
        seconds = np.array([spent(run)[stage] for run in runs])
        amounts = np.array([[counted(run)[stage][term] for term in terms] for run in runs])
        solution, _ = nnls(amounts / seconds[:, None], np.ones(len(runs)))
        rates |= dict(zip(terms, solution.tolist(), strict=True))
    return rates


def predicted(run: dict[str, Any], rates: dict[str, float]) -> float:
    """CPU seconds by the model, and those of the head."""
    return float(run["head_cpu"]) + sum(
        rates[term] * amount for terms in counted(run).values() for term, amount in terms.items()
    )


def draw(runs: list[dict[str, Any]], rates: dict[str, float]) -> None:
    """Points are runs, solid lines the model, dotted ones the bare pass."""
    matplotlib = import_extra("matplotlib", "plots")
    matplotlib.use("Agg")
    pyplot = import_extra("matplotlib.pyplot", "plots")
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for k in SIZES_K:
        chosen = sorted((run for run in runs if run["k"] == k), key=lambda run: run["q"])
        if not chosen:
            continue
        sizes = [run["q"] for run in chosen]
        points = axes.plot(sizes, [run["exact"]["cpu"] for run in chosen], "o", label=f"K = {k:,}")
        colour = points[0].get_color()
        axes.plot(sizes, [predicted(run, rates) for run in chosen], "-", color=colour)
        axes.plot(sizes, [run["nearest"]["cpu"] for run in chosen], ":", color=colour)
    axes.set(xscale="log", yscale="log", xlabel="queries", ylabel="CPU seconds, one thread")
    axes.legend(title="points: runs, lines: model,\ndotted: bare pass", fontsize=8)
    figure.tight_layout()
    figure.savefig(FIGURES / "large_growth.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
