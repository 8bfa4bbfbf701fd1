import re
from dataclasses import replace

import pytest

from handful import UniformOverPool
from handful.benchmark.completion import complete
from handful.benchmark.journal import Journal
from handful.benchmark.plan import Cell, bound_plan
from handful.reports.page import write_report
from tests.plans_at_hand import SPEC, small_banks

pytest.importorskip("matplotlib")
parquet = pytest.importorskip("pyarrow.parquet")
concat_tables = pytest.importorskip("pyarrow").concat_tables


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
    assert journal.versions["torch"] in text
    assert text.count("<svg") == 1
    assert "ran with l2 instead of cl2n" in text
    assert {file.name for file in page.parent.iterdir()} == {
        *("index.html", "accuracy.md", "accuracy.tex"),
        *(f"accuracy_against_k_eff.{kind}" for kind in ("svg", "pdf", "png")),
    }


def test_a_run_that_has_only_begun_can_be_reported(journal, tmp_path):
    begun = Journal.create(tmp_path / "run", journal.plan)
    text = write_report(begun, tmp_path / "report").read_text()
    assert "4 cells, 0 tasks solved" in text


def test_rows_written_before_a_measure_was_are_not_counted_in_it(journal, tmp_path):
    older = Journal.create(tmp_path / "run", journal.plan)
    shards = [parquet.read_table(shard) for shard in journal.shards()]
    rows = concat_tables(shards).sort_by([("cell", "ascending"), ("task", "ascending")])
    cut = rows.num_rows - 2  # the last cell lacks the measure in all but two rows
    parquet.write_table(rows.slice(0, cut).drop_columns(["proportion_error"]), older.folder / "rows-000001.parquet")
    parquet.write_table(rows.slice(cut), older.folder / "rows-000002.parquet")
    text = write_report(older, tmp_path / "report").read_text()
    assert "proportion error" in text
    assert text.count("(n = 2)") == 1
