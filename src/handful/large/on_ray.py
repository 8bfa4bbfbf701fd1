"""Shards on the nodes of a Ray cluster, which need no folder in common; if a node dies, others take over its shards.

Every node runs one process with as many threads as it has cores. It adds the results of its shards and sends a few
pieces of the sum, see `handful.large.tree_sum`: what the driver receives grows with nodes, not with shards, and the sum
has the bits of a run in one process. What all need (the head of the catalogue, tilts, or PADDLE's prototypes) is put
into the object store once; a node holds one copy in shared memory, which its threads read without copying it.

Shortlists are on the local disk of the node that made them. If it dies, its shards are given to the other nodes, and to
those that joined since, where their lists are made again. A driver that continues a run gives each shard to the node
that has its lists.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from handful.errors import ClusterError, HandfulError
from handful.large.crew import Crew, Executor, Report, in_threads
from handful.large.shard import Work
from handful.large.tree_sum import Piece, TreeSum
from handful.machine.extras import import_extra
from handful.machine.ray_cluster import connected
from handful.machine.scratch import scratch_folder
from handful.machine.threads import only_one_thread

# Shards are assigned in blocks, at least this many per node if there are that many shards: nodes then have nearly the
# same number of shards, and the sum over a node's neighbouring blocks is a few pieces of the tree.
BLOCKS_PER_NODE = 8
# While nodes work, they are asked this often how many shards are done.
SECONDS_BETWEEN_REPORTS = 1.0
# A node on which the worker died that often, although the node is alive, is given no more work.
MOST_DEATHS = 3


def on_ray(
    address: str | None = None, *, threads: int | None = None, scratch: str | os.PathLike[str] | None = None
) -> Executor:
    """Return an executor whose shards are processed by the nodes of a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Address of the cluster, or `auto`. By default the cluster this process is connected to, else a new one on this
        machine, which ends with the run.
    threads : int, optional
        How many per node; by default as many as Ray counts cores there.
    scratch : path, optional
        Folder on the local disk of every node for its shortlists, which take `4 (2m + 1)` bytes per query. By default
        the system's temporary folder. They are removed when the run has ended; a run that was interrupted finds them.
    """

    @contextmanager
    def open_crew(work: Work) -> Iterator[Crew]:
        with connected(address) as ray:
            crew = RayCrew(ray, work, threads, None if scratch is None else os.fspath(scratch))
            yield crew
            crew.close()

    return open_crew


class RayCrew:
    """One worker per node of the cluster, and which blocks of shards each of them has."""

    def __init__(self, ray: Any, work: Work, threads: int | None = None, scratch: str | None = None) -> None:
        self._ray, self._threads, self._scratch, self._n_shards = ray, threads, scratch, work.n_shards
        # Kept as long as the crew exists: a worker that is started later needs it.
        self._work = ray.put(work)
        # What queries are compared with; nodes that take over shards need it to make their lists.
        self._comparison: Any = None
        self._workers: dict[str, Any] = {}
        self._cores: dict[str, int] = {}
        self._deaths: dict[str, int] = {}
        self._sent = self._received = 0
        self._last_loss = "none had any"
        self._hire()
        self._block_size = block_size(self._n_shards, len(self._workers))
        self._blocks: dict[str, list[int]] = {}
        self._deal(self._held())

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes of the messages: what is put into the object store once per pass, and what nodes send to the driver."""
        return self._sent, self._received

    def add_up(self, operation: str, *arguments: Any, report: Report | None = None) -> Any:
        """Run on the nodes, each of which adds up its shards; add the pieces they send."""
        message = as_arrays(arguments)
        self._sent += message_bytes(message)
        shared = self._ray.put(message)
        if operation == "compare":
            self._comparison = shared
        total = TreeSum(self._n_shards)
        done, running = 0, self._submit(operation, shared, self._blocks)
        while running:
            ready, _ = self._ray.wait(list(running), num_returns=1, timeout=SECONDS_BETWEEN_REPORTS)
            if not ready:
                if report is not None and (now := self._done(running) + done) > 0:
                    report(now)
                continue
            node, worker, blocks = running.pop(ready[0])
            pieces = self._got(ready[0])
            if pieces is None:
                self._lose(node, worker)
                owners = {block: owner for owner, own in self._blocks.items() for block in own}
                again: dict[str, list[int]] = {}
                for block in blocks:
                    again.setdefault(owners[block], []).append(block)
                running |= self._submit(operation, shared, again)
                continue
            for piece in pieces:
                total.put(as_tensors(piece))
            done += len(self._shards(blocks))
            if report is not None:
                report(done)
        return total.whole()

    def close(self) -> None:
        """Remove the shortlists from the disks of the nodes, and let the workers go."""
        cleaned = [worker.clean.remote() for worker in self._workers.values()]
        self._ray.wait(cleaned, num_returns=len(cleaned), timeout=60)
        for worker in self._workers.values():
            self._ray.kill(worker)

    def _submit(self, operation: str, shared: Any, blocks: Mapping[str, Sequence[int]]) -> dict[Any, Any]:
        """Give each node its blocks; return what it then works on, by the reference to its answer."""
        # In a list, references are passed on without being fetched: only a node that must make lists needs it.
        lists = [] if self._comparison is None or operation == "compare" else [self._comparison]
        return {
            (worker := self._workers[node]).run.remote(operation, self._shards(own), shared, lists): (node, worker, own)
            for node, own in blocks.items()
            if own
        }

    def _got(self, reference: Any) -> Any:
        """Return an answer, or None if the worker or its node died."""
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(reference)
        except errors.RayTaskError as error:
            # Our own errors are sentences for the user; Ray would wrap them in the worker's traceback.
            raise error.cause if isinstance(error.cause, HandfulError) else error from None
        except (
            errors.RayActorError,
            errors.ActorUnschedulableError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
        ) as error:
            self._last_loss = " ".join(str(error).split())
            return None
        self._received += message_bytes(answer)
        return answer

    def _done(self, running: Mapping[Any, tuple[str, Any, Any]]) -> int:
        """Ask the nodes how many shards of their present work are done; one that does not answer has done none."""
        workers = {node: worker for node, worker, _ in running.values()}
        asked = [worker.done.options(concurrency_group="progress").remote() for worker in workers.values()]
        ready, _ = self._ray.wait(asked, num_returns=len(asked), timeout=SECONDS_BETWEEN_REPORTS)
        return sum(self._got(reference) or 0 for reference in ready)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _hire(self) -> None:
        """Start a worker on every living node that has cores and none yet."""
        strategy = import_extra("ray.util.scheduling_strategies", "ray").NodeAffinitySchedulingStrategy
        for node in sorted(self._ray.nodes(), key=lambda node: str(node["NodeID"])):
            name, cores = node["NodeID"], int(node["Resources"].get("CPU", 0))
            usable = node["Alive"] and cores > 0 and self._deaths.get(name, 0) < MOST_DEATHS
            if not usable or name in self._workers:
                continue
            kind = self._ray.remote(concurrency_groups={"progress": 1})(NodeWorker)
            settings = {"num_cpus": 1, "scheduling_strategy": strategy(name, soft=False)}
            self._cores[name] = self._threads or cores
            self._workers[name] = kind.options(**settings).remote(self._work, self._cores[name], self._scratch)
        if not self._workers:
            raise ClusterError(
                "the cluster has no node left that has cores and on which workers stay alive; call again to continue "
                f"the run when it has. The last loss: {self._last_loss}"
            )

    def _lose(self, node: str, worker: Any) -> None:
        """Give the blocks of a node whose worker died to others, or to a new worker on this node if it is alive."""
        if self._workers.get(node) is not worker:  # it was found dead before, with other work
            return
        self._ray.kill(worker)
        del self._workers[node], self._cores[node]
        self._deaths[node] = self._deaths.get(node, 0) + 1
        kept = {other: own for other, own in self._blocks.items() if other != node}
        self._hire()
        if node in self._workers:
            kept[node] = self._blocks[node]
        self._deal(kept)

    def _held(self) -> dict[str, list[int]]:
        """Return the blocks whose lists each node has on its disk from an earlier driver."""
        held = {}
        for node, reference in [(node, worker.listed.remote()) for node, worker in self._workers.items()]:
            there = set(self._got(reference) or ())
            blocks = range(-(-self._n_shards // self._block_size))
            held[node] = [block for block in blocks if there >= set(self._shards([block]))]
        return held

    def _deal(self, kept: Mapping[str, Sequence[int]]) -> None:
        n_blocks = -(-self._n_shards // self._block_size)
        self._blocks = dealt(n_blocks, self._cores, kept)

    def _shards(self, blocks: Sequence[int]) -> list[int]:
        size = self._block_size
        return [
            shard for block in sorted(blocks) for shard in range(block * size, min((block + 1) * size, self._n_shards))
        ]


def block_size(n_shards: int, n_nodes: int) -> int:
    """Return the largest power of two that leaves at least `BLOCKS_PER_NODE` blocks per node, or 1."""
    return 1 << max(0, (n_shards // (BLOCKS_PER_NODE * n_nodes)).bit_length() - 1)


def dealt(n_blocks: int, cores: Mapping[str, int], kept: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Assign blocks to nodes in proportion to their cores; a node keeps what it has, up to its share.

    >>> dealt(6, {"a": 1, "b": 1}, {})
    {'a': [0, 1, 2], 'b': [3, 4, 5]}
    >>> dealt(6, {"b": 1, "c": 1}, {"b": [3, 4, 5]})
    {'b': [3, 4, 5], 'c': [0, 1, 2]}
    """
    total, so_far, before = sum(cores.values()), 0, 0
    shares, taken = {}, set[int]()
    for node, own in cores.items():
        so_far += own
        shares[node], before = n_blocks * so_far // total - before, n_blocks * so_far // total
    blocks: dict[str, list[int]] = {}
    for node, share in shares.items():
        blocks[node] = [block for block in kept.get(node, ()) if block not in taken][:share]
        taken.update(blocks[node])
    free = [block for block in range(n_blocks) if block not in taken]
    for node, share in shares.items():
        missing = share - len(blocks[node])
        blocks[node], free = sorted([*blocks[node], *free[:missing]]), free[missing:]
    return blocks


class NodeWorker:
    """The actor: `Work` on the threads of one node, with shortlists on its disk."""

    def __init__(self, work: Work, threads: int, scratch: str | None) -> None:
        only_one_thread()
        self._given, self._scratch = work, scratch
        self._threads, self._done = threads, 0
        self._listed: set[int] = set()

    @cached_property
    def _work(self) -> Work:
        """The work, with lists on this disk; made when it is first needed, since errors here reach the driver whole."""
        return dataclasses.replace(self._given, lists=scratch_folder(self._given.run_name, self._scratch))

    def run(self, operation: str, shards: Sequence[int], message: Any, comparison: Sequence[Any]) -> list[Piece]:
        """Run one operation on some shards; return the sum in as few pieces as possible."""
        lists = None
        if comparison and not self._listed >= set(shards):
            lists = as_tensors(import_extra("ray", "ray").get(comparison[0]))
        total = TreeSum(self._work.n_shards)
        self._done = 0
        one = partial(self._one, operation, as_tensors(message), lists)
        for done, piece in enumerate(in_threads(one, shards, self._threads), start=1):
            total.put(piece)
            self._done = done
        return [as_arrays(piece) for piece in total.pieces()]

    def done(self) -> int:
        """Return how many shards of the present work are done."""
        return self._done

    def listed(self) -> list[int]:
        """Return the shards whose lists are on this disk."""
        return self._work.listed()

    def clean(self) -> None:
        """Remove the lists."""
        shutil.rmtree(self._work.lists, ignore_errors=True)

    def _one(self, operation: str, arguments: tuple[Any, ...], lists: tuple[Any, ...] | None, shard: int) -> Piece:
        if lists is not None and shard not in self._listed:
            self._work.compare(shard, *lists)
        result = getattr(self._work, operation)(shard, *arguments)
        if operation == "compare" or lists is not None:
            self._listed.add(shard)
        return Piece(0, shard, result)


class Packed(NamedTuple):
    """A dataclass whose tensors are sent as arrays."""

    kind: type[Any]
    values: tuple[Any, ...]


class SentTensor(NamedTuple):
    """A tensor, as an array."""

    array: np.ndarray


def as_arrays(value: Any) -> Any:
    """Convert tensors to arrays, which are sent without being copied; in tuples and dataclasses too."""
    if isinstance(value, Tensor):
        return SentTensor(value.numpy())
    if is_dataclass(value) and not isinstance(value, type):
        return Packed(type(value), tuple(as_arrays(getattr(value, f.name)) for f in fields(value)))
    return _each(value, as_arrays)


def as_tensors(value: Any) -> Any:
    """Undo `as_arrays`. Arrays from the object store are read-only, and nothing writes to them."""
    if isinstance(value, SentTensor):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(value.array)
    if isinstance(value, Packed):
        return value.kind(*as_tensors(value.values))
    return _each(value, as_tensors)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(value, tuple):
        return value
    parts = [change(part) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def message_bytes(message: Any) -> int:
    """Length of a message as it is sent: the pickle, and the buffers beside it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)
