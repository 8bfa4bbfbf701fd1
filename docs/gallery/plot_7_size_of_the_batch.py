"""
The larger the batch, the more it says
======================================

A batch of a few items says little about which classes are present; a batch of a hundred says a lot.
``batch_classifier`` gives the joint answer more weight the more items it finds in each class.
"""

import matplotlib.pyplot as plt

import handful_fewshot as fewshot
from handful.datasets import load_clinc150

bank = load_clinc150()
# All batches have the same catalogue, so ``batch_classifier`` fits one head for a whole stack of them.
first = fewshot.draw(
    bank.labels, fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.Balanced(1), 5), seed=0, indices=[0]
)
CATALOGUE = fewshot.FixedSupport(first.support[0])
SIZES = (2, 5, 10, 25, 50, 100, 200)
METHODS = ("nearest_prototype", "batch_classifier")

accuracy = {method: [] for method in METHODS}
for n_query in SIZES:
    # As many sentences in all for each size, so that points are about equally certain.
    spec = fewshot.TaskSpec(CATALOGUE, fewshot.UniformOverPool(k_eff=5), n_query=n_query)
    task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(900 // n_query)))
    ready = fewshot.transform("l2", task)
    for method in METHODS:
        accuracy[method].append(100 * (fewshot.solve(method, ready).predictions == truth).float().mean().item())

figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for (method, values), mark in zip(accuracy.items(), "^s", strict=True):
    axis.plot(SIZES, values, marker=mark, label=method)
axis.set(xscale="log", xlabel="items in the batch, |Q|", ylabel="accuracy, %")
axis.set_xticks(SIZES, [str(n) for n in SIZES])
axis.minorticks_off()
axis.grid(alpha=0.25)
axis.legend(frameon=False)
