"""The study of names: what it asks for, and the page."""

import importlib
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "studies")]
study = importlib.import_module("names")


def rows(gain):
    alone = [{"k_eff": k_eff, "alone": 70.0, "names": [70 + gain, gain, 0.5]} for k_eff in study.K_EFFS]
    other = {method: [65.0, -5.0, 1.0, gain + 5, 1.0] for method in study.RIVALS}
    return {"clinc150-minilm": {"alone": alone, "rivals": [{"k_eff": 2, **other}]}}


def test_requirements_depend_on_what_was_found():
    assert all(ok for _, _, ok in study.requirements(rows(8.0)))
    assert not any(ok for _, _, ok in study.requirements(rows(-9.0)))


def test_the_page_has_a_row_per_cell(monkeypatch):
    monkeypatch.setattr(study, "measured", lambda group: rows(8.0) if group == "tuning" else {})
    page = study.page()
    assert page.count("| clinc150 |") == len(study.K_EFFS)
    assert "| clinc150 | 2 | 70.0 | 78.0 | +8.0 ± 0.5 | -5.0 ± 1.0 | -5.0 ± 1.0 | -5.0 ± 1.0 |" in page
    assert "| clinc150 | all | 70.0 | 78.0 | +8.0 ± 0.5 | not run | not run | not run |" in page
