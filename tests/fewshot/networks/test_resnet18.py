import torch

from handful.fewshot.networks import NETWORKS
from tests.networks_at_hand import n_parameters


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
