import numpy as np
import pytest
import torch

from handful.errors import FileFormatError, OptionError
from handful.large import candidates
from handful.large.candidates import Contenders, FaissIndex, Lists, exact_lists, faiss_lists, log_sums
from handful.machine.folders import LocalFolder


def points_and_prototypes(n_query=40, n_classes=151, dim=12):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_query, dim, generator=generator), torch.randn(n_classes, dim, generator=generator)


def head_of(prototypes):
    """Weights and offsets that are not those of prototypes."""
    generator = torch.Generator().manual_seed(1)
    return 1.7 * prototypes, torch.randn(len(prototypes), generator=generator)


def test_scores_are_those_of_a_head_and_padding_is_never_chosen():
    points, prototypes = points_and_prototypes()
    weights, offsets = head_of(prototypes)
    scores = Contenders.of(weights, offsets).scores(points)
    assert scores.shape == (40, 160)
    assert bool((scores[:, 151:] == -torch.inf).all())
    torch.testing.assert_close(scores[:, :151], points @ weights.T + offsets, atol=1e-5, rtol=1e-5)


def test_scores_of_prototypes_are_distances_but_for_a_constant_per_query():
    points, prototypes = points_and_prototypes()
    gap = Contenders.of_prototypes(prototypes).scores(points)[:, :151] + 0.5 * torch.cdist(points, prototypes).square()
    torch.testing.assert_close(gap, gap[:, :1].expand_as(gap), atol=1e-4, rtol=1e-4)


def test_scores_of_some_classes_are_those_among_all(monkeypatch):
    monkeypatch.setattr(candidates, "SCORE_BLOCK_NUMBERS", 500)  # several blocks
    points, prototypes = points_and_prototypes()
    contenders = Contenders.of(*head_of(prototypes))
    some = torch.randint(151, (40, 6), generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(contenders.scores_of(points, some), contenders.scores(points).gather(1, some))


def test_lists_are_named_by_all_that_queries_are_compared_with():
    _, prototypes = points_and_prototypes()
    weights, offsets = head_of(prototypes)
    changed_weight, changed_offset = weights.clone(), offsets.clone()
    changed_weight[100, 3] += 1e-5
    changed_offset[100] += 1e-5
    given = [(weights, offsets), (changed_weight, offsets), (weights, changed_offset), (weights[:150], offsets[:150])]
    names = [Contenders.of(*one).name for one in given]
    assert len(set(names)) == 4
    assert Contenders.of(weights.clone(), offsets.clone()).name == names[0]
    assert [name.partition("-")[0] for name in names] == ["151", "151", "151", "150"]


@pytest.mark.parametrize("length", [2, 7, 32, 150])
def test_exact_lists_hold_the_best(length):
    points, prototypes = points_and_prototypes()
    contenders = Contenders.of(*head_of(prototypes))
    lists = exact_lists(points, contenders, length)
    scores = contenders.scores(points)
    torch.testing.assert_close(lists.scores, scores.topk(length).values)
    torch.testing.assert_close(scores.gather(1, lists.classes.long()), lists.scores)
    torch.testing.assert_close(lists.log_totals[::8], scores[::8].logsumexp(-1))
    assert int(lists.log_totals.isnan().sum()) == 35


def test_whole_lists_are_in_the_order_of_the_classes_and_measured():
    points, prototypes = points_and_prototypes()
    lists = exact_lists(points, Contenders.of(*head_of(prototypes)), 151)
    assert torch.equal(lists.classes[0], torch.arange(151, dtype=torch.int32))
    assert not bool(lists.log_totals.isnan().any())


def test_lists_survive_packing():
    points, prototypes = points_and_prototypes()
    lists = exact_lists(points, Contenders.of(*head_of(prototypes)), 5)
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
    # The index knows the means, the scores are those of the head.
    contenders = Contenders.of(prototypes, 0.1 * head_of(prototypes)[1] - 0.5 * prototypes.square().sum(-1))
    index = FaissIndex(LocalFolder(tmp_path), "index", kind)
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
    FaissIndex(LocalFolder(path.parent), path.name, "faiss_ivf").build(prototypes)
    FaissIndex(LocalFolder(path.parent), path.name, "faiss_ivf").build(prototypes)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match="index was cut short or changed"):
        FaissIndex(LocalFolder(path.parent), path.name, "faiss_ivf").build(prototypes)


def test_a_list_that_is_not_filled_keeps_its_place(tmp_path):
    class OneNear(FaissIndex):
        def search(self, points, length):
            found = np.full((len(points), length), -1)
            found[:, 0] = 7
            return found

    points, prototypes = points_and_prototypes(n_query=3)
    contenders = Contenders.of(*head_of(prototypes))
    lists = faiss_lists(points, contenders, 4, OneNear(LocalFolder(tmp_path), "none", "faiss_ivf"))
    assert lists.classes.tolist() == [[7, 0, 0, 0]] * 3
    torch.testing.assert_close(lists.scores[:, 0], contenders.scores(points)[:, 7])
    assert bool((lists.scores[:, 1:] == -torch.inf).all())


def test_an_unknown_kind_is_refused(tmp_path):
    pytest.importorskip("faiss")
    with pytest.raises(OptionError, match="faiss_hnsw"):
        FaissIndex(LocalFolder(tmp_path), "index", "guess").build(torch.eye(3))
