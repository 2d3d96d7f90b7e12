"""One file and the place reached in it; the complete lines since then out, or word that it changed.

A place is device, inode, position, and a hash of the file's first bytes and of those just before
the position: a file that shrank, was replaced or was filled anew is noticed and read from its
start. What is hashed is what was read, not what stands there a moment later.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import Final, Self

from msgspec import Struct

from hub import framing

MARK: Final = 256
"""Bytes at the beginning and before the position that are hashed."""
WINDOW: Final = 1 << 24
"""Bytes of a compressed file that are held at a time, where its frames allow it."""


class Place(Struct):
    """How far a file was read."""

    device: int = 0
    inode: int = 0
    position: int = 0
    """Byte of the file."""
    decoded: int = 0
    """Byte of the decoded text: the offset of `carry`'s first byte."""
    mark: bytes = b""
    """Hash of the file's first MARK bytes and of those before `position`."""
    carry: bytes = b""
    """zstd: decoded text after the last newline of the frames that were read."""


class NotRegularError(OSError):
    """The path is no regular file (a FIFO would hang a list)."""


class Reader:
    """Reads one file on from a place.

    Args:
        path: the file.
        framing_name: `lines` or `zstd`.
        place: where the last reading ended; changed by `pieces`.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str, framing_name: str, place: Place) -> None:
        self.path, self.framing, self.place = path, framing_name, place
        self.note: str | None = None
        self.skipped: dict[str, int] = {}
        """What was passed over, and how often."""
        self.restarted = False
        self._head = self._tail = b""
        self._descriptor = open_regular(path)
        try:
            self.stat = os.fstat(self._descriptor)
            fits = self._fits()
        except OSError:
            os.close(self._descriptor)
            raise
        if not fits:
            self.restarted = place.position > 0
            place.position = place.decoded = 0
            place.carry = place.mark = b""
            self._head = self._tail = b""
        place.device, place.inode = self.stat.st_dev, self.stat.st_ino

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def _fits(self) -> bool:
        place = self.place
        if place.position == 0:
            return True
        same = (place.device, place.inode) == (self.stat.st_dev, self.stat.st_ino)
        if not same or not 0 < place.position <= self.stat.st_size:
            return False
        start = max(0, place.position - MARK)
        self._head = os.pread(self._descriptor, min(MARK, place.position), 0)
        self._tail = os.pread(self._descriptor, place.position - start, start)
        return self._mark() == place.mark

    def _mark(self) -> bytes:
        return hashlib.blake2b(self._head + self._tail, digest_size=16).digest()

    def _advance(self, data: bytes, piece: framing.Lines) -> None:
        """Moves the place behind what was taken of `data`, which stood at the place."""
        size = piece.position - self.place.position
        self._head += data[: min(size, MARK - len(self._head))]
        self._tail = (self._tail + data[max(0, size - MARK) : size])[-MARK:]
        self.place.position, self.place.decoded = piece.position, piece.decoded
        self.place.mark = self._mark()

    def pieces(self) -> Iterator[list[tuple[int, bytes]]]:
        """The complete lines, a chunk at a time; the place moves with each piece."""
        return self._zstd() if self.framing == "zstd" else self._lines()

    def _lines(self) -> Iterator[list[tuple[int, bytes]]]:
        rest: list[bytes] = []
        at = self.place.position
        while True:
            data = os.pread(self._descriptor, framing.CHUNK, at)
            if not data:
                return
            at += len(data)
            if b"\n" not in data:
                rest.append(data)
                continue
            whole = b"".join([*rest, data]) if rest else data
            piece = framing.split(whole, self.place.position, self.place.decoded)
            rest = [piece.rest] if piece.rest else []
            self._advance(whole, piece)
            yield piece.lines

    def _zstd(self) -> Iterator[list[tuple[int, bytes]]]:
        size = WINDOW
        while True:
            place = self.place
            data = read_from(self._descriptor, place.position, place.position + size)
            last = len(data) < size
            piece, carry = framing.unpack(
                data, place.position, place.decoded, place.carry, last=last
            )
            self.note = piece.note
            for note, count in piece.skipped.items():
                self.skipped[note] = self.skipped.get(note, 0) + count
            moved = piece.position > place.position
            place.carry = carry
            self._advance(data, piece)
            yield piece.lines
            if last:
                return
            size = WINDOW if moved else 2 * size  # one frame longer than the window

    def next(self, size: int) -> list[tuple[int, bytes]]:
        """The complete lines of about the next `size` bytes; the place moves behind them.

        A line that is longer is read whole.
        """
        place = self.place
        data = os.pread(self._descriptor, size, place.position)
        if self.framing == "zstd":
            piece, carry = framing.unpack(
                data, place.position, place.decoded, place.carry, last=False
            )
            while piece.position == place.position and len(data) == size:
                size *= 4  # a frame that is longer
                data = os.pread(self._descriptor, size, place.position)
                piece, carry = framing.unpack(
                    data, place.position, place.decoded, place.carry, last=False
                )
            place.carry = carry
        else:
            while b"\n" not in data:
                more = os.pread(self._descriptor, max(size, len(data)), place.position + len(data))
                if not more:
                    return []
                data += more
            end = data.find(b"\n", size) + 1 if len(data) > size else 0
            piece = framing.split(data[: end or None], place.position, place.decoded)
        place.position, place.decoded = piece.position, piece.decoded
        return piece.lines

    def tail(self, size: int, first: int) -> list[tuple[int, bytes]]:
        """The complete lines of the last `size` bytes, from byte `first` of the file on.

        Where frames are decoded from the middle, offsets are not known: they are -1.
        """
        start = max(first, self.stat.st_size - size)
        data = os.pread(self._descriptor, self.stat.st_size - start, start)
        if self.framing == "zstd":
            whole = b"".join(framing.tail_frames(data))
            return [(-1, line) for _, line in framing.split(whole, 0, 0).lines]
        if start > first:
            cut = data.find(b"\n") + 1
            if cut == 0:
                return []
            start, data = start + cut, data[cut:]
        return framing.split(data, start, start).lines


def open_regular(path: str) -> int:
    """A descriptor of a regular file, opened without waiting and without following its device.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(0, "not a regular file", path)
    return descriptor


def read_from(descriptor: int, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, or to where the file ends."""
    parts: list[bytes] = []
    while start < end:
        data = os.pread(descriptor, min(framing.CHUNK, end - start), start)
        if not data:
            break
        parts.append(data)
        start += len(data)
    return b"".join(parts)
