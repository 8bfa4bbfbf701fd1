"""
Balanced, uniform, unequal
==========================

Three rules spread a batch over the classes that occur: the same number of each, uniformly from their pooled rows, or in
random proportions. The figures show what they draw, and how the methods do on it.
"""

import matplotlib.pyplot as plt
import numpy as np

import handful_fewshot as fewshot
from handful.datasets import load_clinc150

bank = load_clinc150()
# All batches have the same catalogue, so ``batch_classifier`` fits one head for a whole stack of them.
first = fewshot.draw(
    bank.labels, fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.Balanced(1), 5), seed=0, indices=[0]
)
CATALOGUE = fewshot.FixedSupport(first.support[0])
RULES = {
    "Balanced": fewshot.Balanced(5),
    "UniformOverPool": fewshot.UniformOverPool(5),
    "Dirichlet(1)": fewshot.Dirichlet(5, concentration=1.0),
}
METHODS = {"nearest_prototype": "l2", "laplacian_shot": "l2", "batch_classifier": "l2"}

figure, panels = plt.subplot_mosaic([[*RULES], ["accuracy"] * 3], figsize=(5.4, 5.2), layout="constrained")
accuracy = {}
for name, rule in RULES.items():
    spec = fewshot.TaskSpec(CATALOGUE, rule, n_query=75)
    drawn = fewshot.draw(bank.labels, spec, seed=0, indices=range(40))
    sizes = [np.sort(np.bincount(labels, minlength=150))[::-1] for labels in drawn.query_labels]
    counts = np.stack(sizes)[:, :5]
    panels[name].plot(range(1, 6), counts.T, color="#0072B2", alpha=0.4, linewidth=1)
    panels[name].set_title(name, fontsize="medium")
    panels[name].set(ylim=(0, 46), xticks=range(1, 6), xlabel="class, by size")
    task, truth = fewshot.gather(bank, drawn)
    solutions = {m: fewshot.solve(m, fewshot.transform(transform, task)) for m, transform in METHODS.items()}
    accuracy[name] = [100 * (s.predictions == truth).float().mean().item() for s in solutions.values()]
panels["Balanced"].set_ylabel("sentences")

bars = panels["accuracy"]
for k, method in enumerate(METHODS):
    heights = [values[k] for values in accuracy.values()]
    bars.bar(np.arange(3) + 0.27 * (k - 1), heights, width=0.25, label=method)
bars.set_xticks(range(3), accuracy)
bars.set(ylim=(70, 100), ylabel="accuracy, %")
figure.legend(*bars.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize="small")

# %%
# ``batch_classifier`` asks whether a class is present, not how large it is, so unequal shares among five classes cost
# it nothing. Where items are spread very unevenly over more classes, as in real requests, it labels each item alone:
# :doc:`/understand/when_it_hurts`.
