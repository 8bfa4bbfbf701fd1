"""Items of one class: they are labelled like all others, and answer with the mean of their answers.

The items of a sequence are not merged before the batch is labelled: the joint model learns from every single item, and
a few that lie in a wrong sequence do not spoil it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from handful.engine.links import NewGroup
from handful.engine.logistic import class_sums
from handful.engine.model import Context, JointAnswer
from handful.errors import OptionError
from handful.shapes import Float, Int


def known_together(context: Context, sequence_of: Int[np.ndarray, "item"]) -> Context:
    """Return what is known about items, if what is known about one holds for its sequence.

    A class must be allowed for all items of a sequence, and one given label is that of all.
    """
    allowed, given = context.allowed, context.given
    if allowed is not None:
        of_all = np.ones((int(sequence_of.max()) + 1, allowed.shape[1]), bool)
        np.logical_and.at(of_all, sequence_of, allowed)
        possible = of_all if context.log_shares is None else of_all & ~np.isneginf(context.log_shares)
        # Where candidates contradict each other, each item keeps its own.
        agree = np.asarray(possible.any(1))[sequence_of, None]
        allowed = np.where(agree, of_all[sequence_of], allowed)
    if given is not None:
        of_one, known = np.full(int(sequence_of.max()) + 1, -1), np.flatnonzero(given != -1)
        of_one[sequence_of[known]] = given[known]
        if (of_one[sequence_of[known]] != given[known]).any():
            raise OptionError("items of one sequence were given different labels; correct given or sequence")
        given = of_one[sequence_of]
    return replace(context, allowed=allowed, given=given)


def averaged(found: JointAnswer, sequence_of: Int[np.ndarray, "item"]) -> JointAnswer:
    """Give every item the mean answer of its sequence."""
    q = _means(found.probabilities, sequence_of)
    unknown = _means(found.unknown[:, None], sequence_of)[:, 0]
    none = found.none if len(found.none) else np.zeros(len(q), bool)
    counts, presence = (np.where(found.is_open, 1 - unknown, ~none)) @ q.astype(np.float64), found.presence
    if found.is_open:
        presence = np.minimum(presence, counts)  # by Markov's inequality
    found = replace(found, probabilities=q, unknown=unknown, expected_counts=counts, presence=presence)
    return replace(found, groups=_whole_groups(found, sequence_of))


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
