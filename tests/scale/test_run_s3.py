"""Runs whose data, model and output are on S3, with one request in ten failing."""

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from handful.machine.folders import file_system, folder_at
from handful.scale import label_table, run
from handful.workers import here
from tests.scale_at_hand import assert_same, world
from tests.stores_at_hand import BUCKET, flaky_s3_server

pytest.importorskip("s3fs")
MODEL = f"{BUCKET}/birds.model"


def put(table, place):
    above, _, name = place.partition("/rows/")
    with folder_at(f"{above}/rows").written(name) as file:
        pq.write_table(table, file)


def labelled(place):
    with file_system(place) as (system, path):
        return pq.ParquetDataset(path, filesystem=system).read()


@pytest.fixture(scope="module")
def proxy():
    with flaky_s3_server() as found:
        yield found


@pytest.mark.parametrize("layout", ["folders", "scattered"])
def test_a_run_on_s3_has_the_tables_of_memory_although_requests_fail(layout, proxy, tmp_path):
    birds = world(tmp_path)
    sites = [f"{int(site.split()[1]) % 3}" for site in birds.sites]
    table = birds.table(day=sites)
    expected = label_table(table, birds.path, ["site", "day"])
    data, out = f"{BUCKET}/{layout}/rows", f"{BUCKET}/{layout}/labelled"
    with file_system(MODEL) as (system, path):
        system.put_file(str(birds.path), path)
    for day in "012":
        if layout == "folders":
            put(table.filter(pc.equal(table["day"], day)).drop_columns("day"), f"{data}/day={day}/rows.parquet")
        else:
            put(table.take(list(range(int(day), len(table), 3))), f"{data}/{day}.parquet")
    report = run(data, MODEL, out, group_by=["site", "day"], workers=here())
    assert report.rows == len(table)
    again = run(data, MODEL, out, group_by=["site", "day"], workers=here())
    assert (again.labelled, len(again.unchanged)) == ((), len(report.labelled))
    for kind, found, by in (("items", expected.items, ["id"]), ("groups", expected.groups, ["site", "class"])):
        names = [name for name in found.column_names if name != "day"]
        assert_same(labelled(f"{out}/{kind}").select(names), found.select(names), *by)
    assert next(proxy.numbers) > 50
