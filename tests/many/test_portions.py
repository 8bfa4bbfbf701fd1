"""Portions: no group is cut, no row is left out, vectors in memory or in a file; answers are read as they were."""

import numpy as np
import pyarrow as pa
import pytest

from handful.estimators.answer import listed_classes
from handful.estimators.context import Known
from handful.many import portions as module
from handful.many.portions import is_saved, label, portions, save, saved
from tests.many_at_hand import world


@pytest.mark.parametrize("held", [1, 8, 20, 64, 10_000])
@pytest.mark.parametrize("at_once", [1, 7, 60])
def test_no_group_is_cut_and_no_row_is_left_out(monkeypatch, tmp_path, held, at_once):
    monkeypatch.setattr(module, "HELD_NUMBERS", held)
    sizes = np.array([3, 1, 1, 30, 2, 2, 9, 1, 11])
    groups, rows = np.arange(9).repeat(sizes), np.random.default_rng(0).permutation(60)
    vectors = np.stack([rows, -rows], 1).astype(np.float32)
    names = [f"group {group // 2}".encode() for group in groups]
    content = pa.array([vector.tobytes() for vector in vectors], pa.binary(8))
    columns = [pa.array(groups % 2), pa.array(names, pa.large_binary()), pa.array(rows), content]
    table = pa.Table.from_arrays(columns, ["key0", "key1", "row", "vector"])
    found = list(portions(table.to_batches(at_once), 2, 2, tmp_path))
    np.testing.assert_array_equal(np.concatenate([portion.rows for portion in found]), rows)
    np.testing.assert_array_equal(np.concatenate([portion.vectors for portion in found]), vectors)
    ends = np.concatenate([np.diff([*portion.starts, len(portion.rows)]) for portion in found])
    np.testing.assert_array_equal(ends, sizes)
    most = max(1, held // 2)
    assert all(portion.starts[-1] < most <= len(portion.rows) for portion in found[:-1])
    assert all(isinstance(portion.vectors, np.memmap) == (len(portion.rows) > 2 * most) for portion in found)


def test_classes_are_listed_if_they_may_be_present_and_answers_are_kept(tmp_path):
    given = world(20)
    _, firsts, groups = np.unique(given.groups, return_index=True, return_inverse=True)
    rows = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[rows], prepend=-1))
    portion = module.Portion(given.vectors[rows], rows, starts)
    answers = label(given.classifier.catalogue_, portion, Known(), tmp_path)
    found = given.classifier.infer(given.vectors, groups=groups)
    np.testing.assert_array_equal(given.classifier.classes_[answers[0]["label"]], found.labels[rows])
    wanted = listed_classes(found.expected_counts, found.presence)
    np.testing.assert_array_equal(np.stack([groups[answers[1]["row"]], answers[1]["class"]]), wanted)
    assert set(answers[1]["row"]) == set(firsts)
    save(tmp_path / "answers", answers, "run/0")
    assert is_saved(tmp_path / "answers", "run/0")
    assert not is_saved(tmp_path / "answers", "run/1")
    assert not is_saved(tmp_path / "nothing", "run/0")
    for array, again in zip(answers, saved(tmp_path / "answers"), strict=True):
        np.testing.assert_array_equal(array, again)
