import io
import struct
import zipfile

import numpy as np
import pytest

from handful.banks.arrays import open_npy, opened_archive
from handful.errors import BankError

NUMBERS = np.arange(18, dtype=np.float32).reshape(6, 3)


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def lying(shape, descr="<f4", body=bytes(72), version=1) -> bytes:
    """A `.npy` file whose head says what we like."""
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return bytes([*b"\x93NUMPY", version, 0]) + struct.pack("<H" if version == 1 else "<I", len(head)) + head + body


def archive(path, **files) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(f"{name}.npy", content)


def test_arrays_come_back_from_both_kinds_of_file(tmp_path):
    for order in "CF":
        np.save(tmp_path / "x.npy", np.array(NUMBERS, order=order))
        np.testing.assert_array_equal(open_npy(tmp_path / "x.npy"), NUMBERS)
        np.savez_compressed(tmp_path / "x.npz", x=np.array(NUMBERS, order=order), empty=np.zeros((0, 3)))
        with opened_archive(tmp_path / "x.npz") as found:
            np.testing.assert_array_equal(found["x"], NUMBERS)
            assert found["empty"].shape == (0, 3)
            assert (list(found), len(found)) == (["x", "empty"], 2)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04junk",
        b"\x80\x04K\x01.",
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + bytes(72),
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000,
        b"\x93NUMPY\x03\x00" + bytes(80),
        npy(NUMBERS)[:-4],
        npy(NUMBERS) + b"x",
        npy(np.array([{}] * 6, dtype=object)),
        lying((10**6, 3)),
        lying((10**15, 3)),
        lying((2**62, 4)),
        lying((-6, -3)),
        lying((6,), [("a", "|O")]),
        lying((1,), "<U300000000"),
        lying((10**10, 3), version=2),
    ],
)
def test_other_files_are_refused_and_nothing_is_reserved_for_them(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(BankError, match=r"x\.npy (cannot be read as a \.npy file|has objects)"):
        open_npy(tmp_path / "x.npy")
    archive(tmp_path / "x.npz", x=content)
    with (
        pytest.raises(BankError, match=r"x\.npz(: array 'x' has| cannot be read as)"),
        opened_archive(tmp_path / "x.npz") as found,
    ):
        found["x"]


def test_no_flipped_bit_of_an_archive_passes_or_escapes(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=NUMBERS)
    whole, refused = path.read_bytes(), 0
    for bit in range(0, 8 * len(whole), 3):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            with opened_archive(path) as found:
                np.testing.assert_array_equal(found.get("x", NUMBERS), NUMBERS)
        except BankError:
            refused += 1
    assert refused > 100


def test_what_unfolds_to_a_thousand_times_its_size_is_refused(tmp_path):
    archive(tmp_path / "x.npz", x=npy(np.zeros((2**25,), np.float32)))
    with pytest.raises(BankError, match="would expand to"), opened_archive(tmp_path / "x.npz") as found:
        found["x"]


def test_an_archive_cut_short_or_with_pickles_in_it_is_refused(tmp_path):
    whole, cut, pickled = (tmp_path / f"{name}.npz" for name in ("whole", "cut", "pickled"))
    np.savez(whole, x=np.arange(100))
    cut.write_bytes(whole.read_bytes()[:200])
    np.savez(pickled, x=np.array([{}], dtype=object))
    with opened_archive(whole) as archive:
        assert archive["x"].sum() == 4950
    for file, sentence in ((cut, "cannot be read as"), (pickled, "array 'x' has objects instead of numbers or text")):
        with pytest.raises(BankError, match=sentence), opened_archive(file) as archive:
            archive["x"]
