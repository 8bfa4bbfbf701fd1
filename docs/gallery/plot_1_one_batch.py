"""
One batch, jointly
==================

Seventy-five sentences of five intents, among 150. Labelled alone, each sentence goes to its nearest prototype. Labelled
jointly, the batch goes to the few intents that explain it.
"""

import matplotlib.pyplot as plt
import numpy as np

import handful_fewshot as fewshot
from handful.datasets import load_clinc150

bank = load_clinc150()
spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff=5), n_query=75)
task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=[2]))
task = fewshot.transform("l2", task)
alone = fewshot.solve("nearest_prototype", task)
jointly = fewshot.solve("batch_classifier", task)

# %%
# Every intent that is present or predicted, and its number of sentences.

answers = {"really there": truth, "each alone": alone.predictions, "jointly": jointly.predictions}
counts = {who: np.bincount(labels[0], minlength=bank.n_classes) for who, labels in answers.items()}
shown = np.flatnonzero(sum(counts.values()))
shown = shown[np.argsort(-counts["really there"][shown], kind="stable")]

figure, axis = plt.subplots(figsize=(5.2, 0.32 * len(shown) + 1), layout="constrained")
for k, (who, colour) in enumerate(zip(counts, ("#000000", "#D55E00", "#0072B2"), strict=True)):
    axis.barh(np.arange(len(shown)) + 0.27 * (k - 1), counts[who][shown], height=0.25, color=colour, label=who)
axis.set_yticks(range(len(shown)), [bank.class_names[k] for k in shown])
axis.invert_yaxis()
axis.set_xlabel("sentences")
axis.locator_params(axis="x", integer=True)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)

# %%
# How many of the labels are right:

for who, labels in answers.items():
    print(f"{who:<13} {int((labels == truth).sum())} of 75, {int((counts[who] > 0).sum())} intents")
