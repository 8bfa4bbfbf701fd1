"""Rate: a column of a progress bar, how many a second."""

from __future__ import annotations

from rich.progress import ProgressColumn, Task
from rich.text import Text


class Rate(ProgressColumn):
    """So many of what is counted in a second, over the period the bar looks back."""

    def __init__(self, counted: str) -> None:
        super().__init__()
        self.counted = counted

    def render(self, task: Task) -> Text:
        """Return the rate, or nothing before there is one."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.3g} {self.counted}/s")
