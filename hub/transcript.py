"""A session's files in; its events out, read anew, and as text for people: who said what."""

from collections.abc import Iterable, Iterator

import msgspec

from hub import registry
from hub.adapter import Found
from hub.catalogue import Catalogue
from hub.cursor import Place, Reader
from hub.decode import bounded
from hub.events import (
    Answer,
    Compact,
    ErrorEvent,
    Event,
    Note,
    Prompt,
    Retry,
    Subagent,
    Thinking,
    ToolEnd,
    ToolStart,
    TurnEnd,
    Wait,
)
from hub.fold import summarise
from hub.text import line, lines

SHOWN = 4_000
"""Characters of one text in the transcript for people; `--json` has more, `--raw` all."""


def events(found: Catalogue, key: str) -> Iterator[Event]:
    """The events of a session's log files, numbered, then those of its sidecars.

    Raises:
        OSError: a file cannot be read.
    """
    number = 0
    for file in found.files(key):
        observer = registry.observer(file.agent)
        state = observer.start(msgspec.msgpack.decode(file.found, type=Found))
        try:
            reader = Reader(file.path, file.framing, Place())
        except FileNotFoundError:
            continue
        with reader:
            for piece in reader.pieces():
                for offset, text in piece:
                    for event in observer.events(text, offset, state):
                        event.session, event.path, event.n = key, file.relative, number
                        number += 1
                        yield event
    for event in found.asides(key):
        event.n = number
        number += 1
        yield event


def raw(found: Catalogue, key: str, count: int) -> list[bytes]:
    """The last `count` lines of the session's last log file, as the agent wrote them."""
    files = found.files(key)
    if not files or count <= 0:
        return []
    last: list[bytes] = []
    with Reader(files[-1].path, files[-1].framing, Place()) as reader:
        for piece in reader.pieces():
            last = [*last, *(text for _, text in piece)][-count:]
    return last


def text_of(stream: Iterable[Event]) -> Iterator[str]:
    """The transcript, a line of text at a time; safe for a terminal."""
    for event in stream:
        block = _block(event)
        if block is not None:
            yield from block


def _block(event: Event) -> list[str] | None:
    match event:
        case Prompt():
            who = {"human": "you", "queued": "you (queued)", "task": "parent agent"}
            return _said(who.get(event.source, event.source), event.at, event.text)
        case Answer():
            return _said("agent", event.at, event.text)
        case Thinking() if event.text.strip():
            return _said("thinking", event.at, event.text)
        case ToolStart():
            what = line(summarise(event))
            return [f"  {_VERBS[event.intent]} {line(event.name)}{f': {what}' if what else ''}"]
        case ToolEnd():
            return _result(event)
        case Wait():
            sure = "" if event.certain else " (perhaps)"
            return [f"  ? asks: {event.for_}{sure}"]
        case TurnEnd() if event.reason != "completed":
            return [f"-- turn ended: {line(event.reason)}"]
        case ErrorEvent():
            return [f"! {line(event.text)}"]
        case Retry():
            return [f"  ~ retry {event.attempt}: {line(event.text)}"]
        case Compact():
            return [f"-- history compacted ({event.phase})"]
        case Subagent():
            return [f"  + sub-agent {line(event.child)}"]
        case Note():
            detail = f" {event.detail}" if event.detail else ""
            return [f"  # {event.code}{line(detail)} at byte {event.offset} of {line(event.path)}"]
        case _:
            return None


_VERBS = {"terminal": "$", "diff": "±", "locations": "»", "generic": "*"}


def _said(who: str, at: str | None, text: str) -> list[str]:
    head = f"[{who}]" + (f" {at}" if at else "")
    return [head, *lines(bounded(text, SHOWN)).split("\n"), ""]


def _result(event: ToolEnd) -> list[str]:
    mark = "ok" if event.ok else "failed"
    code = f", exit {event.exit_code}" if event.exit_code is not None else ""
    spill = f", whole in {line(event.spill)}" if event.spill else ""
    out = [f"    -> {mark}{code}, {event.bytes} bytes{spill}"]
    shown = lines(bounded(event.text, SHOWN // 4)).rstrip("\n")
    if shown:
        out += [f"    | {one}" for one in shown.split("\n")]
    return out
