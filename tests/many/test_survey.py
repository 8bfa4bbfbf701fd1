"""Survey: groups that lie together are found, one that comes back ends it."""

import numpy as np
import pyarrow as pa
import pytest

from handful.many import source as source_module
from handful.many import survey as survey_module
from handful.many.source import Source
from handful.many.survey import survey
from tests.many_at_hand import lists, written


def of(groups, tmp_path, n_files=1):
    table = pa.table({"g": groups, "v": lists(np.zeros((len(groups), 2), np.float32))})
    cuts = np.array_split(np.arange(len(groups)), n_files)
    return Source.of(written([table.take(cut) for cut in cuts], tmp_path / "in"), "g", None, 2)


@pytest.mark.parametrize("n_files", [1, 4])
@pytest.mark.parametrize("look", [1, 2**16])
def test_starts_of_groups(tmp_path, monkeypatch, n_files, look):
    monkeypatch.setattr(survey_module, "FIRST_LOOK", look)
    monkeypatch.setattr(source_module, "BATCH_ROWS", 3)
    groups = np.array([5, 5, 5, 2, 9, 9, 1, 1, 1, 1, 0, 7, 7])
    reports = []
    starts = survey(of(groups, tmp_path, n_files), lambda *report: reports.append(report))
    assert starts.tolist() == [0, 3, 4, 6, 10, 11]
    assert reports[-1] == (13, 13)


@pytest.mark.parametrize("look", [1, 2**16])
def test_a_group_that_comes_back(tmp_path, monkeypatch, look):
    monkeypatch.setattr(survey_module, "FIRST_LOOK", look)
    assert survey(of(np.array([5, 5, 2, 5]), tmp_path)) is None


def test_no_rows(tmp_path):
    assert len(survey(of(np.empty(0, np.int64), tmp_path))) == 0
