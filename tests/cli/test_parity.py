"""What the command line can do, Python can do under the same name; every command explains itself."""

import inspect

import pytest
import typer

import handful
from handful.cli.main import main, make_app
from handful.cli.options import PANELS
from handful.estimators import Known

# Where a command writes to and where it works: in Python, the answer is written by its own methods, and an executor is
# an argument of its own.
OUTPUTS = {"out", "annotate"}
ELSEWHERE = {"on": "executor"}
# Arguments about how labelling runs.
RUNNING = {"method", "on_progress"}
# What only a page has.
OF_THE_PAGE = {"address", "opens", "opens_next"}
# What a person says about single rows: at the command line, the page asks.
ROWS = {"given", "new_classes"}


def commands(command, *words):
    """All commands that do something, with the words that call them."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, below in command.commands.items():
        yield from commands(below, *words, name)


ALL = dict(commands(typer.main.get_command(make_app())))


def options(*words):
    return {one.name for one in ALL[words].params if one.param_type_name == "option" and one.name != "help"}


@pytest.mark.parametrize("words", [(), ("bench",), ("catalogue",), *ALL], ids=" ".join)
def test_help_by_its_short_name(words, capsys):
    assert main([*words, "-h"]) == 0
    assert "Usage: handful" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "function"), [("classify", handful.classify), ("rescore", handful.rescore)], ids=["classify", "rescore"]
)
def test_options_are_arguments_of_the_same_name(command, function):
    names = set(inspect.signature(function).parameters)
    if "known" in names:
        names |= set(Known.__annotations__)
    asked = {ELSEWHERE.get(name, name) for name in options(command) - OUTPUTS}
    assert asked <= names, f"Python does not have {sorted(asked - names)}"


def test_keywords_of_classify_stand_in_the_groups_of_the_help():
    documented = inspect.getdoc(handful.classify).partition("Parameters\n----------\n")[2].partition("\nReturns\n")[0]
    names = [name for line in documented.splitlines() if line[0] != " " for name in line.split(" :")[0].split(", ")]
    assert {*names} == {*inspect.signature(handful.classify).parameters}
    groups = [panel for name in names[2:] for panel, those in PANELS.items() if name in those]
    assert groups == sorted(groups, key=list(PANELS).index)
    assert (
        groups.count("Reading") + groups.count("What you know") == len(groups) == len(names) - 2 - len(RUNNING | ROWS)
    )
    assert {*names[-len(RUNNING) :]} == RUNNING


def test_a_review_has_the_options_of_classify_and_those_of_a_session():
    of_session = set(inspect.signature(handful.Session).parameters)
    own = options("review") - options("classify") - OF_THE_PAGE
    assert own <= of_session, f"a session does not have {sorted(own - of_session)}"
