"""
The larger the batch, the more it says
======================================

A batch of a few items says little about which classes are present; a batch of a hundred says a lot.
"""

import matplotlib.pyplot as plt

import handful
from handful.datasets import load_clinc150

bank = load_clinc150()
SIZES = (2, 5, 10, 25, 50, 100, 200)
METHODS = ("nearest_prototype", "calibrated_paddle")

accuracy = {method: [] for method in METHODS}
for n_query in SIZES:
    # As many sentences in all for each size, so that points are about equally certain.
    spec = handful.TaskSpec(handful.ShotsPerClass(5), handful.UniformOverPool(k_eff=5), n_query=n_query)
    n_tasks = max(6, 400 // n_query)
    task, truth = handful.gather(bank, handful.draw(bank.labels, spec, seed=0, indices=range(min(n_tasks, 60))))
    ready = handful.transform("l2", task)
    for method in METHODS:
        accuracy[method].append(100 * (handful.solve(method, ready).predictions == truth).float().mean().item())

figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for (method, values), mark in zip(accuracy.items(), "^s", strict=True):
    axis.plot(SIZES, values, marker=mark, label=method)
axis.set(xscale="log", xlabel="items in the batch, |Q|", ylabel="accuracy, %")
axis.set_xticks(SIZES, [str(n) for n in SIZES])
axis.minorticks_off()
axis.grid(alpha=0.25)
axis.legend(frameon=False)
