import pytest
import torch

from handful.catalogue import Catalogue
from handful.large.candidates import Contenders
from handful.large.checkpoint import load_state
from handful.large.crew import in_process
from handful.large.progress import Reporter
from handful.large.run import Run
from handful.large.shard import Work
from handful.machine.folders import LocalFolder
from tests.large_at_hand import large_problem


def test_a_run_adds_its_shards_and_reports_each(tmp_path):
    problem = large_problem()
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    work = Work(problem.queries, catalogue.origin, "raw", LocalFolder(tmp_path), tmp_path, "run", 150, 8)
    reports = []
    with in_process()(work) as crew:
        run = Run(
            work.run_name, catalogue, ("unnamed",) * 60, 400, work.n_shards, work.folder, crew, Reporter(reports.append)
        )
        contenders = Contenders.of(torch.from_numpy(catalogue.head.weights), torch.from_numpy(catalogue.head.offsets))
        name, dropped = run.compare(0, contenders)
        assert name == contenders.name
        assert dropped.n_measured == 19 + 19 + 13
        assert [(r.done, r.total) for r in reports] == [(1, 3), (2, 3), (3, 3)]
        mass, sums = run.moments("iterate", 0, name, torch.zeros(60))
        assert float(mass.sum()) == pytest.approx(400)
        points = torch.from_numpy(problem.queries.features) - catalogue.origin
        torch.testing.assert_close(sums.sum(0).float(), points.sum(0), atol=1e-2, rtol=1e-3)
        assert run.compare(0, contenders) == (name, dropped)
        assert len(reports) == 6  # what was made is not made again
        run.note_traffic((0, 0))
        assert run.sent == run.received == [0]
        run.save({"mass": mass}, {"phase": "here"})
    assert load_state(work.folder, work.run_name)[1] == {"phase": "here"}
