"""What `handful` does after `pip install handful`: nothing of the extras is there."""

import subprocess
import sys

import pytest

import handful
from handful.cli.bare import COMMANDS, DOCTOR, SUMMARY

# Packages of extras cannot be imported, and are not even found.
PROGRAM = """
import runpy
import sys
from importlib.machinery import PathFinder

class WithoutExtras(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        absent = ("typer", "click", "rich", "pyarrow", "matplotlib", "pandas", "PIL", "transformers")
        return None if name.partition(".")[0] in absent else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutExtras
runpy.run_module("handful", run_name="__main__", alter_sys=True)
"""


def bare(*arguments):
    return subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)


def test_help_lists_every_command_with_what_it_needs():
    ran = bare("--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert SUMMARY in " ".join(ran.stdout.split())
    lines = {line.split()[0]: line for line in ran.stdout.splitlines() if line.startswith("  ")}
    assert DOCTOR in lines
    assert all(extras in lines[name] for name, (_, extras) in COMMANDS.items())
    assert bare().stdout == ran.stdout


def test_the_version():
    ran = bare("--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"handful {handful.__version__}\n", "")


def test_doctor_says_what_is_there():
    ran = bare("doctor")
    assert ran.stderr == ""
    assert ran.returncode == ("Problem: " in ran.stdout)
    for start in ("handful  ", "python  ", "torch  ", "[cli]  "):
        assert any(line.startswith(start) for line in ran.stdout.splitlines()), start


def test_other_commands_name_the_extra_that_they_need():
    ran = bare("classify", "--catalogue", "c.npz", "--batch", "b.npz", "--out", "p.csv")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "handful: classify needs packages that are not installed; run: pip install 'handful[images]' for photographs, "
        "'handful[text]' for sentences, or 'handful[cli]' for vectors\n"
    )
    ran = bare("nonsense")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "invalid choice: 'nonsense'" in ran.stderr


def test_its_commands_are_those_of_the_whole_command_line():
    typer = pytest.importorskip("typer")
    from handful.cli.main import make_app

    assert {DOCTOR, *COMMANDS} == set(typer.main.get_command(make_app()).commands)
