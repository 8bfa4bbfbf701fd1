"""`run.json`, which says what a run was started with: its settings and a hash of all bytes of each input.

A different run in the same folder is refused. A folder on disk has one writer, which holds its lock. A folder at a URL
has no lock that would end with its holder. There, `run.json` is created by one writer only, so all writers have the
same inputs and settings; and as a run is deterministic, each of them writes the same answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from handful.errors import FileFormatError, OptionError
from handful.machine.folders import Folder, LocalFolder
from handful.machine.lock import remove_unfinished

ABOUT_FILE = "run.json"


def refuse_another(folder: Folder, about: Mapping[str, Any], kinds: Sequence[str]) -> None:
    """Refuse a folder that holds another run, or a part of one.

    `about["inputs"]` maps the role of each input to its `name` and a hash of its `content`; names may change,
    content may not. `kinds` are the folders that a run writes to after its `run.json`.
    """
    with folder.opened(ABOUT_FILE) as file:
        content = None if file is None else file.read_bytes()
    if content is None:
        pieces = [name for name in folder.names() if name in kinds]
        if pieces:
            raise OptionError(
                f"{folder.address} contains {pieces[0]} of a run but no {ABOUT_FILE}, which says what it was started "
                "with; choose another folder, or delete this one to start again"
            )
        return
    try:
        there = dict(json.loads(content.decode("utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(folder, error) from error
    # Before anything else: another version may state other things, and it labels in another way.
    if there.get("format") != about["format"]:
        raise OptionError(
            f"{folder.address} contains a run of another version of handful; end it with that version, or choose "
            "another folder"
        )
    try:
        kept = {role: (entry["name"], entry["content"]) for role, entry in there.pop("inputs").items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, error) from error
    for role, entry in about["inputs"].items():
        name, content = kept.get(role, ("none", ""))
        if content != entry["content"]:
            what = f"{role} of the run in {folder.address}"
            if name == entry["name"]:
                difference = f"{name} has changed since it was given as the {what}"
            else:
                difference = f"{entry['name']} does not contain the {what}, which was started with {name}"
            raise OptionError(f"{difference}; choose another folder, or give the run what it was started with")
    settings = json.loads(json.dumps({name: value for name, value in about.items() if name != "inputs"}))
    different = sorted(name for name in {*there, *settings} if there.get(name) != settings.get(name))
    if different:
        changes = ", ".join(f"{name} ({there.get(name)!r}, now {settings.get(name)!r})" for name in different)
        raise OptionError(
            f"{folder.address} contains a run that differs in {changes}; give it what it was started with to resume "
            "it, or choose another folder"
        )


def _damaged(folder: Folder, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{folder.address}/{ABOUT_FILE} is damaged ({error}), so it is not known what the run was started with; "
        "choose another folder, or delete this one to start again"
    )


def begin(folder: Folder, about: Mapping[str, Any], kinds: Sequence[str]) -> str:
    """Write down what a run is started with, unless that was done before; refuse a folder with another run.

    Removes what a killed run left unfinished. Returns the name of the run: a hash of what it was started with, wherever
    its inputs are.
    """
    refuse_another(folder, about, kinds)
    if not folder.create(ABOUT_FILE, json.dumps(dict(about), indent=1, sort_keys=True).encode()):
        refuse_another(folder, about, kinds)  # at a URL another run may have begun since we looked
    if isinstance(folder, LocalFolder):
        remove_unfinished(folder.path, kinds)
    contents = {role: entry["content"] for role, entry in about["inputs"].items()}
    return hashlib.sha256(json.dumps({**about, "inputs": contents}, sort_keys=True).encode()).hexdigest()[:16]
