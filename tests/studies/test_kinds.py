"""The study of kinds: batches, the rule of the literature, what it asks for, and the page."""

import numpy as np

import kinds as study


def bank(n_kinds=90, size=45, dim=24, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_kinds, dim))
    labels = np.arange(n_kinds).repeat(size)
    return (centres[labels] + 0.3 * rng.normal(size=(len(labels), dim))).astype(np.float32), labels


def row(**changed):
    n_sessions = 2
    of_moments = {
        f"{moment}_{name}": [value] * n_sessions
        for moment, decisions, n in (("labels", 40, 2), ("stop", 50, 0), ("all", 55, 0), ("end", 56, 0))
        for name, value in (("decisions", decisions), ("missed", n), ("unlisted", n), ("wrong", n), ("unseen", n))
    }
    curve = [[[0, 10, 20], [0, 200, 305]]] * n_sessions
    return {"items": [305] * n_sessions, "kinds": [20] * n_sessions, **of_moments, "curve": curve} | changed


def way():
    stops = {"stop_decisions": [None, 60], "stop_missed": [None, 4], "stop_wrong": [None, 20]}
    return stops | {"curve": [[[1, 2], [40, 60]]] * 2}


def parts(**changed):
    names = [part.name for part in study.PARTS] + [study.CATALOGUE.name]
    found = {name: [row(**changed)] for name in names}
    return found | {name: [way()] for name in study.WAYS}


def test_a_batch_has_kinds_of_the_sizes_that_the_bank_can_give():
    _, labels = bank()
    found = study.drawn(labels, study.SIZES, np.random.default_rng(0), 5)
    counts = [int((labels[found.rows] == kind).sum()) for kind in found.kinds]
    assert counts == list(study.SIZES)
    assert [len(one) for one in found.spare] == [5] * 20
    assert not set(np.concatenate(found.spare)) & set(found.rows)
    _, few = bank(n_kinds=12, size=8)
    cut = study.drawn(few, study.SIZES, np.random.default_rng(0))
    assert len(cut.kinds) == 12
    assert max((few[cut.rows] == kind).sum() for kind in cut.kinds) == 8


def test_items_of_the_smallest_kinds_come_as_bursts():
    points, labels = bank()
    truth = [0] * 10 + [1] * 2 + [2]
    some = np.concatenate([points[labels == kind][: truth.count(kind)] for kind in (0, 1, 2)])
    found, kinds = study.with_bursts(some, truth, np.random.default_rng(0))
    assert [kinds.count(kind) for kind in (0, 1, 2)] == [10, 8, 4]
    centre = some.mean(0)
    burst = found[[at for at, kind in enumerate(kinds) if kind == 2]] - centre
    unit = burst / np.linalg.norm(burst, axis=1, keepdims=True)
    assert (unit @ unit.T).min() > 0.9


def test_a_session_is_followed_until_everything_is_seen():
    points, labels = bank(n_kinds=6, size=20)
    some = np.concatenate([np.flatnonzero(labels == kind)[:n] for kind, n in enumerate((15, 10, 5, 2, 1, 1))])
    session = study.Session(points[some])
    found = study.followed(session, labels[some].tolist(), 0.0, np.random.default_rng(0))
    assert (found["all_missed"], found["all_wrong"], found["all_unseen"]) == (0, 0, 0)
    assert found["labels_decisions"] <= found["stop_decisions"]
    assert found["all_decisions"] <= found["end_decisions"]
    kinds, right = found["curve"]
    assert (kinds[0], kinds[-1], right[-1]) == (0, 6, len(some))


def test_the_rule_of_the_literature_stops_when_nothing_changes():
    points, labels = bank(n_kinds=3, size=40)
    order = np.random.default_rng(0).permutation(len(points)).tolist()
    found = study.one_at_a_time(points, labels, lambda answered: order[len(answered)])
    assert study.ANSWERS < found["stop_decisions"] < len(points)
    assert (found["stop_missed"], found["stop_wrong"]) == (0, 0)
    assert found["curve"][0][-1] == 3


def test_the_page_has_a_line_for_each_part_and_the_file_every_session(monkeypatch):
    def kept(folder, names):
        return {"one": parts(), "two": parts()} if folder.name == "confirmation" else {}

    monkeypatch.setattr(study, "kept", kept)
    page = study.page()
    assert "| no examples | 305 | 4 | 40 | 4 (8) | 50 | 0 (0) | 0.0 | 55 | 0 (0) | 0.0 |" in page.table
    assert "a kind was never seen in 4 of 4 sessions; when the page says that one may stop, in 0." in page.shows
    assert "With typical items it stops in 2 of 4 sessions" in page.shows
    assert len(page.rows) == 4 * (len(study.PARTS) + 1 + len(study.WAYS))
    page.figure()
