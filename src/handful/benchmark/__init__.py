"""The benchmark: plans of cells; runs that can be killed, resumed and spread over a cluster; a journal of rows."""

from handful.benchmark.completion import complete
from handful.benchmark.journal import Journal, remaining
from handful.benchmark.plan import Cell, Plan, read_plan
from handful.benchmark.run import run_range

__all__ = ["Cell", "Journal", "Plan", "complete", "read_plan", "remaining", "run_range"]
