"""Draw accuracy against the number of classes present: python tools/draw_paddle.py [DATA]. Writes paddle.svg.

Two banks, CLINC150 (sentences, used to develop `found_scale`) and Caltech-101 (photographs, not used for it); tasks of
all classes with 5 examples each, and 75 items or fewer of 2 to 15 classes; 30 tasks per point. DATA is a folder that
holds both banks: the tasks are then solved again and kept in `studies/results/paddle.json`. Without it, what is kept
there is drawn.

The SVG is written by hand because it has to follow the reader's light or dark mode, which matplotlib's cannot.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import handful_fewshot as fewshot
from handful.reading import read_bank
from handful_fewshot.reports.summary import FEW_MARK
from handful_fewshot.transforms import method_at, scale_name

ROOT = Path(__file__).resolve().parents[1]
PLACE, RESULTS = ROOT / "docs" / "images" / "paddle.svg", ROOT / "studies" / "results" / "paddle.json"
BANKS = {
    "clinc150-minilm": "Sentences, 150 classes",
    "caltech101-efflite0": "Photographs, 101 classes",
}
WAYS = {
    "nearest prototype": ("nearest_prototype", "l2"),
    "PADDLE, published scale": ("paddle", "range_scale_public_code"),
    "PADDLE, found scale": ("paddle", "found_scale"),
    "the default of handful": ("batch_classifier", "l2"),
}
# How they are printed: with the scale of the features.
PRINTED = {way: method_at(way.partition(",")[0], scale_name(change)) for way, (_, change) in WAYS.items()}
PRESENT, SHOTS, TASKS, ITEMS = (2, 3, 5, 7, 10, 15), 5, 30, 75
WIDTH, HEIGHT, TOP, PANEL, LEFT, GAP, FOOT = 620, 250, 40, 250, 48, 40, 70
STYLE = """\
  .page { fill: #ffffff; stroke: #d1d9e0 } .axis { stroke: #8c959f } .grid { stroke: #d1d9e0; stroke-width: 0.7 }
  text { fill: #1f2328; font: 13px system-ui, sans-serif } .title { font-weight: 600 }
  path { fill: none } .way { stroke-width: 2.2 } .dot { stroke: none }
  .way0 { stroke: #6e7781 } .way1 { stroke: #d55e00 } .way2 { stroke: #0072b2 } .way3 { stroke: #009e73 }
  .way1 { stroke-dasharray: 5 3 } .way3 { stroke-dasharray: 1.5 2.5 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14181e; stroke: #3d444d } .axis { stroke: #9198a1 } .grid { stroke: #30363d } text { fill: #e6edf3 }
    .way0 { stroke: #9198a1 } .way1 { stroke: #ff9d5c } .way2 { stroke: #56b4e9 } .way3 { stroke: #3fd6a8 }
  }"""
Curves = dict[str, dict[str, list[float]]]


def measured(data: Path) -> Curves:
    """Return the mean accuracy in percent by bank, way and number of classes present."""
    found: Curves = {}
    for name in BANKS:
        bank, found[name] = read_bank(data / name), {way: [] for way in WAYS}
        least = int(np.bincount(bank.labels).min()) - SHOTS
        for present in PRESENT:
            query = fewshot.UniformOverPool(k_eff=present)
            spec = fewshot.TaskSpec(fewshot.ShotsPerClass(SHOTS), query, min(ITEMS, present * least))
            task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(TASKS)))
            for way, (method, change) in WAYS.items():
                labels = fewshot.solve(method, fewshot.transform(change, task)).predictions
                found[name][way].append(round(100 * float((labels == truth).double().mean()), 1))
    return found


def panel(title: str, curves: dict[str, list[float]], left: float) -> list[str]:
    """Return the lines of one bank."""
    low, bottom = 80.0, TOP + HEIGHT - 40
    x = np.interp(np.log(PRESENT), np.log([PRESENT[0], PRESENT[-1]]), [left, left + PANEL - 10])
    parts = [f'<text class="title" x="{left}" y="{TOP - 14}">{title}</text>']

    def height(value: float) -> float:
        return bottom - (max(value, low) - low) / (100 - low) * (bottom - TOP)

    for value in range(int(low), 101, 5):
        y = height(value)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{left + PANEL - 10}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    for at, present in zip(x, PRESENT, strict=True):
        parts.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{present}</text>')
    for number, values in enumerate(curves.values()):
        points = " L".join(f"{at:.1f} {height(value):.1f}" for at, value in zip(x, values, strict=True))
        parts.append(f'<path class="way way{number}" d="M{points}"/>')
    return parts


def picture() -> str:
    """Return the text of the SVG."""
    curves: Curves = json.loads(RESULTS.read_text(encoding="utf-8"))
    parts = []
    for column, (name, title) in enumerate(BANKS.items()):
        parts += panel(title, curves[name], LEFT + column * (PANEL + GAP))
    bottom = TOP + HEIGHT - 4
    few = f"{FEW_MARK} {TASKS} tasks per point"
    parts.append(
        f'<text x="{LEFT}" y="{bottom}">classes present; accuracy in %{FEW_MARK}, 5 examples per class. {few}</text>'
    )
    for number, way in enumerate(WAYS):
        left, y = LEFT + (number % 2) * (PANEL + GAP), bottom + 22 + 20 * (number // 2)
        parts.append(f'<path class="way way{number}" d="M{left} {y - 4}H{left + 26}"/>')
        parts.append(f'<text x="{left + 34}" y="{y}">{PRINTED[way]}</text>')
    height = TOP + HEIGHT + FOOT - 14
    means = "; ".join(
        f"{title}: " + ", ".join(f"{PRINTED[way]} {np.mean(curves[name][way]):.0f}%" for way in WAYS)
        for name, title in BANKS.items()
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
            ' role="img">',
            f"<title>Mean accuracy. {means}.</title>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        RESULTS.write_text(json.dumps(measured(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
    PLACE.write_text(picture(), encoding="utf-8")
    print(PLACE)
