"""Named voices: a labelled batch of segments as RTTM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from handful.fields.voices.rttm import segments_of, write_rttm

if TYPE_CHECKING:
    from handful.estimators import Answer

# What voices are called that are not enrolled, with a number behind it.
UNKNOWN = "unknown"


def write_voices(found: Answer, out: Path) -> None:
    """Write the batch as RTTM with the names that were found, and the certainty of each.

    Rejected segments are `unknown_1`, `unknown_2` and so on: one number for each proposal of a group, else for each
    sequence. Those that are in neither are `unknown`. With an `unknown_label`, that is the word.
    """
    from handful.classification.labelled import about_of, class_names, predictions
    from handful.estimators.answer import groups_of_items

    about = about_of(found)
    units = None if about.batches is None else about.batches.contexts.sequence_of
    groups = groups_of_items(found)
    word = about.unknown_label or UNKNOWN
    numbers = dict[tuple[Any, ...], int]()
    table = predictions(found, unknown_label=word)
    names = list[str]()
    keys = {name: table[name] for name in about.group_by}
    taken = {"_".join(name.split()) for name in class_names(found)}
    free = (number for number in range(1, len(taken) + len(table["row"]) + 2) if f"{word}_{number}" not in taken)
    for item, (label, rejected, proposal) in enumerate(
        zip(table["label"], table["rejected"], table["proposal"], strict=True)
    ):
        group = 0 if groups is None else int(groups[item])
        if not rejected:
            names.append(label)
        elif proposal is None and units is None:
            names.append(word)
        else:
            key = (group, "proposal", proposal) if units is None or proposal else (group, "unit", int(units[item]))
            if key not in numbers:
                numbers[key] = next(free)
            names.append(f"{word}_{numbers[key]}")
    write_rttm(segments_of({**about.batch.columns.values(), **keys}, names, table["certainty"]), out)
