"""
A benchmark in ten lines
========================

A plan of cells, a run that can be killed and resumed, and a figure. In a terminal this is ``handful bench run`` and
``handful report``.
"""

import tempfile

import matplotlib.pyplot as plt

import handful_fewshot as fewshot
from handful.datasets import load_clinc150
from handful_fewshot.benchmark import Cell, Journal, complete
from handful_fewshot.benchmark.plan import bound_plan
from handful_fewshot.reports.summary import columns_of, paired_difference, results

banks = {"clinc150": load_clinc150()}
cells = [
    Cell("clinc150", fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff)), method, n_tasks=12)
    for k_eff in (2, 5, 10, 20)
    for method in ("nearest_prototype", "paddle", "laplacian_shot")
]
journal = Journal.create(tempfile.mkdtemp() + "/run", bound_plan(cells, banks))
complete(journal, banks)
columns = columns_of(results(journal))

# %%
# All methods saw the same tasks, so compare them task by task:

for column in columns:
    alone, paddle, _ = column.results
    difference = paired_difference(paddle, alone)
    print(f"{column.title}, {paddle.label} − {alone.label}: {difference.percent.text(sign='+', unit=' points')}")

# %%
# † Fewer than 100 tasks, too few to rank methods that are close.
#
# Means with 95% intervals. ``handful report`` draws the same, with tables and hashes, on one page.

figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for k, mark in enumerate("^os"):
    line = [column.results[k] for column in columns]
    estimates = [result.estimate() for result in line]
    axis.errorbar(
        [result.cell.spec.query.k_eff for result in line],
        [100 * estimate.mean for estimate in estimates],
        [100 * estimate.half_width for estimate in estimates],
        marker=mark,
        capsize=3,
        label=line[0].label + estimates[0].mark,
    )
axis.set(xlabel="classes present, $K_{eff}$", ylabel="accuracy, %", xticks=(2, 5, 10, 20))
axis.grid(alpha=0.25)
axis.legend(frameon=False)
