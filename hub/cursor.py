"""One file and the place reached in it; the complete lines since then out, or word that it changed.

A place is device, inode, position, and a hash of the bytes just before the position: a file that
shrank, was replaced or was filled anew is noticed and read from its start.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import Final, Self

from msgspec import Struct

from hub import framing

MARK: Final = 256
"""Bytes before the position that are hashed."""


class Place(Struct):
    """How far a file was read."""

    device: int = 0
    inode: int = 0
    position: int = 0
    """Byte of the file."""
    decoded: int = 0
    """Byte of the decoded text: the offset of `carry`'s first byte."""
    mark: bytes = b""
    """Hash of the MARK bytes before `position`."""
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
        self.restarted = False
        self._descriptor = open_regular(path)
        self.stat = os.fstat(self._descriptor)
        if not self._fits():
            self.restarted = place.position > 0
            place.position = place.decoded = 0
            place.carry = b""
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
        return same and place.position <= self.stat.st_size and self._mark() == place.mark

    def _mark(self) -> bytes:
        start = max(0, self.place.position - MARK)
        data = os.pread(self._descriptor, self.place.position - start, start)
        return hashlib.blake2b(data, digest_size=16).digest()

    def pieces(self) -> Iterator[list[tuple[int, bytes]]]:
        """The complete lines, a chunk at a time; the place moves with each piece."""
        pieces = self._zstd() if self.framing == "zstd" else self._lines()
        for lines in pieces:
            self.place.mark = self._mark()
            yield lines

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
            piece = framing.split(
                b"".join([*rest, data]) if rest else data, self.place.position, self.place.decoded
            )
            rest = [piece.rest] if piece.rest else []
            self.place.position, self.place.decoded = piece.position, piece.decoded
            yield piece.lines

    def _zstd(self) -> Iterator[list[tuple[int, bytes]]]:
        data = read_from(self._descriptor, self.place.position, self.stat.st_size)
        piece, carry = framing.unpack(
            data, self.place.position, self.place.decoded, self.place.carry
        )
        self.note = piece.note
        self.place.position, self.place.decoded = piece.position, piece.decoded
        self.place.carry = carry
        yield piece.lines

    def tail(self, size: int, first: int) -> list[tuple[int, bytes]]:
        """The complete lines of the last `size` bytes of a file of lines, from `first` on."""
        start = max(first, self.stat.st_size - size)
        data = os.pread(self._descriptor, self.stat.st_size - start, start)
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
