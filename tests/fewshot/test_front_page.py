"""The front page of the paper's package: one source for repository and site, with every method and its citation."""

from pathlib import Path

import pytest

import handful_fewshot as fewshot

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "src" / "handful_fewshot" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(fewshot.METHODS.own))
def test_every_method_stands_there_with_its_citation(name):
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| [{name}](")]
    assert row.endswith(f") | {fewshot.METHODS[name].citation} |")


def test_the_site_shows_the_same_page():
    assert "{include} ../../src/handful_fewshot/README.md" in (ROOT / "docs" / "paper" / "index.md").read_text("utf-8")


def test_the_first_screen_of_the_readme_leads_there():
    first = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:15]
    assert any("(src/handful_fewshot/README.md)" in line for line in first)
