"""Proposals: groups of unknown items with the name of the nearest class."""

import numpy as np

from handful.estimators.proposals import Proposal
from handful.model.links import NewGroup


def test_a_group_becomes_a_proposal():
    found = Proposal.of(NewGroup(np.array([4, 2, 9]), 0.8, 2.1, 1), np.array(["ant", "bee"]))
    assert (found.items.tolist(), found.size, found.cohesion, found.worth) == ([4, 2, 9], 3, 0.8, 2.1)
    assert found.nearest == "bee"
