"""The benchmark: plans of cells; runs that can be killed, resumed and spread over a cluster; a journal of rows."""

from handful.fewshot.benchmark.completion import complete
from handful.fewshot.benchmark.journal import Journal
from handful.fewshot.benchmark.plan import Cell

__all__ = ["Cell", "Journal", "complete"]
