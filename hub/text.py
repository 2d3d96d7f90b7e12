"""Any text in; text that is safe and fits a terminal out: no control characters, cut by cells."""

import re
import unicodedata
from typing import Any, Final

import msgspec

from hub.decode import tame

# C0, DEL, C1, line and paragraph separators, and what turns the direction of text round
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_UNSAFE_LINES: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff]"
)
_JSON_UNSAFE: Final = re.compile(
    "[\x7f-\x9f\u061c\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def line(text: str) -> str:
    """One line: white space becomes single spaces, other control characters U+FFFD."""
    return _UNSAFE.sub("\ufffd", " ".join(text.split()))


def lines(text: str) -> str:
    """Several lines: newlines stay, tabs become spaces, other control characters U+FFFD."""
    return _UNSAFE_LINES.sub("\ufffd", text.replace("\r\n", "\n").expandtabs(4))


def json_of(value: Any) -> bytes:
    """The value as JSON; a path that is no valid text does not stop it."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return msgspec.json.encode(tame(value))


def json_safe(document: str) -> str:
    """A JSON document whose strings hold no raw control or direction character."""
    return _JSON_UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", document)


def width(text: str) -> int:
    """Terminal cells of a line."""
    if text.isascii():
        return len(text)
    import wcwidth  # noqa: PLC0415  # only for text beyond ASCII

    cells = wcwidth.wcswidth(text)
    return cells if cells >= 0 else len(text)


def fit(text: str, cells: int) -> str:
    """The line cut to so many cells, with an ellipsis where something is missing."""
    if width(text) <= cells:
        return text
    if cells <= 1:
        return "…"[:cells]
    out = ""
    for cluster in _clusters(text):
        # together: a mark may widen what it stands behind
        if width(out + cluster) > cells - 1:
            break
        out += cluster
    return out + "…"


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """The line cut or filled with spaces to exactly so many cells."""
    # a joiner at the end would take the space behind it
    text = fit(text, cells).rstrip("\u200d")

    def filled(count: int) -> str:
        return " " * count + text if right else text + " " * count

    while text:
        space = cells - width(text)
        # a mark without a letter takes the space beside it for one
        for count in (space, space - 1, space + 1):
            if count >= 0 and width(filled(count)) == cells:
                return filled(count)
        text = fit(text, width(text) - 1).rstrip("\u200d") if width(text) > 0 else ""
    return filled(cells)


def _clusters(text: str) -> list[str]:
    """Characters with what combines with them: marks, joiners, variation selectors, skin tones."""
    out: list[str] = []
    for character in text:
        joined = bool(out) and (
            unicodedata.category(character) in {"Mn", "Mc", "Me"}
            or character in "\u200d\ufe0e\ufe0f"
            or "\U0001f3fb" <= character <= "\U0001f3ff"
            or out[-1].endswith("\u200d")
        )
        if joined:
            out[-1] += character
        else:
            out.append(character)
    return out
