"""The small form of perf/large.py: many classes, few of them present, found and labelled out of memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_two_thousand_classes_and_twenty_thousand_queries(tmp_path):
    pytest.importorskip("pyarrow")
    command = [sys.executable, "perf/large.py", "--k", "2000", "--q", "20000", "--json", str(tmp_path / "figures.json")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    figures = json.loads((tmp_path / "figures.json").read_text())
    nearest, streamed = figures["nearest"], figures["exact"]
    assert streamed["converged"]
    assert streamed["accuracy"] > nearest["accuracy"]
    assert streamed["presence_recall"] >= nearest["presence_recall"]
    assert streamed["presence_precision"] > nearest["presence_precision"]
    assert streamed["peak_mb"] < 3000
    # Prototypes end nearer to the true centres than the support means were, also in the worst hundredth.
    assert streamed["drift_median"] < streamed["drift_99"] < 1
