"""label_groups: the answers of memory, for any rows, files and columns; resumable, and refused where unclear."""

import hashlib
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handful.errors import OptionError, TaskError
from handful.estimators.answer import sizes_of
from handful.executors import in_process
from handful.machine.lock import only_writer
from handful.many import label_groups, portions
from handful_fewshot import MethodClassifier
from tests.many_at_hand import DIM, SMALL, contents, lists, read, world, written


@pytest.fixture(scope="module")
def given():
    return world()


@pytest.fixture
def small(monkeypatch):
    """Portions, stretches and buckets of few rows."""
    monkeypatch.setattr(portions, "HELD_NUMBERS", SMALL)


def check(out, classifier, vectors, groups, names=("site",), unknown_atol=1e-4):
    """The output says what `infer` says about the same rows in memory."""
    found = classifier.infer(vectors, groups=groups)
    items, listed = read(out / "items"), read(out / "groups").to_pandas()
    assert items["label"].to_pylist() == found.labels.tolist()
    np.testing.assert_allclose(items["certainty"].to_numpy(), found.certainty, atol=1e-4)
    unknown = items["unknown"].to_numpy()
    assert not np.isnan(unknown).any()
    np.testing.assert_allclose(unknown, found.unknown, atol=unknown_atol)
    classes = {label: place for place, label in enumerate(classifier.classes_)}
    keys = [key[0] if len(names) == 1 else tuple(key) for key in listed[list(names)].to_numpy().tolist()]
    where = {group: place for place, group in enumerate(found.groups.tolist())}
    at = np.array([where[key] for key in keys]), listed["class"].map(classes).to_numpy()
    np.testing.assert_allclose(listed["expected_count"], found.expected_counts[at], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(listed["presence"], found.presence[at], atol=1e-4)
    np.testing.assert_array_equal(listed["items"], sizes_of(found)[at[0]])
    np.testing.assert_allclose(listed["joint_weight"], found.joint_weight[at[0]], atol=1e-4)
    wanted = found.presence >= 0.021
    assert wanted[at].sum() == wanted.sum()
    assert set(keys) == set(found.groups.tolist())
    # Groups come in the order of their first rows.
    order = list(dict.fromkeys(keys))
    first = {key: place for place, key in reversed(list(enumerate(groups.tolist() if len(names) == 1 else groups)))}
    assert order == sorted(order, key=first.__getitem__)


def test_what_is_known_about_classes_counts(given, small, tmp_path):
    source = written([given.table(np.arange(len(given.groups)))], tmp_path / "in")
    known = {"candidates": given.classifier.classes_[:8].tolist()}
    label_groups(given.classifier, source, tmp_path / "out", group_by="site", **known)
    wanted = given.classifier.predict(given.vectors, groups=given.groups, **known)
    assert read(tmp_path / "out" / "items")["label"].to_pylist() == wanted.tolist()
    with pytest.raises(OptionError, match="differs in weights"):
        label_groups(given.classifier, source, tmp_path / "out", group_by="site")


@pytest.mark.parametrize("order", ["sorted", "together", "mixed"])
@pytest.mark.parametrize("n_files", [1, 3])
def test_answers_are_those_of_memory(given, small, tmp_path, order, n_files):
    rows = np.arange(len(given.groups))
    if order == "sorted":
        rows = np.argsort(given.groups, kind="stable")
    elif order == "mixed":
        rows = np.random.default_rng(0).permutation(len(rows))
    cuts = np.array_split(rows, n_files)
    if order != "mixed" and n_files > 1:  # a group spans files
        assert (
            given.groups[cuts[0][-1]] == given.groups[cuts[1][0]]
            or given.groups[cuts[1][-1]] == given.groups[cuts[2][0]]
        )
    source = written([given.table(part) for part in cuts], tmp_path / "in", row_group_size=70)
    reports = []
    found = label_groups(given.classifier, source, tmp_path / "out", group_by="site", on_progress=reports.append)
    assert found.n_items == len(rows)
    check(tmp_path / "out", given.classifier, given.vectors[rows], given.groups[rows])
    stages = list(dict.fromkeys(report.stage for report in reports))
    assert stages == ["sort", "label", "write"]
    assert sum(report.stage == "label" for report in reports) > 5
    for place, part in enumerate(cuts):
        items = pq.read_table(tmp_path / "out" / "items" / f"part-{place}.parquet")
        assert items["site"].to_pylist() == given.groups[part].tolist()
    assert not (tmp_path / "out" / "work").exists()


def test_a_url_is_refused_and_makes_no_folder_of_that_name(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source, out in (("s3://bucket/rows", "out"), ("rows", "s3://bucket/out")):
        with pytest.raises(OptionError, match=r"goes from disk to disk, but the .* is at s3://bucket/"):
            label_groups(given.classifier, source, out, group_by="site")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mixed", [False, True])
def test_several_columns_make_a_group(given, small, tmp_path, mixed):
    rows = np.random.default_rng(1).permutation(len(given.groups)) if mixed else np.arange(len(given.groups))
    site, day = np.array(["wood", "marsh", "lake"])[given.groups // 250 % 3], given.groups % 250
    table = given.table(rows).drop_columns("site").append_column("site", pa.array(site[rows]).dictionary_encode())
    table = table.append_column("day", pa.array(day[rows], pa.int16()))
    label_groups(given.classifier, written([table], tmp_path / "in"), tmp_path / "out", group_by=["site", "day"])
    pairs = np.empty(len(rows), object)
    pairs[:] = list(zip(site[rows].tolist(), day[rows].tolist(), strict=True))
    groups = pq.read_table(tmp_path / "out" / "groups" / "part-0.parquet")
    assert groups.schema.field("site").type == pa.dictionary(pa.int32(), pa.string())
    check(tmp_path / "out", given.classifier, given.vectors[rows], pairs, ("site", "day"))


@pytest.mark.parametrize("kind", ["half", "float", "double", "fixed", "large", "columns", "int"])
def test_vectors_of_every_kind(given, tmp_path, kind):
    vectors = given.vectors
    if kind == "half":
        vectors = vectors.astype(np.float16)
        column = {"vector": lists(vectors, pa.float16())}
    elif kind == "int":
        vectors = np.round(100 * vectors).astype(np.int32)
        column = {"vector": lists(vectors, pa.int32())}
    elif kind == "columns":
        column = {f"x{i}": vectors[:, i].astype(np.float64 if i % 2 else np.float32) for i in range(DIM)}
    elif kind == "large":
        column = {"vector": lists(vectors).cast(pa.large_list(pa.float32()))}
    else:
        column = {"vector": lists(vectors, pa.float64() if kind == "double" else pa.float32(), fixed=kind == "fixed")}
    source = written([pa.table({"site": given.groups} | column)], tmp_path / "in")
    features = [f"x{i}" for i in range(DIM)] if kind == "columns" else None
    found = label_groups(
        given.classifier, source / "part-0.parquet", tmp_path / "out", group_by="site", features=features
    )
    assert pq.read_table(found.items).column_names == ["site", "label", "certainty", "unknown"]
    check(tmp_path / "out", given.classifier, vectors.astype(np.float32), given.groups)


def test_columns_are_carried_untouched(given, small, tmp_path):
    n = len(given.groups)
    others = {
        "text": pa.array([None if i % 7 == 0 else f"item {i} é" for i in range(n)]),
        "kind": pa.array([f"kind {i % 3}" for i in range(n)]).dictionary_encode(),
        "nested": pa.array([{"a": i, "b": [i, None]} if i % 5 else None for i in range(n)]),
        "when": pa.array(np.arange(n), pa.timestamp("us", "UTC")),
        "price": pa.array(range(n)).cast(pa.decimal128(22, 2)),
    }
    rows = np.random.default_rng(0).permutation(n)
    table = given.table(rows, **others).replace_schema_metadata({"made by": "a test"})
    table = table.select(["text", "vector", "site", "kind", "nested", "when", "price"])
    source = written([table.slice(0, 400), table.slice(400)], tmp_path / "in")
    label_groups(given.classifier, source, tmp_path / "out", group_by="site")
    items = read(tmp_path / "out" / "items")
    assert items.column_names == ["text", "site", "kind", "nested", "when", "price", "label", "certainty", "unknown"]
    kept = items.drop_columns(["label", "certainty", "unknown"])
    assert kept.equals(table.drop_columns("vector"))
    assert kept.schema.equals(read(source).drop_columns("vector").schema, check_metadata=True)
    label_groups(given.classifier, source, tmp_path / "all", group_by="site", keep_features=True)
    assert read(tmp_path / "all" / "items").drop_columns(["label", "certainty", "unknown"]).equals(table)


def test_empty_files_stay_empty(given, tmp_path):
    tables = [given.table(slice(0, 0)), given.table(), given.table(slice(0, 0))]
    label_groups(given.classifier, written(tables, tmp_path / "in"), tmp_path / "out", group_by="site")
    check(tmp_path / "out", given.classifier, given.vectors, given.groups)
    assert len(pq.read_table(tmp_path / "out" / "items" / "part-2.parquet")) == 0
    label_groups(given.classifier, written(tables[:1], tmp_path / "none"), tmp_path / "nothing", group_by="site")
    assert read(tmp_path / "nothing" / "groups").num_rows == read(tmp_path / "nothing" / "items").num_rows == 0


def test_parts_may_be_empty(given, small, tmp_path):
    groups = np.arange(len(given.groups)) % 2
    source = written([pa.table({"site": groups, "vector": lists(given.vectors)})], tmp_path / "in")
    label_groups(given.classifier, source, tmp_path / "out", group_by="site")
    check(tmp_path / "out", given.classifier, given.vectors, groups)


def test_folders_of_files_keep_their_names(given, tmp_path):
    written([given.table(slice(0, 300))], tmp_path / "in" / "year=1")
    written([given.table(slice(300, None))], tmp_path / "in" / "year=2")
    found = label_groups(given.classifier, tmp_path / "in", tmp_path / "out", group_by=["site", "year"])
    assert (found.items / "year=2" / "part-0.parquet").exists()


def partitioned(given, folder, keys=("site=A/day=2026-01-01", "site=A/day=2026-01-02", "site=B/day=2026-01-01")):
    """Rows of which some are in each partition, and no column says which."""
    cuts = np.array_split(np.arange(90), len(keys))
    for key, rows in zip(keys, cuts, strict=True):
        written([given.table(rows).drop_columns("site")], folder / key)
    return folder


def test_partitions_are_keys_of_the_group_and_stay_folders(given, tmp_path):
    source = partitioned(given, tmp_path / "in")
    found = label_groups(given.classifier, source, tmp_path / "out", group_by=["site", "day"])
    days = np.array(["A 1", "A 2", "B 1"]).repeat(30)
    wanted = given.classifier.infer(given.vectors[:90], groups=days)
    items = pq.read_table(found.items)
    assert items["label"].to_pylist() == wanted.labels.tolist()
    np.testing.assert_allclose(items["certainty"].to_numpy(), wanted.certainty, atol=1e-4)
    listed = pq.read_table(found.groups).to_pandas()
    assert listed["items"].unique().tolist() == [30]
    assert len(listed[["site", "day"]].drop_duplicates()) == 3
    here = pq.read_schema(found.groups / "site=A" / "day=2026-01-02" / "part-0.parquet").names
    assert not {"site", "day"} & set(here)  # a column of the name of a folder, and of another type, cannot be read


def test_a_partition_and_a_column_together_make_a_group(given, tmp_path):
    for day in ("1", "2"):
        written([given.table()], tmp_path / "in" / f"day={day}")
    found = label_groups(given.classifier, tmp_path / "in", tmp_path / "out", group_by=["site", "day"])
    wanted = given.classifier.predict(given.vectors, groups=given.groups).tolist()
    assert pq.read_table(found.items)["label"].to_pylist() == 2 * wanted
    groups = pq.read_table(found.groups).to_pandas()
    assert set(groups["day"]) == {1, 2}
    sizes = groups.drop_duplicates(["site", "day"])["items"]
    assert sizes.sum() == 2 * len(given.groups)


def test_days_in_partitions_never_become_one_batch(given, tmp_path):
    for day in ("1", "2"):
        written([given.table()], tmp_path / "in" / f"day={day}")
    with pytest.raises(
        TaskError, match=r"by day \(one is day=1\), which group_by does not name.*add 'day' to group_by"
    ):
        label_groups(given.classifier, tmp_path / "in", tmp_path / "out", group_by="site")
    assert not (tmp_path / "out").exists()


def test_a_partition_of_the_name_of_a_new_column_is_refused(given, tmp_path):
    source = partitioned(given, tmp_path / "in", ("label=1", "label=2"))
    with pytest.raises(OptionError, match=r"has a column 'label' already.*prefix='handful_'"):
        label_groups(given.classifier, source, tmp_path / "out", group_by="label")


def test_files_with_vectors_alone_are_grouped_by_their_partitions(given, tmp_path):
    source = partitioned(given, tmp_path / "in", ("day=1", "day=2"))
    found = label_groups(given.classifier, source, tmp_path / "out", group_by="day")
    assert pq.read_table(found.items).column_names == ["label", "certainty", "unknown", "day"]
    assert pq.read_table(found.items).num_rows == 90


@pytest.mark.parametrize("mixed", [False, True])
def test_a_large_group_is_streamed(given, small, tmp_path, monkeypatch, mixed):
    monkeypatch.setattr(portions, "LARGE_SCORES", 100 * 30)
    assert np.bincount(given.groups).max() == 150
    rows = np.random.default_rng(0).permutation(len(given.groups)) if mixed else np.arange(len(given.groups))
    source = written([given.table(rows)], tmp_path / "in")
    label_groups(given.classifier, source, tmp_path / "out", group_by="site")
    check(tmp_path / "out", given.classifier, given.vectors[rows], given.groups[rows], unknown_atol=1e-3)


def interrupted(given, source, out, stage):
    """Stop a run when the first piece of a stage is done."""

    def stop(progress):
        if progress.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        label_groups(given.classifier, source, out, group_by="site", executor=in_process(), on_progress=stop)


@pytest.mark.parametrize("stage", ["label", "write"])
def test_no_flipped_bit_or_exchange_of_files_of_its_own_changes_the_output(given, small, tmp_path, stage):
    rows = np.random.default_rng(0).permutation(len(given.groups))
    source = written([given.table(part) for part in np.array_split(rows, 2)], tmp_path / "in")
    label_groups(given.classifier, source, tmp_path / "whole", group_by="site", executor=in_process())
    whole = contents(tmp_path / "whole")
    interrupted(given, source, tmp_path / "out", stage)
    files = sorted(file.relative_to(tmp_path / "out") for file in (tmp_path / "out" / "work").rglob("*"))
    files = [file for file in files if (tmp_path / "out" / file).is_file()]
    assert {"answers-000000", "0"} & {file.name for file in files}
    rng = np.random.default_rng(0)
    for number in range(8):
        out = tmp_path / str(number)
        shutil.copytree(tmp_path / "out", out)
        file = out / files[number % len(files)]
        content = bytearray(file.read_bytes())
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        file.write_bytes(content)
        label_groups(given.classifier, source, out, group_by="site", executor=in_process())
        assert contents(out) == whole, file.name
    first, second = ((tmp_path / "out" / files[k]) for k in (0, 1))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    label_groups(given.classifier, source, tmp_path / "out", group_by="site", executor=in_process())
    assert contents(tmp_path / "out") == whole


def test_a_second_process_is_refused(given, tmp_path):
    source = written([given.table()], tmp_path / "in")
    with only_writer(tmp_path / "out", OptionError), pytest.raises(OptionError, match="another process is writing to"):
        label_groups(given.classifier, source, tmp_path / "out", group_by="site")


@pytest.mark.parametrize("finished", [False, True])
def test_an_output_file_that_was_cut_or_exchanged_is_not_finished(given, small, tmp_path, finished):
    source = written([given.table(slice(300)), given.table(slice(300, None))], tmp_path / "in")
    label_groups(given.classifier, source, tmp_path / "whole", group_by="site", executor=in_process())
    whole = contents(tmp_path / "whole")
    if finished:
        label_groups(given.classifier, source, tmp_path / "out", group_by="site", executor=in_process())
    else:
        interrupted(given, source, tmp_path / "out", "write")
    file = tmp_path / "out" / "items" / "part-0.parquet"
    for content in (file.read_bytes()[:50], whole["items/part-1.parquet"]):
        file.write_bytes(content)
        label_groups(given.classifier, source, tmp_path / "out", group_by="site", executor=in_process())
        assert contents(tmp_path / "out") == whole
    sums = (tmp_path / "out" / "SHA256SUMS").read_text()
    for name, content in whole.items():
        assert f"{hashlib.sha256(content).hexdigest()}  {name}\n" in sums


def test_another_input_is_refused(given, tmp_path):
    source = written([given.table()], tmp_path / "in")
    label_groups(given.classifier, source, tmp_path / "out", group_by="site")
    with pytest.raises(OptionError, match="differs in prefix"):
        label_groups(given.classifier, source, tmp_path / "out", group_by="site", prefix="a_")
    with pytest.raises(
        OptionError, match=r"does not contain the catalogue|the catalogue of the classifier has changed"
    ):
        label_groups(world(seed=1).classifier, source, tmp_path / "out", group_by="site")
    changed = given.vectors.copy()
    changed[5] += 1
    written([pa.table({"site": given.groups, "vector": lists(changed)})], tmp_path / "in")
    with pytest.raises(OptionError, match="has changed since it was given as the data set"):
        label_groups(given.classifier, source, tmp_path / "out", group_by="site")


def test_what_is_unclear_is_refused(given, tmp_path):
    groups = pa.array([None if i == 77 else int(g) for i, g in enumerate(given.groups)])
    source = written([pa.table({"site": groups, "vector": lists(given.vectors)})], tmp_path / "null")
    with pytest.raises(TaskError, match=r"part-0\.parquet, from row 0, column 'site': some values are missing"):
        label_groups(given.classifier, source, tmp_path / "out", group_by="site")
    source = written([given.table(label=np.zeros(len(given.groups)))], tmp_path / "label")
    with pytest.raises(OptionError, match=r"has a column 'label' already.*prefix='handful_'"):
        label_groups(given.classifier, source, tmp_path / "out", group_by="site")
    found = label_groups(given.classifier, source, tmp_path / "prefixed", group_by="site", prefix="handful_")
    assert pq.read_schema(found.items / "part-0.parquet").names == [
        "site",
        "label",
        "handful_label",
        "handful_certainty",
        "handful_unknown",
    ]
    vectors = given.vectors.copy()
    vectors[50, 3] = np.nan
    source = written([pa.table({"site": given.groups, "vector": lists(vectors)})], tmp_path / "nan")
    with pytest.raises(TaskError, match="NaN or infinity"):
        label_groups(given.classifier, source, tmp_path / "out2", group_by="site")
    with pytest.raises(OptionError, match="is inside the data set"):
        label_groups(given.classifier, source, source / "out", group_by="site")
    with warnings.catch_warnings(action="ignore"):
        other = MethodClassifier("paddle").fit(given.vectors[:60], np.arange(60) % 3)
    with pytest.raises(OptionError, match="classifier must be a fitted BatchClassifier"):
        label_groups(other, source, tmp_path / "out3", group_by="site")


def test_the_columns_that_a_classifier_was_fitted_to_are_found(given, tmp_path):
    pd = pytest.importorskip("pandas")
    names = [f"x{i}" for i in range(DIM)]
    examples = given.classifier.model_.examples
    frame = pd.DataFrame(examples.points, columns=names)
    classifier = type(given.classifier)().fit(frame, examples.labels)
    table = pa.table({"site": given.groups} | {name: given.vectors[:, i] for i, name in enumerate(names)})
    found = label_groups(classifier, written([table], tmp_path / "in"), tmp_path / "out", group_by="site")
    assert (
        pq.read_table(found.items)["label"].to_pylist()
        == given.classifier.predict(given.vectors, groups=given.groups).tolist()
    )


PROGRAM = """
import resource, sys
from handful.estimators import BatchClassifier
from handful.many import label_groups, portions
from handful.executors import in_process
portions.HELD_NUMBERS = 2**17
classifier = BatchClassifier.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
label_groups(classifier, sys.argv[2], sys.argv[3], group_by="site", executor=in_process())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in kilobytes on Linux only")
def test_many_groups_of_one_item_take_little_memory(given, tmp_path):
    given.classifier.save(tmp_path / "classifier")
    vectors = np.random.default_rng(0).normal(size=(8_000, DIM)).astype(np.float32)
    written([pa.table({"site": np.arange(8_000), "vector": lists(vectors)})], tmp_path / "in")
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "classifier", tmp_path / "in", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert int(found.stdout) < 150_000  # kilobytes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in kilobytes on Linux only")
def test_memory_does_not_grow_with_the_rows(given, tmp_path):
    given.classifier.save(tmp_path / "classifier")
    peaks = []
    for n in (20_000, 80_000):
        rng = np.random.default_rng(0)
        with pq.ParquetWriter(
            tmp_path / f"{n}.parquet", pa.schema([("site", pa.int64()), ("vector", pa.list_(pa.float32(), DIM))])
        ) as writer:
            for start in range(0, n, 10_000):
                vectors = rng.normal(size=(10_000, DIM)).astype(np.float32)
                writer.write_table(
                    pa.table({"site": np.arange(start, start + 10_000) // 50, "vector": lists(vectors, fixed=True)})
                )
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM, tmp_path / "classifier", tmp_path / f"{n}.parquet", tmp_path / f"out-{n}"],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ,
        )
        peaks.append(int(found.stdout))
    assert peaks[1] < peaks[0] + 6_000  # kilobytes; the vectors alone take 1 and 5 MB


def test_groups_named_by_views_are_those_of_text(given, tmp_path):
    if not hasattr(pa, "string_view"):
        pytest.skip("this version of pyarrow has no views")
    names = pa.array([f"site {group}" for group in given.groups.tolist()])
    for kind, folder in ((pa.string(), "text"), (pa.string_view(), "views")):
        table = pa.table({"site": names.cast(kind), "vector": lists(given.vectors)})
        label_groups(given.classifier, written([table], tmp_path / folder), tmp_path / f"{folder} out", group_by="site")
    for part in ("items", "groups"):
        assert read(tmp_path / "views out" / part).to_pylist() == read(tmp_path / "text out" / part).to_pylist()
