"""Runs over partitions: every layout, what is done again, and data sets that nobody prepared."""

import json
import logging
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from handful.errors import BankError, HandfulError, OptionError, PartitionsError, TaskError
from handful.scale import label_table, plan, run, spill
from handful.scale.labeller import LINEAGE
from handful.workers import here
from tests.scale_at_hand import SAME, assert_same, lists, world

KEYS = ("site", "day")


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    return world(tmp_path_factory.mktemp("world"))


def days(birds, n_days=4):
    """The table with a day for each site, so that days hold complete groups."""
    sites = np.unique(birds.sites)
    day = {site: f"2026-01-{1 + number % n_days:02}" for number, site in enumerate(sites)}
    return birds.table(day=[day[site] for site in birds.sites])


def as_folders(table, place):
    """Hive folders by day."""
    for day in table["day"].unique().to_pylist():
        folder = place / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(table.filter(pc.equal(table["day"], day)).drop_columns("day"), folder / "rows.parquet")
    return place


def as_files(table, place, n_files=5, seed=0):
    """Files in which rows of a group are scattered."""
    place.mkdir(parents=True)
    file_of = np.random.default_rng(seed).integers(0, n_files, len(table))
    for number in range(n_files):
        pq.write_table(table.filter(pa.array(file_of == number)), place / f"part-{number}.parquet")
    return place


def as_nested_folders(table, place):
    """Hive folders by day and site, with rows of each in three files, in another order."""
    mixed = table.take(np.random.default_rng(2).permutation(len(table)))
    by_both = ds.partitioning(mixed.select(["day", "site"]).schema, flavor="hive")
    for number in range(3):
        part = mixed.take(list(range(number, len(mixed), 3)))
        names = f"{number}-{{i}}.parquet"
        ds.write_dataset(
            part,
            place,
            basename_template=names,
            format="parquet",
            partitioning=by_both,
            existing_data_behavior="overwrite_or_ignore",
        )
    return place


def labelled(out, *keys):
    """The two tables of a run, columns in one order."""
    tables = []
    for kind in ("items", "groups"):
        table = ds.dataset(out / kind, partitioning=ds.partitioning(flavor="hive")).to_table()
        tables.append(table.select(sorted(table.column_names)))
    return tables


def expected(table, model, **options):
    found = label_table(table, model, KEYS, **options)
    return [one.select(sorted(one.column_names)) for one in found]


def assert_labelled(out, table, model, **options):
    items, groups = labelled(out)
    for found, wanted, by in zip(
        (items, groups), expected(table, model, **options), (["id"], ["site", "class"]), strict=True
    ):
        assert_same(found, wanted, *by)


def go(data, birds, out, **options):
    return run(data, birds.path, out, **{"group_by": KEYS, "workers": here(), **options})


@pytest.mark.parametrize("share", [None, 0.2])
def test_folders_files_and_scattered_rows_have_the_tables_of_memory(birds, tmp_path, share, monkeypatch):
    """Also with a share that was told, and cut in any way; the order of the rows is that of the files."""
    table = days(birds)
    single = tmp_path / "single.parquet"
    pq.write_table(table.take(np.random.default_rng(1).permutation(len(table))), single)
    sources = {
        "folders": as_folders(table, tmp_path / "folders"),
        "nested": as_nested_folders(table, tmp_path / "nested"),
        "scattered": as_files(table, tmp_path / "scattered"),
        "others": as_files(table, tmp_path / "others", 2, 3),
        "single": single,
    }
    monkeypatch.setattr(plan, "HELD_NUMBERS", 16 * 40)  # so that there are several buckets
    for name, source in sources.items():
        found = go(source, birds, tmp_path / "out" / name, expect_unknown=share)
        assert found.rows == len(table), name
        assert_labelled(tmp_path / "out" / name, table, birds.path, expect_unknown=share)
        assert go(source, birds, tmp_path / "out" / name, expect_unknown=share).labelled == ()
    assert len(list((tmp_path / "out/scattered/items").iterdir())) > 2
    left = list((tmp_path / "out/scattered/_handful").rglob("*.arrow"))
    assert left == []


def test_what_does_not_fit_in_memory_has_the_same_tables(birds, tmp_path, monkeypatch):
    """Groups go through a disk, and a group that is too large itself is decided by a sample, and mapped."""
    table = days(birds, 1)
    place = tmp_path / "rows.parquet"
    pq.write_table(table, place, row_group_size=37)
    monkeypatch.setattr(spill, "HELD_NUMBERS", 16 * 60)
    monkeypatch.setattr(spill, "BLOCK_NUMBERS", 16 * 13)
    go(place, birds, tmp_path / "out", group_by=KEYS)
    assert_labelled(tmp_path / "out", table, birds.path)


def test_only_what_changed_is_done_again(birds, tmp_path):
    table = days(birds)
    data, out = as_folders(table, tmp_path / "data"), tmp_path / "out"
    late = shutil.move(data / "day=2026-01-04", tmp_path / "late")
    assert go(data, birds, out).labelled == tuple(f"day=2026-01-0{day}" for day in (1, 2, 3))
    shutil.move(late, data / "day=2026-01-04")  # a day is appended
    assert go(data, birds, out).labelled == ("day=2026-01-04",)
    os.utime(data / "day=2026-01-02/rows.parquet")  # touched, and the content is as it was
    os.rename(data / "day=2026-01-03/rows.parquet", data / "day=2026-01-03/other.parquet")
    found = go(data, birds, out)
    assert (found.labelled, len(found.unchanged)) == ((), 4)
    damaged = out / "items/day=2026-01-03/labelled.parquet"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    (out / "groups/day=2026-01-01/labelled.parquet").unlink()
    assert go(data, birds, out).labelled == ("day=2026-01-01", "day=2026-01-03")  # two of eight files are repaired
    assert_labelled(out, table, birds.path)
    rows = pq.read_table(data / "day=2026-01-01/rows.parquet", partitioning=None)
    pq.write_table(rows.slice(3), data / "day=2026-01-01/rows.parquet")  # an old day is corrected
    assert go(data, birds, out).labelled == ("day=2026-01-01",)
    kept = table.filter(pc.invert(pc.is_in(table["id"], rows["id"].slice(0, 3))))
    assert_labelled(out, kept, birds.path)
    shutil.rmtree(data / "day=2026-01-01")
    found = go(data, birds, out)
    assert (found.gone, found.labelled) == (("day=2026-01-01",), ())
    assert (out / "items/day=2026-01-01/labelled.parquet").exists()


def test_a_file_more_labels_only_the_buckets_that_it_has_rows_of(birds, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "HELD_NUMBERS", 16 * 40)
    table = days(birds)
    data, out = as_files(table, tmp_path / "data"), tmp_path / "out"
    first = go(data, birds, out)
    small = table.filter(pc.equal(table["site"], birds.sites[0])).slice(0, 1)
    more = small.set_column(0, "id", pa.array([10_000]))
    pq.write_table(more, data / "more.parquet")
    again = go(data, birds, out)
    assert len(again.labelled) == 1 < len(first.labelled)
    assert_labelled(out, pa.concat_tables([table, more]), birds.path)
    (data / "more.parquet").unlink()
    assert len(go(data, birds, out).labelled) == 1
    assert_labelled(out, table, birds.path)


def test_files_of_complete_groups_become_buckets_when_a_group_is_in_two(birds, tmp_path):
    table = days(birds)
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    of_day = {day: table.filter(pc.equal(table["day"], day)) for day in table["day"].unique().to_pylist()}
    for day, rows in of_day.items():
        pq.write_table(rows, data / f"{day}.parquet")
    assert len(go(data, birds, out).labelled) == 4
    extra = of_day["2026-01-01"].slice(0, 2)
    extra = extra.set_column(0, "id", pa.array([10_000, 10_001]))
    pq.write_table(extra, data / "late.parquet")
    go(data, birds, out)
    assert_labelled(out, pa.concat_tables([table, extra]), birds.path)
    (data / "late.parquet").unlink()
    go(data, birds, out)
    assert_labelled(out, table, birds.path)


def test_a_manifest_and_the_files_say_what_made_them(birds, tmp_path):
    data, out = as_folders(days(birds), tmp_path / "data"), tmp_path / "out"
    go(data, birds, out, lineage=True)
    (manifest,) = (out / "_handful").glob("*.jsonl")
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    assert sorted(line["partition"] for line in lines) == [f"day=2026-01-0{day}" for day in (1, 2, 3, 4)]
    assert sum(line["counts"]["rows"] for line in lines) == len(birds.sites)
    made = json.loads(pq.read_schema(out / "items/day=2026-01-01/labelled.parquet").metadata[LINEAGE])
    assert made["model"] == lines[0]["made_by"]["model"] == birds.classifier.model_.content_hash
    assert set(labelled(out)[0]["model"].to_pylist()) == {made["model"]}


def test_another_model_labels_all_or_only_what_is_new(birds, tmp_path):
    table = days(birds)
    data, out = as_folders(table, tmp_path / "data"), tmp_path / "out"
    late = shutil.move(data / "day=2026-01-04", tmp_path / "late")
    go(data, birds, out)
    more = birds.classifier.model_.with_examples(birds.vectors[:1], np.array(["class 03"]))
    shutil.move(late, data / "day=2026-01-04")
    found = run(data, more, out, group_by=KEYS, workers=here(), relabel=False)
    assert found.labelled == ("day=2026-01-04",)
    assert len(run(data, more, out, group_by=KEYS, workers=here()).labelled) == 3
    assert_labelled(out, table, more)
    assert go(data, birds, out, expect_unknown=0.1).unchanged == ()


def test_bad_rows_are_kept_with_a_reason_or_their_partition_is_refused(birds, tmp_path, caplog):
    table = days(birds)
    vectors = birds.vectors.copy()
    at = int(np.flatnonzero(np.array(table["day"].to_pylist()) == "2026-01-02")[5])
    vectors[at, 3] = np.nan
    data = as_folders(table.set_column(2, "vector", lists(vectors)), tmp_path / "data")
    with caplog.at_level(logging.INFO, "handful.scale"):
        found = go(data, birds, tmp_path / "kept")
    assert (found.bad_rows, found.rows) == (1, len(table))
    assert sum("rows in" in record.message for record in caplog.records) == 4
    items, groups = labelled(tmp_path / "kept")
    bad = items.filter(pc.is_valid(items["reason"]))
    assert bad["id"].to_pylist() == [at]
    assert bad["label"].to_pylist() == [None]
    assert pc.max(groups["bad_rows"]).as_py() == 1
    others = table.filter(pc.not_equal(table["id"], at))
    good = items.filter(pc.is_null(items["reason"])).select(["id", "certainty"])
    assert_same(good, expected(others, birds.path)[0].select(["id", "certainty"]), "id")
    with pytest.raises(PartitionsError, match=r"1 of 4 partitions failed.*NaN or infinity.*bad_rows='keep'") as refused:
        go(data, birds, tmp_path / "refused", bad_rows="refuse")
    assert len(refused.value.report.labelled) == 3


@pytest.mark.parametrize(
    "fault", ["empty", "column", "dictionary", "large", "order", "list", "default", "views", "double"]
)
def test_data_sets_that_nobody_prepared(birds, tmp_path, fault):
    table = days(birds).append_column("note", pa.array(["x"] * len(birds.sites)))
    data = as_folders(table, tmp_path / "data")
    file = data / "day=2026-01-02/rows.parquet"
    rows = pq.read_table(file, partitioning=None)
    half = len(rows) // 2
    first, second = rows.slice(0, half), rows.slice(half)
    place = second.schema.get_field_index("site")
    if fault == "empty":
        (data / "day=2026-01-09").mkdir()
        pq.write_table(rows.slice(0, 0), data / "day=2026-01-09/rows.parquet")
    elif fault == "column":
        second = second.drop_columns("note")
    elif fault == "dictionary":
        second = second.set_column(place, "site", second["site"].dictionary_encode())
    elif fault == "large":
        second = second.set_column(place, "site", second["site"].cast(pa.large_string()))
    elif fault == "views":
        second = second.set_column(place, "site", second["site"].cast(pa.string_view()))
    elif fault == "order":
        second = second.select(second.column_names[::-1])
    elif fault == "list":
        vectors = np.stack(second["vector"].to_pylist())
        second = second.set_column(second.schema.get_field_index("vector"), "vector", lists(vectors, fixed=False))
    elif fault == "double":
        vectors = lists(np.stack(second["vector"].to_pylist()), pa.float64())
        second = second.set_column(second.schema.get_field_index("vector"), "vector", vectors)
    pq.write_table(first, file)
    pq.write_table(second, file.with_name("second.parquet"))
    if fault == "default":
        os.rename(data / "day=2026-01-02", data / "day=__HIVE_DEFAULT_PARTITION__")
    found = go(data, birds, tmp_path / "out")
    assert found.rows == len(table)
    items, _ = labelled(tmp_path / "out")
    if fault == "default":
        assert found.bad_rows == len(rows)
        bad = items.filter(pc.is_valid(items["reason"]))
        assert set(bad["reason"].to_pylist()) == {"it has no 'day', and so no group"}
        assert bad["day"].null_count == len(rows)
    else:
        assert_same(
            items.select(["id", "label", "certainty"]),
            expected(table, birds.path)[0].select(["id", "label", "certainty"]),
            "id",
        )


def test_what_cannot_be_labelled_is_named_and_nothing_else_suffers(birds, tmp_path):
    data = as_folders(days(birds), tmp_path / "data")
    file = data / "day=2026-01-02/rows.parquet"
    whole = file.read_bytes()
    for content in (whole[: len(whole) // 2], b"PAR1 is what it begins with", b""):
        file.write_bytes(content)
        with pytest.raises(PartitionsError, match=r"1 of 4 partitions failed.*day=2026-01-02") as failed:
            go(data, birds, tmp_path / "out")
        assert len(failed.value.report.failed) == 1
    file.write_bytes(whole)
    assert go(data, birds, tmp_path / "out").labelled == ("day=2026-01-02",)
    other = pq.read_table(file, partitioning=None).append_column(
        "day", pa.array(["1999"] * pq.read_metadata(file).num_rows)
    )
    pq.write_table(other, file)
    with pytest.raises(PartitionsError, match="its own column 'day' has '1999'"):
        go(data, birds, tmp_path / "out")


def test_what_can_be_refused_is_refused_before_the_work(birds, tmp_path):
    data = as_folders(days(birds), tmp_path / "data")
    refused = {
        "does not name.*add 'day' to group_by": {"group_by": "site"},
        "group_by names no column": {"group_by": ()},
        "bad_rows must be": {"bad_rows": "drop"},
    }
    for said, options in refused.items():
        with pytest.raises((OptionError, TaskError), match=said):
            go(data, birds, tmp_path / "out", **options)
    with pytest.raises(TaskError, match="does not exist"):
        go(tmp_path / "nowhere", birds, tmp_path / "out")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(TaskError, match="no files that end in"):
        go(tmp_path / "nothing", birds, tmp_path / "out")
    with pytest.raises(HandfulError, match="folder of labels"):
        go(data, birds, data)
    stray = data / "rows.parquet"
    shutil.copy(data / "day=2026-01-01/rows.parquet", stray)
    with pytest.raises(TaskError, match="has no value of the Hive partition 'day'"):
        go(data, birds, tmp_path / "out")
    assert not list(Path(tmp_path / "out").glob("items/*"))


def test_a_disk_that_is_full_is_named_and_the_run_goes_on_when_there_is_room(birds, tmp_path):
    """A limit on the size of files stands for the disk."""
    resource = pytest.importorskip("resource")
    table = days(birds)
    data = as_folders(table, tmp_path / "data")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
    try:
        with pytest.raises(
            PartitionsError, match=r"4 of 4 partitions failed.* cannot be written: the file is larger than the disk"
        ):
            go(data, birds, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    go(data, birds, tmp_path / "out")
    assert_labelled(tmp_path / "out", table, birds.path)


def test_an_empty_file_among_others_has_no_groups(birds, tmp_path):
    table = days(birds)
    data = as_files(table, tmp_path / "data")
    pq.write_table(table.slice(0, 0), data / "empty.parquet")
    assert go(data, birds, tmp_path / "out").rows == len(table)
    assert_labelled(tmp_path / "out", table, birds.path)


def test_files_that_cannot_be_read_leave_no_group_in_doubt(birds, tmp_path):
    """Without folders, any file may have rows of any group."""
    data = as_files(days(birds), tmp_path / "data")
    (data / "part-3.parquet").write_bytes(b"nothing")
    with pytest.raises(BankError, match=r"part-3\.parquet"):
        go(data, birds, tmp_path / "out")


def test_processes_have_the_tables_of_one(birds, tmp_path):
    table = days(birds)
    data = as_folders(table, tmp_path / "data")
    run(data, birds.classifier, tmp_path / "out", group_by=KEYS, workers=here(2))
    assert_labelled(tmp_path / "out", table, birds.path)
    assert SAME < 1e-4
