"""
Accuracy against the scale of the features
==========================================

Unit-length vectors times a factor. Published PADDLE compares distances with nats, so its answer depends on the
factor; that of nearest prototype does not. (The default, ``batch_classifier``, does not depend on the factor either.)
"""

import matplotlib.pyplot as plt
import numpy as np

import handful_fewshot as fewshot
from handful.datasets import load_clinc150
from handful_fewshot.transforms import method_at, scale_name

bank = load_clinc150()
spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff=5), n_query=75)
task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(15)))
factors = np.geomspace(1, 40, 13)


def accuracies(method):
    """Accuracy in percent at each factor."""
    answers = [fewshot.solve(method, fewshot.transform("l2_times", task, factor=float(f))) for f in factors]
    return [100 * (answer.predictions == truth).float().mean() for answer in answers]


figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for method, mark in (("paddle", "o"), ("nearest_prototype", "^")):
    axis.plot(factors, accuracies(method), marker=mark, label=method_at(method, f"{scale_name('l2')} × factor") + "†")
axis.set(xscale="log", xlabel="length of every feature vector", ylabel="accuracy, %")
axis.set_xticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
axis.grid(alpha=0.25)
axis.legend(frameon=False)

# %%
# † 15 tasks, too few to rank methods that are close.
#
# On the left PADDLE puts the batch into one class; on the right its prior has no effect. In between is a narrow range
# where distances are nats. It is different for every encoder. :doc:`/understand/feature_scaling` explains what to do.
