"""Shipped helpers for adapter authors: run an observer over bytes as the hub would, without a hub."""

from collections.abc import Iterable

from hub import framing
from hub.adapter import Found, Observer
from hub.events import Event


def log_events(observer: Observer, found: Found, data: bytes, key: str = "") -> list[Event]:
    """All events of a whole log file, numbered as the hub numbers them."""
    piece = (
        framing.unpack(data, 0, 0)[0]
        if found.framing == "zstd"
        else framing.split(data, 0, 0)
    )
    return line_events(observer, found, piece.lines, key)


def line_events(
    observer: Observer, found: Found, lines: Iterable[tuple[int, bytes]], key: str = ""
) -> list[Event]:
    """The events of lines that were framed already."""
    state = observer.start(found)
    out: list[Event] = []
    for offset, line in lines:
        for event in observer.events(line, offset, state):
            event.session, event.n = event.session or key, len(out)
            out.append(event)
    return out
