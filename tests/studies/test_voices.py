"""The study of voices: recordings are as described, rules do what their names say."""

import numpy as np
import pytest

import voices as study


@pytest.fixture
def data(tmp_path):
    """Sixty voices, 25 utterances and 20 clips each, in the form of the data."""
    rng = np.random.default_rng(0)
    folder, centres = tmp_path / "audiomnist-speakers", rng.normal(size=(60, 16))
    folder.mkdir()
    for before, n in (("", 25), ("short", 20)):
        labels = np.arange(60).repeat(n)
        np.save(folder / f"{before or 'features'}.npy", centres[labels] + 0.2 * rng.normal(size=(60 * n, 16)))
        np.save(folder / f"{before + '_' * bool(before)}labels.npy", labels)
    return tmp_path


@pytest.mark.parametrize("kind", study.KINDS)
@pytest.mark.parametrize("strangers", study.STRANGERS)
def test_a_recording_is_as_described(data, kind, strangers):
    one = study.recording(data, kind, strangers, 0)
    there = set(one.truth.tolist()) - {study.UNKNOWN}
    gone = 60 - len(set(one.labels.tolist()))
    assert np.bincount(one.labels).max() == 3
    assert there <= set(one.labels.tolist())
    assert (one.truth == study.UNKNOWN).any() == (strangers != "none")
    assert (strangers == "all but one") == (len(there) == 1)
    assert gone == {"none": 0, "two": 2}.get(strangers, gone)
    assert 40 <= len(one.truth) <= 120
    # An enrolled segment is never one of the recording.
    assert not (one.segments[:, None] == one.examples).all(2).any()
    again = study.recording(data, kind, strangers, 0)
    np.testing.assert_array_equal(one.clusters, again.clusters)


def test_clusters_err_as_described():
    voice = np.arange(200).repeat(50)
    clusters = study.clusters_of(voice, np.random.default_rng(0))
    own = {k: np.bincount(clusters[voice == k]).argsort()[::-1][:2] for k in range(200)}
    assert np.mean([np.isin(clusters[voice == k], own[k]).mean() for k in own]) == pytest.approx(0.95, abs=0.02)
    assert 270 <= len(np.unique(clusters)) <= 330


def test_rules():
    examples = np.eye(3)
    segments = np.array([[1.0, 0.1, 0.0], [1.0, 0.3, 0.0], [0.1, 1.0, 0.0], [0.6, 0.5, 0.5]])
    one = study.Recording(examples, np.arange(3), segments, np.array([0, 0, 1, -1]), np.array([0, 0, 0, 1]))
    names, cosines = study.nearest(one, by_cluster=False)
    assert names.tolist() == [0, 0, 1, 0]
    assert cosines[0] == pytest.approx(1 / np.hypot(1, 0.1))
    assert study.nearest(one, by_cluster=True)[0].tolist() == [0, 0, 0, 0]
    at = study.threshold([one], by_cluster=False)
    assert cosines[3] < at <= cosines[1]
    assert study.figures(np.array([0, 2, 1, -1]), one.truth) == {"all": 75.0, "enrolled": 66.67, "strangers": 100.0}


def test_what_the_page_says_is_so():
    found = study.kept(study.RESULTS, study.KINDS)
    assert {len(rows) for of in found.values() for rows in of["cells"].values()} == {100}
    for kind in ("clips", "clips, enrolled by utterances"):
        assert study.ahead(found[kind]["cells"]["none"], "jointly", "none").above_zero
    for kind, of in found.items():
        mean = study.ahead(of["cells"]["none"], "jointly, sequence", "none")
        assert mean.mean > -mean.half_width or mean.mean >= 0, kind
        behind = study.ahead(of["cells"]["all but one"], "jointly", "all but one")
        assert behind.mean < -behind.half_width, kind
    two = study.ahead(found["utterances"]["cells"]["two"], "jointly", "two")
    assert two.mean > -two.half_width
