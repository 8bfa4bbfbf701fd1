"""Everything that runs over Ray, on one cluster that is started once: the answers are those of one process.

Nodes that die and clusters that are started and ended here are in the slow tests.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from handful.errors import ClusterError, ExtractionError, TaskError
from handful.executors import executor
from handful.executors.executor import TASKS_PER_CORE, Shared, in_process, on_ray
from handful.extraction.extract import extract, skipped_items
from handful.extraction.items import list_items
from handful.large import solve
from handful.many import label_groups, portions
from handful_fewshot.errors import PlanError
from tests.groups_at_hand import lines_for_ray_data, table_of_sites
from tests.items_at_hand import image_folder, small_encoder
from tests.kills_at_hand import differences
from tests.large_at_hand import large_problem
from tests.many_at_hand import SMALL, contents, world, written
from tests.work_at_hand import Complaining, Mortal, double

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

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
    monkeypatch.setattr(executor, "RETRIES", 0)
    assert list(on_ray()(double, [(15,)], lambda task, error: (task, type(error)))) == [
        ((15,), ray.exceptions.WorkerCrashedError)
    ]


def test_a_streamed_batch_has_the_answer_of_a_run_in_process(tmp_path):
    problem = large_problem(n_classes=400, n_query=600, n_present=10, apart=1.2, even=True)
    banks = problem.catalogue, problem.queries.save(tmp_path / "queries")
    here = solve(*banks, tmp_path / "here", shard_rows=100)
    there = solve(*banks, tmp_path / "there", shard_rows=100, executor=on_ray())
    assert differences(here, there) == []


def test_groups_on_disk_have_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(portions, "HELD_NUMBERS", SMALL)
    given = world()
    source = written([given.table()], tmp_path / "in")
    for name, where in (("here", in_process()), ("there", on_ray())):
        label_groups(given.classifier, source, tmp_path / name, group_by="site", executor=where)
    assert contents(tmp_path / "there") == contents(tmp_path / "here") != {}


def test_a_worker_that_dies_is_replaced_and_in_the_end_given_up(tmp_path, monkeypatch):
    def labelled(work):
        shared = Shared(work)
        return list(on_ray()(type(work).label, [(shared, shard, None) for shard in range(6)]))

    assert sorted(labelled(Mortal(tmp_path, 2))) == list(range(6))
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(executor, "RETRIES", 1)
    with pytest.raises(ClusterError, match=r"call again to continue the run. The last loss: .*died"):
        labelled(Mortal(tmp_path, 100))
    with pytest.raises(TaskError, match=r"\Aa sentence for the user\Z"):
        labelled(Complaining())


@pytest.mark.slow
def test_features_have_the_same_bytes(tmp_path):
    folder = image_folder(tmp_path / "images", n_classes=4, each=4)
    (folder / "class2" / "02.png").write_bytes(b"")
    items, sizes = list_items(folder), {"shard_size": 2, "batch_size": 2}
    here = extract(items, small_encoder(), tmp_path / "here", **sizes)
    there = extract(items, small_encoder(), tmp_path / "there", **sizes, executor=on_ray())
    assert there.content_hash == here.content_hash
    assert skipped_items(there) == skipped_items(here) != []
    with pytest.raises(ExtractionError, match=r"\Aencoder small must give 31 numbers"):
        extract(items, replace(small_encoder(), dim=31), tmp_path / "wrong", executor=on_ray())


@pytest.mark.slow  # Ray Data takes long to begin; tests/many/test_ray_data.py has a stand-in
def test_the_lines_for_ray_data_label_group_by_group(ray, tmp_path):
    """From Parquet to Parquet, over several blocks whose rows belong to the same groups."""
    classifier, sites, expected = table_of_sites(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray, about itself
        import ray.data

        ray.data.DataContext.get_current().enable_progress_bars = False
        exec(lines_for_ray_data(tmp_path), {"classifier": classifier})
    found = parquet.read_table(tmp_path / "out").sort_by("row")
    assert set(found.column_names) == {"row", "site", "label", "certainty"}
    assert found["site"].to_pylist() == sites.tolist()
    assert found["label"].to_pylist() == expected.labels.tolist()
    np.testing.assert_allclose(found["certainty"].to_numpy(), expected.certainty, atol=1e-4)
