import pytest

pytest.importorskip("typer")
import typer

from handful.errors import OptionError
from handful_fewshot.benchmark.plan import QUERY_RULES
from handful_fewshot.cli.task_options import Spread, option_grid, task_count, task_numbers


def test_the_query_rules_in_the_help_are_those_there_are():
    assert set(Spread) == set(QUERY_RULES)


def test_a_run_begins_with_its_first_task():
    assert task_numbers("5:20") == range(5, 20)
    assert task_count("20") == task_count("0:20") == 20
    with pytest.raises(typer.BadParameter, match="a run begins with task 0, got '5:20'; give 20"):
        task_count("5:20")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=3", 3),
        ("a=0.5", 0.5),
        ("a=True", True),
        ("a=none", None),
        ("a=auto", "auto"),
        ("a=1e-3", 1e-3),
        ('a="3"', '"3"'),
    ],
)
def test_values_have_the_type_they_look_like(text, value):
    assert option_grid([text]) == [{"a": value}]
    assert type(option_grid([text])[0]["a"]) is type(value)


def test_several_values_make_all_combinations():
    assert option_grid([]) == [{}]
    assert option_grid(["a=1,2", "b=x,y"]) == [{"a": a, "b": b} for a in (1, 2) for b in ("x", "y")]


@pytest.mark.parametrize("texts", [["a"], ["a="], ["=3"], ["a=1", "a=2"]])
def test_what_is_no_option_is_refused(texts):
    with pytest.raises(OptionError, match="--option"):
        option_grid(texts)
