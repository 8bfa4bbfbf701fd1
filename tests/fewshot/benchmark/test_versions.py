import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import handful
from handful import fewshot
from handful.fewshot.benchmark import versions as module
from handful.fewshot.benchmark.versions import changes_since, code_version, modules_behind, versions_text

SOURCE = Path(handful.__file__).parent


@pytest.mark.parametrize("method", list(fewshot.METHODS))
def test_the_code_of_a_method_is_what_its_rows_pass_through_and_no_other_method(method):
    behind = modules_behind(method)
    others = {f"handful.fewshot.methods.{name}" for name in fewshot.METHODS if name != method}
    assert {
        f"handful.fewshot.methods.{method}",
        "handful.fewshot.benchmark.run",
        "handful.fewshot.benchmark.score",
    } <= set(behind)
    assert {
        "handful.fewshot.tasks.draw",
        "handful.fewshot.gathering",
        "handful.fewshot.transforms",
        "handful.fewshot.dispatch",
    } <= set(behind)
    assert not others & set(behind)
    assert not any(name.startswith(("handful.cli", "handful.fewshot.reports")) for name in behind)
    assert "handful.fewshot.benchmark.journal" not in behind


def test_nothing_that_a_row_passes_through_is_missed():
    """Whatever is loaded by solving a task is among the modules found by reading, packages that pass on names aside."""
    program = (
        "import sys; from handful import fewshot; from handful.fewshot.benchmark.run import Material, run_range; "
        "from handful.fewshot.benchmark import Cell; from handful.datasets import load_clinc150; "
        "spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(5)); called = set(); "
        "sys.setprofile(lambda frame, *_: called.add(frame.f_globals.get('__name__', ''))); "
        "run_range(Cell('c', spec, 'paddle'), Material(load_clinc150()), [0]); sys.setprofile(None); "
        "print(*sorted(name for name in called if name.startswith('handful.')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    called = set(ran.stdout.split()) - {"handful.datasets", "handful.datasets.clinc150"}
    assert "handful.fewshot.methods.paddle" in called
    # The bank was read before: that is a question of its content, which has a hash of its own.
    assert {name for name in called if not name.startswith("handful.banks")} <= set(modules_behind("paddle"))


def test_a_changed_line_changes_the_code_of_those_that_use_it(monkeypatch):
    before = {method: code_version(method) for method in ("tim", "paddle")}
    source = module._source

    def changed(name):
        return source(name) + ("\n# another line" if name == "handful.fewshot.solvers.mutual_information" else "")

    monkeypatch.setattr(module, "_source", changed)
    code_version.cache_clear()
    try:
        assert code_version("tim") != before["tim"]
        assert code_version("paddle") == before["paddle"]
    finally:
        code_version.cache_clear()


def rows(**columns):
    return {name: np.array(values, dtype=object) for name, values in columns.items()}


def test_differences_are_named_and_equal_things_are_not():
    now, code = versions_text(), code_version("paddle")
    assert changes_since(rows(versions=[now], code=[code], method=["paddle"]), ["paddle"]) == []
    assert changes_since(rows(versions=[], code=[], method=[]), ["paddle"]) == []
    then = now.replace(f"handful {handful.__version__}", "handful 0.0.9")
    (said,) = changes_since(rows(versions=[then, now], code=[code, code], method=["paddle"] * 2), ["paddle"])
    assert said == f"rows were made with handful 0.0.9, but this is handful {handful.__version__}"
    other = rows(versions=[now, now], code=["f00", code], method=["paddle", "paddle"])
    (said,) = changes_since(other, ["paddle", "tim"])
    assert said == f"the code of paddle has changed: rows were made by f00, but this is {code}"
    assert changes_since(other, ["tim"]) == []
