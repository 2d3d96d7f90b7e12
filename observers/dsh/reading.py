"""A line or a piece of a dsh log in; records of one kind out, whatever stands there.

A field of an unexpected type costs only itself: what msgspec refuses is read again field by field.
"""

import json
from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from hub.decode import Decoder
from observers.dsh.records import Part, Row

T = TypeVar("T", bound=Struct)


class Reader(Generic[T]):
    """Reads a line's `data` into one kind."""

    def __init__(self, kind: type[T]) -> None:
        row: Any = Row
        self._kind = kind
        self._rows: msgspec.json.Decoder[Row[T]] = msgspec.json.Decoder(row[kind])
        self._mending = Decoder(kind)

    def row(self, line: bytes) -> Row[T] | None:
        """The whole line in one go; None where anything is odd."""
        try:
            return self._rows.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def data(self, raw: Raw) -> tuple[T, str | None]:
        """What can be used of odd `data`, and a note's code."""
        text = bytes(raw)
        value, note = self._mending(text)
        if value is not None:
            return value, note
        try:
            loose = json.loads(text.decode(errors="replace"), strict=False)
            whole = json.dumps(loose, ensure_ascii=False).encode("utf-16", "surrogatepass")
            loose = json.loads(whole.decode("utf-16", "replace"), strict=False)
        except (ValueError, RecursionError):
            return self._kind(), note
        return lenient(self._kind, loose), note


def lenient(kind: type[T], value: Any) -> T:
    """The fields of `value` that have the expected type; the others keep their defaults."""
    found: dict[str, Any] = {}
    if isinstance(value, dict):
        for one in msgspec.structs.fields(kind):
            if one.encode_name in value:
                try:
                    found[one.name] = _field(one.type, value[one.encode_name])
                except (msgspec.MsgspecError, RecursionError):
                    continue
    return kind(**found)


def _field(kind: Any, value: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.MsgspecError:
        inner = _struct(kind)
        if inner is not None and isinstance(value, dict):
            return lenient(inner, value)
        if get_origin(kind) is list and isinstance(value, list):
            inner = _struct(get_args(kind)[0])
            if inner is not None:
                return [lenient(inner, one) for one in value if isinstance(one, dict)]
        raise


def _struct(kind: Any) -> type[Struct] | None:
    """The struct type in `X` or `X | None`."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return next((one for one in options if isinstance(one, type) and issubclass(one, Struct)), None)


def parts(value: Any) -> list[Part]:
    """Blocks from a value of any type: a list of them, one text, or nothing."""
    if isinstance(value, str):
        return [Part(type="text", text=value)]
    if not isinstance(value, list):
        return []
    try:
        return msgspec.convert(value, list[Part])
    except (msgspec.MsgspecError, RecursionError):
        pass
    return [lenient(Part, one) for one in value if isinstance(one, dict)]
