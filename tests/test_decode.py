"""hub.decode: whatever a line holds, a record or a note's code comes out, and it can be kept."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from hub.decode import DEPTH, Decoder, bounded, packed, tame


class Record(Struct):
    say: str = ""
    n: Any = None


class Counted(Struct, tag="counted", tag_field="kind"):
    count: int
    mark: bytes = b""
    other: Any = None


read = Decoder(Record, [b'{"say"'])


@pytest.mark.parametrize(
    ("line", "said", "note"),
    [
        (b'{"say":"x"}', "x", None),
        (b'{"say":"x"}\r', "x", None),
        (b'{"say":"x","other":[1,{}]}', "x", None),
        (b'{"say":"x","say":"y"}', "y", None),
        ('{"say":"\u2028\x85"}'.encode(), "\u2028\x85", None),
        (b'\0\0\0{"say":"x"}', "x", "nul_bytes"),
        (b'{"say":"a\xffb"}', "a\ufffdb", "invalid_utf8"),
        (b'{"say":"a\\ud83d"}', "a\ufffd", "lone_surrogate"),
        (b'{"say":"\\ud83d\\ude80"}', "\U0001f680", None),
        (b'{"say":"a\x00b"}', "a\0b", "bad_json"),
        (b'{"say":"a\xffb","n":' + b"9" * 30 + b"}", "a\ufffdb", "invalid_utf8"),
        (b'{"say":"\\udc00","n":1e999}', "\ufffd", "lone_surrogate"),
        (b'{"say":"\xff","n":NaN}', "\ufffd", "invalid_utf8"),
        (b'{"sa{"say":"x"}', "x", "salvaged"),
        (b'\xef\xbb\xbf{"say":"x"}', "x", "salvaged"),
    ],
)
def test_a_line_and_what_is_read_of_it(line: bytes, said: str, note: str | None) -> None:
    record, code = read(line)
    assert record is not None
    assert (record.say, code) == (said, note)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (b"", None),
        (b"  \t\r", None),
        (b"\0" * 100, "nul_bytes"),
        (b'{"say":', "bad_json"),
        (b'{"say":3}', "wrong_shape"),
        (b"[]", "wrong_shape"),
        (b"[" * 100_000, "wrong_shape"),
        (b'{"say":"\\ud83d","n":' + b"[" * 100_000, "bad_json"),
        (b'{"say":"\\ud83d","n":' + b"9" * 5_000 + b"}", "bad_json"),
        (b"\x28\xb5\x2f\xfd\xff", "bad_json"),
    ],
)
def test_a_line_that_cannot_be_used(line: bytes, note: str | None) -> None:
    assert read(line) == (None, note)


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_no_line_raises(line: bytes) -> None:
    record, note = read(line)
    assert record is None or note is None or isinstance(note, str)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.integers(-(2**80), 2**80))
def test_every_value_can_be_kept(value: Any, number: int) -> None:
    halves = json.loads('"\\ud83d"')
    kept = msgspec.msgpack.decode(packed({"value": value, "number": number, "text": halves}))
    assert kept["text"] == "\ufffd"
    assert kept["number"] == max(-(2**63) + 1, min(number, 2**63 - 1))


def test_a_value_that_fits_is_kept_as_it_is() -> None:
    value = Counted(2**64 - 1, b"\xff\0")
    assert packed(value) == msgspec.msgpack.encode(value)


def test_a_tamed_struct_is_still_one() -> None:
    value = Counted(2**70, b"\xff\0", other={"a": ["\ud800"], "ok": True})
    kept = msgspec.msgpack.decode(packed(value), type=Counted)
    assert kept == Counted(2**63 - 1, b"\xff\0", other={"a": ["\ufffd"], "ok": True})


def test_what_is_nested_without_end_is_cut() -> None:
    nest: Any = None
    for _ in range(100_000):
        nest = [nest]
    kept = tame(nest)
    for _ in range(DEPTH):
        (kept,) = kept
    assert kept is None
    while nest is not None:  # taken apart by hand: freeing it in one go recurses
        nest = nest[0]


def test_bounded_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = "h" * 5_000 + "t" * 5_000
    short = bounded(text, 100)
    assert short == "h" * 50 + "\n[... 9900 characters left out ...]\n" + "t" * 50


@given(st.text(max_size=400), st.integers(10, 200))
def test_bounded_once_is_bounded(text: str, limit: int) -> None:
    once = bounded(text, limit)
    assert bounded(once, limit) == once
    assert len(once) <= limit + 60
