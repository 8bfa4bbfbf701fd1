import json
import sys

import numpy as np
import pytest

from handful.banks import write_parquet
from handful.errors import BankError, MissingExtraError, SkippedRowsWarning
from handful.reading import read, read_bank
from tests.banks_at_hand import random_bank
from tests.hostile_at_hand import outcomes

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402

VECTORS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def write(path, **columns):
    metadata = columns.pop("metadata", None)
    table = pa.table(columns)
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.large_list(pa.float16())])
@pytest.mark.parametrize("labels", [["b", "a", "b"], [4, 2, 4]])
def test_lists_of_any_kind_with_labels_of_any_kind(tmp_path, kind, labels):
    dtype = kind.value_type.to_pandas_dtype()  # pyarrow 15 makes half precision of NumPy's own numbers only
    emb = pa.array([list(map(dtype, vector)) for vector in VECTORS], kind)
    file = write(tmp_path / "x.parquet", id=[1, 2, 3], emb=emb, label=labels)
    bank = read_bank(file)
    np.testing.assert_array_equal(bank.features, VECTORS)
    assert bank.labels.tolist() == [1, 0, 1]
    assert bank.dtype == ("float16" if "half" in str(kind) else "float32")


def test_embeddings_of_easyfsl(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"embedding": [np.float32(v) for v in VECTORS], "class_name": ["b", "a", "b"]})
    frame.to_parquet(tmp_path / "easyfsl.parquet.gzip".replace(".gzip", ""), compression="gzip")
    bank = read_bank(tmp_path / "easyfsl.parquet")
    np.testing.assert_array_equal(bank.features, VECTORS)
    assert bank.class_names == ("a", "b")


def test_class_names_of_hugging_face_are_used(tmp_path):
    about = {"info": {"features": {"label": {"names": ["x", "y", "z"], "_type": "ClassLabel"}}}}
    file = write(
        tmp_path / "x.parquet", embedding=VECTORS, label=[2, 0, 2], metadata={"huggingface": json.dumps(about)}
    )
    assert read_bank(file).class_names == ("x", "y", "z")
    assert read_bank(file).labels.tolist() == [2, 0, 2]


DEEP: object = "x"
for _ in range(900):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "change", [{"splits": 3}, {"class_names": 3}, {"class_names": [DEEP] * 3}, {"dtype": "object"}]
)
def test_damaged_notes_of_our_own_are_refused(tmp_path, change):
    whole = {"class_names": ["a", "b", "c"], "dtype": "float32", "splits": {}, "provenance": {}}
    notes = json.dumps(whole | change)
    file = write(tmp_path / "x.parquet", embedding=VECTORS, label=[2, 0, 2], metadata={"handful": notes})
    with pytest.raises(BankError, match=r"is damaged|class names must"):
        read_bank(file)


@pytest.mark.parametrize("key", ["handful", "huggingface"])
@pytest.mark.parametrize("text", [b"{", b"[" * 200_000])
def test_metadata_that_is_not_json_is_refused(tmp_path, key, text):
    file = write(tmp_path / "x.parquet", embedding=VECTORS, label=[2, 0, 2], metadata={key: text})
    with pytest.raises(BankError, match=f"the metadata '{key}' is not JSON"):
        read_bank(file)


def test_columns_can_be_named(tmp_path):
    file = write(tmp_path / "x.parquet", a=VECTORS, b=[v[::-1] for v in VECTORS], k=["p", "q", "p"])
    with pytest.raises(BankError, match=r"has 2 columns of vectors, a, b; name the right one with .* --features"):
        read_bank(file)
    np.testing.assert_array_equal(read_bank(file, features="b", labels="k").features, np.array(VECTORS)[:, ::-1])


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"embedding": [[1.0, 2.0], [3.0], [4.0, 5.0]], "label": [0, 1, 0]},
            "row 0 has 2 numbers, row 1 has 1; all vectors must be equally long",
        ),
        ({"embedding": [[1.0, 2.0], None, None], "label": [0, 1, 0]}, "row 1: it has no vector"),
        ({"embedding": [[1.0, 2.0], [None, 1.0], [4.0, 5.0]], "label": [0, 1, 0]}, "none missing"),
        ({"embedding": VECTORS, "label": pa.nulls(3, pa.int64())}, "has no row with a label"),
        ({"embedding": VECTORS, "label": [0.5, 1.0, 0.0]}, "whole number"),
        (
            {"embedding": [1.0, 2.0, 3.0], "label": [0, 1, 0]},
            "has neither vectors .a column of lists of numbers, .* it has embedding, label",
        ),
        ({"embedding": VECTORS, "other": [0, 1, 0]}, "no column that looks like labels"),
        ({"embedding": pa.array([[], []], pa.list_(pa.float32())), "label": [0, 1]}, "numbers with the axes"),
        ({"embedding": VECTORS, "label": [[1], [2, 3], [4]]}, "labels must be names or whole numbers"),
        ({"embedding": pa.array([], pa.list_(pa.float32())), "label": pa.array([], pa.int32())}, "has no rows"),
    ],
)
def test_what_is_no_bank_is_refused(tmp_path, columns, sentence):
    with pytest.raises(BankError, match=sentence):
        read_bank(write(tmp_path / "x.parquet", **columns))


def test_a_row_is_counted_from_the_first_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("handful.reading.parquet.BLOCK_ROWS", 2)
    label = [0, 1, 0, 1, 0, 1]
    file = write(tmp_path / "x.parquet", embedding=[[1.0, 2.0]] * 4 + [None] * 2, label=label)
    with pytest.raises(BankError, match="row 4: it has no vector"):
        read_bank(file)
    file = write(tmp_path / "x.parquet", e0=[1.0] * 6, e1=[1.0] * 4 + [None] * 2, label=label)
    with pytest.raises(BankError, match="row 4: it has no vector"):
        read_bank(file)


def test_cut_files_are_refused(tmp_path):
    file = write(tmp_path / "x.parquet", embedding=VECTORS, label=[0, 1, 0])
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(BankError, match="cannot be read as Parquet"):
        read_bank(file)


def test_a_flipped_bit_in_a_page_with_a_checksum_is_refused(tmp_path):
    bank = random_bank(dtype="float32")
    write_parquet(bank, tmp_path / "bank.parquet")
    content = (tmp_path / "bank.parquet").read_bytes()
    place = content.index(bank.features[0, :2].tobytes())
    (tmp_path / "bank.parquet").write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(BankError, match="cannot be read as Parquet"):
        read_bank(tmp_path / "bank.parquet")


@pytest.mark.parametrize("first", ["a", "c"])
def test_a_file_without_a_column_of_the_others_has_missing_values(tmp_path, first):
    write(tmp_path / f"{first}.parquet", embedding=VECTORS, site=["wood", "marsh", None], n=[1, 2, 3])
    write(tmp_path / "b.parquet", embedding=VECTORS, label=["x", "y", "x"])
    table = read(tmp_path)
    assert table.n_rows == len(table.vectors) == 6
    found = {name: table.values(name) for name in table.columns}
    missing, sites, numbers, labels = [None] * 3, ["wood", "marsh", None], [1, 2, 3], ["x", "y", "x"]
    if first == "a":
        assert found == {"site": sites + missing, "n": numbers + missing, "label": missing + labels}
    else:
        assert found == {"label": labels + missing, "site": missing + sites, "n": missing + numbers}
    with pytest.warns(SkippedRowsWarning, match="3 of 6 items are skipped: 3 without a label"):
        assert read_bank(tmp_path).n_rows == 3


@pytest.mark.parametrize("first", ["a", "c"])
def test_a_file_without_the_vectors_of_the_others_is_named(tmp_path, first):
    write(tmp_path / f"{first}.parquet", text=["a", "b", "c"])
    write(tmp_path / "b.parquet", embedding=VECTORS, text=["a", "b", "c"])
    with pytest.raises(BankError, match=rf"{first}\.parquet has no column 'embedding' for the vectors.*it has text"):
        read(tmp_path)
    assert read(tmp_path, text="text").values("text") == ["a", "b", "c"] * 2
    write(tmp_path / f"{first}.parquet", e0=[1.0], e1=[2.0], e2=[3.0])
    write(tmp_path / "b.parquet", e0=[1.0], e1=[2.0])
    with pytest.raises(BankError, match=r"b\.parquet has no column 'e2' for the vectors"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("folder", "own"), [("label=z", "z"), ("label=1", 1), ("label=01", "01"), ("label=a%2Fb", "a/b")]
)
def test_a_folder_may_repeat_a_column_and_not_contradict_it(tmp_path, folder, own):
    (tmp_path / folder).mkdir()
    write(tmp_path / folder / "x.parquet", embedding=VECTORS, label=[own, own, None])
    assert read(tmp_path).n_rows == 3
    write(tmp_path / folder / "x.parquet", embedding=VECTORS, label=["a", str(own), "b"])
    with pytest.raises(BankError, match=f"is in the folder {folder}, but its own column 'label' has 'a'; rename the"):
        read(tmp_path)


def test_files_with_two_columns_of_one_name_are_refused(tmp_path):
    twice = pa.table([pa.array(VECTORS), pa.array(VECTORS), pa.array([0, 1, 0])], ["embedding", "embedding", "label"])
    pyarrow.parquet.write_table(twice, tmp_path / "c.parquet")
    with pytest.raises(BankError, match="two columns of the same name"):
        read_bank(tmp_path / "c.parquet")


def one_row_of_zeros(folder):
    """A vector of 2²⁵ equal numbers, stored as one of them and a count."""
    zeros = pa.ListArray.from_arrays(pa.array([0, 2**25], pa.int32()), pa.array(np.zeros(2**25, np.float32)))
    return read_bank(write(folder / "x.parquet", features=zeros, label=[0]))


def test_equal_numbers_stored_as_a_count_do_not_fill_the_memory(tmp_path):
    with pytest.raises(BankError, match="features do not compress like that"):
        one_row_of_zeros(tmp_path)


def test_a_long_label_in_every_row_is_held_once(tmp_path):
    """One label of a megabyte in 20,000 rows: 20 GB written out."""
    index, words = pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 2**20])
    columns = {"embedding": pa.array(np.ones((20_000, 1), np.float32).tolist()), "id": range(20_000)}

    def read(folder):
        file = write(folder / "x.parquet", **columns, label=pa.DictionaryArray.from_arrays(index, words))
        return [len(name) for name in read_bank(file).class_names]

    assert outcomes({"read": read}, tmp_path) == {"read": f"returned [{2**20}]"}


def test_a_large_table_is_read_into_a_nameless_file(tmp_path, monkeypatch):
    monkeypatch.setattr("handful.reading.parquet.MOST_BYTES_IN_MEMORY", 8)
    bank = read_bank(write(tmp_path / "x.parquet", embedding=VECTORS, label=[0, 1, 0]))
    assert isinstance(bank.stored, np.memmap)
    np.testing.assert_array_equal(bank.features, VECTORS)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    file = write(tmp_path / "x.parquet", embedding=VECTORS, label=[0, 1, 0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'pip install .*\[parquet\]"'):
        read_bank(file)


def test_rows_without_a_vector_are_skipped_and_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("handful.reading.parquet.BLOCK_ROWS", 7)
    vectors = [[float(k), 1.0] for k in range(40)]
    vectors[7] = vectors[39] = None
    table = read(write(tmp_path / "x.parquet", embedding=vectors, id=range(40)))
    assert [str(one) for one in table.skipped] == ["row 7: it has no vector", "row 39: it has no vector"]
    assert table.vectors[:, 0].tolist() == [k for k in range(39) if k != 7]
    assert table.item_names() == tuple(str(k) for k in range(39) if k != 7)
    assert list(table.rows) == [k for k in range(39) if k != 7]
    wide = read(write(tmp_path / "x.parquet", e0=[1.0, None] + [2.0] * 30, e1=[1.0] * 32))
    assert [one.row for one in wide.skipped] == [1]


def test_texts_are_read_where_there_are_no_vectors_or_where_they_are_named(tmp_path):
    table = read(write(tmp_path / "x.parquet", text=["a", "b"], n=[1, 2]))
    assert (table.text, table.vectors) == ("text", None)
    both = write(tmp_path / "y.parquet", said=["a", "b", "c"], embedding=VECTORS)
    assert read(both).vectors is not None
    assert (read(both, text="said").text, read(both, text="said").vectors) == ("said", None)


def test_hive_partitions_are_columns(tmp_path):
    for day, site in ((1, "wood"), (1, "marsh"), (2, "wood")):
        folder = tmp_path / f"day={day}" / f"site={site}"
        folder.mkdir(parents=True)
        write(folder / "x.parquet", embedding=VECTORS[:2], label=["a", "b"])
    table = read(tmp_path)
    assert len(table.vectors) == table.n_rows == 6
    assert (table.values("day"), table.values("site")) == ([1, 1, 1, 1, 2, 2], ["marsh"] * 2 + ["wood"] * 4)
    assert read_bank(tmp_path).class_names == ("a", "b")


def test_changed_bytes_give_a_bank_or_a_refusal_and_nothing_else(tmp_path):
    whole = write(tmp_path / "x.parquet", embedding=VECTORS * 6, label=["a", "b", "a"] * 6).read_bytes()
    generator = np.random.default_rng(0)

    def changed(folder):
        refused = 0
        for _ in range(300):
            content = bytearray(whole)
            for place in generator.integers(len(content), size=generator.integers(1, 4)):
                content[place] ^= 1 << generator.integers(8)
            (folder / "x.parquet").write_bytes(content)
            try:
                read_bank(folder / "x.parquet")
            except BankError:
                refused += 1
        return refused > 50

    assert outcomes({"changed": changed}, tmp_path) == {"changed": "returned True"}


def test_text_that_is_stored_as_views_is_read_as_any_other(tmp_path):
    if not hasattr(pa, "string_view"):
        pytest.skip("this version of pyarrow has no views")
    texts = pa.array(["a", None, "c"], pa.string_view())
    path = write(tmp_path / "x.parquet", text=texts, raw=pa.array([b"x", b"y", None], pa.binary_view()))
    table = read(path)
    assert table.n_rows == 2  # the text of one is missing
    assert table.of_rows([1]).values("text") == ["c"]
    assert table.of_rows([1, 0]).values("raw") == [None, b"x"]
