"""Rate: a column of a progress bar with the number of items per second."""

from __future__ import annotations

from rich.progress import ProgressColumn, Task
from rich.text import Text


class Rate(ProgressColumn):
    """Items per second, over the period that the bar averages."""

    def __init__(self, counted: str) -> None:
        super().__init__()
        self.counted = counted

    def render(self, task: Task) -> Text:
        """Return the rate, or nothing before there is one."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g} {self.counted}/s")
