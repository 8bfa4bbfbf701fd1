"""Commands as a person types them, in the shell of this system."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence


def typed(words: Sequence[str]) -> str:
    r"""Return a command as it is typed: the shell of Windows takes backslashes as they are, and only double quotes.

    Examples
    --------
    >>> typed(["handful", "review", "my photos.handful", "next_batch"])
    "handful review 'my photos.handful' next_batch"
    """
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
