"""The benchmark: plans of cells; runs that can be killed, resumed and spread over a cluster; a journal of rows."""

from handful.fewshot.benchmark.completion import complete
from handful.fewshot.benchmark.journal import Journal, remaining
from handful.fewshot.benchmark.plan import Cell, Plan, read_plan
from handful.fewshot.benchmark.run import run_range

__all__ = ["Cell", "Journal", "Plan", "complete", "read_plan", "remaining", "run_range"]
