"""Draw the problem in one picture: python tools/draw_problem.py. Writes docs/images/problem.svg.

One batch of 75 sentences with five intents out of 150 (CLINC150, task 0 of seed 0, five examples of each intent): how
many sentences each intent really has, how many it gets when each sentence is labelled alone, and how many when the
batch is labelled as a whole (`nearest_prototype` and `batch_classifier`).

The SVG is written by hand because it has to follow the reader's light or dark mode, which matplotlib's cannot.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import handful_fewshot as fewshot
from handful.datasets import load_clinc150

PLACE = Path(__file__).resolve().parents[1] / "docs" / "images" / "problem.svg"
WIDTH, PANEL, TOP, HIGHEST = 560, 136, 48, 66
LEFT, RIGHT = 20, 540
STYLE = """\
  .page { fill: #ffffff; stroke: #d1d9e0 } .axis { stroke: #8c959f }
  text { fill: #1f2328; font: 15px system-ui, sans-serif }
  .title { font-weight: 600 } .present { fill: #0072b2 } .absent { fill: #d55e00 } .small { font-size: 13px }
  .pointer { stroke: #d55e00; fill: none } .wrong { fill: #b04a00 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14181e; stroke: #3d444d } .axis { stroke: #9198a1 } text { fill: #e6edf3 }
    .present { fill: #56b4e9 } .absent { fill: #ff9d5c } .pointer { stroke: #ff9d5c } .wrong { fill: #ff9d5c }
  }"""


def answers(task_number: int = 0) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """Return the names of the intents, and the labels of the batch: the true ones, and two answers."""
    bank = load_clinc150()
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff=5), n_query=75)
    task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=[task_number]))
    task = fewshot.transform("l2", task)
    return bank.class_names, {
        "What is in the batch": truth[0].numpy(),
        "Each sentence labelled alone": fewshot.solve("nearest_prototype", task).predictions[0].numpy(),
        "The batch labelled as a whole": fewshot.solve("batch_classifier", task).predictions[0].numpy(),
    }


def panel(title: str, labels: np.ndarray, truth: np.ndarray, names: tuple[str, ...], top: float) -> list[str]:
    """Return one row of the picture: its title, a bar per intent that got a sentence, and what is worth naming."""
    counts, really = (np.bincount(found, minlength=len(names)) for found in (labels, truth))
    classes, errors = int((counts > 0).sum()), int((labels != truth).sum())
    said = (
        f"{classes} of {len(names)} intents" if labels is truth else f"{classes} intents, {errors} of 75 labels wrong"
    )
    base = top + TOP + HIGHEST
    step, unit = (RIGHT - LEFT) / len(names), HIGHEST / really.max()
    parts = [f'<text x="{LEFT}" y="{top + 22}"><tspan class="title">{title}:</tspan> {said}</text>']
    parts.append(f'<path class="axis" d="M{LEFT} {base + 0.5}H{RIGHT}"/>')
    for k in np.flatnonzero(counts):
        kind, height = ("present" if really[k] else "absent"), counts[k] * unit
        x = LEFT + (k + 0.5) * step - 2
        parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{base - height:.1f}" width="4" height="{height:.1f}"/>')
    if labels is truth:
        for row, k in enumerate(np.flatnonzero(counts)):
            parts.append(f'<text class="small" x="{LEFT}" y="{top + 43 + 15.5 * row}">{counts[k]} × {names[k]}</text>')
    for k in np.flatnonzero((really == 0) & (counts >= 5)):  # a class that took in many has a name worth knowing
        x, y = LEFT + (k + 0.5) * step, base - counts[k] * unit
        parts.append(f'<path class="pointer" d="M{x:.1f} {y - 2:.1f}V{top + 44}"/>')
        parts.append(f'<text class="small wrong" x="{x:.1f}" y="{top + 40}" text-anchor="middle">{names[k]}</text>')
    return parts


def picture() -> str:
    """Return the text of the SVG."""
    names, found = answers()
    truth, *_ = found.values()
    parts = [part for row, item in enumerate(found.items()) for part in panel(*item, truth, names, 6 + PANEL * row)]
    height = 6 + PANEL * len(found) + 26
    foot = f"The {len(names)} intents of the catalogue. Blue: in the batch. Orange: not in the batch."
    described = "; ".join(f"{title}: {len(np.unique(labels))} intents" for title, labels in found.items())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
            ' role="img">',
            f"<title>{described}</title>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
            *parts,
            f'<text class="small" x="{LEFT}" y="{height - 12}">{foot}</text>',
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PLACE.write_text(picture(), encoding="utf-8")
    print(PLACE)
