import numpy as np
import pytest
import torch

from handful.errors import FileFormatError, OptionError
from handful.large.candidates import Contenders, FaissIndex, Lists, exact_lists, faiss_lists, log_sums

SCALE = 1.7


def points_and_prototypes(n_query=40, n_classes=151, dim=12):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_query, dim, generator=generator), torch.randn(n_classes, dim, generator=generator)


def test_scores_are_distances_but_for_a_constant_a_query():
    points, prototypes = points_and_prototypes()
    contenders = Contenders.of(prototypes, SCALE)
    scores = contenders.scores(points)
    assert scores.shape == (40, 160)
    assert bool((scores[:, 151:] == -torch.inf).all())
    gap = scores[:, :151] + 0.5 * SCALE * torch.cdist(points, prototypes).square()
    torch.testing.assert_close(gap, gap[:, :1].expand_as(gap), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("length", [2, 7, 32, 150])
def test_exact_lists_hold_the_best(length):
    points, prototypes = points_and_prototypes()
    contenders = Contenders.of(prototypes, SCALE)
    lists = exact_lists(points, contenders, length)
    scores = contenders.scores(points)
    torch.testing.assert_close(lists.scores, scores.topk(length).values)
    torch.testing.assert_close(scores.gather(1, lists.classes.long()), lists.scores)
    torch.testing.assert_close(lists.log_totals[::8], scores[::8].logsumexp(-1))
    assert int(lists.log_totals.isnan().sum()) == 35


def test_whole_lists_are_in_the_order_of_the_classes_and_measured():
    points, prototypes = points_and_prototypes()
    lists = exact_lists(points, Contenders.of(prototypes, SCALE), 151)
    assert torch.equal(lists.classes[0], torch.arange(151, dtype=torch.int32))
    assert not bool(lists.log_totals.isnan().any())


def test_lists_survive_packing():
    points, prototypes = points_and_prototypes()
    lists = exact_lists(points, Contenders.of(prototypes, SCALE), 5)
    words = lists.packed()
    assert words.shape == (40, 11)
    again = Lists.unpacked(words)
    assert torch.equal(again.classes, lists.classes)
    assert torch.equal(again.scores, lists.scores)
    np.testing.assert_array_equal(again.log_totals, lists.log_totals)


def test_lists_look_up_and_add_by_class():
    lists = Lists(torch.tensor([[2, 0], [2, 1]], dtype=torch.int32), torch.zeros(2, 2), torch.zeros(2))
    assert lists.of_classes(torch.tensor([5.0, 6.0, 7.0])).tolist() == [[7.0, 5.0], [7.0, 6.0]]
    assert lists.by_class(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 4).tolist() == [2.0, 4.0, 4.0, 0.0]


def test_sums_of_far_classes_are_exact_enough():
    scores = torch.tensor([[0.0, -95.0, -torch.inf], [3.0, 3.0, 3.0]])
    torch.testing.assert_close(log_sums(scores, scores.amax(-1, keepdim=True)), scores.logsumexp(-1))


@pytest.mark.parametrize("kind", ["faiss_ivf", "faiss_hnsw"])
def test_an_index_finds_nearly_what_is_there(kind, tmp_path):
    pytest.importorskip("faiss")
    points, prototypes = points_and_prototypes(n_query=300)
    contenders = Contenders.of(prototypes, SCALE)
    index = FaissIndex(tmp_path / "index", kind, SCALE)
    index.build(prototypes)
    found, exact = faiss_lists(points, contenders, 8, index), exact_lists(points, contenders, 8)
    assert (found.classes[:, 0] == exact.classes[:, 0]).float().mean() > 0.9
    there = found.scores > -torch.inf
    expected = contenders.scores(points).gather(1, found.classes.long())
    torch.testing.assert_close(found.scores[there], expected[there], atol=1e-4, rtol=1e-4)
    assert (~found.log_totals.isnan()).nonzero().squeeze(-1).tolist() == [0, 256]


def test_an_index_that_was_changed_is_refused(tmp_path):
    pytest.importorskip("faiss")
    _, prototypes = points_and_prototypes()
    path = tmp_path / "index"
    FaissIndex(path, "faiss_ivf", SCALE).build(prototypes)
    FaissIndex(path, "faiss_ivf", SCALE).build(prototypes)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match="index was cut short or changed"):
        FaissIndex(path, "faiss_ivf", SCALE).build(prototypes)


def test_a_list_that_is_not_filled_keeps_its_place(tmp_path):
    class NothingNear:
        scale = SCALE

        def search(self, points, length):
            return np.zeros((len(points), length), np.float32), np.full((len(points), length), -1)

    points, prototypes = points_and_prototypes(n_query=3)
    lists = faiss_lists(points, Contenders.of(prototypes, SCALE), 4, _as_index(NothingNear(), tmp_path))
    assert bool((lists.scores == -torch.inf).all())
    assert int(lists.classes.max()) == 0


def _as_index(stand_in, tmp_path):
    index = FaissIndex(tmp_path / "none", "faiss_ivf", stand_in.scale)
    index.search = stand_in.search
    return index


def test_an_unknown_kind_is_refused(tmp_path):
    pytest.importorskip("faiss")
    with pytest.raises(OptionError, match="faiss_hnsw"):
        FaissIndex(tmp_path / "index", "guess", 1.0).build(torch.eye(3))
