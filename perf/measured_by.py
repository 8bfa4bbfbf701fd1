"""What a result file says about its origin: the version of handful, and the commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import handful


def measured_by() -> dict[str, str]:
    """Return version and commit; the commit is empty outside a repository."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    said = subprocess.run(command, cwd=Path(__file__).parent, check=False, capture_output=True, text=True)
    return {"version": handful.__version__, "commit": said.stdout.strip()}
