import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("typer")
from handful.cli import doctor
from handful.cli.main import main
from handful.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[2]


def test_versions_devices_and_extras_are_printed(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for start in (
        "handful  ",
        "python  ",
        "torch  ",
        "numpy  ",
        "scikit-learn  ",
        "devices         cpu",
        "[fewshot]  ",
    ):
        assert any(line.startswith(start) for line in out.splitlines()), start


def test_a_library_that_is_installed_and_cannot_be_loaded(capsys, monkeypatch):
    def load():
        raise MissingExtraError(
            "ONNX Runtime is installed but cannot be loaded: no DLL; on Windows, install it; or else"
        )

    monkeypatch.setattr("handful.extraction.efficientnet_lite.load_onnxruntime", load)
    assert main(["doctor"]) == 1
    assert "cannot be loaded: no DLL; on Windows, install it" in capsys.readouterr().err


def test_what_is_lacking_comes_with_one_command_and_no_path(capsys, monkeypatch):
    monkeypatch.setattr(
        doctor, "extras", lambda _: {"images": [], "torch": ["torch", "transformers"], "timm": ["timm"]}
    )
    main(["doctor"])
    out = capsys.readouterr().out
    assert "[images]        installed\n" in out
    assert "[torch]         lacks torch, transformers\n" in out
    (command,) = [line for line in out.splitlines() if "pip install" in line and "[" in line]
    assert command.startswith('To add one, such as [torch]: pip install --editable ".[torch]"')
    assert str(ROOT) not in out


def test_extras_are_those_of_the_package_and_say_what_is_missing(monkeypatch):
    # As a wheel built from this tree says it; what is installed may be older.
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lines = [f"{line}; extra == '{extra}'" for extra, needed in declared.items() for line in needed]
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: lines)
    found = doctor.extras({"typer": "1", "rich": "1", "matplotlib": "1"})
    assert found["plots"] == []
    assert {"fewshot", "parquet", "torch", "images", "timm", "ray"} <= set(found)
    assert found["images"] == ["onnxruntime", "pillow"]
    assert found["parquet"] == ["pyarrow"]
    assert found["open-clip"] == ["torch", "open-clip-torch", "pillow"]


def test_every_extra_that_an_error_names_is_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = re.findall(r"import_extra\(\s*[^,()]+,\s*\"([^\"]+)\"", source) + re.findall(
        r"install_command\(['\"]([\w-]+)['\"]\)", source
    )
    assert len(named) > 20
    assert {extra for names in named for extra in names.split(",")} <= set(declared)
