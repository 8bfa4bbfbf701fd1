"""Check that every local link, picture and anchor of the built site leads somewhere: python tools/check_site.py FOLDER.

Works offline: links to other sites are not checked. Exits with 1 and names page and link if a link is dead.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note addresses and names."""
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


@cache
def read(file: Path) -> Page:
    """Parse a page once, however many link to it."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def dead_links(site: Path) -> list[str]:
    """Return `page: link` of every link that leads nowhere."""
    dead = []
    for file in sorted(site.rglob("*.html")):
        if "_static" in file.relative_to(site).parts:  # the theme's own
            continue
        for link in read(file).links:
            address = urlsplit(link)
            if address.scheme or address.netloc or link == "#":
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file.resolve()
            lost = not target.is_file()
            if not lost and address.fragment and target.suffix == ".html":
                lost = unquote(address.fragment) not in read(target).anchors
            if lost:
                dead.append(f"{file.relative_to(site)}: {link}")
    return dead


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
