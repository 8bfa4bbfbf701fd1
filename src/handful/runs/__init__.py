"""Runs that survive: numbered parts with checksums, one writer per folder, reports of progress, and executors."""

from handful.runs.executors import Executor, in_process, on_ray
from handful.runs.processes import in_processes
from handful.runs.progress import Progress

__all__ = ["Executor", "Progress", "in_process", "in_processes", "on_ray"]
