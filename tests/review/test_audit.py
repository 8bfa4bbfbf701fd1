"""The audit: intervals that cover, and an order that nobody can foresee but everybody gets again."""

import numpy as np
import pytest

from handful.review.audit import Audit, audit_is_due, audit_order


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("n_audited", [20, 60])
def test_the_interval_covers_the_share_about_as_often_as_it_says(share, n_audited):
    n_left, rng = 240, np.random.default_rng(0)
    wrong = rng.binomial(n_left, share, size=1000)
    found = rng.binomial(n_audited, share, size=1000)
    audits = [Audit.of(n_audited, int(w), n_left, n_left) for w in range(n_audited + 1)]
    covered = np.mean([audits[w].low <= t / n_left <= audits[w].high for w, t in zip(found, wrong, strict=True)])
    assert 0.84 <= covered <= 0.99


def test_more_audits_narrow_it_and_wrong_ones_raise_it():
    widths = [one.high - one.low for one in (Audit.of(n, n // 10, 500, 500) for n in (10, 40, 160))]
    assert widths == sorted(widths, reverse=True)
    assert Audit.of(30, 3, 200, 230).low > Audit.of(30, 0, 200, 230).low == 0


def test_without_audits_nothing_is_claimed_and_looking_at_everything_is_enough():
    assert Audit.of(0, 0, 100, 100)[2:] == (0.0, 1.0, False)
    assert Audit.of(0, 0, 0, 100).may_stop
    assert Audit.of(0, 0, 4, 100).may_stop  # even if all four are wrong
    assert not Audit.of(5, 0, 90, 95).may_stop
    assert Audit.of(60, 0, 200, 260).may_stop


def test_the_order_is_that_of_the_batch():
    order = audit_order("5d41", 100)
    assert sorted(order.tolist()) == list(range(100))
    assert audit_order("5d41", 100).tolist() == order.tolist()
    assert audit_order("5d42", 100).tolist() != order.tolist()


def test_a_quarter_of_the_questions_are_audits():
    audits = others = 0
    for _ in range(100):
        if audit_is_due(audits, others):
            audits += 1
        else:
            others += 1
    assert audits == 25
