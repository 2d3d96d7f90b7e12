"""Agent homes in; indexed sessions out: discover -> cursor -> framing -> observer -> fold -> store.

Synchronous and step-driven: `Engine.step()` looks once at everything that changed. Clock, processes
and locks come from the injected machine.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from hub import discover, registry
from hub.adapter import Claim, Observer
from hub.cursor import Place, Reader, open_regular, read_from
from hub.decode import packed
from hub.discover import File, Tree, Trouble
from hub.errors import StoreError
from hub.events import Event, UsageEvent
from hub.events import decode as decode_event
from hub.events import encode as encode_event
from hub.fold import Fold
from hub.keys import key_of
from hub.liveness import Machine
from hub.store import FileRow, Response, Store

SMALL = 1 << 24
"""Bytes of a sidecar or registry file beyond which it is not read."""


class Kept(Struct):
    """What the store keeps of a log file."""

    place: Place
    state: bytes
    note: str | None = None


BATCH = 1 << 26
"""Bytes read between two commits: what a kill costs at most."""


@dataclass
class Indexed:
    """One session as its files say it."""

    key: str
    agent: str
    id: str
    root: str
    fold: Fold = field(default_factory=Fold)
    files: list[File] = field(default_factory=list)
    read_to: dict[str, int] = field(default_factory=dict)
    """path -> byte of the file that was reached."""
    parent: str | None = None
    relation: str | None = None
    sidecars: list[Event] = field(default_factory=list)
    trouble: list[Trouble] = field(default_factory=list)
    complete: bool = True
    changed: bool = False


@dataclass
class Seen:
    """One look at everything."""

    tree: Tree
    sessions: dict[str, Indexed] = field(default_factory=dict)
    claims: list[tuple[str, File, Claim]] = field(default_factory=list)
    """(agent, registry file, what it says)"""
    locks: list[File] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    responses: dict[str, dict[str, Response]] = field(default_factory=dict)
    """Session -> response -> its figures."""
    read_bytes: int = 0


class Engine:
    """Looks at the homes of every agent, once a step.

    Args:
        env: environment that says where the homes are.
        home: the user's home folder.
        machine: clock, processes, locks.
        store: cursors and folds.
        roots: configured homes by agent.
        exclude: folders that are never entered.
        agents: names of the agents to look at; all known ones by default.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        home: str,
        machine: Machine,
        store: Store,
        *,
        roots: Mapping[str, Sequence[str]] | None = None,
        exclude: Sequence[str] = (),
        agents: Sequence[str] | None = None,
    ) -> None:
        self.env, self.home, self.machine, self.store = env, home, machine, store
        self.roots = roots or {}
        self.exclude = exclude
        self.agents = registry.agents() if agents is None else agents

    def scan(self) -> Tree:
        """The files of every agent; only names and stats are read."""
        tree = Tree()
        for agent in self.agents:
            try:
                observer = registry.observer(agent)
            except Exception as error:  # noqa: BLE001  # a broken adapter costs only its own agent
                reason = f"its adapter cannot be loaded: {error}"
                tree.troubles.append(Trouble(agent, "", "", f"observers/{agent}", reason))
                continue
            roots = discover.roots_of(observer, self.env, self.home, self.roots.get(agent, ()))
            discover.scan(agent, observer, roots, tree, self.exclude)
        return tree

    def step(self, *, quick: bool = False) -> Seen:
        """Looks at everything; reads only what changed since the store last saw it.

        Args:
            quick: read only head and tail of what the store does not know; keep nothing.
        """
        for _ in range(2):
            try:
                return self._step(quick=quick)
            except StoreError:
                continue  # it was rebuilt, or works in memory now
            except msgspec.MsgspecError as error:
                self.store.rebuild(error)  # rows of another shape
        return self._step(quick=quick)

    def _step(self, *, quick: bool) -> Seen:
        seen = Seen(self.scan())
        seen.troubles += seen.tree.troubles
        rows = self.store.files()
        folds = self.store.folds()
        logs: dict[str, list[File]] = {}
        sidecars: list[File] = []
        for file in seen.tree.files:
            match file.found.role:
                case "log":
                    logs.setdefault(key_of(file.agent, file.found.id), []).append(file)
                case "sidecar":
                    sidecars.append(file)
                case "registry":
                    self._registry(file, seen)
                case "lock":
                    seen.locks.append(file)
        reader = _Quick(self, seen) if quick else _Exact(self, seen)
        committed = 0
        for key, files in logs.items():
            reader.session(key, chosen(files), rows, folds.get(key))
            if seen.read_bytes - committed > BATCH:
                self.store.commit()
                committed = seen.read_bytes
        for file in sidecars:
            self._sidecar(file, rows, seen)
        if not quick:
            gone = rows.keys() - {file.path for file in seen.tree.files}
            self._forget(gone, folds.keys() - logs.keys(), seen)
        self.store.commit()
        for key, name, one in self.store.all_responses():
            seen.responses.setdefault(key, {})[name] = one
        return seen

    def _forget(self, paths: set[str], keys: set[str], seen: Seen) -> None:
        """Files that are gone; those behind a folder that cannot be read now are kept."""
        hidden = tuple(trouble.path + "/" for trouble in seen.tree.troubles)
        self.store.drop(
            (path for path in paths if not (hidden and path.startswith(hidden))),
            keys if not hidden else (),
        )

    def _registry(self, file: File, seen: Seen) -> None:
        data = self._whole(file, seen)
        if data is None:
            return
        claim = registry.observer(file.agent).live(file.relative, data)
        if claim is None and data.strip():
            # written in place: look once more before it is taken for unreadable
            data = self._whole(file, seen) or b""
            claim = registry.observer(file.agent).live(file.relative, data)
        if claim is not None:
            seen.claims.append((file.agent, file, claim))

    def _sidecar(self, file: File, rows: Mapping[str, FileRow], seen: Seen) -> None:
        observer = registry.observer(file.agent)
        row = rows.get(file.path)
        if row is not None and same(row, file, observer):
            events = [
                decode_event(one) for one in msgspec.msgpack.decode(row.body, type=list[bytes])
            ]
        else:
            data = self._whole(file, seen)
            if data is None:
                return
            events = list(observer.sidecar(file.relative, data))
            body = msgspec.msgpack.encode([encode_event(event) for event in events])
            self.store.put_file(file_row(file, "", observer, body))
        for event in events:
            key = key_of(file.agent, event.session)
            session = seen.sessions.get(key)
            if session is not None:
                event.session, event.path = key, file.relative
                session.sidecars.append(event)

    def _whole(self, file: File, seen: Seen) -> bytes | None:
        try:
            descriptor = open_regular(file.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            seen.troubles.append(trouble(file, error))
            return None
        with os.fdopen(descriptor, "rb") as stream:
            return read_from(stream.fileno(), 0, SMALL)


class _Exact:
    """Reads every complete line that is not known yet."""

    def __init__(self, engine: Engine, seen: Seen) -> None:
        self.engine, self.seen, self.store = engine, seen, engine.store

    def session(
        self,
        key: str,
        files: list[File],
        rows: Mapping[str, FileRow],
        kept: tuple[str, bytes] | None,
    ) -> None:
        first = files[0]
        observer = registry.observer(first.agent)
        session = self.seen.sessions[key] = new_session(key, files)
        names = "\n".join(file.relative for file in files)
        known = [rows.get(file.path) for file in files]
        continued = (
            kept is not None
            and kept[0] == names
            and all(row is not None and row.version == observer.VERSION for row in known)
        )
        if continued and kept is not None:
            session.fold = _fold.decode(kept[1])
            if all(row is not None and same(row, file, observer)
                   for row, file in zip(known, files, strict=True)):  # fmt: skip
                for row, file in zip(known, files, strict=True):
                    session.read_to[file.path] = _kept_position(row)
                return
            continued = all(
                row is not None and same(row, file, observer)
                for row, file in zip(known[:-1], files[:-1], strict=True)
            )
        if continued and self._grow(session, files, known[-1], observer):
            return
        session.fold = Fold()
        session.read_to.clear()
        self.store.forget_responses(key)
        self._read(session, files, [None] * len(files), observer, {})

    def _grow(
        self, session: Indexed, files: list[File], row: FileRow | None, observer: Observer
    ) -> bool:
        """Reads the last file on; False where it is not the file that was read."""
        if row is None:
            return False
        for file in files[:-1]:
            session.read_to[file.path] = file.size
        responses = self.store.responses(session.key)
        return self._read(session, files[-1:], [row], observer, responses)

    def _read(
        self,
        session: Indexed,
        files: list[File],
        rows: list[FileRow | None],
        observer: Observer,
        responses: dict[str, Response],
    ) -> bool:
        session.changed = True
        fresh: dict[str, Response] = {}
        for file, row in zip(files, rows, strict=True):
            try:
                if not self._file(session, file, row, observer, fresh):
                    return False
            except FileNotFoundError:
                continue
            except OSError as error:
                problem = trouble(file, error)
                session.trouble.append(problem)
                self.seen.troubles.append(problem)
        changed = {name: one for name, one in fresh.items() if responses.get(name) != one}
        self.store.put_responses(session.key, changed)
        names = "\n".join(file.relative for file in session.files)
        self.store.put_session(session.key, session.agent, names, session.fold)
        return True

    def _file(
        self,
        session: Indexed,
        file: File,
        row: FileRow | None,
        observer: Observer,
        fresh: dict[str, Response],
    ) -> bool:
        state: Any = observer.start(file.found)
        place = Place()
        if row is not None:
            kept = msgspec.msgpack.decode(row.body, type=Kept)
            state = msgspec.msgpack.decode(kept.state, type=type(state))
            place = kept.place
        with Reader(file.path, file.found.framing, place) as reader:
            if reader.restarted:
                return False
            before = place.position
            for lines in reader.pieces():
                for offset, line in lines:
                    for event in observer.events(line, offset, state):
                        take(session, file, event, fresh)
            self.seen.read_bytes += place.position - before
            session.read_to[file.path] = place.position
            for note, count in reader.skipped.items():
                session.fold.notes[note] = session.fold.notes.get(note, 0) + count
            body = packed(Kept(place, packed(state), reader.note))
            self.store.put_file(
                FileRow(
                    file.path,
                    session.key,
                    reader.stat.st_dev,
                    reader.stat.st_ino,
                    reader.stat.st_size,
                    reader.stat.st_mtime_ns,
                    observer.VERSION,
                    body,
                )  # fmt: skip
            )
        return True


class _Quick:
    """Reads head and tail of what the store does not know, and keeps nothing."""

    PART = 1 << 16

    def __init__(self, engine: Engine, seen: Seen) -> None:
        self.exact = _Exact(engine, seen)
        self.seen = seen

    def session(
        self,
        key: str,
        files: list[File],
        rows: Mapping[str, FileRow],
        kept: tuple[str, bytes] | None,
    ) -> None:
        observer = registry.observer(files[0].agent)
        known = [rows.get(file.path) for file in files]
        if kept is not None and all(
            row is not None and same(row, file, observer)
            for row, file in zip(known, files, strict=True)
        ):
            self.exact.session(key, files, rows, kept)
            return
        session = self.seen.sessions[key] = new_session(key, files)
        session.complete = False
        for file in files:
            try:
                self._ends(session, file, observer)
            except FileNotFoundError:
                continue
            except OSError as error:
                problem = trouble(file, error)
                session.trouble.append(problem)
                self.seen.troubles.append(problem)

    def _ends(self, session: Indexed, file: File, observer: Observer) -> None:
        state = observer.start(file.found)
        with Reader(file.path, file.found.framing, Place()) as reader:
            pieces = reader.pieces()
            lines = next(pieces, [])
            if file.found.framing != "lines":
                lines = [*lines, *(line for more in pieces for line in more)]
            whole = file.found.framing != "lines" or reader.stat.st_size <= 2 * self.PART
            if not whole:
                first = [one for one in lines if one[0] < self.PART] or lines[:1]
                after = first[-1][0] + len(first[-1][1]) + 1 if first else 0
                lines = first + reader.tail(self.PART, after)
        for offset, line in lines:
            for event in observer.events(line, offset, state):
                take(session, file, event, {})


_fold = msgspec.msgpack.Decoder(Fold)


def take(session: Indexed, file: File, event: Event, fresh: dict[str, Response]) -> None:
    """Stamps an event and takes it into the session."""
    event.session, event.path, event.n = session.key, file.relative, session.fold.events
    session.fold.apply(event)
    if isinstance(event, UsageEvent):
        fresh[event.response] = Response(event.at, event.model, event.counts, event.raw)


def new_session(key: str, files: list[File]) -> Indexed:
    """A session of these files, nothing read yet."""
    first = files[0]
    found = first.found
    return Indexed(
        key, first.agent, found.id, first.root, files=files,
        parent=key_of(first.agent, found.parent) if found.parent else None,
        relation=found.relation,
    )  # fmt: skip


def chosen(files: list[File]) -> list[File]:
    """The files of one session that are read, in order: of equal ones, the one that replaces."""
    best: dict[str, File] = {}
    for file in files:
        other = best.get(file.found.order)
        if other is None or _rank(file) > _rank(other):
            best[file.found.order] = file
    return [best[order] for order in sorted(best)]


def _rank(file: File) -> tuple[int, int, int, str]:
    return file.found.replaces, file.size, file.mtime_ns, file.relative


def same(row: FileRow, file: File, observer: Observer) -> bool:
    """Is the file as it was when it was read?"""
    return (row.device, row.inode, row.size, row.mtime, row.version) == (
        file.device, file.inode, file.size, file.mtime_ns, observer.VERSION,
    )  # fmt: skip


def file_row(file: File, session: str, observer: Observer, body: bytes) -> FileRow:
    """The row of a file as it was found."""
    return FileRow(
        file.path, session, file.device, file.inode, file.size, file.mtime_ns,
        observer.VERSION, body,
    )  # fmt: skip


def trouble(file: File, error: OSError) -> Trouble:
    """A file that could not be read."""
    return Trouble(file.agent, file.root, file.relative, file.path, discover.why(error), file.found)


def _kept_position(row: FileRow | None) -> int:
    return 0 if row is None else msgspec.msgpack.decode(row.body, type=Kept).place.position
