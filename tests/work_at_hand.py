"""Work that fails or dies where it is done. A new worker imports this file first, so it imports little itself."""

import os
import time
from pathlib import Path

from handful.errors import TaskError
from handful_fewshot.errors import PlanError


def double(number):
    if number == 13:
        raise PlanError("13 cannot be doubled; take another")
    if number == 14:
        raise ValueError("not one of our sentences")
    if number == 15:
        os._exit(1)
    return 2 * number


class Mortal:
    """Shard 3 kills its process that many times, as the system does when memory runs out."""

    def __init__(self, marks, times):
        self.marks, self.times = Path(marks), times

    def label(self, shard, decided):
        if shard == 3 and len(list(self.marks.iterdir())) < self.times:
            (self.marks / f"{time.monotonic_ns()}").touch()
            os._exit(1)
        return shard


class Complaining:
    def label(self, shard, decided):
        raise TaskError("a sentence for the user")
