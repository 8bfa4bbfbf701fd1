"""Stacks of groups: bounded, with little padding, every group once."""

import numpy as np
import pytest
import torch

from handful.catalogue import Catalogue
from handful.estimators import stacks
from handful.methods.roll_call import RollCallOptions


@pytest.mark.parametrize("room", [100, 2_000, 2**22])
def test_every_item_is_in_one_stack_with_its_group(room, monkeypatch):
    monkeypatch.setattr(stacks, "STACK_SCORES", room)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 8))
    catalogue = Catalogue.of(
        torch.from_numpy(centres.repeat(4, 0) + 0.3 * rng.normal(size=(24, 8))), np.arange(6).repeat(4)
    )
    sizes = rng.integers(1, 40, 25)
    group_of = rng.permutation(np.arange(25).repeat(sizes))
    features = torch.from_numpy(centres[group_of % 6] + 0.3 * rng.normal(size=(len(group_of), 8)))
    seen = []
    items = stacks.CatalogueItems(catalogue, features, RollCallOptions())
    for places, rows, there, found in stacks.stacked(items, group_of):
        assert sizes[places].max() <= stacks.MOST_UNEQUAL * sizes[places].min()
        assert len(places) == 1 or there.numel() * 6 <= room
        assert there.sum(1).tolist() == sizes[places].tolist()
        assert group_of[rows].tolist() == places.repeat(sizes[places]).tolist()
        assert found.called.log_probabilities.shape == (*there.shape, 6)
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(group_of)))
