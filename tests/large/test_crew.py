import torch

from handful.catalogue import Catalogue
from handful.large.candidates import Contenders
from handful.large.crew import in_process
from handful.large.shard import Work
from handful.large.tree_sum import Piece, TreeSum
from handful.machine.folders import LocalFolder
from tests.large_at_hand import large_problem


def test_sums_are_the_same_on_any_number_of_threads(tmp_path):
    problem = large_problem()
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    contenders = Contenders.of_prototypes(catalogue.means)
    results = []
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        work = Work(problem.queries, catalogue.origin, "raw", LocalFolder(folder), folder, "run", 30, 8)
        with in_process(workers)(work) as crew:
            done = []
            crew.add_up("compare", "all", contenders, report=done.append)
            assert done == list(range(1, 15))
            results.append(crew.add_up("moments", "all", torch.zeros(60)))
            assert crew.traffic == (0, 0)
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))
    apart = TreeSum(14)
    for shard in range(14):
        apart.put(Piece(0, shard, work.moments(shard, "all", torch.zeros(60))))
    assert torch.equal(results[0].sums, apart.whole().sums)
