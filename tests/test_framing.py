"""hub.framing: lines out of bytes, whole frames out of a row of them, nothing out of a bomb."""

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from hub import framing

SKIPPABLE = b"\x50\x2a\x4d\x18\x03\0\0\0abc"


def frame(text: bytes) -> bytes:
    """A frame as an appending agent writes it: checksum, no size."""
    packer = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    return packer.compress(text) + packer.flush()


def broken(text: bytes) -> bytes:
    """A frame whose checksum is wrong."""
    data = bytearray(frame(text))
    data[-1] ^= 0xFF
    return bytes(data)


def lines(data: bytes) -> list[bytes]:
    return [line for _, line in framing.unpack(data, 0, 0)[0].lines]


@given(st.binary(max_size=200), st.integers(0, 10**6), st.integers(0, 10**6))
def test_split_loses_nothing(data: bytes, position: int, decoded: int) -> None:
    out = framing.split(data, position, decoded)
    assert b"".join(line + b"\n" for _, line in out.lines) + out.rest == data
    assert b"\n" not in out.rest
    assert out.position - position == out.decoded - decoded == len(data) - len(out.rest)
    for offset, line in out.lines:
        start = offset - decoded
        assert data[start : start + len(line) + 1] == line + b"\n"


def test_only_a_newline_ends_a_line() -> None:
    text = "a\rb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h".encode()
    assert framing.split(text + b"\n", 0, 0).lines == [(0, text)]


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_frames_are_one_text(texts: list[bytes]) -> None:
    out, carry = framing.unpack(b"".join(map(frame, texts)), 0, 0)
    plain = framing.split(b"".join(texts), 0, 0)
    assert (out.lines, carry, out.decoded) == (plain.lines, plain.rest, plain.decoded)
    assert (out.note, out.skipped) == (None, {})


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.data())
def test_a_torn_frame_is_left_alone(texts: list[bytes], data: st.DataObject) -> None:
    *whole, last = map(frame, texts)
    cut = data.draw(st.integers(1, len(last) - 1))
    out, _ = framing.unpack(b"".join(whole) + last[:cut], 100, 0)
    assert out.position == 100 + sum(map(len, whole))
    assert (out.note, out.skipped) == ("torn_frame", {})
    again, _ = framing.unpack(last, out.position, out.decoded, out.rest)
    assert out.lines + again.lines == framing.split(b"".join(texts), 0, 0).lines


@pytest.mark.parametrize("cut", range(1, len(SKIPPABLE)))
def test_a_frame_without_text_is_passed_over(cut: int) -> None:
    good = frame(b"one\n")
    out, _ = framing.unpack(SKIPPABLE + good + SKIPPABLE[:cut], 0, 0)
    assert [line for _, line in out.lines] == [b"one"]
    assert (out.position, out.note) == (len(SKIPPABLE + good), "torn_frame")
    assert lines(good + SKIPPABLE + good) == [b"one", b"one"]


@pytest.mark.parametrize("bad", [broken(b"lost\n"), b"garbage", b"\0" * 50, b"(", b"\x28\xb5\x2f"])
def test_what_stands_behind_a_broken_frame_is_read(bad: bytes) -> None:
    out, _ = framing.unpack(frame(b"one\n") + bad + frame(b"two\n"), 0, 0)
    assert out.lines == [(0, b"one"), (4, b"two")]
    assert out.skipped == {"bad_frame": 1}


def test_a_broken_end_is_passed_over_but_for_what_may_be_a_beginning() -> None:
    whole = frame(b"one\n")
    data = whole + broken(b"lost\n")
    out, _ = framing.unpack(data, 0, 0)
    assert (out.position, out.skipped) == (len(data), {"bad_frame": 1})
    torn, _ = framing.unpack(data + frame(b"two\n")[:3], 0, 0)
    assert torn.position == len(data)


def test_a_broken_frame_waits_while_more_of_the_file_is_to_come() -> None:
    data = broken(b"lost\n")
    out, _ = framing.unpack(data, 0, 0, last=False)
    assert (out.position, out.skipped) == (0, {})
    out, _ = framing.unpack(data + frame(b"two\n"), 0, 0, last=False)
    assert out.lines == [(0, b"two")]


def bomb(size: int) -> bytes:
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    piece = b"\0" * (1 << 20)
    return b"".join(packer.compress(piece) for _ in range(size >> 20)) + packer.flush()


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "DENSE", 1 << 22)
    data = frame(b"one\n") + bomb(1 << 28) + frame(b"two\n")
    out, _ = framing.unpack(data, 0, 0)
    assert out.lines == [(0, b"one"), (4, b"two")]
    assert out.skipped == {"frame_too_large": 1}


def test_a_frame_beyond_any_size_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "EXPANSION", 1 << 12)
    out, _ = framing.unpack(frame(bytes(range(256)) * 64) + frame(b"two\n"), 0, 0)
    assert (out.lines, out.skipped) == ([(0, b"two")], {"frame_too_large": 1})


def test_a_look_at_the_head_unpacks_no_more_than_it_wants() -> None:
    ((size, plain, note),) = framing.frames(bomb(1 << 28), 1 << 16)
    assert (size, note) == (0, "torn_frame")
    assert 1 << 16 < len(plain) <= 1 << 27, "one slice of input at most"


def test_a_long_line_over_many_frames_is_joined_once() -> None:
    parts = [b"x" * 1_000] * 2_000
    out, carry = framing.unpack(b"".join(map(frame, parts)), 0, 0)
    assert (out.lines, len(carry)) == ([], 2_000_000)
    assert lines(b"".join(map(frame, [*parts, b"\n"]))) == [b"x" * 2_000_000]
