import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import handful
from handful.fewshot.benchmark.versions import changes_since, code_version, modules_behind, versions_text

SOURCE = Path(handful.__file__).parent


@pytest.mark.parametrize("method", ["paddle", "roll_call", "ici", "transclip"])
def test_nothing_that_a_row_passes_through_is_missed_and_no_other_method_is_among_it(method):
    """Whatever is called to solve a task is among the modules, apart from the bank's reader: its content has a hash."""
    program = (
        "import sys; from handful import fewshot; from handful.fewshot.benchmark.run import Material, run_range; "
        "from handful.fewshot.benchmark import Cell; from handful.datasets import load_clinc150; "
        "bank = load_clinc150().classes(range(6)); called = set(); "
        "spec = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(2), 20); "
        "sys.setprofile(lambda frame, *_: called.add(frame.f_globals.get('__name__', ''))); "
        f"run_range(Cell('c', spec, '{method}'), Material(bank), [0]); sys.setprofile(None); "
        "print(*sorted(name for name in called if name.startswith('handful.')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    behind = modules_behind(method)
    called = {name.removeprefix("handful.").replace(".", "/") for name in ran.stdout.split()}
    assert f"fewshot/methods/{method}" in called
    assert {name for name in called if f"{name}.py" not in behind and f"{name}/__init__.py" not in behind} == set()
    assert {name for name in behind if "/methods/" in name} == {f"fewshot/methods/{n}.py" for n in ("method", method)}


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
