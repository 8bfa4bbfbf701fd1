"""
What labelling jointly gains and costs
======================================

Batches of 150 sentences, spread evenly over more and more of 150 intents. Above zero the batch helps; below, it does
harm.
"""

import matplotlib.pyplot as plt

import handful_fewshot as fewshot
from handful.datasets import load_clinc150
from handful_fewshot.transforms import method_at, scale_name

bank = load_clinc150()
K_EFF = (5, 10, 30, 75, 150)
# All batches have the same catalogue, so ``batch_classifier`` fits one head for a whole stack of them.
first = fewshot.draw(
    bank.labels, fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.Balanced(1), 5), seed=0, indices=[0]
)
CATALOGUE = fewshot.FixedSupport(first.support[0])
READY = {
    "batch_classifier": ("l2", {}),
    "paddle": ("l2_times", {"factor": 4.0}),
    "laplacian_shot": ("l2", {}),
    "bd_cspn": ("l2", {}),
}


def accuracy(method, transform, parameters, task, truth):
    """Accuracy in percent."""
    solution = fewshot.solve(method, fewshot.transform(transform, task, **parameters))
    return 100 * (solution.predictions == truth).float().mean().item()


# How methods are printed: with the scale of their features, and marked, since there are fewer than 100 tasks.
names = {method: method_at(method, scale_name(*how)) + "†" for method, how in READY.items()}
gains = {method: [] for method in READY}
for k_eff in K_EFF:
    spec = fewshot.TaskSpec(CATALOGUE, fewshot.Balanced(k_eff), n_query=150)
    task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(20)))
    alone = accuracy("nearest_prototype", "l2", {}, task, truth)
    for method, (transform, parameters) in READY.items():
        gains[method].append(accuracy(method, transform, parameters, task, truth) - alone)

# %%
# With few intents present, ``batch_classifier`` and PADDLE gain. The more are present, the less the batch helps. With
# all 150 present, one sentence of each, there is nothing to gain: ``batch_classifier`` is then level with nearest
# prototype. PADDLE still pays for every class it uses.

for method, values in gains.items():
    print(f"{names[method]:<31}", *(f"{value:+6.1f}" for value in values))

# %%
# † 20 tasks per point, too few to rank methods that are close.
#
# In a figure, where PADDLE drops out of sight:

figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for (method, values), mark in zip(gains.items(), "so^D", strict=True):
    axis.plot(K_EFF, values, marker=mark, label=names[method])
axis.axhline(0, color="black", linewidth=1)
axis.set(
    xscale="log",
    xlabel="classes present, $K_{eff}$, of 150",
    ylabel="points over nearest prototype\n(unit length)",
    ylim=(-21, 14),
)
axis.set_xticks(K_EFF, [str(k) for k in K_EFF])
axis.minorticks_off()
axis.grid(alpha=0.25)
axis.legend(frameon=False, loc="lower right")

# %%
# ``laplacian_shot`` assumes nothing about proportions, so it gains and loses little; ``bd_cspn`` moves all prototypes
# towards a batch in which most of them have no items, and always loses. :doc:`/understand/when_it_hurts` has cases that
# a single bank cannot show.
