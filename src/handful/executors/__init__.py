"""Executors: independent tasks on threads or processes of this machine, or over a Ray cluster."""

from handful.executors.executor import Executor, Shared, in_process, on_ray
from handful.executors.processes import in_processes

__all__ = ["Executor", "Shared", "in_process", "in_processes", "on_ray"]
