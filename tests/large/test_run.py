import torch

from handful.catalogue import Catalogue
from handful.large.checkpoint import load_state
from handful.large.crew import in_process
from handful.large.progress import Reporter
from handful.large.run import Run, lists_name
from handful.large.shard import Work
from tests.large_at_hand import large_problem


def test_a_run_adds_its_shards_and_reports_each(tmp_path):
    problem = large_problem()
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    work = Work(problem.queries, catalogue.origin, "raw", tmp_path, 150, 8)
    reports = []
    with in_process()(work) as crew:
        run = Run(catalogue, ("unnamed",) * 60, 400, work.n_shards, 8, tmp_path, crew, Reporter(reports.append))
        assert not run.lists_are_whole
        name, dropped = run.compare(0, torch.arange(60), 1.0)
        assert dropped.n_measured == 19 + 19 + 13
        assert [(r.done, r.total) for r in reports] == [(1, 3), (2, 3), (3, 3)]
        counts = run.count(name, torch.zeros(60), 1.0).counts
        mass, sums = run.moments("move", 0, name, torch.zeros(60), 1.0)
        torch.testing.assert_close(mass, counts, atol=1e-3, rtol=1e-4)
        points = torch.from_numpy(problem.queries.features) - catalogue.origin
        torch.testing.assert_close(sums.sum(0).float(), points.sum(0), atol=1e-2, rtol=1e-3)
        assert run.compare(0, torch.arange(60), 1.0) == (name, dropped)
        assert len(reports) == 6  # what was made is not made again
        run.note_traffic((0, 0))
        assert run.sent == run.received == [0]
        run.save({"counts": counts}, {"phase": "here"})
    assert load_state(tmp_path)[1] == {"phase": "here"}


def test_lists_are_named_by_the_set_of_classes_and_the_scale():
    some = torch.tensor([3, 5, 8])
    names = [
        lists_name(some, 2.0),
        lists_name(torch.tensor([3, 5, 9]), 2.0),
        lists_name(some[:2], 2.0),
        lists_name(some, 2.0 + 1e-15),
    ]
    assert len(set(names)) == 4
    assert lists_name(torch.tensor([3, 5, 8]), 2.0) == names[0]
    assert names[0].startswith("3-")
