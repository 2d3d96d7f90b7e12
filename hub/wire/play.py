"""A request and its scripted acts come in; bytes go out to the client and notes to the ledger."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from hub.scripts import (
    FINAL,
    Act,
    Before,
    Cut,
    Hold,
    HttpError,
    Pause,
    Script,
    Silent,
    Step,
    Stop,
    StreamError,
    Text,
    Thinking,
    Tool,
    Usage,
    steps_of,
)
from hub.wire import Json, Reply, Request, Wire, side_answer
from hub.wire.ledger import GoneError, Ledger, LedgerEntry
from hub.wire.tools import applies, calls


class Client(Protocol):
    """The connection an answer goes out on."""

    def document(
        self, entry: LedgerEntry, status: int, body: Json, retry_after: int | None
    ) -> None:
        """Send one JSON document and its headers."""
        ...

    def stream(self, entry: LedgerEntry) -> None:
        """Send the headers of an event stream."""
        ...

    def send(self, data: bytes) -> None:
        """Send a part of the stream."""
        ...

    def cut(self) -> None:
        """Close the connection at once."""
        ...

    def alive(self) -> bool:
        """Whether the client is still there."""
        ...


def usage_of(n: int) -> Usage:
    """The token counts of answer `n`; uneven steps keep sums of different answers apart."""
    return Usage(
        input=1000 + 7 * n + n**3 * 37 % 7919,
        cache_read=100 + 3 * n + n**3 * 53 % 2003,
        cache_write=10 + n + n**2 * 11 % 499,
        output=50 + n + n**2 * 29 % 997,
        reasoning=n % 5,
    )


def choose(request: Request, scripts: Mapping[str, Script], entry: LedgerEntry) -> Step:
    """The step to play for a request; what was asked goes into the entry."""
    entry.model, entry.session = request.model, request.session
    entry.purpose = request.purpose()
    if entry.purpose != "turn":
        return (Text(side_answer(request)),)
    directive, entry.prompt, entry.step = request.directive()
    entry.script = ":".join((directive.name, *directive.args))
    steps = [step for step in steps_of(scripts, directive) if applies(step, request)]
    return steps[entry.step] if entry.step < len(steps) else FINAL


class Answer:
    """One answer on its way to a client."""

    def __init__(
        self, client: Client, ledger: Ledger, entry: LedgerEntry, wire: Wire, request: Request
    ) -> None:
        """Nothing is sent yet."""
        self.client = client
        self.ledger = ledger
        self.entry = entry
        self.wire = wire
        self.request = request
        self.started = False

    def give(self, step: Step) -> None:
        """Play a step to its end; `GoneError` or `ConnectionError` when the client leaves."""
        own = usage_of(self.entry.n)
        counts = next((act for act in step if isinstance(act, Usage)), own)
        if self.wire.PROTOCOL == "chat":  # has no field for cache writes
            counts = Usage(counts.input, counts.cache_read, 0, counts.output, counts.reasoning)
        stop = next((act.reason for act in step if isinstance(act, Stop)), "")
        reply = Reply(self.wire.response_id(), self.request.model, counts, stop, int(time.time()))
        self.encoder = self.wire.encoder(reply)
        with self.ledger.changing():
            self.entry.response_id = reply.id
        for act in step:
            if self._play(act):
                return
        self._start()
        self.ledger.ending(self.entry, "complete", counts)
        if self.request.stream:
            self.client.send(self.encoder.end())
        else:
            self.client.document(self.entry, 200, self.encoder.whole(), None)

    def _play(self, act: Act) -> bool:
        """Play one act, and say whether the answer ends with it."""
        match act:
            case Before():
                self.ledger.pause(act.seconds, self.client.alive)
            case Hold():
                self.ledger.hold(act.gate, self.entry, self.client.alive)
            case HttpError():
                return self._http_error(act)
            case Silent():
                return self._silent()
            case Pause():
                self._start()
                self.ledger.pause(act.seconds, self.client.alive)
            case Cut():
                return self._cut()
            case StreamError():
                return self._stream_error(act)
            case Stop() | Usage():
                pass
            case Text():
                self._text(act)
            case Thinking():
                self._send(self.encoder.thinking, act.text)
                with self.ledger.changing():
                    self.entry.thinking += act.text
            case _:
                self._tools(act)
        return False

    def _start(self) -> None:
        if self.started or not self.request.stream:
            return
        self.started = True
        self.client.stream(self.entry)
        self.client.send(self.encoder.begin())

    def _send(self, encode: Callable[[str], bytes], piece: str) -> None:
        self._start()
        data = encode(piece)
        if self.request.stream:
            self.client.send(data)

    def _text(self, act: Text) -> None:
        for place, piece in enumerate(split(act.text, act.pieces)):
            if place and act.pause:
                self.ledger.pause(act.pause, self.client.alive)
            self._send(self.encoder.text, piece)
            with self.ledger.changing():
                self.entry.answer += piece

    def _tools(self, act: Tool) -> None:
        def identify(place: int) -> str:
            return self.wire.call_id(self.entry.n, place)

        for made in calls(act, self.request, identify, len(self.entry.tools)):
            if isinstance(made, Text):
                self._text(made)
                continue
            self._start()
            data = self.encoder.tool(made)
            if self.request.stream:
                self.client.send(data)
            sent: Json = {"id": made.id, "name": made.name, "args": made.arguments}
            with self.ledger.changing():
                self.entry.tools.append(sent)

    def _http_error(self, act: HttpError) -> bool:
        if act.times is not None and self.ledger.tried(self.entry) > act.times:
            return False
        body = self.wire.error(act.code, act.type, act.message, self.entry.request_id)
        with self.ledger.changing():
            self.entry.status, self.entry.response_id = act.code, ""
        self.ledger.ending(self.entry, "error")
        self.client.document(self.entry, act.code, body, act.retry_after)
        return True

    def _silent(self) -> bool:
        with contextlib.suppress(GoneError):
            self.ledger.pause(None, self.client.alive)
        self.ledger.ending(self.entry, "silent")
        self.client.cut()
        return True

    def _cut(self) -> bool:
        if not self.request.stream:
            return False
        self._start()
        self.ledger.ending(self.entry, "cut")
        self.client.cut()
        return True

    def _stream_error(self, act: StreamError) -> bool:
        if not self.request.stream:
            return False
        self._start()
        self.ledger.ending(self.entry, "error")
        self.client.send(self.encoder.fail(act.type, act.message))
        return True


def split(text: str, pieces: int) -> Iterator[str]:
    """A text in so many parts of about one size; an empty text is one part."""
    size = max(1, -(-len(text) // max(1, pieces)))
    for start in range(0, max(1, len(text)), size):
        yield text[start : start + size]
