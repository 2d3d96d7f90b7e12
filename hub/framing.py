"""The bytes of a growing file in; complete lines with their offsets out; an unfinished tail stays.

Two framings: `lines` (newline-delimited UTF-8) and `zstd` (the same text in a row of zstd frames,
as dsh appends them, or in one frame, as Codex compresses cold rollouts). Offsets of lines count
decoded bytes; the position to go on from counts bytes of the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

CHUNK = 1 << 20
"""Bytes read at a time."""
EXPANSION = 1 << 30
"""Decoded bytes of one frame beyond which it is taken for a bomb."""

_MAGIC = b"\x28\xb5\x2f\xfd"


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
    """`torn_frame`, `bad_frame`, `frame_too_large`: what ended the reading."""
    rest: bytes = b""
    """The unfinished line, for a look at it; it will be read again."""


def split(data: bytes, position: int, decoded: int) -> Lines:
    """The complete lines of `data`, which stands at `position` of a file of plain lines."""
    out = Lines(position=position, decoded=decoded)
    start = 0
    end = data.find(b"\n")
    while end >= 0:
        out.lines.append((decoded + start, data[start:end]))
        start = end + 1
        end = data.find(b"\n", start)
    out.position = position + start
    out.decoded = decoded + start
    out.rest = data[start:]
    return out


def unpack(data: bytes, position: int, decoded: int, carry: bytes = b"") -> tuple[Lines, bytes]:
    """The complete lines of the complete frames of `data`.

    Args:
        data: bytes of the file from `position` on, beginning at a frame.
        position: where that is in the file.
        decoded: offset of `carry`'s first byte in the decoded text.
        carry: decoded text of earlier frames after their last newline.

    Returns:
        The lines, and the new carry. A torn last frame is left for the next time.
    """
    out = Lines(position=position, decoded=decoded)
    text = carry
    for size, plain, note in frames(data):
        if note is not None:
            out.note = note
            break
        out.position += size
        text += plain
        piece = split(text, 0, out.decoded)
        out.lines += piece.lines
        out.decoded, text = piece.decoded, piece.rest
    out.rest = text
    return out, text


def frames(data: bytes) -> Iterator[tuple[int, bytes, str | None]]:
    """The frames of `data`: (bytes of the file, decoded text, what is wrong with it)."""
    import zstandard  # noqa: PLC0415  # only homes with compressed files pay for it

    start = 0
    while start < len(data):
        if not _MAGIC.startswith(data[start : start + 4]):
            yield 0, b"", "bad_frame"
            return
        reader = zstandard.ZstdDecompressor().decompressobj()
        parts: list[bytes] = []
        total, place = 0, start
        try:
            while place < len(data) and not reader.eof and total <= EXPANSION:
                parts.append(reader.decompress(data[place : place + CHUNK]))
                total += len(parts[-1])
                place = min(place + CHUNK, len(data))
        except zstandard.ZstdError:
            yield 0, b"", "bad_frame"
            return
        if total > EXPANSION:
            yield 0, b"", "frame_too_large"
            return
        if not reader.eof:
            yield 0, b"".join(parts), "torn_frame"
            return
        end = place - len(reader.unused_data)
        yield end - start, b"".join(parts), None
        start = end
