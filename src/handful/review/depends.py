"""What the labels of a review depend on beside its answers: the catalogue, and what is known about the batch.

Both are in the journal. A review that goes on with other options would have other labels for the same answers, or could
not be labelled at all, so that is refused with what differs. A catalogue may grow while a review is open: that is said.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from handful.arguments import counted
from handful.errors import FileFormatError, OptionError
from handful.fitted import Catalogue
from handful.review.journal import Event, ReviewJournal
from handful.session import Calibration

STEP = "depends"
# What is said about a batch by a person is in the journal as answers.
ANSWERS = ("given", "new_classes")
# Letters of a value that are kept to be shown.
MOST_LETTERS = 120


def depends_on(
    catalogue: Catalogue | None, class_names: Sequence[str], known: Mapping[str, Any], group_by: Sequence[str] = ()
) -> Event:
    """Return the event of the journal that says it.

    Parameters
    ----------
    catalogue, class_names
        The catalogue, if there is one, and the names of its classes.
    known, group_by
        What is known about the batch, as in `classify` or `infer`, and the columns of its groups.

    Examples
    --------
    >>> catalogue = Catalogue.of(np.eye(2), np.array([0, 1]))
    >>> event = depends_on(catalogue, ["cat", "dog"], {"candidates": ["dog"], "prior": None})
    >>> event["catalogue"]["classes"], event["options"]["candidates"][0]
    (2, 'dog')
    """
    shots = [] if catalogue is None else catalogue.shots.tolist()
    options = {
        name: [_shown(value), _hash(value)]
        for name, value in {**known, "group_by": list(group_by) or None}.items()
        if value is not None and name not in ANSWERS
    }
    return {
        "step": STEP,
        "catalogue": {
            "classes": len(class_names),
            "examples": int(sum(shots)),
            "hash": _hash([list(class_names), [float(shot) for shot in shots]]),
        },
        "options": options,
    }


def noted(journal: ReviewJournal, now: Event, calibration: Calibration) -> list[str]:
    """Write into a journal what its labels depend on, if it does not say so; return what a person should know.

    Other options than those that the journal has are refused. The calibration stays the one that the review was begun
    with: later ones may have learnt from this review itself.
    """
    before = next((event for event in reversed(journal.events) if event["step"] == STEP), None)
    if before is None:
        journal.append({**now, "calibration": [list(row) for row in calibration.rows]})
        return []
    names = sorted({*before["options"], *now["options"]})
    differs = [_difference(name, before["options"].get(name), now["options"].get(name)) for name in names]
    if any(differs):
        raise OptionError(
            f"this review was begun with other options: {'; '.join(filter(None, differs))}. Run it with those it was "
            "begun with, or begin another one (--out, or folder in Python)"
        )
    if before["catalogue"] == now["catalogue"]:
        return []
    journal.append({**now, "calibration": before.get("calibration", [])})
    return [
        f"The catalogue has changed since this review was begun: it had {_size(before['catalogue'])}, and has "
        f"{_size(now['catalogue'])} now. What you said is kept."
    ]


def calibration_of(journal: ReviewJournal) -> Calibration:
    """Return the calibration that a review was begun with."""
    first = next((event for event in journal.events if event["step"] == STEP), None)
    rows = [] if first is None else first.get("calibration", [])
    try:
        return Calibration(tuple((float(risk), float(n), float(wrong)) for risk, n, wrong in rows))
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"the calibration in {journal.path} is damaged: {error}; begin another review") from error


def _difference(name: str, before: Sequence[str] | None, now: Sequence[str] | None) -> str:
    if before is None or now is None:
        given = before or now
        assert given is not None
        return f"{name} was {given[0]}, and is not given now" if now is None else f"{name} is {given[0]} now"
    if before[1] == now[1]:
        return ""
    if before[0] == now[0]:
        return f"{name}, {now[0]}, has other content now"
    return f"{name} was {before[0]}, and is {now[0]} now"


def _size(catalogue: Mapping[str, Any]) -> str:
    return f"{counted(catalogue['classes'], 'class')} with {counted(catalogue['examples'], 'example')}"


def _shown(value: Any) -> str:
    if isinstance(value, (str, os.PathLike, int, float)):
        text = str(value)
    elif isinstance(value, (list, tuple)) and all(isinstance(one, (str, int, float)) for one in value):
        text = ", ".join(map(str, value))
    else:
        text = f"a {type(value).__name__}"
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def _hash(value: Any) -> str:
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterable[bytes]:
    """Yield bytes that differ where values differ: of a file its content, of a table its columns."""
    if isinstance(value, (str, os.PathLike)) and Path(value).is_file():
        yield Path(value).read_bytes()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield str(value.shape).encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Mapping):
        for name in sorted(value, key=str):
            yield from _parts(name)
            yield from _parts(value[name])
    elif hasattr(value, "columns") and hasattr(value, "__getitem__"):  # a frame of any library
        yield from _parts({str(name): list(value[name]) for name in value.columns})
    elif isinstance(value, (list, tuple, np.ndarray)):
        yield str(len(value)).encode()
        for one in value:
            yield from _parts(one)
    else:
        yield repr(value).encode("utf-8", "backslashreplace")
