"""Everything that runs over Ray, on one cluster that is started once: the answers are those of one process.

Nodes that die and clusters that are started and ended here are in the slow tests.
"""

from dataclasses import replace

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from handful.errors import ClusterError, ExtractionError, TaskError
from handful.extraction.extract import extract, skipped_items
from handful.extraction.items import list_items
from handful.scale import label_table, run
from handful.workers import Shared, cluster, on_ray
from handful.workers.cluster import TASKS_PER_CORE
from handful_fewshot.errors import PlanError
from tests.items_at_hand import image_folder, small_encoder
from tests.scale_at_hand import assert_same, world
from tests.work_at_hand import Complaining, Mortal, double

pytestmark = pytest.mark.beyond
CORES = 2


@pytest.fixture(scope="module", autouse=True)
def ray():
    """A cluster of one node with two cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns that a default of its own will change
        found = pytest.importorskip("ray")
        found.init(address="local", num_cpus=CORES, include_dashboard=False, log_to_driver=False)
        yield found
        assert found.is_initialized()  # nobody below has ended what was there before
        found.shutdown()


def test_results_come_back_and_errors_as_the_sentences_they_were(ray, monkeypatch):
    taken = []

    def numbers():
        for number in range(20, 40):
            taken.append(number)
            yield (number,)

    results = on_ray()(double, numbers())
    first = next(results)
    # No more is submitted than the cores can soon use.
    assert len(taken) == CORES * TASKS_PER_CORE
    assert sorted([first, *results]) == [2 * number for number in range(20, 40)]
    with pytest.raises(PlanError, match=r"\A13 cannot be doubled; take another\Z"):
        list(on_ray()(double, [(13,)]))
    with pytest.raises(ValueError, match="not one of our sentences"):
        list(on_ray()(double, [(14,)]))
    monkeypatch.setattr(cluster, "RETRIES", 0)
    assert list(on_ray()(double, [(15,)], lambda task, error: (task, type(error)))) == [
        ((15,), ray.exceptions.WorkerCrashedError)
    ]


def test_a_run_over_partitions_has_the_tables_of_one_in_process(tmp_path):
    """Files with scattered groups, so that rows are brought together on the cluster too."""
    given = world(tmp_path)
    (tmp_path / "in").mkdir()
    for number in range(3):
        rows = slice(number, None, 3)
        pq.write_table(given.table(rows), tmp_path / "in" / f"{number}.parquet")
    expected = label_table(given.table(), given.path, "site")
    found = run(tmp_path / "in", given.path, tmp_path / "out", group_by="site", workers=on_ray())
    assert found.rows == len(given.sites)
    for kind, table, by in (("items", expected.items, ["id"]), ("groups", expected.groups, ["site", "class"])):
        assert_same(ds.dataset(tmp_path / "out" / kind).to_table(), table, *by)


def test_a_worker_that_dies_is_replaced_and_in_the_end_given_up(tmp_path, monkeypatch):
    def labelled(work):
        shared = Shared(work)
        return list(on_ray()(type(work).label, [(shared, shard, None) for shard in range(6)]))

    assert sorted(labelled(Mortal(tmp_path, 2))) == list(range(6))
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(cluster, "RETRIES", 1)
    with pytest.raises(ClusterError, match=r"a worker died on every attempt at one task.*The last loss: .*died"):
        labelled(Mortal(tmp_path, 100))
    with pytest.raises(TaskError, match=r"\Aa sentence for the user\Z"):
        labelled(Complaining())


@pytest.mark.slow
def test_features_have_the_same_bytes(tmp_path):
    folder = image_folder(tmp_path / "images", n_classes=4, each=4)
    (folder / "class2" / "02.png").write_bytes(b"")
    items, sizes = list_items(folder), {"shard_size": 2, "batch_size": 2}
    here = extract(items, small_encoder(), tmp_path / "here", **sizes)
    there = extract(items, small_encoder(), tmp_path / "there", **sizes, workers=on_ray())
    assert there.content_hash == here.content_hash
    assert skipped_items(there) == skipped_items(here) != []
    with pytest.raises(ExtractionError, match=r"\Aencoder small must give 31 numbers"):
        extract(items, replace(small_encoder(), dim=31), tmp_path / "wrong", workers=on_ray())
