"""What it costs to begin: processor seconds of `handful --help`, of imports, and their ratios to `import torch`.

    python perf/startup.py --out perf/results/startup.json

Each program is run several times in a new process, in turn with `import torch`; the least of its times counts, because
whatever else the machine does can only add to it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

TORCH = "import torch"
PROGRAMS = {
    "handful --help": "import sys, handful_command; sys.argv = ['handful', '--help']; handful_command.main()",
    "handful classify --help": (
        "import sys, handful_command; sys.argv = ['handful', 'classify', '--help']; handful_command.main()"
    ),
    "import handful": "import handful",
    "from handful.fewshot import solve": "from handful.fewshot import solve",
    "from handful import BatchClassifier": "from handful import BatchClassifier",
    TORCH: TORCH,
}


def processor_seconds(program: str) -> float:
    """Return what a new process takes for the program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Return the seconds of each program, and their ratios to importing torch."""
    least = dict.fromkeys(PROGRAMS, float("inf"))
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            least[name] = min(least[name], processor_seconds(program))
    return {
        "processor_seconds": {name: round(seconds, 3) for name, seconds in least.items()},
        "ratios": {name: round(seconds / least[TORCH], 3) for name, seconds in least.items() if name != TORCH},
    }


def main() -> None:
    """Measure, print, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="JSON file for the figures")
    given = parser.parse_args()
    found = measure(given.rounds)
    for name, seconds in found["processor_seconds"].items():
        ratio = found["ratios"].get(name)
        print(f"{seconds:7.3f} s  {name}" + ("" if ratio is None else f", {ratio:.2f} times import torch"))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
