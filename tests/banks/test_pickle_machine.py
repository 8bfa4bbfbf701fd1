"""The machine against Python's own: the same data out of the same stream, and nothing else out of any other."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handful.banks.pickle_machine import Name, PickleMachine, Unbuilt
from handful.errors import BankError

NUMBERS = st.integers(-(2**63), 2**64 - 1)
KEYS = st.one_of(st.none(), st.booleans(), NUMBERS, st.floats(allow_nan=False), st.text(), st.binary())
DATA = st.recursive(
    KEYS, lambda part: st.lists(part) | st.tuples(part, part) | st.dictionaries(KEYS, part), max_leaves=30
)


def plain(stream, builders=None, **others):
    return PickleMachine(stream, builders or {}, **others).read()


@given(DATA, st.sampled_from(range(6)))
def test_data_comes_out_as_python_would_read_it(data, protocol):
    builders = {
        Name("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
        Name("__builtin__", "bytes"): lambda: b"",
    }
    assert plain(pickle.dumps(data, protocol), builders) == data


def test_long_tuples_long_lists_shared_parts_and_sets():
    shared = [1, 2]
    for protocol in range(6):
        found = plain(pickle.dumps([shared, shared, tuple(range(9)), list(range(3000))], protocol))
        assert found == [shared, shared, tuple(range(9)), list(range(3000))]
        assert found[0] is found[1]
    assert sorted(plain(pickle.dumps({1, 2}, 4))) == plain(pickle.dumps(frozenset([1, 2]), 4)) == [1, 2]


def test_bytes_large_enough_for_an_array_can_be_written_to():
    for size, kind in ((10, bytes), (10_000, bytearray)):
        found = plain(pickle.dumps(bytes(size), 4))
        assert (type(found), len(found)) == (kind, size)


def test_one_pickle_after_the_other():
    machine = PickleMachine(pickle.dumps("first") + pickle.dumps("second"), {})
    assert (machine.read(), machine.read()) == ("first", "second")
    with pytest.raises(ValueError, match="ends in the middle"):
        machine.read()


def test_a_state_takes_the_place_of_what_waited_for_it_also_where_it_was_remembered():
    builders = {Name("a", "b"): lambda: Unbuilt(lambda state: ["built", state])}
    found = plain(b"(ca\nb\n)Rq\x05K\x07bh\x05t.", builders)
    assert found == (["built", 7], ["built", 7])
    assert found[0] is found[1]


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        (b"cos\nsystem\n.", "it names os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "it names os.system"),
        (b"(S'ls'\nios\nsystem\n.", "instruction 0x69"),
        (b"(cos\nsystem\nS'ls'\no.", "it names os.system"),
        (b"ca\nb\n(tR.", "it calls a.b"),
        (b"](tR.", "it calls list"),
        (b"ca\nb\n)\x81.", "instruction 0x81"),
        (b"ca\nb\n}b.", "it sets the state of a.b"),
        (b"]}b.", "it sets the state of list"),
        (b"\x80\x02\x82\x01.", "instruction 0x82"),
        (b"Pid\n.", "instruction 0x50"),
        (b"K\x01Q.", "something outside"),
        (b"\x97.", "instruction 0x97"),
        (b"K\x01K\x02a.", "it adds items to a int"),
        (b"ca\nb\n(K\x01e.", "it adds items to a Name"),
        (b"})K\x01s.", "key that is a tuple"),
        (b"}]K\x01s.", "key that is a list"),
    ],
)
def test_what_is_not_data_is_refused(stream, sentence):
    with pytest.raises(BankError, match=sentence):
        plain(stream, {Name("a", "b"): None})


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b".",
        b"]",
        b"a.",
        b"e.",
        b"\x87.",
        b"h\x07.",
        b"(K\x01d.",
        b"\x80\x09.",
        b"X\xff\xff\xff\xffabc.",
        b"B\xff\xff\xff\xff.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x0f.",
        b"T\xff\xff\xff\xffabc.",
        b"I" + b"9" * 5000 + b"\n.",
        b"L99999999999999999999L\n.",
        b"\x8a\x0aaaaaaaaaaa.",
        b"\x8b\xff\xff\xff\x7f.",
        b"F" + b"1" * 5000 + b"\n.",
        b"Snot quoted\n.",
        b"V no end",
        b"p-\n.",
        b"g99999999999999999999999999999\n.",
        b"X\x01\x00\x00\x00\xff.",
    ],
)
def test_damaged_streams_are_value_errors(stream):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - whatever the sentence, the reader puts the file before it
        plain(stream)
    assert not isinstance(caught.value, BankError)


def test_small_streams_stay_small_and_quick():
    """A large place in the memo, lists and tuples that double sixty times, a hundred thousand nested lists.

    What took 2**60 steps would not end at all, so there is no clock.
    """
    assert plain(b"\x80\x02]r\xff\xff\xff\xff.") == []
    doubled = b"".join(b"(h" + bytes([k]) + b"h" + bytes([k]) + b"%cq" + bytes([k + 1]) for k in range(60))
    assert len(plain(b"\x80\x02]q\x00" + doubled.replace(b"%c", b"l") + b".")) == 2
    with pytest.raises(BankError, match="key that is a tuple"):  # its hash would take 2**60 steps
        plain(b"\x80\x02)q\x00" + doubled.replace(b"%c", b"t") + b"}h\x3cK\x01s.")
    assert type(plain(b"(" * 100_000 + b"l" * 100_000 + b".")) is list
