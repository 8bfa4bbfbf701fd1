"""Unknown items of a streamed batch: the chances of a batch in memory before it is labelled again."""

from functools import cache

import numpy as np
import pytest
import torch

from handful.banks import FeatureBank
from handful.catalogue import Catalogue
from handful.inference import open_roll_call
from handful.inference.roll_call_stack import label
from handful.inference.unknown_share import Share
from handful.large import solve, unknown
from handful.large.candidates import Contenders, exact_lists
from handful.large.crew import in_process
from handful.large.progress import Progress
from handful.large.unknown import Background, Verdict
from tests.kills_at_hand import differences
from tests.large_at_hand import large_problem


@cache
def batch(n_gone: int = 2, n_query: int = 400, n_classes: int = 60) -> tuple[Catalogue, FeatureBank, np.ndarray]:
    """A fitted catalogue without some of the classes present, the queries, and which of them have no class."""
    problem = large_problem(n_classes=n_classes, n_query=n_query, n_present=8, apart=3.0, even=True)
    gone = np.unique(problem.truth)[:n_gone]
    kept = np.setdiff1d(np.arange(n_classes), gone)
    fitted = Catalogue.of_bank(problem.catalogue.classes(kept), "l2")
    return fitted, problem.queries, np.isin(problem.truth, gone)


def in_memory(catalogue: Catalogue, queries: FeatureBank) -> Share:
    """The first round: what is known before the batch is labelled again."""
    against = catalogue.against(torch.from_numpy(queries.features).unsqueeze(0))
    closed = label(against, max_iter=200, tol=1e-3)
    look = open_roll_call._Look.at(against, catalogue.strangers, closed.expected_counts)
    return look.share(closed.offset, closed.tilts)


def chances(found) -> np.ndarray:
    return np.concatenate([part["unknown"] for part in found.answers()])


def area(found: np.ndarray, strange: np.ndarray) -> float:
    return float((found[strange][:, None] > found[~strange]).mean())


@pytest.mark.parametrize("n_gone", [0, 2])
@pytest.mark.parametrize("linked", [2048, 150])
def test_one_shard_gives_the_chances_of_a_batch_in_memory(n_gone, linked, tmp_path, monkeypatch):
    for module in (open_roll_call, unknown):
        monkeypatch.setattr(module, "MOST_LINKED", linked)
    catalogue, queries, strange = batch(n_gone)
    expected = in_memory(catalogue, queries)
    found = solve(catalogue, queries, tmp_path / "run")
    np.testing.assert_allclose(chances(found), expected.chances[0], atol=1e-4)
    assert found.unknown_share == pytest.approx(float(expected.chances.mean()), abs=1e-4)
    assert found.unknown_interval == pytest.approx(tuple(expected.interval[0].tolist()))
    assert found.is_open == bool(expected.evidence > 3) == (n_gone > 0)
    assert found.rejected().tolist() == (found.is_open & (chances(found) > 0.5)).tolist()
    if n_gone:
        assert area(chances(found), strange) > 0.95
        assert found.unknown_share == pytest.approx(strange.mean(), abs=0.1)
    else:
        assert not found.rejected().any()


def test_several_shards_and_shorter_lists_give_nearly_the_same(tmp_path):
    catalogue, queries, strange = batch(n_query=1200)
    whole = solve(catalogue, queries, tmp_path / "whole")
    parts = solve(catalogue, queries, tmp_path / "parts", shard_rows=300, list_length=12)
    assert np.abs(chances(parts) - chances(whole)).mean() < 0.05
    assert (parts.rejected() == whole.rejected()).mean() > 0.95
    assert area(chances(parts), strange) > 0.95
    assert parts.unknown_share == pytest.approx(whole.unknown_share, abs=0.05)
    assert parts.is_open


def test_labels_are_those_of_the_closed_answer(tmp_path):
    catalogue, queries, _ = batch()
    closed = label(
        catalogue.against(torch.from_numpy(queries.features).unsqueeze(0)), max_iter=200, tol=1e-3
    ).log_probabilities[0]
    found = solve(catalogue, queries, tmp_path / "run")
    np.testing.assert_array_equal(found.labels(), closed.argmax(-1))
    np.testing.assert_allclose(found.expected_counts, closed.exp().sum(0), atol=1e-2)


def test_any_number_of_workers_gives_the_same_bits(tmp_path):
    catalogue, queries, _ = batch()
    one, two = (
        solve(catalogue, queries, tmp_path / str(workers), shard_rows=90, executor=in_process(workers))
        for workers in (1, 2)
    )
    assert differences(one, two) == []
    assert not np.isnan(chances(one)).any()


@pytest.mark.parametrize("shards_done", [1, 3])
@pytest.mark.parametrize("stage", ["look", "answer"])
def test_an_interrupted_run_goes_on_to_the_same_chances(stage, shards_done, tmp_path, monkeypatch):
    catalogue, queries, _ = batch()
    whole = solve(catalogue, queries, tmp_path / "whole", shard_rows=90)
    looked = []

    def stop(progress: Progress) -> None:
        looked.append(progress.stage)
        if progress.stage == stage and "look" in looked and progress.done == shards_done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(catalogue, queries, tmp_path / "broken", shard_rows=90, on_progress=stop)
    made = len(list((tmp_path / "broken").glob("lists-unknown-*/*.npy")))
    assert made == (shards_done if stage == "look" else 5)
    again = []
    original = Background.looks
    monkeypatch.setattr(Background, "looks", lambda *given: again.append(1) or original(*given))
    assert differences(solve(catalogue, queries, tmp_path / "broken", shard_rows=90), whole) == []
    assert len(again) == 5 - made


def test_what_cannot_tell_says_so(tmp_path):
    problem = large_problem(shots=1)
    for method in ("roll_call", "paddle"):
        found = solve(problem.catalogue, problem.queries, tmp_path / method, method=method)
        assert np.isnan(chances(found)).all()
        assert (found.unknown_share, found.unknown_interval, found.is_open) == (None, (0.0, 1.0), False)
        assert not found.rejected().any()


def background(tilts=None) -> tuple[Background, torch.Tensor, Contenders]:
    catalogue, queries, _ = batch()
    head = catalogue.head
    points = catalogue.against(torch.from_numpy(queries.features).unsqueeze(0)).points[0]
    counts = torch.full((len(head.means),), 5.0, dtype=torch.float64)
    tilts = torch.zeros(len(head.means), dtype=torch.float64) if tilts is None else tilts
    offset = torch.zeros(points.shape[1], dtype=torch.float64)
    made = Background.of(head, catalogue.strangers, offset, tilts, counts)
    return made, points, Contenders.of(head.weights, head.offsets)


def test_evidence_of_parts_adds_up_to_that_of_all():
    made, points, contenders = background()
    looks = made.looks(points, exact_lists(points, contenders, 20))
    whole = made.evidence(looks)
    first, second = (
        made.evidence(unknown.Looks(*(part[some] for part in looks))) for some in (slice(150), slice(150, None))
    )
    added = first.with_part(second)
    assert added.sizes == pytest.approx(whole.sizes)
    for one, other in zip(added.cases, whole.cases, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-3)
    verdict = Verdict.of(made, whole)
    torch.testing.assert_close(Verdict.of(made, added).chances(looks), verdict.chances(looks), atol=1e-4, rtol=0)
    assert not verdict.alone


def test_another_background_has_another_name():
    made, *_ = background()
    assert made.name == background()[0].name
    assert made.name != background(torch.ones(58, dtype=torch.float64))[0].name


def test_copies_are_not_more_evidence():
    made, points, contenders = background()
    copies = points[:1].repeat(12, 1)
    looks = made.looks(copies, exact_lists(copies, contenders, 20))
    torch.testing.assert_close(looks.n, torch.ones(12, dtype=torch.float64), atol=1e-6, rtol=0)
    assert float(looks.weights.sum()) == pytest.approx(1)


def test_an_item_whose_classes_hold_nothing_is_still_compared():
    made, points, contenders = background()
    empty = Background(**{**vars(made), "tilts": torch.full_like(made.tilts, -torch.inf)})
    assert bool(empty.looks(points, exact_lists(points, contenders, 20)).t.isfinite().all())


def test_copies_of_a_known_item_stay_known(tmp_path):
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(10, 12)), np.arange(10).repeat(5)
    X = centres[y] + 0.3 * rng.normal(size=(50, 12))
    item = (centres[1] + 0.3 * rng.normal(size=12)).astype(np.float32)
    for n in (1, 10, 11, 50):
        found = solve((X.astype(np.float32), y), np.tile(item, (n, 1)), tmp_path / str(n))
        assert found.unknown_share < 0.1
        assert not found.rejected().any()
