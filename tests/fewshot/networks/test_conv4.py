import torch

from handful.fewshot.networks import NETWORKS
from tests.networks_at_hand import losses_of_one_step, n_parameters


def test_small_pictures_to_256_numbers():
    network = NETWORKS["conv4"].build().eval()
    features = network(torch.zeros(2, 3, 28, 28))
    assert features.shape == (2, 256)
    assert features.min() >= 0
    assert n_parameters(network) == sum(9 * a * b + 2 * b for a, b in [(3, 32), (32, 64), (64, 128), (128, 256)])


def test_one_step_lowers_the_loss_on_a_fixed_batch():
    before, after = losses_of_one_step(NETWORKS["conv4"].build(), 256, 28, n_items=8, rate=0.05)
    assert after < before


def test_first_weights_are_a_function_of_the_seed_and_touch_nobody_elses_randomness():
    state = torch.get_rng_state()
    a, b, c = (NETWORKS["conv4"].build(seed).layers[0].weight for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(state, torch.get_rng_state())
