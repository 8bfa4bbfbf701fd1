"""Workers: independent tasks, in this process, in several of this machine, or over a Ray cluster."""

from handful.workers.cluster import on_ray
from handful.workers.local import here
from handful.workers.task import Shared, Workers

__all__ = ["Shared", "Workers", "here", "on_ray"]
