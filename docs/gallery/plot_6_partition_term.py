"""
The weight of the partition term
================================

λ weighs the cost of every class in use. At λ = 0 PADDLE is soft K-means. The paper takes λ = |Q|: the cost is
then the length of the labels in nats, and needs no tuning where distances are nats too.
"""

import matplotlib.pyplot as plt

import handful_fewshot as fewshot
from handful.datasets import load_clinc150
from handful_fewshot.transforms import method_at, scale_name

bank = load_clinc150()
spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff=5), n_query=75)
task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(10)))
weights = [0, 10, 20, 40, 75, 110, 150, 225, 300]

figure, (upper, lower) = plt.subplots(2, 1, figsize=(5, 5.6), sharex=True, layout="constrained")
for factor, mark in ((3.0, "^"), (4.0, "o"), (6.0, "s")):
    ready = fewshot.transform("l2_times", task, factor=factor)
    answers = [fewshot.solve("paddle", ready, complexity_weight=float(weight)) for weight in weights]
    accuracy = [100 * (answer.predictions == truth).float().mean().item() for answer in answers]
    believed = [sum(len(row.unique()) for row in answer.predictions) / task.n_tasks for answer in answers]
    upper.plot(
        weights, accuracy, marker=mark, label=method_at("paddle", scale_name("l2_times", {"factor": factor})) + "†"
    )
    lower.plot(weights, believed, marker=mark)
for axis, name in ((upper, "accuracy, %"), (lower, "classes predicted")):
    axis.axvline(75, color="black", linestyle=":", linewidth=1)
    axis.set_ylabel(name)
    axis.grid(alpha=0.25)
lower.set_yscale("log")
lower.set_xlabel("λ (dotted: λ = |Q|)")
figure.legend(*upper.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False, fontsize="small")

# %%
# † 10 tasks, too few to rank methods that are close.
#
# A larger λ gives fewer classes. The best λ depends on the scale of the features.
