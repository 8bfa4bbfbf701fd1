import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("typer")
from handful.cli import doctor
from handful.cli.main import main
from handful.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[2]
SOUND = {"torch": "2.13.0+cpu", "torchvision": "0.28.0+cpu", "numpy": "2.4.0"}


def findings(changes=None, cuda_of_torch=None, cuda_runs=False, wanted="2.13.0"):
    return doctor.findings(
        {**SOUND, **(changes or {})},
        wanted_torch={"torchvision": wanted},
        cuda_of_torch=cuda_of_torch,
        cuda_runs=cuda_runs,
    )


def test_versions_devices_and_extras_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "findings", lambda *_, **__: [])
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
    assert out.endswith("No problems found.\n")


def test_what_is_wrong_is_printed_with_its_cure_and_exits_with_one(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "findings", lambda *_, **__: [("the sky is green", "look again")])
    assert main(["doctor"]) == 1
    assert "Problem: the sky is green\n  Fix: look again\n" in capsys.readouterr().out


def test_a_sound_installation_has_no_findings():
    assert findings() == []
    assert findings({"torch": "2.13.0+cu126", "torchvision": "0.28.0+cu126"}, "12.6", cuda_runs=True) == []
    assert doctor.findings({"torch": "2.13.0"}, wanted_torch={}, cuda_of_torch=None, cuda_runs=False) == []
    assert findings(wanted=None) == []


def test_a_cuda_torchvision_beside_a_cpu_torch():
    (found,) = findings({"torchvision": "0.28.0+cu126"})
    assert "built for cu126" in found[0]
    assert "whl/cpu" in found[1]


def test_a_torchvision_of_another_release():
    (found,) = findings({"torchvision": "0.20.1+cpu"}, wanted="2.5.1")
    assert found[0] == "torchvision 0.20.1+cpu requires torch 2.5.1, but torch 2.13.0+cpu is installed"
    assert "torchvision 'torch==2.13.0' --index-url https://download.pytorch.org/whl/cpu" in found[1]


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        (["numpy", "torch==2.13.0", "pillow!=8.3.*,>=5.3.0"], "2.13.0"),
        (["numpy", "torch (==2.5.1)"], "2.5.1"),
        (["torch==2.5.1; python_version > '3'", "torch==9; extra == 'x'"], "2.5.1"),
        (["torch>=2", "torchaudio==2.1"], None),
        (["torch==2.*"], None),
        ([], None),
    ],
)
def test_the_torch_that_a_package_asks_for(requirements, expected):
    assert doctor.torch_wanted_by(requirements) == expected


def test_a_cuda_torch_without_a_device():
    (found,) = findings({"torch": "2.13.0", "torchvision": "0.28.0"}, "12.6", cuda_runs=False)
    assert "finds no device" in found[0]
    assert "whl/cpu" in found[1]


def test_a_library_that_is_installed_and_cannot_be_loaded(capsys, monkeypatch):
    def load():
        raise MissingExtraError(
            "ONNX Runtime is installed but cannot be loaded: no DLL; on Windows, install it; or else"
        )

    monkeypatch.setattr("handful.extraction.efficientnet_lite.load_onnxruntime", load)
    assert main(["doctor"]) == 1
    said = "Problem: ONNX Runtime is installed but cannot be loaded: no DLL\n  Fix: on Windows, install it; or else\n"
    assert said in capsys.readouterr().out


def test_two_packages_with_the_same_files():
    (found,) = findings({"onnxruntime": "1.31.1", "onnxruntime-gpu": "1.31.1"})
    assert found[0] == "onnxruntime and onnxruntime-gpu overwrite each other's files"
    assert found[1].startswith("pip uninstall onnxruntime onnxruntime-gpu, then install")


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
