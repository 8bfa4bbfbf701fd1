"""Work that fails or dies where it is done. A new worker imports this file first, so it imports little itself."""

import os
import signal
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


def pid_after(seconds: float) -> int:
    """Wait, and return the number of this process."""
    time.sleep(seconds)
    return os.getpid()


def process_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def killed_by(number: int, deadly: int, place: str, times: int = 1000) -> int:
    """Return the number; the deadly one kills its process, as often as said, and notes that first."""
    if number == deadly:
        path = Path(place)
        deaths = path.read_text(encoding="utf-8").count("\n") if path.exists() else 0
        if deaths < times:
            with path.open("a", encoding="utf-8") as file:
                file.write("dead\n")
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return number
