"""The benchmark: plans of cells; runs that can be killed, resumed and spread over a cluster; a journal of rows."""

from handful_fewshot.benchmark.completion import complete
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.plan import Cell

__all__ = ["Cell", "Journal", "complete"]
