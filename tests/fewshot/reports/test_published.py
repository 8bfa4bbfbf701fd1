import json
from dataclasses import replace

import pytest

from handful.fewshot import Balanced, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool
from handful.fewshot.benchmark.paper import PAPER_BANKS
from handful.fewshot.benchmark.plan import Cell
from handful.fewshot.reports.published import PAPER_METHODS, published_accuracy, source
from tests.conftest import SHARED

PAPER = TaskSpec(ShotsPerClass(10), UniformOverPool(5))
CELL = Cell("tiered", PAPER, "paddle")


def test_numbers_stand_beside_the_cells_they_belong_to():
    assert published_accuracy(CELL) == 62.5
    assert published_accuracy(replace(CELL, method="soft_kmeans", transform="")) == 35.8
    assert published_accuracy(replace(CELL, method="ici", transform="")) is None  # intractable, says the paper
    fixed = replace(PAPER, support=FixedSupport.whole([0, 1, 2, 3, 4]))
    assert published_accuracy(Cell("inat", fixed, "paddle", support_bank="inat_support")) == 84.3


@pytest.mark.parametrize(
    "change",
    [
        {"bank": "clinc150"},
        {"method": "tim_adm"},
        {"options": {"complexity_weight": 10.0}},
        {"spec": replace(PAPER, query=UniformOverPool(2))},
        {"spec": replace(PAPER, query=Balanced(5))},
        {"spec": replace(PAPER, n_query=50)},
        {"spec": replace(PAPER, support=ShotsPerClass(7))},
        {"spec": replace(PAPER, n_classes=20)},
    ],
)
def test_other_protocols_have_none(change):
    assert published_accuracy(replace(CELL, **change)) is None


def test_all_of_table_1_is_here():
    file = SHARED / "paper_results.json"
    if not file.is_file():
        pytest.skip("the paper's tables are not here: expected shared/paper_results.json beside the repository")
    rows = json.loads(file.read_text())["table1_benchmark"]
    banks = {pair: name for name, pair in PAPER_BANKS.items()}
    methods = {name: key for key, name in PAPER_METHODS.items()}
    for row in rows:
        spec = TaskSpec(ShotsPerClass(row["shots"]), UniformOverPool(5))
        cell = Cell(banks[row["dataset"], row["backbone"]], spec, methods[row["method"]])
        assert published_accuracy(cell) == row["accuracy"]
    assert "NeurIPS 2022" in source()
