"""Everything that takes an executor, on processes: the answers are those of one process, also after an interruption."""

import pytest

from handful.executors import in_process, in_processes
from handful.extraction.extract import extract
from handful.extraction.items import list_items
from handful.large import solve
from handful.many import label_groups, portions
from tests.items_at_hand import image_folder, small_encoder
from tests.kills_at_hand import differences
from tests.large_at_hand import large_problem
from tests.many_at_hand import SMALL, contents, world, written

pytest.importorskip("pyarrow")


def test_a_streamed_batch_has_the_answer_of_a_run_in_process(tmp_path):
    problem = large_problem(n_classes=100, n_query=300, n_present=10, apart=1.2, even=True)
    banks = problem.catalogue, problem.queries.save(tmp_path / "queries")
    here = solve(*banks, tmp_path / "here", shard_rows=100)
    there = solve(*banks, tmp_path / "there", shard_rows=100, executor=in_processes(2))
    assert differences(here, there) == []


@pytest.mark.slow
def test_groups_on_disk_have_the_same_bytes_also_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(portions, "HELD_NUMBERS", SMALL)
    given = world()
    source = written([given.table()], tmp_path / "in")
    told = []

    def stop(progress):
        told.append(progress)
        if progress.stage == "label" and progress.done:
            raise KeyboardInterrupt

    label_groups(given.classifier, source, tmp_path / "here", group_by="site", executor=in_process())
    there = {"group_by": "site", "executor": in_processes(2)}
    with pytest.raises(KeyboardInterrupt):
        label_groups(given.classifier, source, tmp_path / "there", **there, on_progress=stop)
    label_groups(given.classifier, source, tmp_path / "there", **there)
    assert contents(tmp_path / "there") == contents(tmp_path / "here") != {}


@pytest.mark.slow
def test_features_have_the_same_bytes(tmp_path):
    items = list_items(image_folder(tmp_path / "images"))
    for name, executor in (("here", in_process()), ("there", in_processes(2))):
        extract(items, small_encoder(), tmp_path / name, shard_size=5, executor=executor)
    here, there = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("here", "there"))
    assert here == there
