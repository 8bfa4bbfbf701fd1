"""Scale: pure functions from Arrow tables to labels, for any engine; and runs over partitions that can be added to."""

from handful.scale.decision import BatchDecision, Totals, decide, merge
from handful.scale.driver import RunReport, run
from handful.scale.groups import complete_groups
from handful.scale.labeller import LabelledTables
from handful.scale.table import label_table

__all__ = [
    "BatchDecision",
    "LabelledTables",
    "RunReport",
    "Totals",
    "complete_groups",
    "decide",
    "label_table",
    "merge",
    "run",
]
