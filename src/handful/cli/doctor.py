"""`handful doctor`: what is installed, what runs where, and each known mistake of an installation with its cure."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

import torch
import typer

import handful
from handful.cli.terminal import data

CORE = ("torch", "numpy", "scikit-learn")
# Of these packages a build must fit the build of torch; each is compiled against one version of it.
BESIDE_TORCH = ("torchvision", "torchaudio")
# A release of torchvision belongs to one of torch: 0.(15 + n) to 2.n, since 2.0.
TORCHVISION_AHEAD = 15
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")


@dataclass(frozen=True)
class Finding:
    """Something wrong, and what to do about it."""

    what: str
    cure: str


def doctor() -> None:
    """Print versions, devices and extras, and every known mistake of this installation with its cure.

    Exits with 1 if something is wrong.

    \b
    Examples:
      handful doctor
    """
    versions = installed_versions()
    data(f"handful         {handful.__version__}")
    data(f"python          {platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in CORE:
        data(f"{name:<16}{versions.get(name, 'not installed')}")
    data(f"{'devices':<16}{', '.join(devices())}; {torch.get_num_threads()} threads")
    for extra, missing in extras(versions).items():
        said = "installed" if not missing else f"lacks {', '.join(missing)}; pip install 'handful[{extra}]'"
        data(f"{f'[{extra}]':<16}{said}")
    found = findings(versions, cuda_of_torch=torch.version.cuda, cuda_runs=torch.cuda.is_available())
    data("")
    if not found:
        data("Nothing wrong was found.")
        return
    for finding in found:
        data(f"Wrong: {finding.what}\n  Cure: {finding.cure}")
    raise typer.Exit(1)


def installed_versions() -> dict[str, str]:
    """Every installed distribution by its name in small letters, with its version."""
    return {_key(found.metadata["Name"]): found.version for found in metadata.distributions() if found.metadata["Name"]}


def devices() -> list[str]:
    """Where torch can compute, as it names devices."""
    cuda = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])]


def extras(versions: Mapping[str, str]) -> dict[str, list[str]]:
    """Each extra of the installed handful, with the packages of it that are missing."""
    wanted: dict[str, list[str]] = {}
    for line in metadata.requires("handful") or []:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        name = REQUIREMENT.match(requirement.strip())
        if extra and name:
            wanted.setdefault(extra[1], []).append(_key(name[1]))
    return {extra: [name for name in names if name not in versions] for extra, names in sorted(wanted.items())}


def findings(versions: Mapping[str, str], *, cuda_of_torch: str | None, cuda_runs: bool) -> list[Finding]:
    """Return the mistakes that these versions show.

    Parameters
    ----------
    versions : Mapping[str, str]
        Installed distributions, as `installed_versions` returns them.
    cuda_of_torch : str or None
        CUDA version torch was built with; None for a build without.
    cuda_runs : bool
        Whether torch finds a device to run CUDA on.
    """
    found = []
    build = f"cu{cuda_of_torch.replace('.', '')}" if cuda_of_torch else "cpu"
    index = f"https://download.pytorch.org/whl/{build}"
    for name in BESIDE_TORCH:
        local = versions.get(name, "").partition("+")[2]
        if local and local != build:
            what = f"{name} {versions[name]} was built for {local}, torch {versions['torch']} for {build}"
            found.append(
                Finding(
                    f"{what}; importing it fails, and timm, open_clip or transformers with it",
                    f"pip uninstall {name}, or pip install --force-reinstall --no-deps {name} --index-url {index}",
                )
            )
    vision, torch_release = _release(versions.get("torchvision")), _release(versions.get("torch"))
    if vision and torch_release and torch_release[0] == 2 and vision[1] != torch_release[1] + TORCHVISION_AHEAD:
        fitting = f"0.{torch_release[1] + TORCHVISION_AHEAD}"
        found.append(
            Finding(
                f"torchvision {versions['torchvision']} does not belong to torch {versions['torch']}; {fitting} does",
                f"pip install --no-deps 'torchvision=={fitting}.*' --index-url {index}",
            )
        )
    if cuda_of_torch and not cuda_runs:
        found.append(
            Finding(
                f"torch was built for CUDA {cuda_of_torch} and finds no device to run it on",
                "install the driver of the graphics card, or, without one, save gigabytes: "
                "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu",
            )
        )
    doubled = [name for name in ("opencv-python", "opencv-python-headless") if name in versions]
    if len(doubled) > 1:
        found.append(Finding(f"{' and '.join(doubled)} overwrite each other's files", f"pip uninstall {doubled[0]}"))
    return found


def _release(version: str | None) -> tuple[int, int] | None:
    """Return the first two numbers of a version."""
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _key(name: str) -> str:
    """Return a distribution's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
