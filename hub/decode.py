r"""One line of bytes in; a typed record out, or the reason why there is none; it never raises.

msgspec reads the fields that an adapter names and skips the rest. What it refuses is mended where
the text allows it: leading NULs (power loss), bytes that are not UTF-8, lone surrogates (Claude
Code writes `\ud83d` when it cuts a preview in mid pair), a record glued behind torn text.
"""

import json
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

LIMIT = 30_000
"""Characters that a text of an event keeps."""
DEPTH = 100
"""Levels of nesting that are kept of a value which is too deep to be written."""
_LARGEST = 2**63 - 1
_MARKER = len(f"\n[... {10**12} characters left out ...]\n")


class Decoder(Generic[T]):
    """Reads lines into `T`.

    Args:
        kind: a msgspec Struct type; unknown fields are skipped.
        salvage: how a record of this agent begins, for text that is glued behind a torn line.
    """

    def __init__(self, kind: type[T], salvage: Sequence[bytes] = ()) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._kind = kind
        self._salvage = salvage

    def __call__(self, line: bytes) -> tuple[T | None, str | None]:
        """The record, and a note's code where the line was odd.

        Returns:
            `(record, None)` for a clean line, `(record, code)` for a mended one, `(None, code)`
            for one that cannot be used, `(None, None)` for a blank one. Codes: `nul_bytes`
            `invalid_utf8` `lone_surrogate` `salvaged` `wrong_shape` `bad_json`.
        """
        if not line.strip():
            return None, None
        try:
            return self._decoder.decode(line), None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return self._mend(line, error)

    def _mend(self, line: bytes, error: Exception) -> tuple[T | None, str | None]:
        note = "wrong_shape" if isinstance(error, msgspec.ValidationError) else "bad_json"
        if line[:1] == b"\0":
            line = line.lstrip(b"\0")
            note = "nul_bytes"
            try:
                return self._decoder.decode(line), note
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
        value, how = _lenient(line)
        if how is not None:
            record = self._typed(value)
            if record is not None:
                return record, note if how == "" else how
            return None, "wrong_shape"
        for place in self._glued(line):
            value, how = _lenient(line[place:])
            record = self._typed(value) if how is not None else None
            if record is not None:
                return record, "salvaged"
        return None, note

    def _glued(self, line: bytes) -> list[int]:
        places = {line.rfind(marker) for marker in self._salvage}
        return sorted((place for place in places if place > 0), reverse=True)

    def _typed(self, value: Any) -> T | None:
        try:
            return self._decoder.decode(msgspec.json.encode(value))
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return None


def _lenient(line: bytes) -> tuple[Any, str | None]:
    """Any JSON value of the line, and what had to be mended ("" = nothing); None = no JSON."""
    how = ""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = line.decode(errors="replace")
        how = "invalid_utf8"
    try:
        clean, halves = _whole(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return None, None
    return clean, "lone_surrogate" if halves and not how else how


def _whole(value: Any) -> tuple[Any, bool]:
    """The value with lone surrogates replaced by U+FFFD, and whether there were any."""
    text = json.dumps(value, ensure_ascii=False)
    mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return (json.loads(mended, strict=False), True) if mended != text else (value, False)


def packed(value: object) -> bytes:
    """The value as msgpack, whatever stands in it: what msgpack cannot hold is `tame`d."""
    try:
        return msgspec.msgpack.encode(value)
    except (OverflowError, UnicodeEncodeError, RecursionError):
        return msgspec.msgpack.encode(tame(value))


def tame(value: object, depth: int = DEPTH) -> Any:
    """The value with integers held to 64 bits, lone surrogates as U+FFFD, and `depth` levels."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-_LARGEST, min(value, _LARGEST))
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        fields = {
            name: getattr(value, own)
            for own, name in zip(
                value.__struct_fields__, value.__struct_encode_fields__, strict=True
            )
        }
        tags = {config.tag_field: config.tag} if config.tag_field is not None else {}
        return tame(tags | {k: v for k, v in fields.items() if v is not msgspec.UNSET}, depth)
    if isinstance(value, dict):
        if depth == 0:
            return None
        return {tame(key, 0): tame(one, depth - 1) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return None if depth == 0 else [tame(one, depth - 1) for one in value]
    return value


def bounded(text: str, limit: int = LIMIT) -> str:
    """The text, or its head and tail with the number of characters left out between them.

    What was bounded once stays as it is: the number would otherwise count the rest of a rest.
    """
    if len(text) <= limit + _MARKER:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
