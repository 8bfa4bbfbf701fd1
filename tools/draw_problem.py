"""Draw the problem in one picture: python tools/draw_problem.py. Writes docs/drawn/problem.svg.

One batch of 75 sentences with five intents out of 150 (CLINC150, task 0 of seed 0, five examples of each intent): how
many sentences each intent really has, how many it gets when each sentence is labelled alone, and how many when the
batch is labelled as a whole (`nearest_prototype` and `roll_call`).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import handful
from handful.datasets import load_clinc150
from handful.reports.plots import COLOURS

PLACE = Path(__file__).resolve().parents[1] / "docs" / "drawn" / "problem.svg"
RIGHT, WRONG = COLOURS[0], COLOURS[1]


def draw_problem(place: Path = PLACE, task_number: int = 0) -> Path:
    """Write the picture and return where it is."""
    bank = load_clinc150()
    spec = handful.TaskSpec(handful.ShotsPerClass(5), handful.UniformOverPool(k_eff=5), n_query=75)
    task, truth = handful.gather(bank, handful.draw(bank.labels, spec, seed=0, indices=[task_number]))
    task = handful.transform("l2", task)
    answers = {
        "What is in the batch": truth,
        "Each sentence alone": handful.solve("nearest_prototype", task).predictions,
        "The batch as a whole": handful.solve("roll_call", task).predictions,
    }
    really = np.bincount(truth[0], minlength=bank.n_classes)
    most = 1.3 * really.max()
    figure = Figure((6.2, 6.2), layout="constrained")  # narrow: a phone shows it as well
    panels = figure.subplots(3, 1, sharex=True, sharey=True)
    for axis, (title, labels) in zip(panels, answers.items(), strict=True):
        counts = np.bincount(labels[0], minlength=bank.n_classes)
        believed, errors = int((counts > 0).sum()), int((labels != truth).sum())
        said = f"{believed} intents" if labels is truth else f"{believed} intents, {errors} of 75 labels wrong"
        axis.set_title(f"{title}: {said}", loc="left", fontsize=12)
        for present, colour in ((really > 0, RIGHT), (really == 0, WRONG)):
            chosen = np.flatnonzero(present & (counts > 0))
            axis.vlines(chosen, 0, counts[chosen], color=colour, linewidth=3.2)
        if labels is truth:
            names = "\n".join(f"{counts[k]} × {bank.class_names[k]}" for k in np.flatnonzero(counts))
            axis.text(2, most, names, va="top", fontsize=10, linespacing=1.35, bbox={"color": "white"})
        for k in np.flatnonzero((really == 0) & (counts >= 5)):  # a class that took in many has a name worth knowing
            axis.annotate(
                bank.class_names[k],
                (k, counts[k] + 0.3),
                (k - 17, 0.86 * most),
                ha="center",
                color=WRONG,
                arrowprops={"arrowstyle": "-", "color": WRONG, "linewidth": 0.8},
            )
        axis.set(ylim=(0, most), ylabel="sentences", xlim=(-2, bank.n_classes + 1))
        axis.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("the 150 intents of the catalogue; blue: in the batch, orange: not")
    place.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "handful"}):
        figure.savefig(place, metadata={"Date": None})
    return place


if __name__ == "__main__":
    print(draw_problem())
