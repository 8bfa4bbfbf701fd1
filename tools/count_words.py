"""Count the words of the documentation, part by part: python tools/count_words.py.

Words are what white space separates, code and tables included. The reference, the gallery and the changelog are not
counted. Exits with 1 if there are more than 50,000 words in all, or more than 900 on a page of `do`.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PARTS = ("learn", "do", "understand", "measured", "project", "decisions")
MOST, MOST_OF_HOW_TO = 50_000, 900
LEFT_OUT = {"_build", "_templates", "auto_gallery", "api", "gallery"}


def counts(docs: Path = DOCS) -> dict[Path, int]:
    """Return the number of words of each page, by its path in the folder."""
    pages = (page.relative_to(docs) for page in sorted(docs.rglob("*.md")) if page.name != "changelog.md")
    return {
        page: len((docs / page).read_text(encoding="utf-8").split()) for page in pages if page.parts[0] not in LEFT_OUT
    }


def too_long(words: dict[Path, int]) -> list[str]:
    """Return a line for each limit that is exceeded."""
    found = [
        f"{page}: {n} words, {MOST_OF_HOW_TO} allowed"
        for page, n in words.items()
        if page.parts[0] == "do" and n > MOST_OF_HOW_TO
    ]
    total = sum(words.values())
    return found + ([f"{total} words in all, {MOST} allowed"] if total > MOST else [])


def main() -> int:
    """Print words and pages of each part, and what is too long."""
    words = counts()
    for part in (*PARTS, ""):
        mine = [n for page, n in words.items() if (page.parts[0] if len(page.parts) > 1 else "") == part]
        print(f"{part or 'front page':<12} {sum(mine):>7,} words {len(mine):>4} pages")
    print(f"{'all':<12} {sum(words.values()):>7,} words {len(words):>4} pages")
    over = too_long(words)
    print(*over, sep="\n", end="\n" if over else "")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
