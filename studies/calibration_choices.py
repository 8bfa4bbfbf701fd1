"""Design choices of calibrated PADDLE: the scale by shots, its best multiple by the number of classes, one shot.

    python studies/calibration_choices.py FOLDER

writes docs/calibration_choices.md from the three tuning banks in the folder.

Banks: clinc150, cub200 and omniglot659, unchanged and made harder by a random projection to few dimensions. L2
features, |Q| = 75, all classes in the support; 24 tasks per cell (6 where 100 classes or all are present, |Q| = 2K),
seed 0.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch
from torch import Tensor

import handful
from handful.inference import calibration
from handful.inference.calibration import logistic_slope, squared_scale
from handful.inference.frame import Frame
from handful.inference.joint import OPENING, tilts, typical_shots
from handful.numerics.dirichlet import concentration_step, dirichlet_divergence
from handful.numerics.distances import half_squared_distances
from handful.numerics.simplex import softmax

PAGE = Path(__file__).resolve().parents[1] / "docs" / "calibration_choices.md"
BANKS = {"clinc150": "clinc150-minilm", "cub200": "cub200-efflite0", "omniglot659": "omniglot659-conv4"}
PROJECTED = {"clinc150": 24, "cub200": 96, "omniglot659": 16}
SHOTS = (2, 3, 5, 10)
K_EFF: tuple[int | None, ...] = (1, 5, 20, None)
MULTIPLES = (0.4, 0.55, 0.7, 0.9, 1.2, 1.6)
ONE_SHOT_K_EFF: tuple[int | None, ...] = (2, 5, 20, 100, None)
NATS = (6.0, 8.0, 10.0, 12.0, 15.0, 18.0)
MOST_ITERATIONS, TOLERANCE = 1000, 1e-3
MANY = 100  # classes present, from which on |Q| = 2K


def tasks(
    bank: handful.FeatureBank, dim: int | None, shots: int, k_eff: int | None
) -> tuple[handful.TaskBatch, Tensor]:
    """Draw tasks of unit vectors, projected first where `dim` is given."""
    rule = handful.Balanced(bank.n_classes) if k_eff is None else handful.UniformOverPool(k_eff)
    spare, many = int(bank.class_sizes.min()) - shots, k_eff is None or k_eff >= MANY
    n_query = min(2 * bank.n_classes if many else 75, spare * (k_eff or bank.n_classes))
    spec = handful.TaskSpec(handful.ShotsPerClass(shots), rule, n_query=n_query)
    indices = range(6 if many else 24)
    task, truth = handful.gather(bank, handful.draw(bank.labels, spec, seed=0, indices=indices))
    if dim is not None:
        task = handful.transform("l2", task)
        onto = torch.randn(task.dim, dim, generator=torch.Generator().manual_seed(0))
        task = task.with_features(task.support @ onto, task.query @ onto)
    return handful.transform("l2", task), truth


def scale_without(task: handful.TaskBatch, shots: int) -> Tensor:
    """c² of the first task from margins to the mean of the s - 1 others, as they are."""
    points, labels = task.support[:1], task.support_labels[:1]
    means = Frame(task.select(slice(0, 1))).support.mean() + Frame(task.select(slice(0, 1))).origin.unsqueeze(-2)
    distances = half_squared_distances(points, means)
    own = distances.gather(-1, labels.unsqueeze(-1)) * (shots / (shots - 1)) ** 2
    counts = torch.ones_like(distances, dtype=torch.bool).scatter(-1, labels.unsqueeze(-1), False)
    return logistic_slope((distances - own) * counts, counts)


def at_multiple(task: handful.TaskBatch, scale: Tensor, multiple: float) -> Tensor:
    """Predictions of one pass at that multiple of c², prototypes where the support puts them."""
    frame = Frame(task)
    scores = frame.space("auto", 1).scores(frame.space("auto", 1).support.mean())
    nats = (multiple * scale).reshape(-1, 1, 1).double() * scores
    n_classes, n_query = task.n_classes, frame.n_query.double()
    u = softmax(nats)
    uniform = u.log_normaliser().sum(-1) - n_query * math.log(n_classes)
    counts, alpha = u.weights.sum(-2), torch.full_like(n_query, 1 / n_classes)
    for iteration in range(MOST_ITERATIONS):
        u = softmax(nats + tilts(counts, alpha).unsqueeze(1))
        before, counts = counts, u.weights.sum(-2)
        if iteration >= OPENING:
            alpha = concentration_step(counts, alpha, n_classes)
            if float((counts - before).abs().max()) <= TOLERANCE:
                break
    u = softmax(nats + tilts(counts, alpha).unsqueeze(1))
    evidence = u.log_normaliser().sum(-1) - n_query * torch.digamma(n_query + n_classes * alpha)
    spread_out = uniform > evidence - dirichlet_divergence(counts, alpha, n_classes)
    spread_out |= alpha >= typical_shots(frame.support.mass)
    return torch.where(spread_out.unsqueeze(-1), scores.argmax(-1), u.weights.argmax(-1))


def one_shot(task: handful.TaskBatch, truth: Tensor, nats: float) -> float:
    """Accuracy with another value of the constant that determines the scale of one-shot tasks."""
    own = calibration.NATS_OF_SPREAD
    calibration.NATS_OF_SPREAD = nats
    try:
        return percent(handful.solve("calibrated_paddle", task).predictions, truth)
    finally:
        calibration.NATS_OF_SPREAD = own


def percent(predictions: Tensor, truth: Tensor) -> float:
    """Accuracy."""
    return 100 * (predictions == truth).double().mean().item()


def main() -> None:
    """Measure and write the page."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    banks = {name: handful.read_bank(Path(sys.argv[1]) / folder) for name, folder in BANKS.items()}
    lines = [
        "# What calibrated PADDLE was built from",
        "",
        "Written by `python studies/calibration_choices.py FOLDER`; the folder holds the banks clinc150, cub200 and",
        "omniglot659; 24 tasks per cell, 6 where 100 classes or all are present. Projected: to "
        + ", ".join(f"{dim} ({name})" for name, dim in PROJECTED.items())
        + " dimensions at random.",
        "",
        "## The scale c by shots",
        "",
        "From margins to the mean of the s - 1 others as they are (first task), and with the factor 1 - 1/s².",
        "",
        "| bank | " + " | ".join(f"{s} shots: without" + " | with" for s in SHOTS) + " |",
        "|---|" + "---|---|" * len(SHOTS),
    ]
    settings = [(name, dim) for name in BANKS for dim in (None, PROJECTED[name])]
    for name, dim in settings:
        entries = []
        for shots in SHOTS:
            task, _ = tasks(banks[name], dim, shots, 5)
            found = squared_scale(Frame(task)).mean().sqrt().item()
            entries.append(f"{scale_without(task, shots).sqrt().item():.1f} | {found:.1f}")
        lines.append(f"| {name}{', projected' if dim else ''} | {' | '.join(entries)} |")
    lines += [
        "",
        "## One pass at a multiple of c², prototypes frozen",
        "",
        "Accuracy in percent; the last column is the method itself, with its two passes.",
        "",
        "| bank | shots | K_eff | nearest prototype | " + " | ".join(f"{m}" for m in MULTIPLES) + " | calibrated |",
        "|---|---|---|---|" + "---|" * (len(MULTIPLES) + 1),
    ]
    for (name, dim), shots in ((setting, shots) for setting in settings for shots in (2, 3, 5)):
        for k_eff in K_EFF:
            task, truth = tasks(banks[name], dim, shots, k_eff)
            scale = squared_scale(Frame(task))
            nearest = percent(handful.solve("nearest_prototype", task).predictions, truth)
            passes = [f"{percent(at_multiple(task, scale, m), truth):.1f}" for m in MULTIPLES]
            ours = percent(handful.solve("calibrated_paddle", task).predictions, truth)
            where = f"{name}{', projected' if dim else ''} | {shots} | {'all' if k_eff is None else k_eff}"
            lines.append(f"| {where} | {nearest:.1f} | {' | '.join(passes)} | {ours:.1f} |")
            print(lines[-1], flush=True)
    lines += [
        "",
        "## One example per class: the nats of the query's spread",
        "",
        "Gain of calibrated PADDLE over nearest prototype, in points, by the value of `NATS_OF_SPREAD`; "
        f"{calibration.NATS_OF_SPREAD:g} is its own.",
        "",
        "| bank | K_eff | nearest prototype | " + " | ".join(f"{nats:g}" for nats in NATS) + " |",
        "|---|---|---|" + "---|" * len(NATS),
    ]
    for (name, dim), k_eff in ((setting, k_eff) for setting in settings for k_eff in ONE_SHOT_K_EFF):
        task, truth = tasks(banks[name], dim, 1, k_eff)
        nearest = percent(handful.solve("nearest_prototype", task).predictions, truth)
        gains = [f"{one_shot(task, truth, nats) - nearest:+.1f}" for nats in NATS]
        where = f"{name}{', projected' if dim else ''} | {'all' if k_eff is None else k_eff}"
        lines.append(f"| {where} | {nearest:.1f} | {' | '.join(gains)} |")
        print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
