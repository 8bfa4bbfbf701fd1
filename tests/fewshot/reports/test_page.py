import re
from dataclasses import replace

import pytest

from handful_fewshot import UniformOverPool
from handful_fewshot.benchmark.completion import complete
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.benchmark.plan import Cell, bound_plan
from handful_fewshot.reports.page import write_report
from tests.banks_at_hand import random_bank
from tests.plans_at_hand import SPEC, small_banks

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    banks = small_banks()
    specs = [replace(SPEC, query=UniformOverPool(k)) for k in (2, 3)]
    cells = [Cell("toy", spec, m, n_tasks=8) for spec in specs for m in ("paddle", "nearest_prototype")]
    journal = Journal.create(tmp_path_factory.mktemp("runs") / "a<run", bound_plan(cells, banks))
    complete(journal, banks)
    return journal


def test_the_page_needs_no_other_file_and_says_what_was_run(journal, tmp_path):
    page = write_report(journal, tmp_path / "report")
    text = page.read_text()
    assert not re.search(r"(src|href)\s*=\s*['\"](?!#)", re.sub(r"xlink:href=\"#", "", text))
    assert "a&lt;run" in text
    assert "a<run" not in text
    for cell in journal.plan:
        assert cell.content_hash in text
        assert cell.bank_hash[:16] in text
    assert f"torch {journal.versions['torch']}" in text
    assert text.count("<svg") == 1
    assert "ran with l2 instead of cl2n" in text
    assert {file.name for file in page.parent.iterdir()} == {
        *("index.html", "accuracy.tex", "measures.csv", "differences.csv"),
        *(f"accuracy_against_k_eff.{kind}" for kind in ("svg", "pdf", "png")),
    }


def test_tables_of_every_measure_fit_a_screen_of_1280_pixels(journal, tmp_path, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(write_report(journal, tmp_path / "report").as_uri())
    boxes = page.evaluate("[...document.querySelectorAll('.wide')].map(box => [box.scrollWidth, box.clientWidth])")
    page.close()
    assert len(boxes) > 2
    assert all(needed <= given for needed, given in boxes), boxes


def test_a_phone_shows_accuracies_beside_the_methods_and_dark_pages_are_dark(journal, tmp_path, browser):
    page = browser.new_page(viewport={"width": 420, "height": 800}, color_scheme="dark")
    page.goto(write_report(journal, tmp_path / "report").as_uri())
    first = page.locator(".wide").first.locator("td").first.bounding_box()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    assert first["x"] + first["width"] <= 420
    assert paper == "rgb(18, 22, 27)"


def test_a_run_that_has_only_begun_can_be_reported(journal, tmp_path):
    begun = Journal.create(tmp_path / "run", journal.plan)
    text = write_report(begun, tmp_path / "report").read_text()
    assert "4 cells, 0 tasks solved" in text
    assert "too few tasks to tell which method is best" in text
    assert "nan" not in text.replace("dominant", "")


@pytest.fixture(scope="module")
def ablation(tmp_path_factory):
    banks = small_banks()
    plan = bound_plan([Cell("toy", SPEC, m, n_tasks=2) for m in ("paddle", "paddle_gd", "soft_kmeans")], banks)
    journal = Journal.create(tmp_path_factory.mktemp("runs") / "run", plan)
    complete(journal, banks)
    return journal


def test_ablations_bring_a_table_of_convergence(ablation, journal, tmp_path):
    head = "<th scope=col>transform</th><th scope=col>time to convergence, s</th><th scope=col>converged</th>"
    assert head in write_report(ablation, tmp_path / "a").read_text()
    assert "Time to convergence" not in write_report(journal, tmp_path / "b").read_text()


def figures_of(journal, out, find_bank=None):
    page = write_report(journal, out, find_bank)
    names = {file.stem for file in page.parent.glob("*.svg")}
    assert page.read_text().count("<svg") == len(names)
    return names


def test_ablations_bring_the_figures_of_convergence_and_of_the_label_cost(ablation, journal, tmp_path):
    banks = small_banks()
    assert figures_of(ablation, tmp_path / "a", banks.get) == {"convergence", "label_cost"}
    assert figures_of(ablation, tmp_path / "b") == {"label_cost"}
    assert figures_of(ablation, tmp_path / "c", lambda name: None) == {"label_cost"}
    # Another bank of the same name would draw the curves of another task.
    assert figures_of(ablation, tmp_path / "d", lambda name: random_bank(1, n_classes=5)) == {"label_cost"}
    assert figures_of(journal, tmp_path / "e", banks.get) == {"accuracy_against_k_eff"}
    # Nothing is solved for a figure that the run itself has not come to.
    assert figures_of(Journal.create(tmp_path / "begun", ablation.plan), tmp_path / "f", banks.get) == {"label_cost"}
