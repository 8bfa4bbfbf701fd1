import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
from handful.cli.main import main
from handful_fewshot.benchmark.completion import complete
from handful_fewshot.benchmark.journal import Journal
from tests.plans_at_hand import small_banks, small_plan


def test_the_page_is_written_and_its_place_printed(tmp_path, capsys):
    banks = small_banks()
    journal = Journal.create(tmp_path / "run", small_plan(banks))
    complete(journal, banks)
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "report")]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/report/index.html\n"
    assert "soft_kmeans" in (tmp_path / "report" / "index.html").read_text()
