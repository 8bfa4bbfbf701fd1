"""The engine lies among the studies, which are no package."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "studies")]
