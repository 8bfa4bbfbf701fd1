"""Head: left-out examples, temperature, doubtful labels, copies, unequal shots, class means."""

import pytest
import torch

from handful.inference import head as module
from handful.inference.head import Head, fit_head
from tests.heads_at_hand import accuracy, clouds, scores


def means_of(points, codes):
    shots = torch.bincount(codes).to(points)
    return torch.zeros(len(shots), points.shape[1]).to(points).index_add_(0, codes, points) / shots[:, None], shots


@pytest.mark.parametrize("near", [False, True])
def test_scores_of_new_items_are_nats(near, monkeypatch):
    if near:
        monkeypatch.setattr(module, "FULL_WORK", 0)
        monkeypatch.setattr(module, "RIVALS", 8)
    points, codes, items, truth = clouds(40, 5, 24, 1.5)
    head = fit_head(points, codes, 40)
    logits = scores(head, items).double()
    losses = {t: float(torch.nn.functional.cross_entropy(logits / t, truth)) for t in (0.6, 0.8, 1.0, 1.25, 1.6)}
    assert losses[1.0] < min(losses[0.6], losses[1.6])
    assert head.confidence == pytest.approx(accuracy(head, items, truth), abs=0.1)
    assert head.left_out.rows.tolist() == list(range(200))
    assert head.wrong_share < 0.02
    assert torch.equal(head.mass, torch.full((40,), 5.0))
    assert head.typical_shots == 5


@pytest.mark.parametrize("near", [False, True])
def test_copies_do_not_vouch_for_one_another(near, monkeypatch):
    if near:
        monkeypatch.setattr(module, "FULL_WORK", 0)
    generator = torch.Generator().manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(60, 200, generator=generator), dim=1)
    codes = torch.arange(60) % 6
    head = fit_head(torch.cat([points, points]), torch.cat([codes, codes]), 6)
    assert (head.left_out.lead < 0).double().mean() < 0.4
    means, shots = means_of(torch.cat([points, points]), torch.cat([codes, codes]))
    of_means = Head.of_means(means, shots, torch.cat([points, points]), torch.cat([codes, codes]))
    assert (of_means.left_out.lead < 0).double().mean() < 0.4


def test_a_class_with_one_distinct_example_stays_in_training():
    points, codes, _, _ = clouds(10, 4)
    points[codes == 3] = points[codes == 3][:1]
    head = fit_head(points, codes, 10)
    assert set(head.left_out.rows.tolist()) == set((codes != 3).nonzero()[:, 0].tolist())
    assert torch.isfinite(head.offsets).all()


def test_wrong_labels_are_found_and_count_less():
    points, codes, items, truth = clouds(20, 6, noise=0.7)
    wrong = torch.arange(0, 120, 9)
    given = codes.clone()
    given[wrong] = (given[wrong] + 7) % 20
    head = fit_head(points, given, 20)
    assert head.wrong_share == pytest.approx(len(wrong) / 120, abs=0.06)
    found = set(head.left_out.rows[head.left_out.right < 0.5].tolist())
    assert len(found & set(wrong.tolist())) >= 0.8 * len(wrong)
    assert len(found - set(wrong.tolist())) <= 0.2 * len(found)
    looks_like = dict(zip(head.left_out.rows.tolist(), head.left_out.rival.tolist(), strict=True))
    assert sum(looks_like[row] == codes[row] for row in wrong.tolist()) >= 0.7 * len(wrong)
    assert head.mass.sum() < 120 - 0.6 * len(wrong)
    trusting = module._Training.planned(120, 20, 24, 1.0).fit(points, given, 20, None)
    assert accuracy(head, items, truth) > accuracy(trusting, items, truth)


def test_a_class_of_wrong_labels_keeps_some_weight():
    points, codes, _, _ = clouds(12, 6, noise=0.3)
    given = codes.clone()
    given[codes == 0] = torch.arange(1, 7)  # class 0 gets one example of each of six others
    given[torch.arange(6, 42, 6)] = 0
    head = fit_head(points, given, 12)
    assert head.mass.min() >= 1
    assert torch.isfinite(head.offsets).all()
    assert torch.isfinite(head.means).all()


@pytest.mark.parametrize("way", ["full", "near", "means"])
def test_numbers_of_examples_do_not_favour_a_class(way, monkeypatch):
    if way == "near":
        monkeypatch.setattr(module, "FULL_WORK", 0)
        monkeypatch.setattr(module, "RIVALS", 16)
    shots = torch.tensor([1, 2, 4, 20]).repeat(10)
    points, codes, items, truth = clouds(40, shots, noise=1.0)
    head = Head.of_means(*means_of(points, codes), points, codes) if way == "means" else fit_head(points, codes, 40)
    expected = torch.softmax(scores(head, items), 1).mean(0) * 40
    many, few = expected[shots == 20].mean(), expected[shots == 1].mean()
    assert 0.5 < few / many < 2
    assert accuracy(head, items, truth) > 0.6


def test_fewer_than_twenty_to_leave_out():
    points, codes, _, _ = clouds(30, torch.tensor([2] * 9 + [1] * 21))
    head = fit_head(points, codes, 30)
    assert (head.temperature, head.wrong_share, head.confidence) == (0.37, 0.0, None)
    assert len(head.left_out.rows) == 0
    assert head.spread is None


def test_scale_and_origin_of_the_features_do_not_matter():
    points, codes, items, _ = clouds(dtype=torch.float64)
    head = fit_head(points, codes, 20)
    expected = scores(head, items) * head.temperature
    for scale, shift in ((100.0, 0.0), (1.0, 3.0), (0.01, -1.0)):
        moved = fit_head(scale * points + shift, codes, 20, square_norm=scale**2)
        torch.testing.assert_close(
            scores(moved, scale * items + shift) * moved.temperature, expected, atol=1e-4, rtol=1e-4
        )
        # Folds follow the bits of the rows.
        assert moved.temperature == pytest.approx(head.temperature, rel=0.2)


def test_same_input_same_bits_whatever_the_random_state():
    points, codes, _, _ = clouds()
    torch.manual_seed(1)
    one = fit_head(points, codes, 20)
    torch.manual_seed(2)
    other = fit_head(points, codes, 20)
    assert torch.equal(one.weights, other.weights)
    assert torch.equal(one.offsets, other.offsets)
    assert torch.equal(one.left_out.right, other.left_out.right)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_odd_inputs_have_finite_answers(dtype):
    ones = torch.ones(30, 4, dtype=dtype)
    for points, codes, n_classes in (
        (ones[:1], torch.zeros(1).long(), 1),
        (torch.eye(30, dtype=dtype), torch.zeros(30).long(), 1),
        (ones, torch.arange(30) % 3, 3),
        (0 * ones, torch.arange(30) % 3, 3),
        (torch.eye(30, dtype=dtype), torch.arange(30), 30),
        (torch.eye(30, dtype=dtype), torch.arange(30) % 2, 2),
    ):
        for head in (fit_head(points, codes, n_classes), Head.of_means(*means_of(points, codes), points, codes)):
            assert head.weights.dtype == dtype
            assert all(bool(t.isfinite().all()) for t in (head.weights, head.offsets, head.means, head.mass))


def test_beyond_what_can_be_trained_the_means_are_the_head(monkeypatch):
    points, codes, items, truth = clouds()
    monkeypatch.setattr(module, "FULL_WORK", 0)
    monkeypatch.setattr(module, "NEAR_NUMBERS", 0)
    head = fit_head(points, codes, 20)
    of_means = Head.of_means(*means_of(points, codes), points, codes)
    assert torch.equal(head.weights, of_means.weights)
    torch.testing.assert_close(head.weights / head.weights.norm(), of_means.means / of_means.means.norm())
    assert accuracy(head, items, truth) > 0.8
    assert head.spread == pytest.approx(
        float(module._spread(module.TrainingRows(points, codes, len(head.means)), torch.ones(100))), rel=0.01
    )


def test_means_from_a_sample_have_about_the_slope_of_all():
    points, codes, _, _ = clouds(40, 10, noise=1.2)
    means, shots = means_of(points, codes)
    whole, some = (Head.of_means(means, shots, points[:n], codes[:n]) for n in (400, 100))
    assert some.temperature == pytest.approx(whole.temperature, rel=0.35)
    assert some.left_out.rows.tolist() == list(range(100))
    unknown = Head.of_means(means, shots, points[:0], codes[:0])
    assert (unknown.temperature, unknown.confidence, unknown.spread) == (1.0, None, None)


def test_where_folds_are_dear_one_of_them_is_left_out(monkeypatch):
    points, codes, _, _ = clouds()
    monkeypatch.setattr(module, "FOLDED_WORK", 0)
    head = fit_head(points, codes, 20)
    assert len(head.left_out.rows) == 20
    assert sorted(codes[head.left_out.rows].tolist()) == list(range(20))


def test_a_head_moves_as_a_whole():
    points, codes, _, _ = clouds()
    moved = fit_head(points, codes, 20).to("meta")
    assert all(
        t.device.type == "meta" for t in (moved.weights, moved.offsets, moved.means, moved.mass, *moved.left_out)
    )


def test_a_class_of_wrong_labels_alone_wins_nothing():
    """Every example of class 0 belongs to another class: its offset must not make it the class of everything."""
    generator = torch.Generator().manual_seed(3)
    means = torch.nn.functional.normalize(torch.randn(30, 24, generator=generator), dim=1)
    truth = torch.arange(30).repeat_interleave(5)
    truth[:5] = torch.tensor([7, 11, 13, 17, 19])

    def around(codes: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(
            means[codes] + 0.08 * torch.randn(len(codes), 24, generator=generator), dim=1
        )

    head = fit_head(around(truth), torch.arange(30).repeat_interleave(5), 30, 1.0)
    assert head.left_out.right[:5].max() < 0.2
    assert float(head.mass[0]) == pytest.approx(1, abs=0.2)
    fresh = torch.arange(1, 30).repeat_interleave(10)
    given = (around(fresh) @ head.weights.T + head.offsets).argmax(1)
    assert (given == 0).double().mean() < 0.05
    assert (given == fresh).double().mean() > 0.8
