from pathlib import Path

import numpy as np
import pytest
import torch

from handful.catalogue import Catalogue
from handful.large import shard
from handful.large.answers import read_answers
from handful.large.candidates import Contenders
from handful.large.shard import Work
from handful.numerics.moments import soft_moments
from tests.large_at_hand import large_problem

SCALE = 2.0


@pytest.fixture
def setting(tmp_path):
    problem = large_problem()
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    points = torch.from_numpy(problem.queries.features) - catalogue.origin

    def work(list_length: int, shard_rows: int = 150) -> Work:
        folder = tmp_path / f"{list_length}-{shard_rows}"
        folder.mkdir(exist_ok=True)
        return Work(problem.queries, catalogue.origin, "raw", folder, shard_rows, list_length)

    return work, points, Contenders.of(catalogue.means, SCALE)


def posteriors(contenders, points, tilts):
    return (contenders.scores(points)[:, : contenders.n_classes] + tilts).softmax(-1)


def test_shards_add_up_to_the_dense_counts_and_moments(setting):
    make, points, contenders = setting
    work = make(60)
    assert work.n_shards == 3
    tilts = torch.randn(60, generator=torch.Generator().manual_seed(1))
    u = posteriors(contenders, points, tilts)
    dense = soft_moments(points[None], u[None])
    counts, sums = torch.zeros(60, dtype=torch.float64), torch.zeros(60, points.shape[1])
    log_normaliser = 0.0
    for number in range(3):
        dropped = work.compare(number, "all", contenders, True)
        assert dropped.mass < 1e-6 * dropped.n_measured
        part = work.count(number, "all", tilts, 1.0)
        counts += part.counts
        log_normaliser += part.log_normaliser
        moments = work.moments(number, "all", tilts, 1.0)
        sums[moments.classes] += moments.sums
    torch.testing.assert_close(counts.float(), u.sum(0), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(sums, dense.sums[0], atol=1e-3, rtol=1e-3)
    logits = contenders.scores(points)[:, :60] + tilts
    assert log_normaliser == pytest.approx(float(logits.logsumexp(-1).sum()), rel=1e-5)


def test_a_factor_rescales_the_lists(setting):
    make, points, contenders = setting
    work = make(60, 400)
    work.compare(0, "all", contenders, True)
    softer = Contenders(contenders.prototypes / 2, contenders.half_norms / 2, 60)
    expected = posteriors(softer, points, 0).sum(0)
    torch.testing.assert_close(
        work.count(0, "all", torch.zeros(60), 0.5).counts.float(), expected, atol=1e-3, rtol=1e-3
    )


def test_dropped_mass_is_what_is_outside_the_lists(setting):
    make, points, sharp = setting
    contenders = Contenders(sharp.prototypes / 20, sharp.half_norms / 20, 60)  # soft, so that lists drop something
    work = make(5, 400)
    dropped = work.compare(0, "all", contenders, True)
    outside = 1 - posteriors(contenders, points, 0).topk(5).values.sum(-1)[::8]
    assert dropped.n_measured == 50
    assert dropped.mass == pytest.approx(float(outside.sum()), rel=1e-3)
    assert dropped.largest == pytest.approx(float(outside.max()), rel=1e-3)
    assert dropped.log_ratio == pytest.approx(float(-torch.log1p(-outside).sum()), rel=1e-3)


def test_lists_that_are_there_are_not_made_again(setting):
    make, _, contenders = setting
    work = make(5, 400)
    first = work.compare(0, "all", contenders, True)
    file = Path(work.folder) / "lists-all" / "000000.npy"
    written = file.stat().st_mtime_ns
    assert work.compare(0, "all", contenders, True) == first
    assert file.stat().st_mtime_ns == written


def test_a_shard_of_paddle_is_its_dense_step(setting):
    make, points, contenders = setting
    dual = torch.randn(60, generator=torch.Generator().manual_seed(2))
    mass, sums = make(5, 400).step(0, contenders, dual, 1.0)
    u = posteriors(contenders, points, dual)
    torch.testing.assert_close(mass.float(), u.sum(0), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(sums.float(), u.T @ points, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("list_length", [3, 60])
def test_answers_come_from_all_contenders_or_from_the_lists(setting, list_length, monkeypatch):
    monkeypatch.setattr(shard, "PRODUCT_ADVANTAGE", 16)
    make, points, contenders = setting
    work = make(list_length, 400)
    work.compare(0, "all", contenders, True)
    tilts = torch.zeros(60)
    numbers = torch.arange(100, 160)
    held = work.answer(0, "all", contenders, tilts, numbers)
    assert float(held.counts.sum()) == pytest.approx(400, rel=1e-5)
    (found,) = read_answers(work.folder)
    u = posteriors(contenders, points, tilts)
    best = u.topk(2)
    assert (found["label"] == best.indices[:, 0].numpy() + 100).all()
    assert (found["runner_up"] == best.indices[:, 1].numpy() + 100).all()
    slack = 1e-4 if list_length == 60 else 0.2  # what is outside the lists is shared out
    np.testing.assert_allclose(found["probability"], best.values[:, 0], atol=slack)
    expected = 1 - (1 - u.double()).prod(0)
    np.testing.assert_allclose(1 - held.log_absence.exp(), expected, atol=slack)
    assert found["row"].tolist() == list(range(400))


def test_a_single_contender_has_no_runner_up(setting):
    make, _, contenders = setting
    work = make(60, 400)
    held = work.answer_all(0, Contenders.of(contenders.prototypes[:1], 1.0), torch.zeros(1), torch.tensor([7]))
    (found,) = read_answers(work.folder)
    assert (found["label"] == 7).all()
    assert (found["runner_up"] == -1).all()
    assert (found["runner_up_probability"] == 0).all()
    assert held.log_absence.tolist() == [-torch.inf]


def test_who_would_return_takes_what_its_logits_say(setting):
    make, points, contenders = setting
    work = make(60, 400)
    work.compare(0, "all", contenders, True)
    living = torch.arange(0, 60, 2)
    of_living = Contenders.of(contenders.prototypes[living] / SCALE, SCALE)
    work.compare(0, "living", of_living, False)
    tilts = torch.full((60,), -3.0)
    logits = contenders.scores(points)[:, :60] + tilts
    expected = (logits - logits[:, living].logsumexp(-1, keepdim=True)).clamp(max=0).exp().sum(0)
    expected[living] = 0
    found = work.returning(0, "all", "living", tilts, 1.0, living)
    torch.testing.assert_close(found.float(), expected, atol=1e-3, rtol=1e-3)


def test_growth_of_a_class_that_left(setting):
    make, points, contenders = setting
    work = make(60, 400)
    work.compare(0, "all", contenders, True)
    living = torch.arange(0, 60, 2)
    outside = torch.ones(60).index_fill_(0, living, 0)
    log_shares = torch.full((30,), 1 / 30).log()
    scores = contenders.scores(points)[:, :60]
    mixture = (scores[:, living] + log_shares).logsumexp(-1, keepdim=True)
    expected = (scores - mixture).exp().sum(0) * outside
    of_living = Contenders.of(contenders.prototypes[living] / SCALE, SCALE)
    found = work.growth(0, "all", of_living, 1 + log_shares, outside)
    torch.testing.assert_close(found.float(), expected, atol=1e-2, rtol=1e-3)
