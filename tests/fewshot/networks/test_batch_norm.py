import socket

import torch
from torch import nn
from torch.multiprocessing import spawn

from handful.fewshot.networks.batch_norm import BatchNorm

CHANNELS = 3


def batch() -> torch.Tensor:
    # Far from zero: a variance computed as E[x²] - E[x]² would show.
    return torch.randn(8, CHANNELS, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 1e5


def weights() -> torch.Tensor:
    return torch.randn(8, CHANNELS, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def one_of_two(process: int, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=process, world_size=2)
    norm = BatchNorm(CHANNELS, dtype=torch.float64)
    half = batch()[process::2].requires_grad_()
    out = norm(half)
    (out * weights()[process::2]).sum().backward()
    result = {
        "out": out.detach(),
        "input gradient": half.grad,
        "weight gradient": norm.weight.grad,
        "mean": norm.running_mean,
        "variance": norm.running_var,
        "count": norm.num_batches_tracked,
    }
    torch.save(result, f"{folder}/{process}.pt")
    torch.distributed.destroy_process_group()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_two_processes_with_half_a_batch_each_are_one_with_the_whole(tmp_path):
    spawn(one_of_two, (free_port(), str(tmp_path)), nprocs=2)
    halves = [torch.load(tmp_path / f"{process}.pt", weights_only=True) for process in range(2)]
    norm = nn.BatchNorm2d(CHANNELS, dtype=torch.float64)
    whole = batch().requires_grad_()
    out = norm(whole)
    (out * weights()).sum().backward()
    for process, half in enumerate(halves):
        torch.testing.assert_close(half["out"], out[process::2].detach(), rtol=0, atol=1e-8)
        torch.testing.assert_close(half["input gradient"], whole.grad[process::2], rtol=0, atol=1e-8)
        torch.testing.assert_close(half["mean"], norm.running_mean)
        torch.testing.assert_close(half["variance"], norm.running_var)
        assert half["count"] == norm.num_batches_tracked
    torch.testing.assert_close(sum(half["weight gradient"] for half in halves), norm.weight.grad, rtol=0, atol=1e-8)


def test_alone_it_is_what_torch_has():
    ours, theirs = (norm(CHANNELS, dtype=torch.float64) for norm in (BatchNorm, nn.BatchNorm2d))
    assert torch.equal(ours(batch()), theirs(batch()))
    assert torch.equal(ours.eval()(batch()), theirs.eval()(batch()))
    assert list(ours.state_dict()) == list(theirs.state_dict())
