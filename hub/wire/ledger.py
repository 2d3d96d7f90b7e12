"""Requests and what became of them come in; entries, waits and gates for tests go out."""

import contextlib
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

from hub.scripts import Usage
from hub.wire import Json, Purpose

Ended = Literal["open", "complete", "cut", "aborted", "error", "silent"]
T = TypeVar("T")
_POLL_SECONDS = 0.02
"""How often a waiting answer looks whether its client is still there."""


class GoneError(Exception):
    """The client left in mid answer, or the server stops."""


@dataclass(slots=True)
class LedgerEntry:
    """What one request asked and what it was given; still `open` while it is being answered."""

    n: int
    """Its number, from 1."""
    at: float
    """Unix seconds of its arrival."""
    protocol: str
    """`messages`, `responses`, `chat`, or nothing for any other path."""
    path: str
    model: str = ""
    session: str = ""
    """The native session id the agent sent along, if any."""
    purpose: Purpose = "other"
    """`turn` for the agent's own work, `title`, or `other` for every other side request."""
    script: str = ""
    """The directive, without its brackets."""
    step: int = 0
    prompt: str = ""
    """The prompt whose directive chose the script."""
    status: int = 200
    """The HTTP status; meant only once `ended` is not `open`."""
    response_id: str = ""
    request_id: str = ""
    usage: Usage | None = None
    """The token counts given out; none when the answer did not come to its end."""
    answer: str = ""
    thinking: str = ""
    tools: list[Json] = field(default_factory=list["Json"])
    """The calls sent, each with `id`, `name` and `args`."""
    ended: Ended = "open"


class Ledger:
    """Every request of one server, safe to read and wait on from any thread."""

    def __init__(self, path: Path | None = None) -> None:
        """Write a JSON line for every finished request to `path`, if given."""
        self._path = path
        self._changed = threading.Condition()
        self._entries: list[LedgerEntry] = []
        self._tries: Counter[tuple[str, str, int]] = Counter()
        self._released: set[str] = set()
        self._held: list[tuple[str, LedgerEntry]] = []
        self._stopping = False

    def entries(self) -> list[LedgerEntry]:
        """A copy of every entry so far, in order of arrival."""
        with self._changed:
            return [_copy(entry) for entry in self._entries]

    def arrived(self, protocol: str, path: str) -> LedgerEntry:
        """A new, open entry; only its own thread changes it, inside `changing`."""
        with self.changing():
            number, request_id = len(self._entries) + 1, "req_" + uuid.uuid4().hex[:24]
            entry = LedgerEntry(number, time.time(), protocol, path, request_id=request_id)
            self._entries.append(entry)
            return entry

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Change entries here; who waits on the ledger looks again afterwards."""
        with self._changed:
            yield
            self._changed.notify_all()

    def ending(self, entry: LedgerEntry, ended: Ended, usage: Usage | None = None) -> None:
        """Close an entry just before its last bytes go out: who has those, finds it closed."""
        with self.changing():
            entry.ended, entry.usage = ended, usage

    def finished(self, entry: LedgerEntry) -> None:
        """Write an entry down; one that is open still was aborted."""
        with self.changing():
            if entry.ended == "open":
                entry.ended = "aborted"
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(entry)) + "\n")

    def tried(self, entry: LedgerEntry) -> int:
        """Count one more try of this prompt's step in this session."""
        with self._changed:
            key = (entry.session, entry.prompt, entry.step)
            self._tries[key] += 1
            return self._tries[key]

    def wait(
        self, predicate: Callable[[Sequence[LedgerEntry]], object], timeout: float
    ) -> list[LedgerEntry]:
        """Wait until `predicate` holds and return the entries; else `TimeoutError`."""
        self._wait(lambda: predicate(self._entries), timeout)
        return self.entries()

    def holding(self, gate: str, timeout: float) -> LedgerEntry:
        """Wait until a request stands at the gate and return its entry; else `TimeoutError`."""
        return _copy(self._wait(lambda: self._standing(gate), timeout)[0])

    def _standing(self, gate: str) -> list[LedgerEntry]:
        return [entry for name, entry in self._held if name == gate]

    def _wait(self, ready: Callable[[], T], timeout: float) -> T:
        with self._changed:
            if not self._changed.wait_for(ready, timeout):
                raise TimeoutError(f"nothing of the kind in {timeout} s; seen: {self._entries}")
            return ready()

    def release(self, gate: str) -> None:
        """Open a gate, for those who wait and for those who come later."""
        with self.changing():
            self._released.add(gate)

    def stop(self) -> None:
        """Wake whoever waits inside an answer: the server goes."""
        with self.changing():
            self._stopping = True

    def hold(self, gate: str, entry: LedgerEntry, alive: Callable[[], bool]) -> None:
        """Stand at a gate until it is released; `GoneError` when the client or server goes."""
        with self.changing():
            self._held.append((gate, entry))
        try:
            self._sleep(None, lambda: gate in self._released, alive)
        finally:
            with self.changing():
                self._held.remove((gate, entry))

    def pause(self, seconds: float | None, alive: Callable[[], bool]) -> None:
        """Wait so long, or for ever; `GoneError` when the client or server goes."""
        self._sleep(seconds, lambda: False, alive)

    def _sleep(
        self, seconds: float | None, done: Callable[[], bool], alive: Callable[[], bool]
    ) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            while not done():
                left = _POLL_SECONDS if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    return
                if self._stopping or not alive():
                    raise GoneError
                self._changed.wait(min(left, _POLL_SECONDS))


def _copy(entry: LedgerEntry) -> LedgerEntry:
    return replace(entry, tools=list(entry.tools))
