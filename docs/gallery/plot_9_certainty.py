"""
How certain, and how often right
================================

Of all items labelled with a probability of 80%, eight in ten should be right. The figure has ten groups of items, from
the least certain to the most certain; below the dotted line a method is overconfident.
"""

import matplotlib.pyplot as plt
import numpy as np

import handful_fewshot as fewshot
from handful.datasets import load_clinc150
from handful_fewshot.transforms import method_at, scale_name

bank = load_clinc150()
# All batches have the same catalogue, so ``batch_classifier`` fits one head for a whole stack of them.
first = fewshot.draw(
    bank.labels, fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.Balanced(1), 5), seed=0, indices=[0]
)
CATALOGUE = fewshot.FixedSupport(first.support[0])
spec = fewshot.TaskSpec(CATALOGUE, fewshot.UniformOverPool(k_eff=10), n_query=100)
task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(40)))
READY = {"batch_classifier": "l2", "paddle": "range_scale"}

figure, axis = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
axis.plot([50, 100], [50, 100], color="black", linewidth=1, linestyle=":")
for (method, transform), mark in zip(READY.items(), "so", strict=True):
    solution = fewshot.solve(method, fewshot.transform(transform, task))
    name = method_at(method, scale_name(transform)) + "†"
    certainty = solution.log_assignments.exp().amax(-1).flatten().numpy()
    right = (solution.predictions == truth).flatten().numpy()
    order = np.argsort(certainty)
    # Ten groups of equal size, from the least certain to the most.
    groups = np.array_split(order, 10)
    stated, kept = ([100 * values[g].mean() for g in groups] for values in (certainty, right))
    axis.plot(stated, kept, marker=mark, label=name)
    print(f"{name:<32} least certain tenth: states {stated[0]:.0f}%, right {kept[0]:.0f}%;", end=" ")
    print(f"all: states {100 * certainty.mean():.0f}%, right {100 * right.mean():.0f}%")
axis.set(xlabel="stated certainty, %", ylabel="right, %", xlim=(55, 102), ylim=(55, 102))
axis.grid(alpha=0.25)
axis.legend(frameon=False)

# %%
# † 40 tasks, too few to rank methods that are close.
#
# Most groups are in the upper right corner: certain, and right. ``batch_classifier`` keeps close to the dotted line.
# Its head is calibrated on held-out examples, and its joint answer is mixed with that of each item alone.
# ``paddle`` is slightly overconfident.
#
# This is one clean catalogue with five examples of each intent. With a single example per class, or with items that
# belong to no class, probabilities are further off: :doc:`/measured/harm`.
