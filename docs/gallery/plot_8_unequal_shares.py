"""
Balanced, uniform, unequal
==========================

Three rules spread a batch over the classes that occur: as many of each, uniformly from their pooled rows, or in
random proportions. What they draw, and how the methods take it.
"""

import matplotlib.pyplot as plt
import numpy as np

import handful
from handful.datasets import load_clinc150

bank = load_clinc150()
RULES = {
    "Balanced": handful.Balanced(5),
    "UniformOverPool": handful.UniformOverPool(5),
    "Dirichlet(1)": handful.Dirichlet(5, concentration=1.0),
}
METHODS = {"nearest_prototype": "l2", "laplacian_shot": "l2", "calibrated_paddle": "l2"}

figure, panels = plt.subplots(1, 4, figsize=(10, 3.2), width_ratios=(1, 1, 1, 1.8), layout="constrained")
accuracy = {}
for panel, (name, rule) in zip(panels, RULES.items(), strict=False):
    spec = handful.TaskSpec(handful.ShotsPerClass(5), rule, n_query=75)
    drawn = handful.draw(bank.labels, spec, seed=0, indices=range(15))
    counts = np.stack([np.sort(np.bincount(labels, minlength=150))[::-1][:5] for labels in drawn.query_labels])
    panel.plot(range(1, 6), counts.T, color="#0072B2", alpha=0.4, linewidth=1)
    panel.set(title=name, ylim=(0, 46), xticks=range(1, 6), xlabel="class, by size")
    task, truth = handful.gather(bank, drawn)
    solutions = {m: handful.solve(m, handful.transform(transform, task)) for m, transform in METHODS.items()}
    accuracy[name] = [100 * (s.predictions == truth).float().mean().item() for s in solutions.values()]
panels[0].set_ylabel("sentences")

for k, method in enumerate(METHODS):
    panels[3].bar(np.arange(3) + 0.27 * (k - 1), [values[k] for values in accuracy.values()], width=0.25, label=method)
panels[3].set_xticks(range(3), accuracy, fontsize=8)
panels[3].set(ylim=(70, 100), ylabel="accuracy, %")
figure.legend(*panels[3].get_legend_handles_labels(), loc="outside lower right", ncols=3, frameon=False)
