"""Networks have the published numbers of parameters, and learn."""

import torch
from torch import nn

from handful_fewshot.networks import NETWORKS
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


def test_as_many_parameters_as_published():
    # He et al. count 11.7 million with 1,000 classes (torchvision: 11,689,512), of which the first convolution of 7 × 7
    # has 9,408 and the classifier 513,000; here the first is 3 × 3.
    assert n_parameters(NETWORKS["resnet18"].build()) == 11_689_512 - 513_000 - 9_408 + 3 * 64 * 9


def test_a_picture_of_84_pixels_keeps_its_size_until_the_second_stage():
    network = NETWORKS["resnet18"].build().eval()
    images = torch.zeros(2, 3, 84, 84)
    assert network.layer1(network.conv1(images)).shape == (2, 64, 84, 84)
    features = network(images)
    assert features.shape == (2, 512)
    assert features.min() >= 0


def test_the_wide_network_has_as_many_parameters_as_published():
    # Zagoruyko and Komodakis count 36.5 million: 36,479,194 with the 6,410 of a classifier of CIFAR-10 and without
    # biases of convolutions, which the few-shot variant has.
    network = NETWORKS["wrn28-10"].build()
    biases = sum(m.bias.numel() for m in network.modules() if isinstance(m, nn.Conv2d) and m.bias is not None)
    assert biases == 16 + 9 * 160 + 9 * 320 + 9 * 640
    assert n_parameters(network) - biases == 36_479_194 - 6_410


def test_maps_halve_twice_on_the_way_to_640_numbers():
    network = NETWORKS["wrn28-10"].build().eval()
    small = torch.zeros(1, 3, 16, 16)  # the real size costs seconds, and the shapes are the same
    assert network.layer3(network.layer2(network.layer1(network.conv1(small)))).shape == (1, 640, 4, 4)
    features = network(small)
    assert features.shape == (1, 640)
    assert features.min() >= 0
