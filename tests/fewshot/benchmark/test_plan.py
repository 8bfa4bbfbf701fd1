"""Plans: cells, their hashes, TOML, grids; and methods in files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from handful.cli.main import main
from handful.errors import OptionError
from handful_fewshot import (
    METHODS,
    CorrelatedStream,
    Dirichlet,
    FixedSupport,
    ShotsPerClass,
    TaskSpec,
    UniformOverPool,
    UnknownClasses,
)
from handful_fewshot.benchmark.plan import (
    Cell,
    bound_plan,
    file_hash,
    grid,
    load_method,
    read_plan,
    refuse_another_file,
)
from handful_fewshot.errors import PlanError
from tests.banks_at_hand import random_bank
from tests.plans_at_hand import SPEC, small_banks

CELL = Cell("toy", SPEC, "paddle")


@pytest.mark.parametrize(
    "change",
    [
        {"bank": "other"},
        {"spec": replace(SPEC, n_query=8)},
        {"spec": replace(SPEC, support=ShotsPerClass(3))},
        {"method": "soft_kmeans"},
        {"split": "test"},
        {"transform": "l2"},
        {"options": {"max_iter": 7}},
        {"seed": 1},
        {"bank_hash": "f00"},
    ],
)
def test_whatever_a_row_depends_on_changes_the_hash(change):
    assert replace(CELL, **change).content_hash != CELL.content_hash


def test_what_a_row_does_not_depend_on_leaves_the_hash():
    assert replace(CELL, n_tasks=7, cpu_budget=3.0).content_hash == CELL.content_hash


@pytest.mark.parametrize(
    "cell",
    [
        replace(CELL, options={"max_iter": 7}, cpu_budget=2.5),
        replace(CELL, spec=TaskSpec(ShotsPerClass(1), Dirichlet(3, 0.5), 9, 4)),
        replace(CELL, spec=TaskSpec(FixedSupport([3, 4]), UniformOverPool(1))),
        replace(CELL, spec=TaskSpec(FixedSupport.whole([0, 1]), UniformOverPool(1)), support_bank="library"),
        replace(CELL, transform="cl2n", parameters={"base_mean": np.arange(3.0)}),
    ],
)
def test_cells_survive_json(cell):
    again = Cell.from_mapping(json.loads(json.dumps(cell.to_mapping())))
    assert again.to_mapping() == cell.to_mapping()
    assert again.content_hash == cell.content_hash
    assert again.spec == cell.spec


def test_impossible_cells_are_refused():
    for change, sentence in [
        ({"method": "magic"}, "no method is called 'magic'"),
        ({"n_tasks": 0}, "at least one task"),
        ({"cpu_budget": 0.0}, "a budget above 0"),
        ({"parameters": {"scale": 3}}, "no parameter scale"),
        ({"support_bank": "library"}, "give both or neither"),
    ]:
        with pytest.raises(PlanError, match=sentence):
            replace(CELL, **change)
    with pytest.raises(OptionError, match="no option 'speed'"):
        replace(CELL, options={"speed": 1})
    with pytest.raises(PlanError, match="twice"):
        bound_plan([CELL, replace(CELL, n_tasks=3)], small_banks())
    with pytest.raises(PlanError, match="no cell"):
        bound_plan([], small_banks())
    with pytest.raises(PlanError, match="named 'toy'; given were: none"):
        CELL.bound({})


def test_a_toml_plan_is_a_grid(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(
        """
        [banks]
        toy = "banks/toy"

        [defaults]
        bank = "toy"
        tasks = 30

        [[cells]]
        method = ["paddle", "tim_adm"]
        k_eff = [2, 3]
        query = "dirichlet"
        concentration = 1.0

        [[cells]]
        method = "paddle"
        support_bank = "library"
        options = { complexity_weight = 10.0 }
        cpu_budget = 60.0
        """
    )
    entries, paths = read_plan(file)
    assert paths == {"toy": str(tmp_path / "banks" / "toy")}
    library = random_bank(3)
    plan = grid(entries, {"library": library})
    assert [(cell.method, cell.spec.query) for cell in plan[:4]] == [
        (method, Dirichlet(k, 1.0)) for method in ("paddle", "tim_adm") for k in (2, 3)
    ]
    assert plan[4].spec.support == FixedSupport.whole(library.labels)
    assert (plan[4].cpu_budget, plan[4].options, plan[4].n_tasks) == (60.0, {"complexity_weight": 10.0}, 30)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cells = 3", "must have"),
        ("= 3", "cannot be read as a TOML plan"),
        ("[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nspeed = 3", "no key 'speed'"),
        ("[[cells]]\nbank = 'toy'", "needs a method"),
        ("[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nquery = 'odd'", "no query rule is called 'odd'"),
        ("[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nunknown_share = 0.2", "go together, got 0 and 0.2"),
        (
            "[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nconcentration = 2.0",
            "'uniform' has no concentration; leave it out, or set query to dirichlet or stream",
        ),
        ("[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nquery = 'dirichlet'\nslots = 3", "'dirichlet' has no slots"),
        ("[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nk_eff = '2 to 10'", "a range such as 2-10, got '2 to 10'"),
        ("[[cells]]\nbank = 'toy'\nmethod = ['paddle', 'x.py:x']", "a method in a Python file"),
    ],
)
def test_plans_with_mistakes_are_refused_with_a_sentence(tmp_path, text, sentence):
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(PlanError, match=sentence):
        grid(read_plan(file)[0], {})


def test_ranges_and_streams_are_part_of_a_cell():
    entry = {"bank": "toy", "method": "paddle", "k_eff": ["2-10", 3], "n_query": 64}
    stream = {**entry, "query": "stream", "slots": 50, "batches": 8, "concentration": 0.01}
    cells = grid([entry, stream], {})
    rules = [cell.spec.query for cell in cells]
    assert rules[:2] == [UniformOverPool((2, 10)), UniformOverPool(3)]
    assert rules[2:] == [CorrelatedStream(k, 50, 0.01, 8) for k in ((2, 10), 3)]
    assert len({cell.content_hash for cell in cells}) == 4
    for cell in cells:
        assert Cell.from_mapping(json.loads(json.dumps(cell.to_mapping()))) == cell


def test_unknown_classes_are_part_of_a_cell():
    none, some = grid([{"bank": "toy", "method": "oslo", "unknown_classes": 3, "unknown_share": [0, 0.3]}], {})
    assert some.spec.unknown == UnknownClasses(3, 0.3)
    assert none.content_hash != some.content_hash
    assert Cell.from_mapping(json.loads(json.dumps(some.to_mapping()))) == some


COPY = "import dataclasses\nfrom handful_fewshot import METHODS\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mine = 3\n", "has no handful_fewshot.Method called 'mine'; it has none"),
        (f"{COPY}other = METHODS['paddle']\n", "called 'mine'; it has other"),
        ("mine =\n", "cannot be run \\(SyntaxError"),
        ("import nowhere_to_be_found\n", "cannot be run \\(ModuleNotFoundError"),
        (f"{COPY}mine = METHODS['paddle']\n", "'paddle' is already taken by handful"),
        (None, "does not exist"),
    ],
)
def test_a_file_that_has_no_such_method_is_refused(tmp_path, text, sentence):
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(OptionError, match=sentence):
        load_method(f"{file}:mine")


def test_a_cell_takes_the_method_and_the_hash_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(METHODS, "_values", dict(METHODS._values))
    file = tmp_path / "mine.py"
    hashes = []
    for comment in ("one", "other"):
        file.write_text(f"{COPY}mine = dataclasses.replace(METHODS['paddle'], name='loose')  # {comment}\n")
        cell = Cell("toy", SPEC, f"{file}:mine")
        assert (cell.method, cell.method_hash) == ("loose", file_hash("loose"))
        hashes.append((cell.method_hash, cell.content_hash))
    assert len(set(hashes)) == 2
    refuse_another_file("loose", hashes[1][0])
    with pytest.raises(PlanError, match="has changed since the run was started"):
        refuse_another_file("loose", hashes[0][0])
    with pytest.raises(PlanError, match="is not loaded"):
        refuse_another_file("of_another_process", hashes[0][0])


def test_reading_a_plan_or_a_run_runs_no_code(tmp_path, monkeypatch, capsys):
    """A hostile run folder or plan must not execute the file it names."""
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    (tmp_path / "plan.toml").write_text("[[cells]]\nbank = 'clinc150'\nmethod = 'evil.py:evil'\n")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "run", "plan.toml", "--out", "run"]) == 1
    assert "reading a plan runs no code" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()
