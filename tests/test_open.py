"""handful.open: a person's work from Python, in the same file as on the page."""

import numpy as np
import pytest

import handful
from handful.errors import OptionError, StorageError
from tests.clouds_at_hand import clouds


@pytest.fixture
def birds(tmp_path):
    X, y = clouds(5, 4, noise=0.2)
    np.savez(tmp_path / "examples.npz", features=X, labels=y)
    np.savez(tmp_path / "monday.npz", features=clouds(3, 4, seed=1, noise=0.2)[0])
    with handful.open(tmp_path / "birds.handful", person="Ada") as birds:
        birds.add(tmp_path / "examples.npz", labelled=True)
        birds.add(tmp_path / "monday.npz")
        yield birds


def test_what_is_said_is_there_the_next_time(birds, tmp_path):
    session = birds.session()
    expected = ["class 00"] * 4 + ["class 01"] * 4 + ["class 02"] * 4
    assert session.result.labels.tolist() == expected
    session.answer([0, 1, 2, 3], "crab", new=True)
    birds.close()
    with handful.open(tmp_path / "birds.handful") as again:
        assert again.batches == ("examples", "monday")
        assert "crab" in again.classes
        assert again.session("monday").result.labels[:4].tolist() == ["crab"] * 4
        assert str(again.add(tmp_path / "monday.npz")) == "12 rows, nothing has changed"
        assert again.file.history.events[-1].person == "Ada"


def test_labelling_adds_nothing(birds, tmp_path):
    events = len(birds.file.history.events)
    batch = clouds(5, 2, seed=3, noise=0.2)
    np.save(tmp_path / "b.npy", batch[0])
    assert birds.label(tmp_path / "b.npy").labels.tolist() == batch[1].tolist()
    assert birds.label(tmp_path / "monday.npz").labels[0] == "class 00"
    birds.file.refresh()
    assert len(birds.file.history.events) == events


def test_what_has_no_path_needs_a_name(birds):
    with pytest.raises(OptionError, match="need a name"):
        birds.add(np.eye(16))
    birds.add(np.eye(16), name="tuesday")
    assert birds.batches[-1] == "tuesday"
    with pytest.raises(OptionError, match="would overwrite"):
        birds.add(birds.file.path)


def test_it_is_exported(birds, tmp_path):
    assert birds.export(tmp_path / "l.csv", batches=["monday"]).n_items == 12
    assert birds.export(tmp_path / "m.model").n_items == 5
    with pytest.raises(OptionError, match="no item that can be labelled"):
        birds.session("sunday")


def test_a_table_is_no_catalogue(tmp_path):
    with pytest.raises(StorageError, match="nowhere"):
        handful.open(tmp_path / "nowhere" / "c.handful")
