"""Plain words: phrases that read as translated or as old-fashioned do not come back."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Keys say what to write instead.
PHRASES = {
    "again": r"anew|afresh",
    "fix": r"mend(s|ed|ing)?",
    "in advance, or first": r"beforehand",
    "only": r"none but",
    "from which, of it": r"whence|thereof|therein|hitherto",
    "zero, or nothing": r"nought|naught",
    "on": r"upon",
    "required of, or computed from": r"asked of",
    "take, or absorb": r"swallow(s|ed)?",
    "must": r"shall|ought",
}
# "One row an item" for "one row per item".
PER = (
    r"(one|two|three|four|five|ten|\d+) "
    r"(row|line|item|example|column|panel|vector|label|image|number|entry|file)s? an? "
    r"(class|item|row|line|task|batch|day|column|group|query|shape|size|case|method|page|file)"
)
TELL_TALE = re.compile(rf"\b({'|'.join([*PHRASES.values(), PER])})\b", re.IGNORECASE)


def texts() -> list[Path]:
    """Files that people read: pages and sources, without the tests and without data."""
    patterns = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "changes/*.md", "docs/*.md", "docs/**/*.md")
    patterns += tuple(f"{folder}/**/*.py" for folder in ("src", "docs/gallery", "studies", "perf", "tools", "examples"))
    named = {path for pattern in patterns for path in ROOT.glob(pattern)}
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if kept.returncode:
        pytest.skip("this is not a checkout of the repository, so written pages cannot be told from built ones")
    return sorted(named & {ROOT / name for name in kept.stdout.splitlines()})


def test_phrases_are_plain():
    files = texts()
    assert len(files) > 250
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := TELL_TALE.search(line))
    ]
    assert not found, "\n".join([*found, "say instead:", *(f"{old}: {new}" for new, old in PHRASES.items())])


@pytest.mark.parametrize(
    "line", ["one row an item", "Mended in the next release.", "Draw 3 lines a class", "known beforehand"]
)
def test_what_is_looked_for_is_found(line):
    assert TELL_TALE.search(line)


@pytest.mark.parametrize("line", ["one row per item", "recommended", "a shallow copy", "a line at a time"])
def test_plain_lines_pass(line):
    assert not TELL_TALE.search(line)
