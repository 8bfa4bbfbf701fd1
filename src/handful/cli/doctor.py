"""`handful doctor`: what is installed, and which devices there are."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import import_module, metadata
from typing import Any

from handful.cli.terminal import data
from handful.machine.extras import install_command
from handful.machine.threads import available_cores
from handful.version import __version__

CORE = ("numpy", "scipy", "scikit-learn", "onnxruntime", "torch")
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")


def doctor() -> None:
    """Print versions, devices and extras, for a report of a problem; pip check says which packages do not fit together.

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
    if "onnxruntime" in versions:
        from handful.extraction.efficientnet_lite import load_onnxruntime  # with NumPy, which help should not wait for

        load_onnxruntime()


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


def _key(name: str) -> str:
    """Return a distribution's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
