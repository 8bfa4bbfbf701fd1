"""Measure every figure of the documentation again, with one version, and write all pages.

    python tools/measure.py DATA [--only harm voices ...] [--processes 2]
    python tools/measure.py --stands REASON [--only harm voices ...]
    python tools/measure.py --check

DATA is a folder that holds the data. Each study runs in a process of its own, one thread each. What this version has
measured is not measured again, and a study that was stopped goes on where it can. `studies/results/measured.json` has
the version, the commit and the CPU minutes of each; pages show version and minutes.

`--stands` lists there, with the reason, that figures of another version are those of this one, and writes the pages
again. This needs answers that did not move, as `studies/same_answers.py compare --keep` found them: from the commit
that measured the figures to this version. `--check` lists the studies, and exits with 1 if one is neither of this
version nor listed. `tools/release.py check` does it too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from threading import Lock
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "studies" / "results"
MEASURED = "measured.json"
SAME_ANSWERS = "same_answers.json"


class Study(NamedTuple):
    """Commands that measure, commands that write pages, and results that are deleted before they are measured.

    `answers` are the kinds of `studies/same_answers.py` that its figures are made of; all, if there are none.
    """

    measure: tuple[str, ...]
    render: tuple[str, ...]
    results: str | None = None
    answers: tuple[str, ...] = ()


def _study(name: str, *options: str, results: bool = True) -> Study:
    commands = tuple(f"studies/{name}.py DATA {option}".strip() for option in options or ("",))
    return Study(commands, (f"studies/{name}.py --render",), name if results else None)


RUN = "studies/results/study/run"
SENTENCES, IMAGES = ("clinc150", "banking77", "hwu64"), ("caltech101", "cub200", "tinyimagenet200")
BANKS = (*(f"{name}-minilm" for name in SENTENCES), *(f"{name}-efflite0" for name in IMAGES), "omniglot659-conv4")
GROUPS = ("--group tuning", "--group confirmation")
# The methods of the study of the paper; a test compares them with its results.
OF_THE_PAPER = (
    *("alpha_tim", "baseline", "baseline_pp", "bd_cspn", "ici", "laplacian_shot", "nearest_prototype", "paddle"),
    *("paddle_gd", "prior_em", "pt_map", "soft_kmeans", "tim", "tim_adm"),
)
# The quick ones first, so that much is there if it is stopped.
STUDIES = {
    "reliability": _study("reliability"),
    "two_levels": _study("two_levels", "--batches 40"),
    "voices": _study("voices"),
    "sites": _study("sites", *GROUPS),
    "real_uses": Study(("studies/real_uses.py DATA",), ("tools/readme_figures.py",)),
    "open_batches": Study(
        tuple(f"studies/open_batches.py DATA {group}" for group in GROUPS),
        ("studies/open_batches.py --page",),
        "open_batches",
    ),
    "statements": _study("statements", *GROUPS),
    "camera_traps": Study(
        ("studies/camera_traps.py DATA/images/caltech24.zip",), ("studies/camera_traps.py --render",)
    ),
    "harm": _study("harm"),
    "scores": _study("scores", *GROUPS, *(f"{group} --mixtures" for group in GROUPS), results=False),
    "names": _study("names", *GROUPS, "--group fresh --parts alone"),
    "spectra": _study("spectra"),
    "paddle": Study(("tools/draw_paddle.py DATA",), ()),
    "mechanisms": _study("mechanisms", *GROUPS),
    "sensitivity": _study("sensitivity", "--workers 1", results=False),
    "scale": _study("scale"),
    "sessions": _study("sessions"),
    "from_nothing": _study("from_nothing", *GROUPS),
    "kinds": _study("kinds", *GROUPS),
    "methods": Study(
        (
            "studies/methods_table.py DATA/clinc150-minilm DATA/cub200-efflite0 DATA/omniglot659-conv4"
            " --budget-minutes 1 --cpu-minutes 25",
        ),
        ("studies/methods_table.py --render",),
        "methods_table.json",
    ),
    "protocols": _study(
        "protocols",
        "--banks clinc150 --tasks 1000 --seconds 2",
        "--banks clinc150 --tasks 1000 --seconds 4 --methods batch_classifier sparse_em",
    ),
    "study": Study(
        (
            f"studies/banks_study.py run {RUN} {' '.join(f'DATA/{bank}' for bank in BANKS)} --tasks 40"
            " --budget-minutes 0.1 --cpu-minutes 30 --stages table k_eff n_query weights pt_map slow",
            f"studies/banks_study.py keep {RUN}",
        ),
        ("studies/study_page.py",),
        "study",
        tuple(f"method {name}" for name in OF_THE_PAPER),
    ),
    "performance": Study(
        (
            "perf/labelling.py --out perf/results/labelling.json",
            "perf/answers.py --answers 15 --out perf/results/answers.json",
            "perf/catalogue_file.py DATA --out perf/results/catalogue_file.json",
            "perf/growth.py --out perf/results/growth.json --plot docs/measured/growth.svg",
        ),
        ("tools/render_performance.py",),
    ),
    "large_runs": Study(
        ("perf/run.py --folder DATA/run",),
        ("tools/render_scale.py",),
    ),
}


def this_version() -> str:
    """Return the version of the source; a release is checked where handful is not installed."""
    text = (ROOT / "src" / "handful" / "version.py").read_text(encoding="utf-8")
    return str(re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0])


def read(name: str = MEASURED, results: Path = RESULTS) -> dict[str, Any]:
    """Return what is known about each study, or what another file of results has."""
    file = results / name
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def outdated(version: str, results: Path = RESULTS) -> list[str]:
    """Return the studies whose figures are not of this version."""
    known = read(results=results)
    return [
        name
        for name in STUDIES
        if (known.get(name, {}).get("version"), known.get(name, {}).get("state")) != (version, "whole")
    ]


def moved(name: str, version: str, results: Path = RESULTS) -> str:
    """Return why figures of a study do not stand for another version; nothing if no answer moved."""
    known = read(results=results).get(name, {})
    if known.get("state") != "whole":
        return "it was never measured as a whole"
    wanted = STUDIES[name].answers
    compared = [
        pair
        for pair in read(SAME_ANSWERS, results).values()
        if known["commit"] in pair["before"]["commits"] and pair["after"]["version"] == version
        if pair["batches"] == "all" or wanted
    ]
    if not compared:
        return f"answers of commit {known['commit'][:7]} were not compared with those of {version}"
    kinds = set(wanted) or set(compared[0]["kinds"])
    lost = sorted(kinds & set(compared[0]["moved"]) | kinds - set(compared[0]["kinds"]))
    return f"answers moved: {', '.join(lost)}" if lost else ""


def problems(version: str, results: Path = RESULTS) -> list[str]:
    """Return the studies that are neither of this version nor listed, with a reason, where no answer moved."""
    found = []
    for name in outdated(version, results):
        known = read(results=results).get(name, {})
        listed = known.get("stands", {})
        if listed.get("with") != version or not listed.get("reason", "").strip():
            found.append(f"{name}: measured with {known.get('version', 'no version')}, and not listed for {version}")
        elif why := moved(name, version, results):
            found.append(f"{name}: listed for {version}, but {why}")
    return found


def stands(names: Sequence[str], reason: str, version: str, results: Path = RESULTS) -> list[str]:
    """List that figures of other versions are those of this one; return the studies of which that may not be said."""
    refused = []
    for name in names:
        if why := moved(name, version, results):
            refused.append(f"{name} is not listed: {why}")
        else:
            about = read(results=results)[name] | {"stands": {"with": version, "reason": reason.strip(" .")}}
            write(name, Lock(), about, results)
    return refused


def write(name: str, lock: Lock, entry: dict[str, Any], results: Path = RESULTS) -> None:
    """Keep what is known about one study."""
    with lock:
        known = read(results=results) | {name: entry}
        text = ",\n".join(f'"{key}": {json.dumps(known[key])}' for key in sorted(known))
        (results / MEASURED).write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def run(name: str, data: Path, commit: str, lock: Lock) -> bool:
    """Measure a study and write its page; return whether it ended well."""
    study, known = STUDIES[name], read().get(name, {})
    version = this_version()
    if (known.get("version"), known.get("state")) != (version, "begun"):
        if study.results is not None:
            old = RESULTS / study.results
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink(missing_ok=True)
        known = {}
    about = {"version": version, "commit": commit}
    minutes = known.get("cpu_minutes", 0.0)
    write(name, lock, {**about, "state": "begun", "cpu_minutes": minutes})
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for command in study.measure:
        process = subprocess.Popen([sys.executable, *_words(command, data)], cwd=ROOT, env=environment, stdout=DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        minutes = round(minutes + (usage.ru_utime + usage.ru_stime) / 60, 1)
        if process.returncode:
            write(name, lock, {**about, "state": "begun", "cpu_minutes": minutes})
            print(f"{name}: {command} ended with {process.returncode}", flush=True)
            return False
    write(name, lock, {**about, "state": "whole", "cpu_minutes": minutes})
    print(f"{name}: {minutes} CPU minutes", flush=True)
    for command in study.render:
        subprocess.run([sys.executable, *_words(command, data)], cwd=ROOT, env=environment, check=True)
    return True


def _words(command: str, data: Path) -> list[str]:
    return command.replace("DATA", str(data)).split()


def check() -> int:
    """List the studies; return 1 if one is neither of this version nor listed with a reason."""
    known = read()
    version = this_version()
    for name in STUDIES:
        one = {"version": "earlier", "commit": "", "state": "", "cpu_minutes": ""} | known.get(name, {})
        listed = one.get("stands", {})
        note = f"stands for {listed['with']}: {listed['reason']}" if listed else ""
        line = f"{name:14} {one['version']:8} {one['commit'][:7]:8} {one['state']:6} {one['cpu_minutes']:<6} {note}"
        print(line.rstrip())
    found = problems(version)
    if found:
        print(*found, "run: python tools/measure.py DATA, or list those whose answers did not move", sep="\n")
    return bool(found)


def main() -> int:
    """Measure, list or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="folder that holds the data")
    parser.add_argument("--only", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--stands", metavar="REASON", help="list that figures of other versions stand for this one")
    parser.add_argument("--check", action="store_true", help="list the studies by version")
    given = parser.parse_args()
    if given.check:
        return check()
    wanted = [name for name in outdated(this_version()) if name in given.only]
    if given.stands is not None:
        if not given.stands.strip(" ."):
            parser.error("give a reason")
        refused = stands(wanted, given.stands, this_version())
        for command in (command for name in wanted for command in STUDIES[name].render):
            subprocess.run([sys.executable, *command.split()], cwd=ROOT, check=True)
        print("\n".join(refused))
        return bool(refused)
    if given.data is None:
        parser.error("name the data, --stands or --check")
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    lock = Lock()
    one = partial(run, data=given.data.resolve(), commit=commit, lock=lock)
    with ThreadPoolExecutor(given.processes) as pool:
        ended = list(pool.map(one, wanted))
    return int(not all(ended))


if __name__ == "__main__":
    sys.exit(main())
