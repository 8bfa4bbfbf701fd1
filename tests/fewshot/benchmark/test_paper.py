"""Plans of the paper, and the numbers it printed."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from handful import FeatureBank
from handful_fewshot import Balanced, FixedSupport, ShotsPerClass, TaskSpec, UniformOverPool, UnknownClasses
from handful_fewshot.benchmark import paper
from handful_fewshot.benchmark.paper import TABLE_1_METHODS, published_accuracy, table1, table2, why_unpublished
from handful_fewshot.benchmark.plan import Cell, bound_plan
from handful_fewshot.benchmark.run import Material, run_range
from handful_fewshot.errors import PlanError
from tests.banks_at_hand import random_bank
from tests.conftest import SHARED


@pytest.fixture(scope="module")
def banks() -> dict[str, FeatureBank]:
    """Stand-ins, large enough for 20 shots and 150 queries of two classes."""
    splits = {"base": [0, 1], "validation": list(range(2, 8)), "test": list(range(8, 24))}
    bank = random_bank(n_classes=24, dim=8, least=110, most=120, splits=splits)
    small = random_bank(3, n_classes=24, dim=8, splits=splits)
    names = ("mini", "tiered", "mini_wrn", "tiered_wrn", "inat")
    return {**dict.fromkeys(names, bank), "inat_support": small}


def test_table_1_has_all_its_columns(banks):
    plan = table1(banks, n_tasks=7)
    assert len(plan) == 4 * 3 * 8
    assert Counter((cell.bank, cell.spec.support.shots) for cell in plan) == {
        (name, shots): 8 for name in ("mini", "tiered", "mini_wrn", "tiered_wrn") for shots in (5, 10, 20)
    }
    assert {cell.method for cell in plan} == set(TABLE_1_METHODS)
    assert {(cell.n_tasks, cell.seed, cell.split) for cell in plan} == {(7, 2020, "test")}
    assert {cell.bank for cell in table1({"mini": banks["mini"]})} == {"mini"}


def test_values_of_the_public_configurations(banks):
    by = {(cell.bank, cell.method): cell for cell in table1(banks)}
    assert by["tiered", "bd_cspn"].options == {"public_code": True, "sharpness": 30.0}
    assert by["tiered_wrn", "bd_cspn"].options["sharpness"] == 50.0
    assert by["mini_wrn", "pt_map"].options == {"step_size": 0.01, "column_mass": 15.0}
    assert [by[name, "ici"].options["n_components"] for name in ("mini", "tiered")] == [2, 5]
    assert by["mini", "paddle"].options == {}


@pytest.mark.parametrize("name", list(paper.PAPER_PLANS))
def test_every_plan_can_be_run(banks, name):
    plan = bound_plan(paper.PAPER_PLANS[name](banks, n_tasks=1), banks)
    quick = [cell for cell in plan if cell.method in ("paddle", "soft_kmeans", "laplacian_shot", "bd_cspn")]
    assert quick
    # Ten of a grid's cells, spread over it.
    for cell in quick[:: max(1, len(quick) // 10)]:
        (row,) = run_range(cell, Material.of(cell, banks), [0])
        assert row["error"] is None
        assert row["transform"] == cell.transform


def test_table_2_has_a_fixed_support_from_a_bank_of_its_own(banks):
    plan = table2(banks)
    assert {cell.support_bank for cell in plan} == {"inat_support"}
    expected = (banks["inat_support"].split("test").labels).tolist()
    assert all(list(cell.spec.support.labels) == expected for cell in plan)


def test_accuracy_against_k_eff_has_the_axis_of_the_stored_results(banks):
    plan = paper.accuracy_against_k_eff(banks)
    axes = {}
    for cell in plan:
        axes.setdefault((cell.bank, cell.spec.support, cell.method), []).append(cell.spec.query.k_eff)
    # Seven methods; three shots of four banks, and the one support of iNat.
    assert len(axes) == 7 * (3 * 4 + 1)
    assert set(map(tuple, axes.values())) == {(2, 3, 4, 5, 6, 7, 8, 9, 10)}


def test_missing_banks_are_named(banks):
    with pytest.raises(PlanError, match="at least one bank named mini, tiered, mini_wrn, tiered_wrn; given were: none"):
        table1({})
    with pytest.raises(PlanError, match="named 'inat_support'"):
        table2({"inat": banks["inat"]})


PAPER = TaskSpec(ShotsPerClass(10), UniformOverPool(5))
CELL = Cell("tiered", PAPER, "paddle", split="test", bank_shape=(160, 512, 206_209))


def test_numbers_stand_beside_the_cells_they_belong_to():
    assert published_accuracy(CELL) == 62.5
    assert published_accuracy(replace(CELL, method="soft_kmeans", transform="")) == 35.8
    assert published_accuracy(replace(CELL, method="ici", transform="")) is None  # intractable, says the paper
    fixed = replace(PAPER, support=FixedSupport.whole([0, 1, 2, 3, 4]))
    inat = Cell("inat", fixed, "paddle", support_bank="inat_support", bank_shape=(227, 512, 50_000), as_published=True)
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
        (
            {"bank_shape": (150, 512, 206_209)},
            "has 150 classes in its split 'test' and 512 dimensions, but the test split of",
        ),
        (
            {"bank_shape": (160, 384, 206_209)},
            "has 160 classes in its split 'test' and 384 dimensions, but the test split of",
        ),
        ({"bank_shape": (150, 384, 9_000), "split": ""}, "has 150 classes and 384 dimensions, but the test split of"),
        ({"split": "validation"}, "in its split 'validation'"),
        ({"bank_shape": (0, 0, 0)}, "has 0 classes"),  # a cell that is not bound to a bank
    ],
)
def test_other_classes_and_other_networks_have_none_and_it_is_said_why(change, why):
    other = replace(CELL, **change)
    assert published_accuracy(other) is None
    assert why in why_unpublished(other)
    assert why_unpublished(other).endswith("of tiered-ImageNet has 160, with 512 from ResNet-18")


def test_a_bank_of_the_right_size_and_other_content_has_none_unless_somebody_says_so():
    other = replace(CELL, bank_shape=(160, 512, 9_600))
    assert published_accuracy(other) is None
    assert (
        "has 9,600 vectors in its split 'test', but the test split of tiered-ImageNet has 206,209; if it is the "
        "paper's, say so with --as-published" in why_unpublished(other)
    )
    said = replace(other, as_published=True)
    assert published_accuracy(said) == 62.5
    assert why_unpublished(said) == ""
    assert said.content_hash == other.content_hash
    # Nobody can say that other classes or another network are the paper's.
    assert published_accuracy(replace(said, bank_shape=(20, 512, 9_600))) is None
    fixed = replace(PAPER, support=FixedSupport.whole([0, 1, 2, 3, 4]))
    inat = Cell("inat", fixed, "paddle", support_bank="inat_support", bank_shape=(227, 512, 50_000))
    assert published_accuracy(inat) is None
    assert "the test split of iNat has a number that is not published" in why_unpublished(inat)


def test_all_of_table_1_is_here():
    file = SHARED / "paper_results.json"
    if not file.is_file():
        pytest.skip("the paper's tables are not here: expected shared/paper_results.json beside the repository")
    rows = json.loads(file.read_text())["table1_benchmark"]
    banks = {pair: name for name, pair in paper.PAPER_BANKS.items()}
    methods = {name: key for key, name in paper.PAPER_METHODS.items()}
    for row in rows:
        spec = TaskSpec(ShotsPerClass(row["shots"]), UniformOverPool(5))
        shape = row["K"], paper.DIMENSIONS[row["backbone"]], paper.TEST_IMAGES[row["dataset"]]
        cell = Cell(banks[row["dataset"], row["backbone"]], spec, methods[row["method"]], bank_shape=shape)
        assert published_accuracy(cell) == row["accuracy"]
    assert "NeurIPS 2022" in paper.source_of_numbers()
