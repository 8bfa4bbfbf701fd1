"""`run.json`: what a training was started with, so that only the same training resumes in its folder.

A training has no lock: Lightning starts the same program once for every further process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handful.errors import FileFormatError, OptionError
from handful.machine.outputs import written_whole
from handful.machine.untrusted import read_text

ABOUT_FILE = "run.json"


def begin(folder: Path, about: Mapping[str, Any]) -> None:
    """Write down what a training is started with, unless that was done before."""
    if not (folder / ABOUT_FILE).exists():
        with written_whole(folder / ABOUT_FILE) as place:
            place.write_text(json.dumps(dict(about), indent=1, sort_keys=True), encoding="utf-8")


def refuse_another(folder: Path, about: Mapping[str, Any]) -> None:
    """Refuse a folder with a training of other images or another recipe.

    `about["inputs"]` maps the role of each set of images to its `name` and a hash of its `content`.
    """
    place = folder / ABOUT_FILE
    if not place.exists():
        return
    now = json.loads(json.dumps(dict(about)))
    try:
        there = json.loads(read_text(place, FileFormatError))
        contents = {role: given["content"] for role, given in there.pop("inputs").items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(
            f"{place} is damaged ({error}), so it is not known what was trained; choose another folder, or delete "
            "this one to start again"
        ) from error
    for role, given in now.pop("inputs").items():
        if contents.get(role) != given["content"]:
            raise OptionError(
                f"{given['name']} does not contain the {role} of the run in {folder}; choose another folder, or give "
                "the run what it was started with"
            )
    if different := sorted(name for name in {*there, *now} if there.get(name) != now.get(name)):
        changes = ", ".join(f"{name} ({there.get(name)!r}, now {now.get(name)!r})" for name in different)
        raise OptionError(
            f"{folder} contains a run that differs in {changes}; give it what it was started with to resume it, or "
            "choose another folder"
        )
