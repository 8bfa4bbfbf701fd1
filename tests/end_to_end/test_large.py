"""The small form of perf/large.py: many classes, few of them present, found and labelled out of memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["even", "heavy tail"])
def test_five_hundred_classes_and_ten_thousand_queries(sizes, tmp_path):
    pytest.importorskip("pyarrow")
    command = [sys.executable, "perf/large.py", "--k", "500", "--q", "10000", "--spread", "0.5"]
    command += ["--json", str(tmp_path / "figures.json")] + (["--even"] if sizes == "even" else [])
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    figures = json.loads((tmp_path / "figures.json").read_text())
    alone, streamed = figures["alone"], figures["streamed"]
    assert alone["accuracy"] > figures["nearest"]["accuracy"]
    assert streamed["peak_mb"] < 3000
    assert streamed["presence_precision"] > alone["presence_precision"]
    if sizes == "even":
        assert streamed["joint_weight"] > 0.9
        assert streamed["accuracy"] > alone["accuracy"] + 0.02
        assert streamed["presence_recall"] == 1
    else:
        # Very uneven: only classes that hold less than an item are held back.
        assert streamed["accuracy"] > alone["accuracy"]
