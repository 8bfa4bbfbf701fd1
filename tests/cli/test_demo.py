import inspect
import pydoc
import re
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
from handful.cli import demo
from handful.cli.main import main
from handful.fewshot.benchmark import journal
from handful.fewshot.methods import roll_call
from handful.machine import extras


def test_five_methods_one_page_and_what_to_do_next(tmp_path, capsys, monkeypatch):
    fits, fit_head = [], roll_call.fit_head
    monkeypatch.setattr(journal, "RANGES_PER_CELL", 1)  # both tasks of a cell at once
    monkeypatch.setattr(roll_call, "fit_head", lambda *given: fits.append(1) or fit_head(*given))
    assert main(["demo", "--tasks", "2", "--out", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    # All batches have one catalogue, so there is no training for every batch: that would take minutes.
    assert len(fits) == len(demo.K_EFF)
    assert [out.count(f"  {method} ") for method in demo.METHODS] == [len(demo.K_EFF)] * 5
    assert len(demo.METHODS) == 5
    page = tmp_path / "demo" / "report" / "index.html"
    assert f"The report: {page}\n" in out
    assert all(method in page.read_text() for method in demo.METHODS)
    assert "What to do next" in out
    # The gain is the difference of the accuracies.
    lines = out.splitlines()
    block = "\n".join(lines[lines.index("5 intents occur") : lines.index("20 intents occur")])
    accuracy = {m: float(re.search(rf"{m}\s+([\d.]+)", block)[1]) for m in demo.METHODS}
    for method in set(demo.METHODS) - {demo.YARDSTICK}:
        gain = float(re.search(rf"{method}\s+[\d.]+\s+([+-][\d.]+)", block)[1])
        assert gain == pytest.approx(accuracy[method] - accuracy[demo.YARDSTICK], abs=0.11)


def test_what_it_sends_to_comes_with_the_package(capsys):
    named = re.findall(r"^  handful ([\w ]+?)(?: --help)?  ", demo.NEXT, re.MULTILINE)
    assert len(named) == 3
    for command in named:
        assert main([*command.split(), "--help"]) == 0
        assert "Usage" in capsys.readouterr().out
    explained = re.findall(r"pydoc (\S+)", demo.NEXT)
    assert len(explained) == 1
    assert all("Examples" in pydoc.getdoc(pydoc.locate(name)) for name in explained)


def test_an_earlier_demo_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "demo" / "five-methods").mkdir(parents=True)
    (tmp_path / "demo" / "five-methods" / "plan.json").write_text("{}")
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 1
    assert "already exists" in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named_before_any_work(tmp_path, capsys, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 1
    assert "pip install 'handful[plots]'" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


def test_its_pages_say_how_many_batches_it_solves():
    default = inspect.signature(demo.demo).parameters["tasks"].default
    page = (Path(__file__).resolve().parents[2] / "docs" / "index.md").read_text()
    assert f"five methods on {len(demo.K_EFF) * default} such batches" in page
