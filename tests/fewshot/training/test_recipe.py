import json
from dataclasses import fields

import pytest

from handful.errors import OptionError
from handful_fewshot.training import Recipe


def test_defaults_are_the_papers():
    recipe = Recipe()
    assert (recipe.network, recipe.pixels, recipe.epochs, recipe.images_a_step) == ("resnet18", 84, 90, 256)
    assert (recipe.learning_rate, recipe.momentum, recipe.weight_decay) == (0.1, 0.9, 1e-4)
    assert (recipe.label_smoothing, recipe.jitter, recipe.flip, recipe.smallest_area) == (0.1, 0.4, True, 0.08)
    assert (recipe.centre_view.side, recipe.centre_view.shorter_side) == (84, 96)
    assert Recipe(network="wrn28-10").images_a_step == 128


def test_the_rate_drops_where_it_is_told_and_scales_with_the_epochs():
    rates = [Recipe(epochs=30).learning_rate_at(epoch) for epoch in range(30)]
    assert rates == [0.1] * 15 + [0.01] * 7 + [0.001] * 8
    recipe = Recipe(learning_rate=0.5, drop_at=(2,))
    assert [recipe.learning_rate_at(epoch) for epoch in (0, 1, 2, 89)] == [0.5, 0.5, 0.05, 0.05]


def test_every_setting_is_in_the_mapping_and_the_mapping_is_json():
    mapping = Recipe(drop_at=(3, 4)).to_mapping()
    assert mapping.keys() == {field.name for field in fields(Recipe)}
    assert json.loads(json.dumps(mapping)) == mapping


@pytest.mark.parametrize(
    "change",
    [
        {"side": 7}, {"epochs": 0}, {"batch_size": 1}, {"learning_rate": 0.0}, {"momentum": 1.0},
        {"drop_at": (0,)}, {"label_smoothing": 1.0}, {"smallest_area": 0.0}, {"jitter": 1.5}, {"std": (1.0, 0.0, 1.0)},
        {"weight_decay": -1.0}, {"seed": -1},
    ],
    ids=str,
)  # fmt: skip
def test_values_out_of_range_are_refused_by_name(change):
    with pytest.raises(OptionError, match=f"{next(iter(change))} must be"):
        Recipe(**change)
