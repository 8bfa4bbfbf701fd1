"""What handful and each extra cost, in megabytes and seconds, PyTorch apart; written into the page about installing.

    python tools/extras_cost.py            # measure all extras, keep the figures, write the table
    python tools/extras_cost.py images     # measure only these again
    python tools/extras_cost.py --table    # write the table from the figures that were kept

The wheel is built from this repository and installed into an empty environment. Another one has torch and the core.
Each extra is installed into a separate environment on top of the second if it needs torch, else of the first, so what
is added there is what the extra adds. Seconds are wall time of `pip install`, downloads included.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "perf" / "results" / "extras_cost.json"
PAGE = ROOT / "docs" / "learn" / "install.md"
BEGIN, END = "<!-- extras: python tools/extras_cost.py -->\n", "<!-- end of extras -->\n"
CORE = "handful"
FOR = {
    CORE: "vectors, tables and scores, in Python and on the command line",
    "fewshot": "the paper's methods, benchmark and tasks",
    "images": "photographs: EfficientNet-Lite0 comes with handful",
    "torch": "sentences: MiniLM; photographs: EfficientNet-Lite1 and 2; other sentence models, downloaded",
    "parquet": "Parquet files",
    "xlsx": "`.xlsx` files",
    "heic": "photographs in HEIC",
    "review": "the page of `handful review`",
    "plots": "figures of reports",
    "anndata": "`.h5ad` files",
    "ray": "a cluster",
    "s3": "folders at `s3://`",
    "train": "training an encoder",
    "timm": "other image models, downloaded",
    "open-clip": "CLIP models, downloaded",
}


def extras() -> dict[str, list[str]]:
    """Return the requirements of all extras, as the package declares them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


def needs_torch(extra: str) -> bool:
    """Return whether an extra installs torch."""
    return any(line.startswith("torch>") for line in extras().get(extra, ()))


class Environments:
    """One environment with the core, one with torch and the core, and one above that for each extra."""

    def __init__(self, place: Path, torch: str) -> None:
        self.place = place
        wheels = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(place), str(ROOT)]
        subprocess.run(wheels, check=True, env=_own_paths())
        self.wheel = next(place.glob("handful-*.whl"))
        self.light, self.packages = self._make("core"), self._make("beneath")
        self.core = self._cost("core", self.light, str(self.wheel))
        self.torch = self._cost("beneath", self.packages, torch)
        self._install("beneath", str(self.wheel))

    def cost(self, extra: str) -> dict[str, Any]:
        """Install one extra above the core, and return what that cost."""
        packages, beneath = self._make(extra), self.packages if needs_torch(extra) else self.light
        (packages / "beneath.pth").write_text(f"import site; site.addsitedir({str(beneath)!r})\n", encoding="utf-8")
        found = self._cost(extra, packages, f"{self.wheel}[{extra}]")
        shutil.rmtree(self.place / extra)  # some extras take gigabytes
        return found

    def _cost(self, name: str, packages: Path, requirement: str) -> dict[str, Any]:
        bytes_before, names_before, begun = _bytes(packages), _names(packages), time.perf_counter()
        self._install(name, requirement)
        seconds = time.perf_counter() - begun
        new = sorted(_names(packages) - names_before)
        megabytes = (_bytes(packages) - bytes_before) / 1e6
        return {"megabytes": round(megabytes, 1), "seconds": round(seconds, 1), "packages": new}

    def _make(self, name: str) -> Path:
        subprocess.run([sys.executable, "-m", "venv", str(self.place / name)], check=True)
        asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        python = self.place / name / "bin" / "python"
        found = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True, env=_own_paths())
        return Path(found.stdout.strip())

    def _install(self, name: str, requirement: str) -> None:
        command = [str(self.place / name / "bin" / "python"), "-m", "pip", "install", "--quiet", requirement]
        subprocess.run(command, check=True, env=_own_paths())


def _own_paths() -> dict[str, str]:
    """Return the environment without the caller's Python packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def _names(folder: Path) -> set[str]:
    return {found.name.split("-")[0].lower() for found in folder.glob("*.dist-info")}


def table(figures: dict[str, Any]) -> str:
    """Return the block of the page: the core, then the extras from the lightest to the heaviest."""
    lines = ["| extra | adds | takes | with PyTorch | for |", "|---|---|---|---|---|"]
    for name in sorted(figures["costs"], key=lambda name: (name != CORE, figures["costs"][name]["megabytes"])):
        cost = figures["costs"][name]
        own = " and **another torch**" if name != CORE and "torch" in cost["packages"] else ""
        called = "handful itself" if name == CORE else f"`{name}`"
        torch = "yes" if needs_torch(name) else "no"
        megabytes = f"{cost['megabytes']:,.0f} MB" if cost["megabytes"] >= 1 else "less than 1 MB"
        lines.append(f"| {called} | {megabytes}{own} | {cost['seconds']:.0f} s | {torch} | {FOR[name]} |")
    measured = f"Measured on {figures['cores']} cores that other programs used as well."
    own = f"PyTorch itself ({figures['torch']}) is {figures['torch_megabytes']:,.0f} MB."
    said = f"Extras are in addition to the core, and without PyTorch. {own} {measured}"
    return "\n".join([*lines, "", said]) + "\n"


def write_table(figures: dict[str, Any]) -> None:
    """Put the table between its markers on the page."""
    page = PAGE.read_text(encoding="utf-8")
    (before, rest) = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table(figures) + "\n" + END + rest.split(END)[1], encoding="utf-8")


def main() -> None:
    """Measure what was asked for, keep it, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", default=[], help="extras to measure; by default all")
    parser.add_argument("--torch", default="torch==2.13.0", help="which torch is there first")
    parser.add_argument("--table", action="store_true", help="only write the table")
    given = parser.parse_args()
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {"costs": {}}
    if not given.table:
        with tempfile.TemporaryDirectory() as place:
            environments = Environments(Path(place), given.torch)
            costs = {CORE: environments.core}
            for extra in given.extras or extras():
                costs[extra] = environments.cost(extra)
                print(f"{extra:<24}{costs[extra]['megabytes']:8.1f} MB {costs[extra]['seconds']:6.1f} s", flush=True)
                kept = {
                    "torch": given.torch,
                    "torch_megabytes": environments.torch["megabytes"],
                    "cores": os.cpu_count(),
                    "costs": {name: cost for name, cost in {**kept["costs"], **costs}.items() if name in FOR},
                }
                FIGURES.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
                write_table(kept)  # after each, so that a run that is stopped leaves what it measured
    write_table(kept)


if __name__ == "__main__":
    main()
