"""
The description length falls
============================

PADDLE lowers one function: the nats needed to describe the data, plus those needed to describe the class labels. The
figure shows it at every iteration of eight tasks, and its two halves at the answer.
"""

import matplotlib.pyplot as plt

import handful_fewshot as fewshot
from handful.datasets import load_clinc150

bank = load_clinc150()
spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff=5), n_query=75)
task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, seed=0, indices=range(8)))
solution = fewshot.solve("paddle", fewshot.transform("l2_times", task, factor=4.0), record=True)

figure, (upper, lower) = plt.subplots(2, 1, figsize=(5, 5.6), layout="constrained")
above = solution.trace.observed - solution.objective[:, None]
for t, curve in enumerate(above.numpy()):
    upper.plot(range(1, len(curve) + 1), curve, label=f"task {t}")
upper.set(xlabel="iteration", ylabel="nats above the answer", xscale="log")
upper.set_yscale("symlog", linthresh=1)
upper.set_ylim(bottom=0)
upper.grid(alpha=0.25)

length = solution.description_length
lower.bar(range(8), length.data, label="data")
lower.bar(range(8), length.partition, bottom=length.data, label="partition")
lower.set(xlabel="task", ylabel="nats")
lower.set_ylim(top=1.25 * float(solution.objective.max()))
lower.legend(frameon=False, ncols=2, loc="upper center")

# %%
# Each task stops when its prototypes no longer move:

print("iterations:", solution.n_iter.tolist())
print("converged: ", solution.converged.tolist())
