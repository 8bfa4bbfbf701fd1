import torch

from handful.catalogue import Catalogue
from handful.large.candidates import Contenders
from handful.large.crew import in_process
from handful.large.shard import Work
from tests.large_at_hand import large_problem


def test_results_are_the_same_on_any_number_of_threads_and_in_order(tmp_path):
    problem = large_problem()
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    contenders = Contenders.of_prototypes(catalogue.means)
    results = []
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        work = Work(problem.queries, catalogue.origin, "raw", folder, 30, 8)
        with in_process(workers)(work) as crew:
            list(crew.run("compare", "all", contenders))
            results.append(list(crew.run("count", "all", torch.zeros(60))))
            assert crew.traffic == (0, 0)
    assert len(results[0]) == 14
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
