"""Arrays and tensors out of pickles: as they were written, or refused; never what the file says about memory."""

import collections
import io
import pickle
import sys
import warnings
import zipfile

import numpy as np
import pytest
import torch

from handful.banks.pickled_arrays import load_plain
from handful.banks.pickles import read_pickle
from handful.errors import BankError
from tests.hostile_at_hand import outcomes

MULTIARRAY = sys.modules[np.zeros(1).__reduce__()[0].__module__]
NUMERIC = sys.modules[np.zeros(1).__reduce_ex__(5)[0].__module__]
FORMS = ["zip", "old torch", 0, 1, 2, 3, 4, 5]


class Call:
    """Pickles as a call of a function, with a state if there is one."""

    def __init__(self, function, *arguments, state=None):
        self.parts = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.parts


def written(path, content, form):
    if isinstance(form, int):
        path.write_bytes(pickle.dumps(content, form))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.save(content, path, _use_new_zipfile_serialization=form == "zip")
    return path


@pytest.mark.parametrize("form", FORMS)
def test_arrays_come_out_as_they_were_written(tmp_path, form):
    wide = np.arange(24.0).reshape(2, 3, 4)
    arrays = {
        **{
            kind: np.arange(6).reshape(2, 3).astype(kind)
            for kind in ("f2", "f4", "f8", "i1", "i8", "u2", "?", ">f4", ">i8")
        },
        "columns": np.asfortranarray(wide[0]),
        "axes": wide.transpose(2, 0, 1),
        "text": np.array(["ant", "ü"]),
        "bytes": np.array([b"ant", b"bee"]),
        "empty": np.zeros((0, 3), np.float32),
        "large": np.arange(5000.0),
    }
    found = load_plain(written(tmp_path / "x", arrays, form))
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    assert found["large"].flags.writeable


@pytest.mark.parametrize("form", FORMS)
def test_tensors_come_out_as_they_were_written(tmp_path, form):
    kinds = (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int16,
        torch.uint8,
        torch.bool,
    )
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in kinds}
    base = torch.arange(12.0).reshape(3, 4)
    tensors |= {
        "base": base,
        "part": base[1:, ::2],
        "turned": base.T,
        "empty": torch.zeros(0, 4),
        "one": torch.tensor(3.0),
    }
    tensors["parameter"] = torch.nn.Parameter(base + 1).detach()
    found = load_plain(written(tmp_path / "x", tensors, form))
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


@pytest.mark.parametrize("form", FORMS)
def test_scalars_objects_and_mappings_come_out_plain(tmp_path, form):
    content = [
        np.float32(0.5), np.int64(-3), np.str_("ü"), np.str_(""), np.array(["a", "b"], dtype=object),
        collections.OrderedDict(a=1), collections.defaultdict(list, {2: [3]}),
    ]  # fmt: skip
    assert load_plain(written(tmp_path / "x", content, form)) == [0.5, -3, "ü", "", ["a", "b"], {"a": 1}, {2: [3]}]


def test_a_parameter_and_a_state_dict_with_its_version(tmp_path):
    torch.save(torch.nn.Linear(2, 3).state_dict(), tmp_path / "x.pt")
    assert set(load_plain(tmp_path / "x.pt")) == {"weight", "bias"}
    torch.save([torch.nn.Parameter(torch.ones(2))], tmp_path / "y.pt")
    assert torch.equal(load_plain(tmp_path / "y.pt")[0], torch.ones(2))


def lying_type(flags=0, size=8, field=("O", 0)):
    """A record whose state denies that it holds objects, or where its field lies."""
    return Call(
        np.dtype,
        "V8",
        False,
        True,
        state=(3, "|", None, ("f0",), {"f0": (np.dtype(field[0]), field[1])}, size, 1, flags),
    )


def array_of(shape, dtype, content):
    return Call(MULTIARRAY._reconstruct, np.ndarray, (0,), b"b", state=(1, shape, dtype, False, content))


def tensor_of(size, stride, offset):
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(torch.zeros(4).storage(), stream, _use_new_zipfile_serialization=False)
    storage = Call(torch.storage._load_from_bytes, stream.getvalue())
    return Call(torch._utils._rebuild_tensor_v2, storage, offset, size, stride, False, collections.OrderedDict())


def compressed(path):
    torch.save([torch.zeros(100)], path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


DEFAULTS = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nN}X\x0c\x00\x00\x00__defaults__)s\x86b."
HOSTILE = {
    "scalar of a lying record": [Call(MULTIARRAY.scalar, lying_type(), b"A" * 8)],
    "scalar of an honest record": [Call(MULTIARRAY.scalar, lying_type(flags=63), b"A" * 8)],
    "array of lying records": array_of((6,), lying_type(), b"A" * 48),
    "buffer of lying records": Call(NUMERIC._frombuffer, b"A" * 48, lying_type(), (6,), "C"),
    "field beyond its record": array_of((6,), lying_type(field=("f8", 10**9)), b"A" * 48),
    "record without bytes": array_of((6,), lying_type(size=0, field=("f8", 0)), b"A" * 48),
    "record of 2 GB": array_of((6,), lying_type(size=2**31 - 1, field=("f8", 0)), b"A" * 48),
    "record of negative size": array_of((6,), lying_type(size=-5, field=("f8", 0)), b"A" * 48),
    "scalar of objects": [Call(MULTIARRAY.scalar, np.dtype("O"), b"A" * 8)],
    "array of objects of bytes": array_of((6,), np.dtype("O"), b"A" * 48),
    "shape beyond the bytes": array_of((10**6,), np.dtype("f4"), b"A" * 48),
    "negative shape": array_of((-3,), np.dtype("f4"), b""),
    "empty array of great length": array_of((0, 2**62), np.dtype("f4"), b""),
    "array of width 0": array_of((2**40,), np.dtype("U0"), b""),
    "array without bytes": Call(np.ndarray, (10**4, 10**4, 10**4)),
    "text of great width": Call(np.dtype, "U300000000", False, True),
    "dates": array_of((6,), np.dtype("M8[s]"), b"A" * 48),
    "tensor beyond its storage": tensor_of((1000, 2), (2, 1), 0),
    "tensor that begins beyond its storage": tensor_of((2, 2), (2, 1), 10**9),
    "empty tensor that begins beyond its storage": tensor_of((2, 2), (2, 1), 2**62),
    "tensor that begins before its storage": tensor_of((2, 2), (2, 1), -4),
    "tensor that goes backwards": tensor_of((2, 2), (-2, 1), 0),
    "tensor that repeats one number": tensor_of((10**10, 2), (0, 0), 0),
    "tensor of overflowing size": tensor_of((2**62, 2**62), (1, 1), 0),
    "tensor of overflowing stride": tensor_of((2, 2), (2**62, 2**62), 0),
    "storage that is no storage": Call(torch.storage._load_from_bytes, pickle.dumps(1)),
    "defaults of a function": DEFAULTS,
    "large place in the memo": b"\x80\x02]r\xff\xff\xff\x7f.",
    "announced bytes": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0f.",
    "announced frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "lists that double": b"\x80\x02}(X\x08\x00\x00\x00features]q\x00"
    + b"".join(b"(h" + bytes([k]) + b"h" + bytes([k]) + b"lq" + bytes([k + 1]) for k in range(60))
    + b"X\x06\x00\x00\x00labelsh\x3cu.",
    "one list of numbers many times": {"features": [[0.0] * 10_000] * 20_000, "labels": [0] * 20_000},
    "one array many times": dict.fromkeys(range(50_000), np.zeros((1000, 100))),
    "one label many times": {"features": np.zeros((9, 1)), "labels": np.zeros(9, int), "names": [["x" * 9999] * 9] * 9},
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Outcomes of all hostile files, and whether torch can still read a file of its own afterwards."""

    def case(content):
        def run(folder):
            path = folder / "x.pkl"
            path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, 4))
            return read_pickle(path)

        return run

    def zipped(folder):
        compressed(folder / "x.pt")
        return read_pickle(folder / "x.pt")

    def expanded(folder):
        once = torch.zeros(1, 1)
        torch.save({"features": once.expand(10**9, 4), "labels": once[0].long().expand(10**9)}, folder / "x.pt")
        return read_pickle(folder / "x.pt")

    def torch_afterwards(folder):
        torch.save({"features": torch.eye(3), "labels": torch.arange(3)}, folder / "x.pt")
        assert torch.equal(torch.load(folder / "x.pt")["features"], torch.eye(3))
        return read_pickle(folder / "x.pt")

    cases = {name: case(content) for name, content in HOSTILE.items()}
    cases |= {"compressed archive": zipped, "expanded tensor": expanded, "afterwards": torch_afterwards}
    return outcomes(cases, tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("name", [*HOSTILE, "compressed archive", "expanded tensor"])
def test_hostile_files_are_refused_within_memory_and_time(found, name):
    assert found[name] == "refused"


def test_torch_reads_its_files_after_all_of_them(found):
    assert found["afterwards"] == "returned FeatureBank(3 rows, 3 dimensions of float32, 3 classes)"


def test_the_defaults_of_a_function_stay_what_they_were(tmp_path):
    before = torch._utils._rebuild_tensor_v2.__defaults__
    (tmp_path / "x.pkl").write_bytes(DEFAULTS)
    with pytest.raises(BankError, match=r"it sets the state of torch\._utils\._rebuild_tensor_v2"):
        load_plain(tmp_path / "x.pkl")
    assert torch._utils._rebuild_tensor_v2.__defaults__ == before


@pytest.mark.parametrize("form", ["zip", "old torch", 2, 4])
def test_changed_bytes_give_data_or_a_refusal_and_nothing_else(tmp_path, form):
    content = {"features": torch.eye(3), "labels": np.arange(3), "names": np.array(["a", "b", "c"])}
    whole = written(tmp_path / "x.pkl", content, form).read_bytes()
    generator, refused = np.random.default_rng(0), 0
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(generator.integers(1, 4)):
            changed[generator.integers(len(changed))] = generator.choice(list(b"(]}R bc\x93Qlaesuhqr\x94.\x00\xff\x80"))
        (tmp_path / "x.pkl").write_bytes(changed)
        try:
            read_pickle(tmp_path / "x.pkl")
        except BankError:
            refused += 1
    assert refused > 20
