"""Roll call, streamed: `handful.engine.model` decides by some rows of the batch, and labels all of them in one pass.

The rows that decide lie evenly over the batch, at places that depend on nothing but the numbers of rows and classes. A
run that is continued decides again, which takes seconds, but labels no shard whose answers are there.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from handful.engine.presence import chance_of_any
from handful.large.decided import BatchTotals, DecidedRun
from handful.large.run import Run
from handful.large.shard import Work
from handful.large.solution import LargeSolution

# A class with a smaller expected count is not listed among the living.
LEAST_COUNT = 1e-3


def label_stream(run: Run, work: Work) -> LargeSolution:
    """Decide, and label all shards that are not labelled yet."""
    began, catalogue, n_rows = time.monotonic(), run.catalogue, run.n_query
    reference = catalogue.reference
    decided = DecidedRun.of(reference, n_rows, work.points)
    run.reporter.shard("decide", 0, 1, 1, began)
    before = run.crew.traffic
    totals = BatchTotals.unpacked(run.add_up("label", 0, "label", decided).numpy())
    run.note_traffic(before)
    decision, verdict = decided.decision, decided.decision.verdict
    shots = decision.reference.head.mass
    presence = chance_of_any(decision.roll, shots, totals.absent, totals.counts, float(n_rows))
    is_open = verdict is not None and verdict.is_open
    living = torch.from_numpy(np.flatnonzero(totals.counts >= LEAST_COUNT))
    return run.solution(
        torch.from_numpy(totals.counts),
        torch.from_numpy(np.minimum(presence, totals.counts) if is_open else presence),
        living,
        torch.from_numpy(reference.head.means)[living],
        joint_weight=1 - decision.roll.alone,
        confidence=totals.confidence / n_rows,
        unknown_share=None if verdict is None else totals.unknown / n_rows,
        unknown_interval=(0.0, 1.0) if verdict is None else verdict.interval,
        unknown_reason=catalogue.unknown_reason,
        is_open=is_open,
    )
