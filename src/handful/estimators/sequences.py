"""Items of one class: they are labelled like all others, and answer with the mean of their answers.

The items of a sequence are not merged before the batch is labelled: the joint model learns from every single item, and
a few that lie in a wrong sequence do not spoil it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from handful.errors import OptionError
from handful.estimators.containers import column_values, gaps_in, places_in
from handful.model.answer import JointAnswer
from handful.model.knowledge import ToldShare
from handful.model.linear import class_sums
from handful.model.links import NewGroup
from handful.model.unknown_in_batch import UnknownCounts, rejection_limit
from handful.shapes import Bool, Float, Int


def sequences_of(values: Any, n_items: int) -> tuple[list[Any], Int[np.ndarray, "item"]]:
    """Return names of the sequences, and the sequence of each item; an item without a value stands alone."""
    found = column_values(values, n_items, "sequence")
    gaps = gaps_in(found)
    names, of_others = places_in(found[~gaps], "sequence")
    sequence_of = np.empty(n_items, np.int64)
    sequence_of[~gaps] = of_others
    sequence_of[gaps] = len(names) + np.arange(gaps.sum())
    return [*names.tolist(), *found[gaps].tolist()], sequence_of


def allowed_for_all(
    allowed: Bool[np.ndarray, "item class"], sequence_of: Int[np.ndarray, "item"]
) -> Bool[np.ndarray, "item class"]:
    """Return the classes that all items of a sequence can have, for each of its items."""
    order = np.argsort(sequence_of, kind="stable")
    starts = np.searchsorted(sequence_of[order], np.arange(int(sequence_of.max()) + 1))
    return np.asarray(np.logical_and.reduceat(allowed[order], starts, axis=0)[sequence_of])


def given_to_all(
    given: Int[np.ndarray, "item"], n_classes: int, names: list[Any], sequence_of: Int[np.ndarray, "item"]
) -> Int[np.ndarray, "item"]:
    """Return the label that one item of a sequence was given, for all of its items.

    Classes without a name, from `n_classes` on, are not different labels.
    """
    of_one = np.full(len(names), -1)
    known = np.flatnonzero(given != -1)
    of_one[sequence_of[known]] = given[known]
    wrong = known[np.minimum(of_one[sequence_of[known]], n_classes) != np.minimum(given[known], n_classes)]
    if len(wrong):
        raise OptionError(
            f"items of one sequence were given different labels, those of {names[sequence_of[wrong[0]]]!r}; correct "
            "given or sequence"
        )
    return np.asarray(of_one[sequence_of])


def averaged(found: JointAnswer, sequence_of: Int[np.ndarray, "item"], share: ToldShare | None = None) -> JointAnswer:
    """Give every item the mean answer of its sequence; `share` is what was told about unknown items."""
    q = _means(found.probabilities, sequence_of)
    unknown = _means(found.unknown[:, None], sequence_of)[:, 0]
    known = 1 - np.nan_to_num(unknown)
    counts = known @ q.astype(np.float64)
    presence = found.presence if np.isnan(unknown).all() else np.minimum(found.presence, counts)  # Markov's inequality
    presence = np.maximum(presence, (known[:, None] * q).max(0))
    limit = (
        found.limit
        if share is None
        else float(rejection_limit(UnknownCounts.of(np.nan_to_num(unknown)[None]), share)[0])
    )
    unnamed = np.where(unknown > limit, _most_frequent(found.unnamed, sequence_of), -1)
    found = replace(
        found,
        probabilities=q,
        unknown=unknown,
        unnamed=unnamed,
        expected_counts=counts,
        presence=presence,
        limit=limit,
    )
    return replace(found, groups=_whole_groups(found, sequence_of))


def _most_frequent(unnamed: Int[np.ndarray, "item"], sequence_of: Int[np.ndarray, "item"]) -> Int[np.ndarray, "item"]:
    """Return the class without a name that most items of a sequence have, -1 if that is none, for each of its items."""
    counts = np.zeros((int(sequence_of.max()) + 1, int(unnamed.max(initial=-1)) + 2), np.int64)
    np.add.at(counts, (sequence_of, unnamed + 1), 1)
    return np.asarray(counts.argmax(1)[sequence_of] - 1)


def _whole_groups(found: JointAnswer, sequence_of: Int[np.ndarray, "item"]) -> list[NewGroup]:
    """Put every sequence that counts as unknown into the group that has most of its items, and no other into any."""
    sizes = np.array([np.bincount(sequence_of[group.items], minlength=sequence_of.max() + 1) for group in found.groups])
    whole = []
    for place, group in enumerate(found.groups):
        mine = (sizes.argmax(0) == place) & (sizes.max(0) > 0)
        items = np.flatnonzero(mine[sequence_of] & found.rejected)
        first = group.items[np.isin(group.items, items)]  # the most typical ones
        if len(items):
            whole.append(group._replace(items=np.concatenate([first, np.setdiff1d(items, first)])))
    return whole


def _means(
    rows: Float[np.ndarray, "item column"], sequence_of: Int[np.ndarray, "item"]
) -> Float[np.ndarray, "item column"]:
    """Mean over the rows of each sequence, for each of its items."""
    sums = class_sums(rows, sequence_of, int(sequence_of.max()) + 1, np.ones(len(rows)))
    return np.asarray((sums / np.bincount(sequence_of)[:, None])[sequence_of], dtype=rows.dtype)
