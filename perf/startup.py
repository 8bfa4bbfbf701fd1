"""What it costs to begin: processor seconds and memory from the start of Python to the first answer.

    python perf/startup.py --out perf/results/startup.json

The reference is what users of scikit-learn know: importing it and fitting its logistic regression to the same rows, 150
classes with five examples of 384 numbers. Each program is run several times in a new process, in turn; the least of its
times counts, because whatever else the machine does can only add to it. Run it in an environment without PyTorch.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS = """
import numpy as np
rng = np.random.default_rng(0)
centres = rng.normal(size=(150, 384)).astype("float32")
X, y = centres.repeat(5, 0) + rng.normal(size=(750, 384)).astype("float32"), np.arange(150).repeat(5)
batch = centres[np.repeat([3, 7, 11], 25)] + rng.normal(size=(75, 384)).astype("float32")
"""
REFERENCE = "scikit-learn: logistic regression, predict"
PROGRAMS = {
    "handful --help": "import sys, handful_command; sys.argv = ['handful', '--help']; handful_command.main()",
    "handful classify --help": (
        "import sys, handful_command; sys.argv = ['handful', 'classify', '--help']; handful_command.main()"
    ),
    "import handful": "import handful",
    "handful: fit, infer": f"{ROWS}\nfrom handful import BatchClassifier\nBatchClassifier().fit(X, y).infer(batch)",
    REFERENCE: (
        f"{ROWS}\nfrom sklearn.linear_model import LogisticRegression\n"
        "LogisticRegression(tol=1e-6, max_iter=1000).fit(X, y).predict(batch)"
    ),
}
# Peak memory, in MB, of a process that does this.
MEMORY = {
    "import scikit-learn": "import sklearn.linear_model",
    "load a catalogue of 1,000 × 384, label a batch": (
        "import sys, numpy as np\nfrom handful import BatchClassifier\n"
        "classifier = BatchClassifier.load(sys.argv[1])\n"
        "classifier.infer(np.random.default_rng(0).normal(size=(75, 384)).astype('float32'))"
    ),
}
SAVE = """
import sys
import numpy as np
from handful import BatchClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 384)).repeat(5, 0) + rng.normal(size=(5000, 384))
BatchClassifier().fit(X.astype("float32"), np.arange(1000).repeat(5)).save(sys.argv[1])
"""
PEAK = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"


def processor_seconds(program: str) -> float:
    """Return what a new process takes for the program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peak_memory() -> dict[str, float]:
    """Return the peak memory of each process in MB."""
    with tempfile.TemporaryDirectory() as work:
        # Another process fits: a child begins with the peak of its parent.
        subprocess.run([sys.executable, "-c", SAVE, str(Path(work) / "classifier")], check=True)
        ran = {
            name: subprocess.run(
                [sys.executable, "-W", "ignore", "-c", program + PEAK, str(Path(work) / "classifier")],
                check=True,
                capture_output=True,
                text=True,
            )
            for name, program in MEMORY.items()
        }
    return {name: round(float(one.stdout.split()[-1]), 1) for name, one in ran.items()}


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Return the seconds of each program, their ratios to the reference, and the memory of processes."""
    least = dict.fromkeys(PROGRAMS, float("inf"))
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            least[name] = min(least[name], processor_seconds(program))
    return {
        "processor_seconds": {name: round(seconds, 3) for name, seconds in least.items()},
        "ratios": {name: round(seconds / least[REFERENCE], 3) for name, seconds in least.items() if name != REFERENCE},
        "megabytes": peak_memory(),
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
        print(f"{seconds:7.3f} s  {name}" + ("" if ratio is None else f", {ratio:.2f} times the reference"))
    for name, megabytes in found["megabytes"].items():
        print(f"{megabytes:7.1f} MB {name}")
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
