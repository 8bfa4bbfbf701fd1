"""label_table: the answers of memory, whatever types, orders, bad rows and layouts a table has."""

import datetime
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handful.errors import BankError, OptionError, TaskError
from handful.fitted import FittedModel
from handful.model.knowledge import Knowledge
from handful.scale import label_table
from handful.scale.labeller import LINEAGE
from handful.version import __version__
from tests.scale_at_hand import DIM, assert_same, lists, ordered, world


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return world(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize(
    "known", [{}, {"expect_unknown": 0.3}, {"expect_unknown": 0}, {"candidates": [f"class {k:02}" for k in range(25)]}]
)
def test_the_answers_are_those_of_memory(here, known):
    items, groups = label_table(here.table(), here.path, "site", **known)
    found = here.classifier.infer(here.vectors, groups=here.sites, **known)
    assert items.column_names == ["id", "site", "label", "certainty", "unknown", "reason"]
    assert items["id"].to_pylist() == list(range(len(here.vectors)))
    assert items["label"].to_pylist() == found.labels.tolist()
    np.testing.assert_allclose(items["certainty"].to_numpy(), found.certainty, atol=3e-5)
    np.testing.assert_allclose(items["unknown"].to_numpy(), found.unknown, atol=1e-4)
    assert items["reason"].null_count == len(items)
    assert found.rejected.any() == (known != {"expect_unknown": 0})
    for row in groups.to_pylist():
        of_group = found[row["site"]]
        code = of_group.classes.tolist().index(row["class"])
        assert row["items"] == len(of_group.labels)
        assert row["unknown_items"] == of_group.rejected.sum()
        assert row["joint_weight"] == pytest.approx(of_group.joint_weight, abs=1e-5)
        assert row["expected_count"] == pytest.approx(of_group.expected_counts[code], abs=1e-3)
        assert row["presence"] == pytest.approx(of_group.presence[code], abs=1e-3)
    listed = {(row["site"], row["class"]) for row in groups.to_pylist()}
    for site in found.groups.tolist():
        likely = found[site].classes[found[site].presence >= 0.021].tolist()
        assert {(site, name) for name in likely} <= listed


def test_a_table_of_groups_has_the_columns_that_classify_writes(here):
    _, groups = label_table(here.table(), here.path, "site")
    own = ["site", "items", "bad_rows", "joint_weight", "unknown_items", "unknown_above", "diagnostics"]
    assert groups.column_names == [*own, "class", "expected_count", "presence"]
    assert len(set(groups["site"].to_pylist())) == 9


def test_the_order_of_rows_and_the_cut_into_chunks_change_no_digit(here):
    items, groups = label_table(here.table(), here.path, "site")
    order = np.random.default_rng(1).permutation(len(items))
    parts = np.array_split(order, 5)
    mixed = pa.concat_tables([here.table(part) for part in parts])
    again, of_groups = label_table(mixed, here.path, "site")
    assert again["id"].to_pylist() == order.tolist()
    assert ordered(again, "id").equals(items.combine_chunks())
    assert ordered(of_groups, "site", "class").equals(ordered(groups, "site", "class"))


def test_groups_in_several_tables_are_those_of_one(here):
    whole = label_table(here.table(), here.path, "site")
    parts = [label_table(here.table(here.sites == site), here.path, "site") for site in set(here.sites)]
    assert_same(pa.concat_tables([part.items for part in parts]), whole.items, "id")
    assert_same(pa.concat_tables([part.groups for part in parts]), whole.groups, "site", "class")


@pytest.mark.parametrize("size", [600, 1500])
def test_a_large_group_does_not_depend_on_the_order_of_its_rows(tmp_path, size):
    there = world(tmp_path, sizes=(size, 30))
    items, groups = label_table(there.table(), there.path, "site", expect_unknown=0.2)
    order = np.random.default_rng(1).permutation(len(items))
    again, of_groups = label_table(there.table(order), there.path, "site", expect_unknown=0.2)
    assert ordered(again, "id").equals(items.combine_chunks())
    assert ordered(of_groups, "site", "class").equals(ordered(groups, "site", "class"))
    found = there.classifier.infer(there.vectors, groups=there.sites, expect_unknown=0.2)
    assert (np.array(items["label"].to_pylist()) == found.labels).mean() > 0.999
    np.testing.assert_allclose(items["unknown"].to_numpy(), found.unknown, atol=2e-3)


def spoiled(here, what):
    """The table with something wrong with row 5, and how its reason begins."""
    vectors = here.vectors.copy()
    if what == "nan":
        vectors[5, 3] = np.nan
        return here.table().set_column(2, "vector", lists(vectors)), "its vector has NaN"
    if what == "infinity in double precision":
        doubles = vectors.astype(np.float64)
        doubles[5, 3] = 1e300
        return here.table().set_column(2, "vector", lists(doubles, pa.float64())), "its vector has NaN or infinity"
    ragged = [row.tolist() for row in vectors]
    ragged[5], reason = {
        "null": (None, "it has no vector"),
        "short": (ragged[5][:-1], "its vector has 15 numbers, and those of the model have 16"),
        "missing number": ([None, *ragged[5][1:]], "its vector has missing numbers"),
        "empty": ([], "its vector has 0 numbers"),
    }[what]
    return here.table().set_column(2, "vector", pa.array(ragged, pa.list_(pa.float32()))), reason


@pytest.mark.parametrize("what", ["nan", "infinity in double precision", "null", "short", "missing number", "empty"])
def test_a_bad_row_has_a_reason_and_nothing_else_suffers(here, what):
    table, reason = spoiled(here, what)
    items, groups = label_table(table, here.path, "site")
    others = np.arange(len(items)) != 5
    without = label_table(here.table(others), here.path, "site")
    assert items["reason"][5].as_py().startswith(reason)
    assert [items[name][5].as_py() for name in ("label", "certainty", "unknown")] == [None] * 3
    assert items.filter(pa.array(others)).equals(without.items)
    own = groups.filter(pa.compute.equal(groups["site"], here.sites[5]))
    assert set(own["bad_rows"].to_pylist()) == {1}
    assert set(groups.filter(pa.compute.not_equal(groups["site"], here.sites[5]))["bad_rows"].to_pylist()) == {0}


def test_a_group_without_a_row_that_can_be_labelled_is_listed_without_a_class(here):
    vectors = here.vectors.copy()
    alone = here.sites == "site 0"
    vectors[alone] = np.nan
    items, groups = label_table(here.table().set_column(2, "vector", lists(vectors)), here.path, "site")
    assert (items["reason"].is_valid().to_numpy() == alone).all()
    (row,) = groups.filter(pa.compute.equal(groups["site"], "site 0")).to_pylist()
    assert (row["items"], row["bad_rows"], row["class"], row["presence"]) == (0, alone.sum(), None, None)
    assert len(set(groups["site"].to_pylist())) == 9


def test_vectors_of_another_length_are_reasons_and_no_error(here):
    items, groups = label_table(here.table().set_column(2, "vector", lists(here.vectors[:, :8])), here.path, "site")
    assert set(items["reason"].to_pylist()) == {"its vector has 8 numbers, and those of the model have 16"}
    assert items["label"].null_count == len(items)
    assert groups["class"].null_count == len(groups) == 9


def test_rows_without_a_group_have_a_reason_and_are_in_no_group(here):
    sites = here.sites.copy()
    sites[[3, 5]] = None
    table = here.table().set_column(1, "site", pa.array(sites))
    items, groups = label_table(table, here.path, ["site"])
    assert [row for row, reason in enumerate(items["reason"].to_pylist()) if reason] == [3, 5]
    assert items["reason"][3].as_py() == "it has no 'site', and so no group"
    assert groups["site"].null_count == 0
    assert set(groups["bad_rows"].to_pylist()) == {0}


@pytest.mark.parametrize(
    "kind",
    [
        "int8",
        "float64",
        "date32[day]",
        "timestamp[us]",
        "decimal128(9, 2)",
        "bool",
        "large_string",
        "binary",
        "dictionary",
    ],
)
def test_groups_may_have_any_type(here, kind):
    numbers = np.array([int(site.split()[1]) for site in here.sites])
    by_kind = {
        "bool": pa.array(numbers % 2 == 0),
        "binary": pa.array([site.encode() for site in here.sites]),
        "large_string": pa.array(here.sites, pa.large_string()),
        "dictionary": pa.array(here.sites).dictionary_encode(),
        "date32[day]": pa.array([datetime.date(2026, 1, 1 + day) for day in numbers.tolist()]),
        "timestamp[us]": pa.array(numbers, pa.timestamp("us")),
    }
    other = pa.decimal128(21, 2) if kind.startswith("decimal") else kind
    keys = by_kind[kind] if kind in by_kind else pa.array(numbers).cast(other)
    items, groups = label_table(here.table(key=keys).drop_columns(["site"]), here.path, "key")
    expected = numbers % 2 if kind == "bool" else numbers
    by_number = label_table(here.table(key=expected).drop_columns(["site"]), here.path, "key")
    assert items["label"].equals(by_number.items["label"])
    assert groups["key"].type == keys.type
    assert len(set(groups["key"].to_pylist())) == len(set(expected))


def test_minus_zero_is_zero_and_nan_is_no_group(here):
    keys = np.where(np.arange(len(here.sites)) % 2 == 0, 0.0, -0.0)
    keys[7] = np.nan
    items, groups = label_table(here.table(key=keys), here.path, "key")
    assert set(groups["key"].to_pylist()) == {0.0}
    assert items["reason"][7].as_py() == "it has no 'key', and so no group"


def test_several_columns_make_a_group(here):
    day = np.arange(len(here.sites)) % 2
    items, _ = label_table(here.table(day=day), here.path, ["site", "day"])
    both = [f"{site}/{number}" for site, number in zip(here.sites, day, strict=True)]
    joined, _ = label_table(here.table(both=both), here.path, "both")
    assert items["label"].equals(joined["label"])


@pytest.mark.parametrize("kind", ["double", "half_float", "list", "large_list", "columns"])
def test_vectors_may_come_in_any_form(here, kind):
    by_kind = {
        "double": lambda: lists(here.vectors, pa.float64()),
        "half_float": lambda: lists(here.vectors.astype(np.float16), pa.float16()),
        "list": lambda: lists(here.vectors, fixed=False),
        "large_list": lambda: lists(here.vectors, fixed=False).cast(pa.large_list(pa.float32())),
    }
    expected = label_table(here.table(), here.path, "site").items
    if kind == "columns":
        names = [f"x{place}" for place in range(DIM)]
        table = here.table().drop_columns(["vector"])
        for place, name in enumerate(names):
            table = table.append_column(name, pa.array(here.vectors[:, place]))
        assert label_table(table, here.path, "site", features=names).items.equals(expected)
        return
    table = here.table().set_column(2, "vector", by_kind[kind]())
    found = label_table(table.slice(10), here.path).items  # offsets of slices count
    again = label_table(here.table(slice(10, None)), here.path).items
    if kind == "half_float":
        assert (np.array(found["label"]) == np.array(again["label"])).mean() > 0.97
    else:
        assert found.equals(again)


def test_without_groups_all_rows_are_one(here):
    items, groups = label_table(here.table(), here.path)
    found = here.classifier.infer(here.vectors)
    assert items["label"].to_pylist() == found.labels.tolist()
    assert set(groups["items"].to_pylist()) == {len(items)}
    assert "site" not in groups.column_names


def test_an_empty_table_has_the_two_schemas(here):
    items, groups = label_table(here.table(), here.path, "site")
    nothing = label_table(here.table().schema.empty_table(), here.path, "site")
    assert nothing.items.schema.equals(items.schema)
    assert nothing.groups.schema.equals(groups.schema)
    assert len(nothing.items) == len(nothing.groups) == 0


def test_lineage_travels_with_the_tables(here, tmp_path):
    found = label_table(here.table(), here.path, "site", lineage=True)
    for table in found:
        pq.write_table(table, tmp_path / "table.parquet")
        about = json.loads(pq.read_schema(tmp_path / "table.parquet").metadata[LINEAGE])
        assert about["model"] == here.classifier.model_.content_hash
        assert about["version"] == __version__
        assert about["settings"]["group_by"] == ["site"]
        assert set(table["model"].to_pylist()) == {about["model"]}
    without = label_table(here.table(), here.path, "site")
    assert "model" not in without.items.column_names
    assert LINEAGE in without.items.schema.metadata


def test_names_that_are_taken_are_refused_and_a_prefix_helps(here):
    table = here.table(label=here.truth)
    with pytest.raises(OptionError, match=r"the table has a column 'label' already; .* prefix='handful_'"):
        label_table(table, here.path, "site")
    items, groups = label_table(table, here.path, "site", prefix="handful_")
    assert items.column_names[-4:] == ["handful_label", "handful_certainty", "handful_unknown", "handful_reason"]
    assert groups.column_names[:3] == ["site", "handful_items", "handful_bad_rows"]


def test_what_does_not_fit_is_refused(here, tmp_path):
    for wrong, message in (
        ({"group_by": "Site"}, r"no column 'Site' \(did you mean 'site'\?\) for the group"),
        ({"group_by": ["site", "site"]}, "each once"),
        ({"group_by": "vector"}, "group by numbers, text, dates or booleans"),
        ({"features": "id"}, "vectors are lists of numbers"),
        ({"features": ["id"]}, "features names 1 columns, and the vectors of the model have 16"),
        ({"candidates": ["class 99"]}, "did you mean"),
        ({"expect_unknown": 2}, "expect_unknown must be"),
    ):
        with pytest.raises((OptionError, TaskError, BankError, ValueError), match=message):
            label_table(here.table(), here.path, **({"group_by": "site"} | wrong))
    with pytest.raises(TaskError, match="there is no model at"):
        label_table(here.table(), tmp_path / "none.model", "site")
    with pytest.raises(OptionError, match="model must be the path or URL"):
        label_table(here.table(), 7, "site")


def test_a_model_of_names_alone_labels_groups(tmp_path):
    rng = np.random.default_rng(0)
    names = rng.normal(size=(40, DIM)).astype(np.float32)
    model = FittedModel.of_names(names, np.array([f"class {k:02}" for k in range(40)]))
    truth = np.repeat([3, 20], 30)
    vectors = names[truth] + 0.7 * rng.normal(size=(60, DIM)).astype(np.float32)
    sites = np.repeat(["a", "b"], 30)
    items, groups = label_table(pa.table({"site": sites, "vector": lists(vectors)}), model, "site")
    for site in "ab":
        own = model.label_points(model.points(vectors[sites == site]), Knowledge()).probabilities.argmax(1)
        assert np.array(items["label"].to_pylist())[sites == site].tolist() == model.classes[own].tolist()
    assert items["unknown"].null_count == 60
    assert set(groups["items"].to_pylist()) == {30}


def test_diagnostics_are_those_of_memory(tmp_path):
    there = world(tmp_path, sizes=(40, 40, 5))
    vectors = there.vectors.copy()
    odd = there.sites == there.sites[0]
    vectors[odd] = np.random.default_rng(0).normal(size=(odd.sum(), DIM))
    vectors[np.flatnonzero(~odd)[0]] = 0
    table = there.table().set_column(2, "vector", lists(vectors))
    _, groups = label_table(table, there.path, "site")
    found = there.classifier.infer(vectors, groups=there.sites)
    for row in groups.to_pylist():
        names = [one.name for one in found[row["site"]].diagnostics]
        assert (row["diagnostics"] or "").split(", ") == (names or [""])
    assert groups["diagnostics"].drop_null().to_pylist()
