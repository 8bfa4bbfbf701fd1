"""A decision from some rows labels all of them: in blocks of any size, and as in memory where all rows decide."""

import numpy as np

from handful.engine.head import fit_head
from handful.engine.model import Context, Reference, label_batch
from handful.large.decided import BatchTotals, DecidedRun, spread_rows


def world(n_items=300, seed=0):
    rng = np.random.default_rng(seed)
    centres, codes = rng.normal(size=(20, 16)), np.repeat(np.arange(20), 5)
    reference = Reference(fit_head(centres[codes] + 0.5 * rng.normal(size=(100, 16)), codes, 20))
    truth = rng.choice([2, 5, 11], n_items)
    return reference, (centres[truth] + 0.5 * rng.normal(size=(n_items, 16))), truth


def test_where_all_rows_decide_the_answer_is_that_of_a_batch_in_memory():
    reference, points, _ = world()
    run = DecidedRun.of(reference, 300, lambda rows: points[rows], Context())
    answers, packed = run.label(points, range(300))
    whole = label_batch(points, reference)
    assert (answers.labels[:, 0] == whole.probabilities.argmax(1)).all()
    np.testing.assert_allclose(BatchTotals.unpacked(packed).counts, whole.expected_counts, atol=1e-3)


def test_blocks_add_up_to_the_whole():
    reference, points, truth = world(3000)
    run = DecidedRun.of(reference, 3000, lambda rows: points[rows], Context())
    whole, packed = run.label(points, range(3000))
    parts = [
        run.label(points[start : start + 700], range(start, min(start + 700, 3000))) for start in range(0, 3000, 700)
    ]
    assert (np.concatenate([part.labels for part, _ in parts])[:, 0] == whole.labels[:, 0]).all()
    np.testing.assert_allclose(sum(sums for _, sums in parts), packed, rtol=1e-3, atol=1e-2)
    assert (whole.labels[:, 0] == truth).mean() > 0.9
    assert run.name == DecidedRun.of(reference, 3000, lambda rows: points[rows], Context()).name


def test_rows_are_spread_over_all():
    rows = spread_rows(10_000, 100)
    assert len(rows) == 100
    assert (np.diff(rows) > 0).all()
    assert rows[0] < 100
    assert rows[-1] >= 9_900
