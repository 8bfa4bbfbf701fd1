import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handful.catalogue import Catalogue
from handful.errors import ClusterError, MissingExtraError, StorageError, TaskError
from handful.large import solve
from handful.large.candidates import Contenders
from handful.large.on_ray import as_arrays, as_tensors, block_size, dealt, message_bytes, on_ray
from handful.large.shard import Work
from handful.large.tree_sum import Piece, TreeSum
from handful.machine.folders import LocalFolder
from tests.large_at_hand import large_problem

ROWS = {"shard_rows": 100}
SHARDS = {**ROWS, "list_length": 12, "method": "paddle"}
# Bytes around the numbers of a message, as docs/scale.md has them.
MESSAGE_HEAD = 150
# A dead node is noticed after three missed signs of life rather than after half a minute.
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}


@pytest.fixture(scope="module")
def ray():
    with pytest.MonkeyPatch.context() as patch:
        # Ray warns that a default of its own will change.
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        yield pytest.importorskip("ray")


@pytest.fixture
def banks(tmp_path):
    """A problem on disk: every process maps it."""
    problem = large_problem(n_classes=400, n_query=600, n_present=10, apart=1.2, even=True)
    return problem.catalogue, problem.queries.save(tmp_path / "queries")


def assert_same(one, other):
    assert torch.equal(one.expected_counts, other.expected_counts)
    assert torch.equal(one.prototypes, other.prototypes)
    assert one.n_iter == other.n_iter
    for part, again in zip(one.answers(), other.answers(), strict=True):
        for name, values in part.items():
            np.testing.assert_array_equal(values, again[name])


def test_tensors_travel_as_arrays_and_come_back():
    contenders = Contenders.of(torch.eye(3), torch.zeros(3))
    ones = torch.ones(3, dtype=torch.float64)
    sent = as_arrays(("all", contenders, Piece(1, 0, ones), np.ones(2)))
    assert 35 * 4 * 3 < message_bytes(sent) < 35 * 4 * 3 + 1500
    name, again, piece, array = as_tensors(sent)
    assert (name, piece.level, type(array)) == ("all", 1, np.ndarray)
    assert torch.equal(again.weights, contenders.weights)
    assert again.name == contenders.name
    assert torch.equal(piece.value, ones)


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path, banks):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"handful\[ray\]"):
        solve(*banks, tmp_path / "run", executor=on_ray())


@pytest.mark.parametrize("arguments", [ROWS, SHARDS], ids=["roll_call", "paddle"])
def test_the_answer_is_that_of_a_run_in_process_and_traffic_that_of_the_model(arguments, ray, tmp_path, banks):
    here = solve(*banks, tmp_path / "here", **arguments)
    there = solve(*banks, tmp_path / "there", **arguments, executor=on_ray(scratch=tmp_path / "scratch"))
    assert not ray.is_initialized()
    assert_same(here, there)
    assert here.unknown_share == there.unknown_share
    if arguments is ROWS:
        # Up: three numbers per class from one node, of all its shards. A message has a head.
        assert here.bytes_received == [0]
        np.testing.assert_allclose(there.bytes_received, [3 * 8 * 400 + MESSAGE_HEAD], rtol=0.2)
    # Lists were on the disk of the node, and are removed when the run has ended.
    assert not list((tmp_path / "there").glob("lists-*"))
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.fixture(scope="class")
def one_node(ray):
    """A cluster of one node with two cores."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.usefixtures("one_node")
class TestOnOneNode:
    def test_a_worker_that_dies_is_replaced_and_one_that_keeps_dying_is_given_up(self, tmp_path, banks):
        """`Work` whose operations kill their process a number of times, as the system does when memory runs out."""
        catalogue = Catalogue.of_bank(banks[0], "raw")
        marks = tmp_path / "marks"
        marks.mkdir()
        work = Mortal(banks[1], catalogue.origin, "raw", LocalFolder(tmp_path), tmp_path, "run", 100, 12)
        with on_ray(scratch=tmp_path / "scratch")(work) as crew:
            assert crew.add_up("dies", str(marks), 2).tolist() == [6.0]
            assert len(list(marks.iterdir())) == 2
            with pytest.raises(TaskError, match=r"\Aa sentence for the user\Z"):
                crew.add_up("complains")
            with pytest.raises(ClusterError, match=r"call again to continue the run .* The last loss: .*died"):
                crew.add_up("dies", str(marks), 100)

    def test_an_error_of_a_node_is_the_sentence_it_was(self, tmp_path, banks):
        (tmp_path / "handful-run").symlink_to(tmp_path)
        work = Mortal(banks[1], torch.zeros(24), "raw", LocalFolder(tmp_path), tmp_path, "run", 100, 12)
        with (
            pytest.raises(StorageError, match=r"\A\S*handful-run belongs to another user"),
            on_ray(scratch=tmp_path)(work),
        ):
            pass

    def test_a_node_holds_one_copy_of_the_catalogue_in_shared_memory(self, tmp_path):
        problem = large_problem(n_classes=2000, n_query=90, dim=256)
        catalogue = Catalogue.of_bank(problem.catalogue, "raw")
        contenders = Contenders.of_prototypes(catalogue.means)
        work = Looking(problem.queries, catalogue.origin, "raw", LocalFolder(tmp_path), tmp_path, "run", 10, 12)
        with on_ray(scratch=tmp_path / "scratch")(work) as crew:
            places = crew.add_up("where", contenders)
        # Every shard, on either thread, read the same address, in the memory of the object store that processes share.
        addresses, mapped = {address for address, _ in places.seen}, {file for _, file in places.seen}
        assert (len(places.seen), len(addresses), len(mapped)) == (9, 1, 1)
        assert mapped.pop().startswith(("/dev/shm/", "/memfd:"))


@dataclass(frozen=True, eq=False)
class Mortal(Work):
    def dies(self, shard, marks, times):
        if shard == 3 and len(list(Path(marks).iterdir())) < times:
            (Path(marks) / f"{time.monotonic_ns()}").touch()
            os._exit(1)
        return torch.ones(1, dtype=torch.float64)

    def complains(self, shard):
        raise TaskError("a sentence for the user")


class Seen(NamedTuple):
    seen: list

    def with_part(self, other):
        return Seen(self.seen + other.seen)


@dataclass(frozen=True, eq=False)
class Looking(Work):
    def where(self, shard, contenders):
        address = contenders.weights.data_ptr()
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, *_, name = [*line.split(maxsplit=5), ""][:6]
            low, high = (int(end, 16) for end in span.split("-"))
            if low <= address < high:
                return Seen([(address, name)])
        return Seen([(address, "nowhere")])


@pytest.mark.parametrize(("n_shards", "n_nodes", "size"), [(6, 3, 1), (48, 3, 2), (47, 3, 1), (15_259, 100, 16)])
def test_a_node_has_at_least_eight_blocks_where_there_are_that_many_shards(n_shards, n_nodes, size):
    assert block_size(n_shards, n_nodes) == size


@pytest.mark.parametrize(("n_shards", "n_nodes"), [(100, 10), (1000, 10), (10_000, 10), (15_259, 100)])
def test_pieces_per_node_do_not_grow_with_the_number_of_shards(n_shards, n_nodes):
    size = block_size(n_shards, n_nodes)
    n_pieces = []
    for blocks in dealt(-(-n_shards // size), {f"{node:03}": 16 for node in range(n_nodes)}, {}).values():
        node = TreeSum(n_shards)
        for shard in (shard for block in blocks for shard in range(block * size, min((block + 1) * size, n_shards))):
            node.put(Piece(0, shard, torch.zeros(())))
        n_pieces.append(len(node.pieces()))
    assert max(n_pieces) <= 5


def test_after_a_death_survivors_keep_their_blocks():
    before = dealt(24, {"a": 2, "b": 1, "c": 1}, {})
    assert before == {"a": list(range(12)), "b": list(range(12, 18)), "c": list(range(18, 24))}
    after = dealt(24, {"b": 1, "c": 1}, before)
    assert set(after["b"]) >= set(before["b"])
    assert set(after["c"]) >= set(before["c"])
    # A node that joins takes blocks from the others.
    joined = dealt(24, {"b": 1, "c": 1, "d": 1}, after)
    assert {node: len(own) for node, own in joined.items()} == {"b": 8, "c": 8, "d": 8}
    assert set(joined["b"]) <= set(after["b"])


@given(
    st.integers(1, 60),
    st.lists(st.integers(1, 8), min_size=1, max_size=6),
    st.lists(st.lists(st.integers(0, 59), unique=True), max_size=6),
)
def test_every_block_is_dealt_once_and_shares_follow_the_cores(n_blocks, cores, kept):
    before = {str(node): [block for block in own if block < n_blocks] for node, own in enumerate(kept)}
    nodes = {str(node): own for node, own in enumerate(cores)}
    blocks = dealt(n_blocks, nodes, before)
    assert sorted(block for own in blocks.values() for block in own) == list(range(n_blocks))
    for node, own in blocks.items():
        assert abs(len(own) - n_blocks * nodes[node] / sum(cores)) < 1


@pytest.mark.slow
def test_a_node_dies_then_the_driver_and_the_answer_is_that_of_an_undisturbed_run(ray, tmp_path, banks):
    from ray.cluster_utils import Cluster

    here = solve(*banks, tmp_path / "here", **SHARDS)
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": QUICK}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    folder = tmp_path / "there"
    state = folder / "state.safetensors"
    try:
        doomed, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        arguments = (banks, folder, cluster.address, doomed.node_id)
        driver = multiprocessing.get_context("spawn").Process(target=drive_slowly, args=arguments)
        driver.start()
        deadline = time.monotonic() + 300
        while not (folder / "iteration-2").exists() and driver.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        cluster.remove_node(doomed, allow_graceful=False)
        (folder / "node-is-dead").touch()
        driver.join(300)
        assert driver.exitcode == -signal.SIGKILL
        assert state.exists()
        seen = []
        resumed = solve(
            *banks,
            folder,
            **SHARDS,
            executor=on_ray(cluster.address, scratch=folder / "scratch"),
            on_progress=lambda progress: seen.append(progress.iteration),
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert min(seen) >= 4
    assert_same(here, resumed)


def drive_slowly(banks, folder, address, doomed_node):
    """In iteration 2 wait until the node is dead, whose shards the next iteration needs; after iteration 4, die."""

    def watch(progress):
        if progress.stage != "iterate":
            return
        if progress.iteration == 2:
            # Some actor must live on the node that dies, or its death would show nothing.
            from ray._private.state import actors

            assert doomed_node in {actor["Address"]["NodeID"] for actor in actors().values()}
            (folder / "iteration-2").touch()
            while not (folder / "node-is-dead").exists():
                time.sleep(0.02)
        if progress.iteration == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    solve(*banks, folder, **SHARDS, executor=on_ray(address, scratch=folder / "scratch"), on_progress=watch)
