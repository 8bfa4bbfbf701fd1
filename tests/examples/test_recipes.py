"""The recipes of `examples/`, each with its engine: their tables are those of one call in memory."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from handful.scale import decide, label_table, merge
from tests.scale_at_hand import assert_same, world

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RECIPES = [*sorted(path.stem for path in EXAMPLES.glob("*_groups.py")), "ray_batch"]
MOST_LINES = 40


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A world of sites and days; its rows as one file, and as a folder of days."""
    there = world(tmp_path_factory.mktemp("world"), sizes=(1, 1, 2, 3, 7, 20, 20, 61, 150, 40, 600))
    folder = there.path.parent
    days = np.array([f"2026-01-{1 + int(site.split()[1]) % 3:02}" for site in there.sites])
    table = there.table(day=days)
    pq.write_table(table, folder / "rows.parquet")
    by_day = ds.partitioning(pa.schema([("day", pa.string())]), flavor="hive")
    ds.write_dataset(table, folder / "rows", format="parquet", partitioning=by_day)
    return folder, table


def engine(name):
    """Skip without an engine, unless HANDFUL_ENGINES says that all are here."""
    if os.environ.get("HANDFUL_ENGINES"):
        importlib.import_module(name)
    pytest.importorskip(name)


def usual(table, like):
    """Engines choose among equal types, and read the name of a folder as a date."""
    columns = [table[name] for name in like.column_names]
    columns = [pc.strftime(one, "%Y-%m-%d") if pa.types.is_date(one.type) else one for one in columns]
    return pa.table([one.cast(field.type) for one, field in zip(columns, like.schema, strict=True)], like.column_names)


def assert_found(items, groups, table, model):
    expected = label_table(table, model, ["site", "day"])
    assert_same(usual(items, expected.items), expected.items, "id")
    assert_same(usual(groups, expected.groups), expected.groups, "site", "class")


def run(name, *words):
    """Run a recipe in a process of its own, on loopback alone."""
    quiet = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell"}
    found = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, words)],
        env={**os.environ, **quiet, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_few_lines(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize(("name", "data"), [("pandas", "rows.parquet"), ("polars", "rows.parquet"), ("duckdb", "rows")])
def test_in_one_process(here, tmp_path, monkeypatch, name, data):
    folder, table = here
    engine(name)
    monkeypatch.syspath_prepend(EXAMPLES)
    recipe = importlib.import_module(f"{name}_groups")  # in this process, so that its warnings are errors
    recipe.main(str(folder / data), str(folder / "birds.model"), str(tmp_path / "out"))
    found = [pq.read_table(tmp_path / "out" / f"{kind}.parquet") for kind in ("items", "groups")]
    assert_found(*found, table, folder / "birds.model")


@pytest.mark.beyond
@pytest.mark.parametrize("name", ["ray", "pyspark"])
def test_on_many_machines(here, tmp_path, name):
    folder, table = here
    engine(name)
    if name == "pyspark" and shutil.which("java") is None:
        assert not os.environ.get("HANDFUL_ENGINES"), "Java is not installed"
        pytest.skip("Java is not installed")
    run(f"{name.removeprefix('py')}_groups", folder / "rows", folder / "birds.model", tmp_path / "out")
    found = [ds.dataset(tmp_path / "out" / f"table={kind}").to_table() for kind in ("items", "groups")]
    assert_found(*found, table, folder / "birds.model")


@pytest.mark.beyond
def test_one_batch_that_nobody_holds(here, tmp_path):
    folder, table = here
    engine("ray")
    run("ray_batch", folder / "rows", folder / "birds.model", tmp_path / "out")
    decision = decide(table, folder / "birds.model")
    expected, totals = decision.label(table)
    assert_same(usual(ds.dataset(tmp_path / "out" / "items").to_table(), expected), expected, "id", atol=1e-3)
    group = pq.read_table(tmp_path / "out" / "group.parquet")
    assert_same(group, decision.summary(merge([totals])), "class", atol=1e-2)
    assert group["items"][0].as_py() == len(table)
