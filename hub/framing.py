"""The bytes of a growing file in; complete lines with their offsets out; an unfinished tail stays.

Two framings: `lines` (newline-delimited UTF-8) and `zstd` (the same text in a row of zstd frames,
as dsh appends them, or in one frame, as Codex compresses cold rollouts). Offsets of lines count
decoded bytes; the position to go on from counts bytes of the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor

CHUNK = 1 << 20
"""Bytes read at a time."""
EXPANSION = 1 << 30
"""Decoded bytes of one frame beyond which it is taken for a bomb."""
DENSE = 1 << 26
"""The same, where the frame decodes to more than `RATIO` times its own size."""
RATIO = 4096

_SLICE = 1 << 12
"""Bytes decoded at a time: what comes out of one step stays below 128 MiB."""
_TRIES = 256
"""Beginnings of a frame that are tried behind a broken one."""
_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
"""Behind a byte from 0x50 to 0x5f: a frame that holds no text."""


@dataclass
class Lines:
    """What came out of a piece of a file."""

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    """(offset in the decoded text, line without its newline)"""
    position: int = 0
    """Byte of the file to go on from."""
    decoded: int = 0
    """Offset in the decoded text of the first byte that was not given out."""
    note: str | None = None
    """`torn_frame`: what ended the reading."""
    skipped: dict[str, int] = field(default_factory=dict)
    """`bad_frame`, `frame_too_large` -> how many were passed over."""
    rest: bytes = b""
    """The unfinished line, for a look at it; it will be read again."""


def split(data: bytes, position: int, decoded: int) -> Lines:
    """The complete lines of `data`, which stands at `position` of a file of plain lines."""
    out = Lines(position=position, decoded=decoded)
    parts = data.split(b"\n")
    out.rest = parts.pop()
    offset, lines = decoded, out.lines
    for part in parts:
        lines.append((offset, part))
        offset += len(part) + 1
    out.position = position + offset - decoded
    out.decoded = offset
    return out


def unpack(
    data: bytes, position: int, decoded: int, carry: bytes = b"", *, last: bool = True
) -> tuple[Lines, bytes]:
    """The complete lines of the complete frames of `data`.

    Args:
        data: bytes of the file from `position` on, beginning at a frame.
        position: where that is in the file.
        decoded: offset of `carry`'s first byte in the decoded text.
        carry: decoded text of earlier frames after their last newline.
        last: nothing of the file follows `data`.

    Returns:
        The lines, and the new carry. A torn last frame is left for the next time; a broken one is
        passed over as soon as it is known where the next begins.
    """
    out = Lines(position=position, decoded=decoded)
    open_line = [carry] if carry else []
    for size, plain, note in frames(data, last=last):
        if size == 0:
            out.note = note
            break
        out.position += size
        if note is not None:
            out.skipped[note] = out.skipped.get(note, 0) + 1
        if b"\n" not in plain:
            open_line.append(plain)
            continue
        piece = split(b"".join([*open_line, plain]), 0, out.decoded)
        out.lines += piece.lines
        out.decoded = piece.decoded
        open_line = [piece.rest]
    out.rest = b"".join(open_line)
    return out, out.rest


def frames(
    data: bytes, limit: int | None = None, *, last: bool = True
) -> Iterator[tuple[int, bytes, str | None]]:
    """The frames of `data`: (bytes of the file, decoded text, what is wrong with it).

    Args:
        data: bytes of the file, beginning at a frame.
        limit: decoded bytes of a frame that are enough; what is longer ends as `torn_frame`.
        last: nothing of the file follows `data`; else a broken frame at its end is left alone.
    """
    start = 0
    while start < len(data):
        end, plain, note = _frame(data, start, limit)
        if note in {"bad_frame", "frame_too_large"}:
            end = _next(data, start, last=last)
        yield end - start, plain, note if end > start else "torn_frame"
        if end == start:
            return
        start = end


def _frame(data: bytes, start: int, limit: int | None = None) -> tuple[int, bytes, str | None]:
    """The frame at `start`: (where it ends, its text, what is wrong); a torn one has no length."""
    magic = data[start : start + 4]
    if 0x50 <= magic[0] <= 0x5F and _SKIPPABLE.startswith(magic[1:]):
        end = start + 8 + int.from_bytes(data[start + 4 : start + 8], "little")
        whole = len(data) >= start + 8 and end <= len(data)
        return (end, b"", None) if whole else (start, b"", "torn_frame")
    if not _MAGIC.startswith(magic):
        return start, b"", "bad_frame"
    reader = _decompressor().decompressobj()
    parts: list[bytes] = []
    total, place = 0, start
    while place < len(data) and not reader.eof:
        try:
            parts.append(reader.decompress(data[place : place + _SLICE]))
        except _errors():
            return start, b"", "bad_frame"
        total += len(parts[-1])
        place = min(place + _SLICE, len(data))
        if limit is not None and total > limit:
            return start, b"".join(parts), "torn_frame"
        if total > EXPANSION or (total > DENSE and total > RATIO * (place - start)):
            return start, b"", "frame_too_large"
    if not reader.eof:
        return start, b"".join(parts), "torn_frame"
    return place - len(reader.unused_data), b"".join(parts), None


def _next(data: bytes, start: int, *, last: bool) -> int:
    """Where to go on behind a broken frame; `start` itself where that cannot be told yet."""
    spot = start
    for _ in range(_TRIES):
        spot = data.find(_MAGIC, spot + 1)
        if spot < 0:
            break
        _, _, note = _frame(data, spot)
        if note is None or (last and note == "torn_frame"):
            return spot
    if not last:
        return start
    # the first bytes of the next frame may be here already
    kept = next((size for size in (3, 2, 1) if data.endswith(_MAGIC[:size])), 0)
    return max(start, len(data) - kept)


@cache
def _decompressor() -> "ZstdDecompressor":
    """One for all frames: making it costs more than a small frame."""
    import zstandard  # noqa: PLC0415  # only homes with compressed files pay for it

    return zstandard.ZstdDecompressor()


@cache
def _errors() -> type[Exception]:
    import zstandard  # noqa: PLC0415

    return zstandard.ZstdError


def tail_frames(data: bytes) -> list[bytes]:
    """The decoded frames at the end of `data`, which begins anywhere in a file."""
    spot = data.find(_MAGIC)
    while spot >= 0:
        plain: list[bytes] = []
        for _, text, note in frames(data[spot:]):
            if note is not None and note != "torn_frame":
                plain.clear()
                break
            if note is None:
                plain.append(text)
        if plain:
            return plain
        spot = data.find(_MAGIC, spot + 1)
    return []
