import numpy as np
import pytest
import torch

from handful.catalogue import Catalogue
from handful.large.answers import read_answers
from handful.large.candidates import Contenders
from handful.large.shard import Work
from handful.machine.folders import LocalFolder
from handful.numerics.moments import soft_moments
from tests.large_at_hand import large_problem


@pytest.fixture
def setting(tmp_path):
    problem = large_problem()
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    points = torch.from_numpy(problem.queries.features) - catalogue.origin

    def work(list_length: int, shard_rows: int = 150) -> Work:
        folder = tmp_path / f"{list_length}-{shard_rows}"
        folder.mkdir(exist_ok=True)
        return Work(
            problem.queries, catalogue.origin, "raw", LocalFolder(folder), folder, "run", shard_rows, list_length
        )

    return (
        work,
        points,
        Contenders.of(torch.from_numpy(catalogue.head.weights), torch.from_numpy(catalogue.head.offsets)),
    )


def posteriors(contenders, points, tilts):
    return (contenders.scores(points)[:, : contenders.n_classes] + tilts).softmax(-1)


def soft(contenders):
    """The same classes with scores so small that lists drop something."""
    return Contenders(contenders.weights / 20, contenders.offsets / 20, contenders.n_classes)


def test_shards_add_up_to_the_dense_moments(setting):
    make, points, contenders = setting
    work = make(60)
    assert work.n_shards == 3
    tilts = torch.randn(60, generator=torch.Generator().manual_seed(1))
    u = posteriors(contenders, points, tilts)
    dense = soft_moments(points[None], u[None])
    counts, sums = torch.zeros(60, dtype=torch.float64), torch.zeros(60, points.shape[1])
    for number in range(3):
        dropped = work.compare(number, "all", contenders)
        assert dropped.mass < 1e-6 * dropped.n_measured
        moments = work.moments(number, "all", tilts)
        counts[moments.classes] += moments.mass
        sums[moments.classes] += moments.sums
    torch.testing.assert_close(counts.float(), u.sum(0), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(sums, dense.sums[0], atol=1e-3, rtol=1e-3)


def test_dropped_mass_is_what_is_outside_the_lists(setting):
    make, points, sharp = setting
    contenders = soft(sharp)
    work = make(5, 400)
    dropped = work.compare(0, "all", contenders)
    outside = 1 - posteriors(contenders, points, 0).topk(5).values.sum(-1)[::8]
    assert dropped.n_measured == 50
    assert dropped.mass == pytest.approx(float(outside.sum()), rel=1e-3)
    assert dropped.largest == pytest.approx(float(outside.max()), rel=1e-3)


def test_lists_that_are_there_are_not_made_again(setting):
    make, _, contenders = setting
    work = make(5, 400)
    first = work.compare(0, "all", contenders)
    file = work.lists / "lists-all" / "000000.npy"
    written = file.stat().st_mtime_ns
    assert work.compare(0, "all", contenders) == first
    assert file.stat().st_mtime_ns == written


def test_a_shard_of_paddle_is_its_dense_step(setting):
    make, points, contenders = setting
    dual = torch.randn(60, generator=torch.Generator().manual_seed(2))
    mass, sums = make(5, 400).step(0, contenders, dual, 1.0)
    u = posteriors(contenders, points, dual)
    torch.testing.assert_close(mass.float(), u.sum(0), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(sums.float(), u.T @ points, atol=1e-3, rtol=1e-3)


def test_answers_of_paddle_come_from_all_contenders(setting):
    make, points, sharp = setting
    contenders, work = soft(sharp), make(3, 400)
    tilts = torch.randn(60, generator=torch.Generator().manual_seed(3))
    counts, log_absence = work.answer_all(0, contenders, tilts, torch.arange(100, 160))
    u = posteriors(contenders, points, tilts)
    (found,) = read_answers(work.folder)
    np.testing.assert_array_equal(found["label"], u.argmax(-1) + 100)
    np.testing.assert_allclose(found["probability"], u.amax(-1), atol=1e-5)
    torch.testing.assert_close(counts.float(), u.sum(0), atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(log_absence, torch.log1p(-u.double()).sum(0), atol=1e-3, rtol=1e-4)


def test_a_single_contender_has_no_runner_up(setting):
    make, points, _ = setting
    single = Contenders.of_prototypes(points[:1])
    work = make(60, 400)
    held = work.answer_all(0, single, torch.zeros(1), torch.tensor([7]))
    (found,) = read_answers(work.folder)
    assert (found["label"] == 7).all()
    assert (found["runner_up"] == -1).all()
    assert (found["runner_up_probability"] == 0).all()
    assert held[0].tolist() == [400]


def test_growth_of_a_class_that_left(setting):
    make, points, contenders = setting
    work = make(60, 400)
    work.compare(0, "all", contenders)
    living = torch.arange(0, 60, 2)
    outside = torch.ones(60).index_fill_(0, living, 0)
    log_shares = torch.full((30,), 1 / 30).log()
    scores = contenders.scores(points)[:, :60]
    mixture = (scores[:, living] + log_shares).logsumexp(-1, keepdim=True)
    expected = (scores - mixture).exp().sum(0) * outside
    of_living = Contenders.of(contenders.weights[living], contenders.offsets[living])
    found = work.growth(0, "all", of_living, 1 + log_shares, outside)
    torch.testing.assert_close(found.float(), expected, atol=1e-2, rtol=1e-3)
