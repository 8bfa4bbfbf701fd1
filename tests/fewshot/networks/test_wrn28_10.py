import torch
from torch import nn

from handful.fewshot.networks import NETWORKS
from tests.networks_at_hand import n_parameters


def test_as_many_parameters_as_published():
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
