"""
Which classes are present
=========================

Which of the 150 intents are in a batch? Precision is the share of predicted intents that are really present; recall is
the share of present intents that are found.
"""

import matplotlib.pyplot as plt

import handful_fewshot as fewshot
from handful.datasets import load_clinc150

bank = load_clinc150()
METHODS = {"nearest_prototype": "l2", "prior_em": "range_scale", "batch_classifier": "l2"}
K_EFF = (1, 2, 5, 10, 20)
# All batches have the same catalogue, so ``batch_classifier`` fits one head for a whole stack of them.
first = fewshot.draw(
    bank.labels, fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.Balanced(1), 5), seed=0, indices=[0]
)
CATALOGUE = fewshot.FixedSupport(first.support[0])


def presence(predicted, truth):
    """Precision and recall of the set of classes, each task on its own, then averaged."""
    pairs = [(set(p.tolist()), set(t.tolist())) for p, t in zip(predicted, truth, strict=True)]
    precision = sum(len(believed & there) / len(believed) for believed, there in pairs) / len(pairs)
    recall = sum(len(believed & there) / len(there) for believed, there in pairs) / len(pairs)
    return precision, recall


found = {method: [] for method in METHODS}
for k_eff in K_EFF:
    # 45 sentences are left of an intent once five have gone into the catalogue.
    spec = fewshot.TaskSpec(CATALOGUE, fewshot.UniformOverPool(k_eff), n_query=40)
    task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(40)))
    for method, transform in METHODS.items():
        solution = fewshot.solve(method, fewshot.transform(transform, task))
        found[method].append(presence(solution.predictions, truth))

# %%
# Labelling each sentence alone finds nearly all intents that are present, and many that are not. The intents that
# ``batch_classifier`` finds jointly are mostly present. It occasionally misses one when many occur and some of them
# have only a sentence or two.

figure, panels = plt.subplots(2, 1, figsize=(5, 5.6), sharex=True, sharey=True, layout="constrained")
for panel, (name, column) in zip(panels, (("precision", 0), ("recall", 1)), strict=True):
    for (method, values), mark in zip(found.items(), "os^", strict=True):
        panel.plot(K_EFF, [100 * value[column] for value in values], marker=mark, label=method)
    panel.set(ylabel=f"{name} of the classes, %", xscale="log")
    panel.grid(alpha=0.25)
panels[1].set_xlabel("classes present, $K_{eff}$")
panels[1].set_xticks(K_EFF, map(str, K_EFF))
panels[1].minorticks_off()
panels[1].legend(frameon=False)
