"""hub.cursor: however a file is written, torn, cut or replaced: what is read is what is there."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from hub import cursor, framing
from hub.cursor import NotRegularError, Place, Reader, open_regular

Line = tuple[int, bytes]


def frame(text: bytes) -> bytes:
    packer = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    return packer.compress(text) + packer.flush()


def read(path: Path, name: str, place: Place) -> tuple[bool, list[Line]]:
    """(was it read from its start, the new lines)."""
    with Reader(str(path), name, place) as reader:
        return reader.restarted, [line for piece in reader.pieces() for line in piece]


class _Follows(RuleBasedStateMachine):
    """One reader follows a file; another reads it afresh after each change."""

    framing = "lines"

    def __init__(self) -> None:
        super().__init__()
        import tempfile  # noqa: PLC0415

        self.folder = tempfile.TemporaryDirectory(prefix="agenthub-cursor-")
        self.path = Path(self.folder.name) / "log"
        self.path.write_bytes(b"")
        self.place = Place()
        self.lines: list[Line] = []

    def teardown(self) -> None:
        self.folder.cleanup()

    def bytes_of(self, text: bytes) -> bytes:
        return text if self.framing == "lines" else frame(text)

    def follow(self) -> None:
        restarted, new = read(self.path, self.framing, self.place)
        self.lines = new if restarted else self.lines + new
        fresh = Place()
        _, every = read(self.path, self.framing, fresh)
        assert self.lines == every
        assert self.place == fresh

    @rule(text=st.binary(max_size=30), newline=st.booleans())
    def write(self, text: bytes, newline: bool) -> None:
        with self.path.open("ab") as stream:
            stream.write(self.bytes_of(text + b"\n" * newline))
        self.follow()

    @rule(text=st.binary(min_size=1, max_size=30), cut=st.integers(1, 40))
    def tear_then_finish(self, text: bytes, cut: int) -> None:
        data = self.bytes_of(text + b"\n")
        with self.path.open("ab", buffering=0) as stream:
            stream.write(data[:cut])
            self.follow()
            stream.write(data[cut:])
        self.follow()

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        size = int(self.path.stat().st_size * part)
        if self.framing == "zstd" and size < self.place.position:
            size = 0  # a cut in mid frame is what `tear` does
        os.truncate(self.path, size)
        self.follow()

    @rule(text=st.binary(max_size=60))
    def replace(self, text: bytes) -> None:
        other = self.path.with_name("other")
        other.write_bytes(self.bytes_of(text))
        other.replace(self.path)
        self.follow()

    @rule(text=st.binary(min_size=1, max_size=60))
    def fill_anew(self, text: bytes) -> None:
        self.path.write_bytes(self.bytes_of(text + b"\n"))
        self.follow()

    @rule(junk=st.binary(min_size=1, max_size=10))
    def junk(self, junk: bytes) -> None:
        if self.framing == "lines":
            with self.path.open("ab") as stream:
                stream.write(junk)
            self.follow()


class _FollowsFrames(_Follows):
    framing = "zstd"


_Follows.TestCase.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)
_FollowsFrames.TestCase.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)
TestFollowsLines = _Follows.TestCase
TestFollowsFrames = _FollowsFrames.TestCase


def test_the_same_inode_with_other_content_is_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")
    place = Place()
    read(log, "lines", place)
    with log.open("r+b") as stream:
        stream.write(b"ONE\nTWO\nmore\n")
    assert read(log, "lines", place) == (True, [(0, b"ONE"), (4, b"TWO"), (8, b"more")])


def test_another_beginning_is_noticed_behind_an_equal_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rest = b"x" * (4 * cursor.MARK) + b"\n"
    log.write_bytes(b"one\n" + rest)
    place = Place()
    read(log, "lines", place)
    with log.open("r+b") as stream:
        stream.write(b"ONE\n")
    assert read(log, "lines", place) == (True, [(0, b"ONE"), (4, rest[:-1])])


def test_another_end_is_noticed_behind_an_equal_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rest = b"x" * (4 * cursor.MARK) + b"\n"
    log.write_bytes(rest + b"one\n")
    place = Place()
    read(log, "lines", place)
    with log.open("r+b") as stream:
        stream.seek(len(rest))
        stream.write(b"ONE\n")
    assert read(log, "lines", place) == (True, [(0, rest[:-1]), (len(rest), b"ONE")])


@pytest.mark.parametrize("name", ["lines", "zstd"])
def test_what_changes_while_it_is_read_is_noticed_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The mark is of the bytes that were read, not of those that stand there a moment later."""
    old, new = b"one\n", b"two\n"
    if name == "zstd":
        old, new = frame(old), frame(new)
    log = tmp_path / "log"
    log.write_bytes(old)
    place = Place()
    pread = os.pread

    def racing(descriptor: int, size: int, at: int) -> bytes:
        data = pread(descriptor, size, at)
        with log.open("r+b") as stream:
            stream.write(new)
        return data

    monkeypatch.setattr(os, "pread", racing)
    assert read(log, name, place) == (False, [(0, b"one")])
    monkeypatch.undo()
    assert read(log, name, place) == (True, [(0, b"two")])


@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_no_length_of_a_line_loses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(framing, "CHUNK", chunk)
    log = tmp_path / "log"
    log.write_bytes(b"a" * 50 + b"\n\n" + "é".encode() * 20 + b"\nrest")
    place = Place()
    assert read(log, "lines", place) == (
        False,
        [(0, b"a" * 50), (51, b""), (52, "é".encode() * 20)],
    )
    assert place.position == 93


def test_a_frame_longer_than_the_window_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "WINDOW", 64)
    log = tmp_path / "log"
    noise = os.urandom(1_000).replace(b"\n", b" ")
    data = frame(b"one\n") + frame(noise + b"\n") + b"junk" * 40 + frame(b"three\n")
    log.write_bytes(data)
    place = Place()
    with Reader(str(log), "zstd", place) as reader:
        found = [line for piece in reader.pieces() for _, line in piece]
    assert found == [b"one", noise, b"three"]
    assert (place.position, reader.skipped) == (len(data), {"bad_frame": 1})


def test_the_tail_begins_at_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\nthree\nfo")
    with Reader(str(log), "lines", Place()) as reader:
        assert reader.tail(9, 0) == [(8, b"three")]
        assert reader.tail(100, 4) == [(4, b"two"), (8, b"three")]
        assert reader.tail(1, 0) == []


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        descriptor = os.open(path.parent, os.O_PATH)
        server.bind(f"/proc/self/fd/{descriptor}/{path.name}")
        os.close(descriptor)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_fifo, _socket, Path.mkdir, _device])
def test_only_regular_files_are_opened(tmp_path: Path, make: Any) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    make(tmp_path / "odd")
    with pytest.raises(OSError, match="odd") as raised:
        open_regular(str(tmp_path / "odd"))
    assert isinstance(raised.value, NotRegularError) or make is _socket
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "nothing stays open"
