"""Many batches in one table: every group is labelled as it would be alone, rows keep their order, gaps are refused."""

import csv
import datetime
import json
from dataclasses import replace

import numpy as np
import pytest

from handful.classification import classify, write_predictions
from handful.classification.labelled import (
    GROUP_TYPES,
    PREDICTION_TYPES,
    class_names,
    group_names,
    group_table,
    is_judged,
    predictions,
    present_codes,
    rejected_items,
    unknown_summary,
)
from handful.datasets import load_clinc150
from handful.errors import BankError, LabelError, OptionError, TaskError
from handful.estimators import BatchClassifier
from tests.classification.test_steps import paint
from tests.items_at_hand import small_encoder, zipped

GONE = 2
# Classes of each site; the last one of "wood" is not in the catalogue.
SITES = {"marsh": (3, 17), "wood": (5, 11, GONE), "quay": (3, 20)}


def rows_of(bank):
    """Rows of each class, in random order: neighbours in the bank are alike."""
    rng = np.random.default_rng(0)
    return [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(31)]


@pytest.fixture(scope="module")
def rows():
    """Vectors, their sites and days, in mixed order, with the truth; the catalogue has 30 classes but one."""
    bank = load_clinc150()
    names, of_class = np.array(bank.class_names)[bank.labels], rows_of(bank)
    known = np.concatenate([of_class[k][:5] for k in range(31) if k != GONE])
    chosen, sites = [], []
    for site, classes in SITES.items():
        for k in classes:
            chosen.extend(of_class[k][10:22].tolist())
            sites.extend([site] * 12)
    order = np.random.default_rng(0).permutation(len(chosen))
    batch = np.array(chosen)[order]
    return {
        "known": bank.take(known).astype(np.float32),
        "labels": names[known],
        "batch": bank.take(batch).astype(np.float32),
        "site": np.array(sites)[order],
        "day": np.arange(len(batch)) % 2,
        "truth": names[batch],
        "gone": bank.class_names[GONE],
    }


@pytest.fixture
def files(tmp_path, rows):
    np.savez(tmp_path / "c.npz", features=rows["known"], labels=rows["labels"])
    np.savez(tmp_path / "b.npz", features=rows["batch"], site=rows["site"], day=rows["day"])
    return tmp_path


def test_every_group_is_labelled_as_it_would_be_alone(files, rows):
    found = classify(files / "c.npz", files / "b.npz", group_by="site")
    assert found.groups.tolist() == ["marsh", "quay", "wood"]
    assert [len(found[site]) for site in found] == [24, 24, 36]
    table = predictions(found)
    assert list(table)[:4] == ["row", "item", "site", "day"]
    assert table["row"] == list(range(84))
    assert table["site"] == rows["site"].tolist()
    known = rows["truth"] != rows["gone"]
    assert (np.array(table["label"]) == rows["truth"])[known].mean() > 0.9
    for site in SITES:
        mine = np.flatnonzero(rows["site"] == site)
        np.save(files / "one.npy", rows["batch"][mine])
        alone, of_site = classify(files / "c.npz", files / "one.npy"), found[site]
        assert of_site.about.batch.rows == mine.tolist()
        assert present_codes(of_site) == present_codes(alone) == present_codes(found, found.groups.tolist().index(site))
        one, other = of_site, alone
        np.testing.assert_allclose(one.expected_counts, other.expected_counts, atol=1e-3)
        np.testing.assert_allclose(one.presence, other.presence, atol=1e-4)
        np.testing.assert_allclose(one.certainty, other.certainty, atol=1e-4)
        np.testing.assert_allclose(one.unknown, other.unknown, atol=1e-4)
        assert [new.nearest for new in one.proposals] == [new.nearest for new in other.proposals]
        assert one.diagnostics == other.diagnostics
        assert [table["proposal"][i] for i in mine] == predictions(alone)["proposal"]
        assert [table["label"][i] for i in mine] == predictions(alone)["label"]


def test_unknown_items_are_counted_by_group(files):
    found = classify(files / "c.npz", files / "b.npz", group_by="site", expect_unknown=0.2)
    counts = rejected_items(found)
    assert counts.tolist() == [found[site].rejected.sum() for site in ("marsh", "quay", "wood")]
    assert counts.sum() > 0
    some = (counts > 0).sum()
    assert unknown_summary(found) == f"{counts.sum()} items look like none of your 30 classes, in {some} of 3 groups."
    none = np.zeros_like(found.rejected)
    wide = replace(found, rejected=none, unknown=np.full(84, 0.4))
    assert unknown_summary(wide).startswith("In some of the 3 groups: About 40% of the items may belong to none")
    silent = replace(found, rejected=none, unknown=np.full(84, np.nan))
    assert set(group_table(silent)["unknown_items"]) == {None}


@pytest.mark.parametrize("gone", [7, 25])
def test_a_third_of_a_batch_is_found_to_be_of_no_class(gone):
    bank = load_clinc150()
    of_class = rows_of(bank)
    known = np.concatenate([of_class[k][:5] for k in range(31) if k != gone])
    batch = np.concatenate([of_class[k][10:22] for k in (5, 11, gone)])
    classifier = BatchClassifier().fit(bank.take(known).astype(np.float32), bank.labels[known])
    assert classifier.infer(bank.take(batch).astype(np.float32)).rejected[24:].sum() >= 8


def test_several_columns_make_one_group_per_combination(files, rows):
    found = classify(files / "c.npz", files / "b.npz", group_by=["site", "day"])
    assert found.groups.tolist()[:3] == [("marsh", 0), ("marsh", 1), ("quay", 0)]
    assert group_names(found)[1] == "marsh, 1"
    table = predictions(found, [5, 2])
    assert list(table)[:5] == ["row", "item", "site", "day", "label"]
    assert table["day"] == [1, 0]
    assert found["wood", 1].about.batch.rows == np.flatnonzero((rows["site"] == "wood") & (rows["day"] == 1)).tolist()
    with pytest.raises(LabelError, match="there is no group 'wood'"):
        found["wood"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_tables_are_written(files, ending):
    pandas = pytest.importorskip("pandas")
    found = classify(files / "c.npz", files / "b.npz", group_by=["site", "day"])
    write_predictions(found, files / "deep" / f"labels.{ending}")
    assert {file.name for file in (files / "deep").iterdir()} == {f"labels.{ending}", f"labels.groups.{ending}"}
    read = getattr(pandas, f"read_{ending}")
    items, of_groups = read(files / "deep" / f"labels.{ending}"), read(files / "deep" / f"labels.groups.{ending}")
    assert items.columns.tolist() == ["row", "item", "site", "day", *list(PREDICTION_TYPES)[2:]]
    assert items["day"].tolist() == predictions(found)["day"]
    assert of_groups.columns.tolist() == ["site", "day", *GROUP_TYPES]
    first = of_groups.groupby(["site", "day"], sort=False).first().reset_index()
    assert list(zip(first["site"], first["day"], strict=True)) == found.groups.tolist()
    assert first["items"].tolist() == [len(found[site]) for site in found]
    assert first["unknown_items"].tolist() == rejected_items(found).tolist()
    largest = [class_names(found)[k] for k in found.expected_counts.argmax(1)]
    assert first["class"].tolist() == largest
    likely = of_groups[of_groups["presence"] >= 0.5]
    assert len(likely) == sum(len(present_codes(found, place)) for place in range(6))
    assert len(of_groups) == ((found.presence >= 0.02).sum())


def test_types_of_group_columns_are_kept(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    days = [datetime.date(2026, 11, 15), datetime.date(2026, 11, 14), datetime.date(2026, 11, 15)]
    sites = pa.array(["wood", "wood", "wood"]).dictionary_encode()
    table = pa.table({"v": np.eye(3, dtype=np.float32)[[0, 1, 0]].tolist(), "day": days, "site": sites})
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet")
    found = classify(tmp_path / "c.npz", tmp_path / "b.parquet", group_by=["day", "site"])
    assert found.groups.tolist() == [(days[1], "wood"), (days[0], "wood")]
    assert group_names(found)[0] == "2026-11-14, wood"
    write_predictions(found, tmp_path / "o.parquet")
    again = pyarrow.parquet.read_table(tmp_path / "o.parquet")
    assert again["day"].to_pylist() == days
    assert again["label"].to_pylist() == ["cat", "dog", "cat"]
    with pytest.raises(BankError, match=r"no column 'place' for the groups; it has day, site$"):
        classify(tmp_path / "c.npz", tmp_path / "b.parquet", group_by="place")


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """A catalogue of three colours; two folders of pictures, one of them with a broken file."""
    monkeypatch.setattr("handful.extraction.encoders.load_encoder", lambda name, device: small_encoder())
    for k, colour in enumerate(("red", "green", "blue")):
        for i in range(4):
            paint(tmp_path / "catalogue" / colour / f"{i}.png", colour, 10 * k + i)
    for i in range(5):
        paint(tmp_path / "cameras" / "wood" / "north" / f"{i}.png", "red", 100 + i)
        paint(tmp_path / "cameras" / "marsh" / f"{i}.png", "blue", 200 + i)
    (tmp_path / "cameras" / "marsh" / "2 broken.png").write_bytes(b"no picture")
    return tmp_path


def test_pictures_by_folder(pictures):
    archive = zipped(pictures / "cameras", pictures / "cameras.zip")
    for batch in (pictures / "cameras", archive):
        found = classify(pictures / "catalogue", batch, group_by="folder")
        assert found.groups.tolist() == ["marsh", "wood/north"]
        assert predictions(found["marsh"])["label"] == ["blue"] * 5
        assert predictions(found["marsh"])["row"] == [0, 1, 3, 4, 5]
        assert predictions(found)["folder"] == ["marsh"] * 5 + ["wood/north"] * 5
        assert [item.name for item in found.about.batch.skipped] == ["marsh/2 broken.png"]
        content = (pictures / "cameras" / "marsh" / "3.png").read_bytes()
        assert list(found["marsh"].about.batch.contents)[3] == content
        assert found.about.shown.classes[0] == "blue"
        assert classify(pictures / "catalogue", batch, group_by="folder:1").groups.tolist() == ["marsh", "wood"]


def test_a_folder_whose_pictures_cannot_be_read_is_no_group(pictures):
    (pictures / "cameras" / "empty").mkdir()
    (pictures / "cameras" / "empty" / "x.png").write_bytes(b"no picture")
    found = classify(pictures / "catalogue", pictures / "cameras", group_by="folder")
    assert found.groups.tolist() == ["marsh", "wood/north"]
    assert [item.name for item in found.about.batch.skipped] == ["empty/x.png", "marsh/2 broken.png"]


def test_pictures_in_a_table_with_groups(pictures):
    lines = [{"path": f"cameras/marsh/{i}.png", "site": "b" if i < 2 else "a"} for i in range(5)]
    (pictures / "batch.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = classify(pictures / "catalogue", pictures / "batch.jsonl", group_by="site")
    assert predictions(found)["site"] == ["b", "b", "a", "a", "a"]
    assert found["a"].about.batch.rows == [2, 3, 4]
    for asked, name in (("folder", "cameras/marsh"), ("folder:1", "cameras")):
        assert classify(pictures / "catalogue", pictures / "batch.jsonl", group_by=asked).groups.tolist() == [name]
    with pytest.raises(BankError, match=r"no column 'place' for the groups; it has path, site$"):
        classify(pictures / "catalogue", pictures / "batch.jsonl", group_by="place")


def test_vectors_whose_names_are_paths_by_folder(files, rows):
    paths = [f"{site}\\day {day}\\{i}.jpg" for i, (site, day) in enumerate(zip(rows["site"], rows["day"], strict=True))]
    np.savez(files / "paths.npz", features=rows["batch"], path=paths, number=np.arange(len(paths)))
    expected = predictions(classify(files / "c.npz", files / "b.npz", group_by="site"))
    found = predictions(classify(files / "c.npz", files / "paths.npz", group_by="folder:1"))
    assert found["folder:1"] == expected["site"]
    assert found["label"] == expected["label"]
    with pytest.raises(BankError, match="no column 'folder:1' for the groups; it has path, number"):
        classify(files / "c.npz", files / "paths.npz", group_by="folder:1", id_column="number")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("label", "the answers have a column 'label' of their own"),
        (["site", "items"], "the answers have a column 'items' of their own"),
        (["site", "site"], "one column or several different ones, got site, site"),
        ([], "one column or several different ones, got none"),
    ],
)
def test_columns_that_cannot_be_grouped_by_are_refused(files, asked, sentence):
    with pytest.raises(OptionError, match=sentence):
        classify(files / "c.npz", files / "b.npz", group_by=asked)


def test_rows_without_a_group_are_refused_by_their_number(files, rows):
    with (files / "b.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["text", "site"], ["one", "a"], ["two", ""]])
    (files / "c.csv").write_text("text,label\none,x\ntwo,y\n")
    with pytest.raises(TaskError, match=r"b\.csv: 1 row has no 'site' and so no group, the first is row 1; fill in"):
        classify(files / "c.csv", files / "b.csv", group_by="site")


def test_a_small_catalogue_knows_nothing_of_unknown_items(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    np.savez(tmp_path / "b.npz", features=np.eye(3)[[1, 1, 0]], site=["x", "x", "y"])
    found = classify(tmp_path / "c.npz", tmp_path / "b.npz", group_by="site")
    assert not is_judged(found)
    assert unknown_summary(found) == unknown_summary(found["x"]) == found.unknown_reason
    assert "cannot be judged" in unknown_summary(found)
    assert predictions(found)["unknown"] == [None] * 3
    assert not is_judged(found["x"])
    assert rejected_items(found).tolist() == [0, 0]


def test_answers_of_groups_know_what_each_item_would_be_alone(tmp_path):
    examples = np.eye(4).repeat(3, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(12, 4))
    labels = np.array(["ant", "bee", "cat", "dog"]).repeat(3)
    np.savez(tmp_path / "c.npz", features=examples, labels=labels)
    np.savez(tmp_path / "b.npz", features=examples[:9], site=["a"] * 4 + ["b"] * 5)
    found = classify(tmp_path / "c.npz", tmp_path / "b.npz", group_by="site")
    single = BatchClassifier().fit(examples, labels).infer(examples[:9])
    assert found.alone.tolist() == single.alone.tolist()
    assert found["b"].alone.tolist() == single.alone[4:].tolist()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    drawn = found["a"].plot()
    assert "each alone" in drawn.get_legend_handles_labels()[1]
    pytest.importorskip("matplotlib.pyplot").close(drawn.figure)
