"""The TypeScript Codex CLI (2025-04 .. 2025-05): one indented JSON file a session, rewritten whole.

`{"session": {timestamp, id, instructions}, "items": [...]}` as `JSON.stringify(.., null, 2)` makes
it. Its indentation is fixed and a JSON string has no raw line break, so the file can be read in
lines like every other log: an item begins and ends at four spaces. The items are those of
0.8 .. 0.29; `timestamp` is the time of the last save; there are no tokens, models or folders.
"""

from re import compile as pattern
from typing import Final

from hub.events import Event, Meta, Note
from observers.codex import items
from observers.codex.records import loose, moment
from observers.codex.state import State
from observers.codex.thread import system

_FIRST: Final = b'  "session": {'
_FRAME: Final = (b"{", b"}", b"  }", b"  },", b"  ]", b'  "items": [', b'  "items": []', _FIRST)
_MEMBER = pattern(rb'    "(\w+)": (.*?),?')


def is_part(line: bytes, offset: int, state: State) -> bool:
    """Is it a line of such a file?"""
    state.pretty = state.pretty or line == _FIRST
    return state.pretty or (line == b"{" and offset == 0)


def line(line: bytes, offset: int, state: State, out: list[Event]) -> tuple[str | None, int]:
    """The events of one line, in `out`.

    Returns:
        The id of the item that ends here, and where it began.
    """
    if line == b"    {":
        state.piece, state.piece_at = [line], offset
    elif state.piece and line.startswith(b"      "):
        state.piece.append(line)
    elif state.piece and line in (b"    }", b"    },"):
        whole = b"\n".join([*state.piece, b"}"])
        state.piece = []
        return items.response(whole, state.piece_at, state, out, bare=True), state.piece_at
    elif (member := _MEMBER.fullmatch(line)) and not state.met:
        _member(member[1], member[2], state, out)
    elif line not in _FRAME and not line.startswith(b"    "):
        out.append(Note(code="wrong_shape"))
    return None, offset


def _member(name: bytes, value: bytes, state: State, out: list[Event]) -> None:
    """A member of `session`; only the interactive interface writes these files."""
    if name == b"timestamp":
        out.append(Meta(at=moment(loose(value)), surface="tui"))
        state.told["surface"] = "tui"
    elif name == b"instructions":
        state.met = True
        system(loose(value), state, out)
