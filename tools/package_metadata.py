"""Metadata that depend on whether handful is published; hatchling runs this when it builds a wheel or an sdist.

The README links within the repository. Shown elsewhere, its links lead to the site, once there is one.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def readme(text: str, site: str | None) -> str:
    """Return the README as it is shown outside the repository."""
    if site is None:
        return text
    text = text.replace("](src/handful_fewshot/README.md", f"]({site}paper/index.html")
    text = re.sub(r'(?<=[("])docs/images/', f"{site}_images/", text)
    return re.sub(r"\]\(docs/([\w/]+)\.md", rf"]({site}\1.html", text)


def urls(published: dict[str, str]) -> dict[str, str]:
    """Return the addresses of the project by name; none before it is published."""
    if not published:
        return {}
    site, repository = published["site"], published["repository"]
    return {
        "Documentation": site,
        "Changelog": f"{site}changelog.html",
        "Source": repository,
        "Issues": f"{repository}/issues",
    }


class PackageMetadata(MetadataHookInterface):
    """What hatchling calls."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the readme and the addresses."""
        root = Path(self.root)
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        published = project["tool"]["handful"]["published"]
        text = readme((root / "README.md").read_text(encoding="utf-8"), published.get("site"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(published)
