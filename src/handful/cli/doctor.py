"""`handful doctor`: what is installed, which devices there are, and known installation problems with their fixes."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from importlib import import_module, metadata
from typing import Any

from handful.cli.terminal import data
from handful.errors import MissingExtraError
from handful.machine.extras import install_command
from handful.machine.threads import available_cores
from handful.version import __version__

CORE = ("numpy", "scipy", "scikit-learn", "onnxruntime", "torch")
# Distributions with the same files, of which the one that was installed last works.
SAME_FILES = (("opencv-python", "opencv-python-headless"), ("onnxruntime", "onnxruntime-gpu"))
# Builds of these packages must match the build of torch; each is compiled against one version of it, which it names.
BESIDE_TORCH = ("torchvision", "torchaudio")
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")
EXACT_TORCH = re.compile(r"^torch\s*\(?\s*==\s*([^\s;,)]+)\s*\)?\s*(;|$)")


def doctor() -> None:
    """Print versions, devices and extras, and every known problem of this installation with its fix.

    Exits with 1 if something is wrong.

    \b
    Examples:
      handful doctor
    """
    versions = installed_versions()
    torch = import_module("torch") if "torch" in versions else None
    data(f"handful         {__version__}")
    data(f"python          {platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in CORE:
        data(f"{name:<16}{versions.get(name, 'not installed')}")
    data(f"{'devices':<16}{', '.join(devices(torch))}; {available_cores()} cores")
    found_extras = extras(versions)
    width = max(16, *(len(extra) + 4 for extra in found_extras))
    for extra, missing in found_extras.items():
        said = f"lacks {', '.join(missing)}" if missing else "installed"
        data(f"{f'[{extra}]':<{width}}{said}")
    if lacking := [extra for extra, missing in found_extras.items() if missing]:
        data(f"To add one, such as [{lacking[0]}]: {install_command(lacking[0])}")
    wanted = {name: torch_wanted_by(metadata.requires(name) or []) for name in BESIDE_TORCH if name in versions}
    found = findings(
        versions,
        wanted_torch={} if torch is None else wanted,
        cuda_of_torch=None if torch is None else torch.version.cuda,
        cuda_runs=torch is not None and torch.cuda.is_available(),
    )
    if "onnxruntime" in versions:
        found += _not_loaded()
    data("")
    if not found:
        data("No problems found.")
        return
    for what, cure in found:
        data(f"Problem: {what}\n  Fix: {cure}")
    sys.exit(1)


def _not_loaded() -> list[tuple[str, str]]:
    """Return why ONNX Runtime cannot be loaded although it is installed, with the cure."""
    from handful.extraction.efficientnet_lite import load_onnxruntime  # with NumPy, which help should not wait for

    try:
        load_onnxruntime()
    except MissingExtraError as error:
        what, _, cure = str(error).partition("; ")
        return [(what, cure)]
    return []


def installed_versions() -> dict[str, str]:
    """Every installed distribution by its name in lower case, with its version."""
    return {_key(found.metadata["Name"]): found.version for found in metadata.distributions() if found.metadata["Name"]}


def devices(torch: Any) -> list[str]:
    """Where handful can compute, as torch names devices; without torch, here."""
    if torch is None:
        return ["cpu"]
    cuda = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return ["cpu", *cuda, *(["mps"] if torch.backends.mps.is_available() else [])]


def extras(versions: Mapping[str, str]) -> dict[str, list[str]]:
    """Each extra of the installed handful, with its missing packages."""
    wanted: dict[str, list[str]] = {}
    for line in metadata.requires("handful") or []:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        name = REQUIREMENT.match(requirement.strip())
        if extra and name:
            wanted.setdefault(extra[1], []).append(_key(name[1]))
    return {extra: [name for name in names if name not in versions] for extra, names in sorted(wanted.items())}


def torch_wanted_by(requirements: list[str]) -> str | None:
    """Return the one version of torch that a distribution requires; None if it does not require exactly one."""
    named = [EXACT_TORCH.match(line) for line in requirements if "extra ==" not in line]
    exact = [found[1] for found in named if found and not found[1].endswith("*")]
    return exact[0] if exact else None


def findings(
    versions: Mapping[str, str],
    *,
    wanted_torch: Mapping[str, str | None],
    cuda_of_torch: str | None,
    cuda_runs: bool,
) -> list[tuple[str, str]]:
    """Return the problems that these versions show, each with what to do about it.

    Parameters
    ----------
    versions : Mapping[str, str]
        Installed distributions, as `installed_versions` returns them.
    wanted_torch : Mapping[str, str or None]
        For each of `BESIDE_TORCH` that is installed, the version of torch that its own metadata asks for.
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
        if local and local != build and "torch" in versions:
            what = f"{name} {versions[name]} was built for {local}, torch {versions['torch']} for {build}"
            found.append(
                (
                    f"{what}; importing it fails, and timm, open_clip or transformers with it",
                    f"pip uninstall {name}, or pip install --force-reinstall --no-deps {name} --index-url {index}",
                )
            )
    for name, wanted in wanted_torch.items():
        if wanted is not None and not _same_release(wanted, versions["torch"]):
            kept = versions["torch"].partition("+")[0]
            found.append(
                (
                    f"{name} {versions[name]} requires torch {wanted}, but torch {versions['torch']} is installed",
                    # The resolver knows which release fits the installed torch.
                    f"pip install --upgrade --force-reinstall {name} 'torch=={kept}' --index-url {index}",
                )
            )
    if cuda_of_torch and not cuda_runs:
        found.append(
            (
                f"torch was built for CUDA {cuda_of_torch} but finds no device to run on",
                "install the driver of the graphics card, or, without one, save gigabytes: "
                "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu",
            )
        )
    for one, other in SAME_FILES:
        if one in versions and other in versions:
            cure = f"pip uninstall {one} {other}, then install the one that you need again"
            found.append((f"{one} and {other} overwrite each other's files", cure))
    return found


def _same_release(wanted: str, installed: str) -> bool:
    """Compare as pip does: a local part counts only where one is asked for, and 2.5 is 2.5.0."""
    if "+" not in wanted:
        installed = installed.partition("+")[0]
    one, other = (re.sub(r"(\.0)+(?=$|\+)", "", version) for version in (wanted, installed))
    return one == other


def _key(name: str) -> str:
    """Return a distribution's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
