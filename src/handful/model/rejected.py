"""Rejected items in groups: classes that a person opened without a name first, then items that look alike."""

from __future__ import annotations

import numpy as np

from handful.model.arrays import Bools, Floats, Ints
from handful.model.links import Anchors, NewGroup, find_copies, new_groups
from handful.model.reference import Reference


def gather_rejected(
    points: Floats, unknown: Floats, rejected: Bools, unnamed: Ints, reference: Reference
) -> list[NewGroup]:
    """Gather the rejected items of one batch.

    Parameters
    ----------
    points, unknown, rejected
        Items [item, dim], their chances to be unknown, and which of them are rejected.
    unnamed
        The class without a name that each item likely has, -1 if none.
    reference
        What they are compared with.
    """
    settings = reference.settings
    rows = np.flatnonzero(rejected & (unnamed == -1))
    if len(rows) > settings.most_gathered:
        rows = rows[np.sort(np.argsort(-unknown[rows], kind="stable")[: settings.most_gathered])]
    of_unnamed = [np.flatnonzero(rejected & (unnamed == number)) for number in range(reference.n_unnamed)]
    found = [_as_group(members, points, unknown, reference) for members in of_unnamed if len(members)]
    if reference.unknown_model is None or len(rows) == 0:
        return found
    some = points[rows]
    copy_of, _ = find_copies(some)
    anchors = Anchors.of(some[None], reference.centre, reference.unknown_model.pair_odds, copy_of[None], settings)
    log_odds = anchors.odds(anchors.cosines)[0]
    groups = new_groups(log_odds, some, unknown[rows], _named_scores(some, reference), copy_of, settings)
    return found + [group._replace(items=rows[group.items]) for group in groups]


def _as_group(members: Ints, points: Floats, unknown: Floats, reference: Reference) -> NewGroup:
    """Return a class without a name as a group; the chance that two of its items share a class is that of both."""
    inside = points[members]
    order = ((inside - inside.mean(0)) ** 2).sum(1).argsort(kind="stable")
    nearest = _named_scores(inside, reference).mean(0).argmax()
    cohesion = float(unknown[members].mean() ** 2)
    return NewGroup(members[order], cohesion, float(unknown[members].sum()) * cohesion, int(nearest))


def _named_scores(points: Floats, reference: Reference) -> Floats:
    """`S` of the classes that have a name, [item, class]."""
    return np.asarray(reference.head.scores(points)[:, : reference.n_named])
