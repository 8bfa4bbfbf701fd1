"""Notice when something became slower: compare fresh ratios with the stored ones.

    python tools/perf_guard.py

Seconds differ from machine to machine; ratios to scikit-learn's logistic regression, measured in the same minute,
hardly do. Exits with 1 if a ratio is more than a quarter above the stored one and by more than 0.1, and names it. A
slower ratio that is meant to stay is stored with `python perf/startup.py --out perf/results/startup.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "perf" / "results" / "startup.json"
# A ratio may grow by this share, and always by this much: the smallest ones are mostly noise.
MOST_GROWTH, LEAST_STEP = 0.25, 0.1


def worse(stored: Mapping[str, float], fresh: Mapping[str, float]) -> list[str]:
    """Return a sentence for each ratio that grew too much, or is no longer measured.

    Examples
    --------
    >>> worse({"a": 1.0, "b": 0.02, "c": 2.0}, {"a": 1.2, "b": 0.1, "c": 2.6})
    ['c: 2.60 times scikit-learn, stored are 2.00']
    """
    found = [f"{name}: no longer measured" for name in stored if name not in fresh]
    for name, before in stored.items():
        now = fresh.get(name, before)
        if now > before * (1 + MOST_GROWTH) and now > before + LEAST_STEP:
            found.append(f"{name}: {now:.2f} times scikit-learn, stored are {before:.2f}")
    return found


def main() -> None:
    """Measure again, compare, and measure once more before complaining."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    stored = json.loads(STORED.read_text(encoding="utf-8"))["ratios"]
    found: list[str] = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "fresh.json"
            command = [sys.executable, str(ROOT / "perf" / "startup.py"), "--rounds", str(given.rounds)]
            subprocess.run([*command, "--out", str(out)], check=True)
            found = worse(stored, json.loads(out.read_text(encoding="utf-8"))["ratios"])
        if not found:
            break
    print(*found or ["no ratio is worse than stored"], sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
