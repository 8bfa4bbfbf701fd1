import json
from dataclasses import replace

import pytest

from handful.fewshot import Balanced, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, UnknownClasses
from handful.fewshot.benchmark.paper import DIMENSIONS, PAPER_BANKS
from handful.fewshot.benchmark.plan import Cell
from handful.fewshot.reports.published import PAPER_METHODS, published_accuracy, source, why_unpublished
from tests.conftest import SHARED

PAPER = TaskSpec(ShotsPerClass(10), UniformOverPool(5))
CELL = Cell("tiered", PAPER, "paddle", split="test", bank_shape=(160, 512))


def test_numbers_stand_beside_the_cells_they_belong_to():
    assert published_accuracy(CELL) == 62.5
    assert published_accuracy(replace(CELL, method="soft_kmeans", transform="")) == 35.8
    assert published_accuracy(replace(CELL, method="ici", transform="")) is None  # intractable, says the paper
    fixed = replace(PAPER, support=FixedSupport.whole([0, 1, 2, 3, 4]))
    inat = Cell("inat", fixed, "paddle", support_bank="inat_support", bank_shape=(227, 512))
    assert published_accuracy(inat) == 84.3
    assert why_unpublished(inat) == ""


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
        {"spec": replace(PAPER, unknown=UnknownClasses(2, 0.1))},
    ],
)
def test_other_protocols_have_none(change):
    other = replace(CELL, **change)
    assert published_accuracy(other) is None
    assert why_unpublished(other) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"bank_shape": (150, 512)}, "has 150 classes in its split 'test' and 512 dimensions, but the test split of"),
        ({"bank_shape": (160, 384)}, "has 160 classes in its split 'test' and 384 dimensions, but the test split of"),
        ({"bank_shape": (150, 384), "split": ""}, "has 150 classes and 384 dimensions, but the test split of"),
        ({"split": "validation"}, "in its split 'validation'"),
        ({"bank_shape": (0, 0)}, "has 0 classes"),  # a cell that is not bound to a bank
    ],
)
def test_other_classes_and_other_networks_have_none_and_it_is_said_why(change, why):
    other = replace(CELL, **change)
    assert published_accuracy(other) is None
    assert why in why_unpublished(other)
    assert why_unpublished(other).endswith("of tiered-ImageNet has 160, with 512 from ResNet-18")


def test_all_of_table_1_is_here():
    file = SHARED / "paper_results.json"
    if not file.is_file():
        pytest.skip("the paper's tables are not here: expected shared/paper_results.json beside the repository")
    rows = json.loads(file.read_text())["table1_benchmark"]
    banks = {pair: name for name, pair in PAPER_BANKS.items()}
    methods = {name: key for key, name in PAPER_METHODS.items()}
    for row in rows:
        spec = TaskSpec(ShotsPerClass(row["shots"]), UniformOverPool(5))
        shape = row["K"], DIMENSIONS[row["backbone"]]
        cell = Cell(banks[row["dataset"], row["backbone"]], spec, methods[row["method"]], bank_shape=shape)
        assert published_accuracy(cell) == row["accuracy"]
    assert "NeurIPS 2022" in source()
