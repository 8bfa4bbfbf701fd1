import numpy as np
import pytest

from handful.catalogue import Catalogue
from handful.engine.model import Context
from handful.large.answers import read_answers
from handful.large.decided import DecidedRun
from handful.large.shard import Work
from handful.machine.folders import LocalFolder
from tests.large_at_hand import large_problem


@pytest.fixture
def setting(tmp_path):
    problem = large_problem(even=True)
    catalogue = Catalogue.of_bank(problem.catalogue, "raw")
    work = Work(problem.queries, catalogue.origin, "raw", LocalFolder(tmp_path), "run", 150)
    return work, DecidedRun.of(catalogue.reference, 400, work.points, Context())


def test_shards_have_the_answers_and_totals_of_the_whole(setting):
    work, decided = setting
    assert work.n_shards == 3
    answers, totals = decided.label(work.points(np.arange(400)), range(400))
    assert [work.label(shard, decided) for shard in range(3)] == [0, 1, 2]
    parts = list(read_answers(work.folder))
    np.testing.assert_array_equal(np.concatenate([part["label"] for part in parts]), answers.labels[:, 0])
    np.testing.assert_array_equal(np.concatenate([part["runner_up"] for part in parts]), answers.labels[:, 1])
    probability = np.concatenate([part["probability"] for part in parts])
    np.testing.assert_allclose(probability, answers.values[:, 0], atol=1e-5)
    np.testing.assert_allclose(sum(work.totals(shard, decided) for shard in range(3)), totals, rtol=1e-3, atol=1e-2)


def test_a_shard_that_is_labelled_is_not_labelled_again(setting):
    work, decided = setting
    assert work.totals(1, decided) is None
    work.label(1, decided)
    written = [file.stat().st_mtime_ns for file in sorted(work.folder.path.glob("*/*"))]
    work.label(1, decided)
    assert [file.stat().st_mtime_ns for file in sorted(work.folder.path.glob("*/*"))] == written
    assert len(written) == 2


def test_a_block_is_written_where_it_belongs(setting, monkeypatch):
    work, decided = setting
    monkeypatch.setattr(DecidedRun, "block_rows", 7)
    work.label(2, decided)
    answers, _ = decided.label(work.points(np.arange(300, 400)), range(300, 400))
    part = _only(work)
    np.testing.assert_array_equal(part["label"], answers.labels[:, 0])
    np.testing.assert_array_equal(part["row"], np.arange(300, 400))


def _only(work):
    import pyarrow.parquet as parquet

    table = parquet.read_table(work.folder.path / "answers" / "part-000002.parquet")
    return {name: table[name].to_numpy() for name in table.column_names}
