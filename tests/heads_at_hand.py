"""Small catalogues to fit heads to, and what these heads make of new items."""

import torch


def clouds(n_classes=20, shots=5, dim=24, noise=0.8, seed=0, dtype=torch.float32):
    """Unit vectors of n_classes classes: examples, their codes, and 20 items of each class."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(n_classes, dim, generator=generator, dtype=torch.float64)

    def drawn(codes):
        rows = centres[codes] + noise * torch.randn(len(codes), dim, generator=generator, dtype=torch.float64)
        return torch.nn.functional.normalize(rows, dim=1).to(dtype)

    codes = torch.arange(n_classes).repeat_interleave(torch.as_tensor(shots).expand(n_classes))
    truth = torch.arange(n_classes).repeat_interleave(20)
    return drawn(codes), codes, drawn(truth), truth


def scores(head, points):
    return points @ head.weights.T + head.offsets


def accuracy(head, points, truth):
    return float((scores(head, points).argmax(1) == truth).double().mean())
