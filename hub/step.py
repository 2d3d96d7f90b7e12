"""The engine and its store in; one look out: what changed is read, kept and settled."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from hub import claims, reading, registry, workers
from hub.adapter import Found, Observer
from hub.cursor import open_regular, read_from
from hub.decode import packed
from hub.discover import File, Trouble
from hub.errors import why
from hub.events import Event, Meta
from hub.events import decode as decode_event
from hub.events import encode as encode_event
from hub.fold import Fold, Response
from hub.keys import key_of
from hub.reading import Plan, SessionRead
from hub.rows import FileRow, SessionRow, Totals
from hub.seen import WARMUP, Seen
from hub.store import Store

if TYPE_CHECKING:
    from hub.observe import Engine

SMALL = 1 << 24
"""Bytes of a sidecar or registry file beyond which it is not read."""
LOGS = ("log", "twin")
BATCH = 1 << 26
"""Bytes read between two commits: what a kill costs at most."""


class Step:
    """One look."""

    def __init__(self, engine: "Engine", *, quick: bool) -> None:
        self.engine, self.store, self.quick = engine, engine.store, quick
        with self.store.snapshot():
            self.known, rows = self.store.files(), self.store.sessions()
            self.version = self.store.version()
        self.seen = Seen(engine.scan(self.known), rows)
        self.before = set(rows)
        if self.before - {row.session for row in self.known.values() if row.role == "log"}:
            raise self.store.rebuild("sessions without files")
        self.asided = self.store.aside_sessions() if quick else set[str]()
        """Sessions that known sidecars speak of; a quick look changes none of them."""
        self.whole: dict[str, dict[str, Response]] = {}
        """Session -> all its responses, of sessions that were just read whole."""
        self.responses: dict[str, set[str]] = {}
        """Session -> its responses that are new or changed."""
        self.moved: set[str] = set()
        """Sessions that are new or gone, or have another parent."""
        self.twins: dict[str, list[FileRow]] = {}
        """Session -> logs that are not read: another one replaces them."""

    def run(self) -> Seen:
        """Looks, reads, keeps and settles."""
        seen = self.seen
        seen.troubles += seen.tree.troubles
        fresh: dict[str, list[File]] = {}
        sidecars: list[File] = []
        for file in seen.tree.files:
            match file.found.role:
                case "log":
                    fresh.setdefault(key_of(file.agent, file.found.id), []).append(file)
                case "sidecar":
                    sidecars.append(file)
                case "registry":
                    self._registry(file)
                case "lock":
                    self._lock(file)
        gone = self._gone()
        left = self._sort_known(gone, fresh)
        plans = self._plans(fresh, left)
        self._sidecars(sidecars, gone)
        if self.quick:
            self._quickly(plans)
            for key in self._lost():
                del seen.rows[key]
        else:
            self._read(plans)
            self._drop(gone)
            self._foreign()
            self._settle()
            self.store.commit()
        self._order()
        return seen

    def _foreign(self) -> None:
        """Keeps whose files are nobody's: the next look need not open them."""
        for file in self.seen.tree.foreign:
            row = _row(file, "", registry.observer(file.agent).VERSION, 0)
            self.store.put_file(msgspec.structs.replace(row, role="none"), b"")

    def _gone(self) -> set[str]:
        """Known files that are not there; those behind a folder that cannot be read are kept."""
        here = self.seen.tree.unchanged | {file.path for file in self.seen.tree.files}
        troubles = self.seen.tree.troubles
        hidden = tuple(trouble.path.rstrip("/") + "/" for trouble in troubles)
        missing = self.known.keys() - here - {trouble.path for trouble in troubles}
        return {path for path in missing if not (hidden and path.startswith(hidden))}

    def _sort_known(self, gone: set[str], fresh: Mapping[str, list[File]]) -> set[str]:
        """Known files by session; the sessions that a file has left."""
        now = {file.path: key for key, files in fresh.items() for file in files}
        left: set[str] = set()
        for path, row in self.known.items():
            if row.role in LOGS and (path in gone or now.get(path, row.session) != row.session):
                left.add(row.session)
            elif path in gone:
                continue
            elif row.role == "log":
                self.seen.files.setdefault(row.session, []).append(row)
            elif row.role == "twin":
                self.twins.setdefault(row.session, []).append(row)
            elif row.role == "lock":
                self.seen.locks.setdefault(row.session, []).append(row)
        for key, rows in self.seen.files.items():
            session = self.seen.rows.get(key)
            if session is None or session.names.count("\n") + 1 != len(rows):
                left.add(key)  # another process was in between
        return left

    def _plans(self, fresh: Mapping[str, list[File]], left: set[str]) -> list[Plan]:
        """What has to be read: sessions with a new, changed or missing file."""
        out = []
        for key in [*fresh, *sorted(left - fresh.keys())]:
            changed = {file.path: file for file in fresh.get(key, ())}
            rows = [*self.seen.files.get(key, ()), *self.twins.get(key, ())]
            others = [_file_of(row) for row in rows if row.path not in changed]
            files = chosen([*changed.values(), *others])
            if not files:
                continue
            plan = self._plan(key, files, changed)
            paths = {file.path for file in files}
            was = {row.path for row in rows if row.role == "twin"}
            passed = [file for file in [*changed.values(), *others] if file.path not in paths]
            plan.passed = [file for file in passed if file.path in changed or file.path not in was]
            if plan.fold is None or files[-1].path in changed:
                out.append(plan)
            elif not self.quick:
                self._pass(plan)
        return out

    def _pass(self, plan: Plan) -> None:
        """Keeps which files are not read."""
        version = registry.observer(plan.agent).VERSION
        for file in plan.passed:
            row = msgspec.structs.replace(_row(file, plan.key, version, 0), role="twin")
            self.store.put_file(row, b"")

    def _plan(self, key: str, files: list[File], changed: Mapping[str, File]) -> Plan:
        plan = Plan(key, files[0].agent, files)
        row = self.seen.rows.get(key)
        version = registry.observer(plan.agent).VERSION
        known = [self.known.get(file.path) for file in files]
        kept = None
        names = "\n".join(file.relative for file in files)
        if (
            row is not None
            and row.names == names
            and all(
                one is not None and (one.version, one.role, one.session) == (version, "log", key)
                for one in known
            )
            and not any(file.path in changed for file in files[:-1])
        ):
            kept = self.store.kept(key, files[-1].path)
        if kept is not None and kept[2] == names:
            plan.fold, plan.last, _ = kept
        return plan

    def _read(self, plans: Sequence[Plan]) -> None:
        by_key = {plan.key: plan for plan in plans}
        committed = 0
        if self.engine.pricer is not None and plans:
            self.engine.pricer.warm(self.store.facts("price:"))
        for one in workers.read_all(plans, self._how, self.engine.processes):
            self._keep(by_key[one.key], one)
            if self.seen.read_bytes - committed > BATCH:
                self._settle()  # a kill must leave no session whose figures nobody settles
                self.store.commit()
                committed = self.seen.read_bytes

    def _how(self, plan: Plan) -> SessionRead:
        return reading.read(plan, self.engine.price)

    def _keep(self, plan: Plan, one: SessionRead) -> None:
        """Writes what was read of one session."""
        seen = self.seen
        self.store.hold()
        if not one.anew:
            kept = self.store.kept(plan.key, plan.files[-1].path)
            if kept is None or kept[:2] != (plan.fold, plan.last):
                # another process read on meanwhile: its part and this one do not add up
                one = self._how(Plan(plan.key, plan.agent, plan.files))
        seen.read_bytes += one.read_bytes
        seen.changed.add(one.key)
        self._troubles(plan, one)
        by_path = {file.path: file for file in plan.files}
        version = registry.observer(plan.agent).VERSION
        rows = {} if one.anew else {row.path: row for row in seen.files.get(one.key, ())}
        names = self.responses.setdefault(one.key, set())
        before = seen.rows.get(one.key)
        if one.anew:
            names |= self.store.shared_of(one.key)
            self.store.forget(one.key)
        if not one.files and not rows:
            seen.files.pop(one.key, None)  # it cannot be read, or is gone since it was found
            return
        for read in one.files:
            row = _row(by_path[read.path], one.key, version, read.position, read)
            self.store.put_file(row, read.body)
            rows[read.path] = row
        self._pass(plan)
        seen.files[one.key] = [rows[file.path] for file in plan.files if file.path in rows]
        self.store.put_responses(one.key, one.responses)
        names.update(one.responses)
        if one.anew:
            self.whole[one.key] = one.responses
        first = plan.files[0]
        row_of = SessionRow(
            one.key, plan.agent, first.found.id, first.root,
            "\n".join(file.relative for file in plan.files), None, None, one.fold.updated_at,
            before.totals if before is not None and not one.anew else Totals(),
        )  # fmt: skip
        row_of = self._related(row_of, one.fold, first.found)
        if before is None or before.parent != row_of.parent:
            self.moved.add(one.key)
        seen.rows[one.key] = row_of
        self.store.put_session(row_of, packed(one.fold))

    def _troubles(self, plan: Plan, one: SessionRead) -> None:
        by_path = {file.path: file for file in plan.files}
        for path, reason in one.troubles:
            file = by_path[path]
            problem = Trouble(file.agent, file.root, file.relative, path, reason, file.found)
            self.seen.troubles.append(problem)
            self.seen.trouble.setdefault(one.key, []).append(problem)

    def _related(self, row: SessionRow, fold: Fold, found: Found | None) -> SessionRow:
        """The row with its parent: as the file's place says, its records, its sidecars."""
        parent = found.parent if found is not None else None
        relation: str | None = found.relation if found is not None else None
        if isinstance(fold.meta.get("parent"), str):
            parent, relation = str(fold.meta["parent"]), str(fold.meta.get("relation"))
        for event in self.asides(row.key):
            if isinstance(event, Meta) and isinstance(event.parent, str):
                parent = event.parent
                relation = event.relation if isinstance(event.relation, str) else relation
        if WARMUP in fold.notes:
            relation = WARMUP
        return msgspec.structs.replace(
            row,
            parent=key_of(row.agent, parent) if parent else None,
            relation=(relation or "subagent") if parent else None,
        )

    def asides(self, key: str) -> Iterable[Event]:
        """The events that sidecars have for a session."""
        kept = asides_of(self.store, key) if not self.quick or key in self.asided else []
        return [*kept, *self.seen.asides.get(key, ())]

    def _quickly(self, plans: Sequence[Plan]) -> None:
        def look(plan: Plan) -> SessionRead:
            return reading.quick(plan)

        by_key = {plan.key: plan for plan in plans}
        for one in workers.read_all(plans, look, self.engine.processes):
            plan = by_key[one.key]
            self._troubles(plan, one)
            self.seen.quick[one.key] = one
            first = plan.files[0]
            self.seen.files[one.key] = [
                _row(file, one.key, 0, min(file.size, 2 * reading.PART)) for file in plan.files
            ]
            row = SessionRow(
                one.key, plan.agent, first.found.id, first.root, "", None, None,
                one.fold.updated_at, Totals(),
            )  # fmt: skip
            self.seen.rows[one.key] = self._related(row, one.fold, first.found)

    def _sidecars(self, files: Sequence[File], gone: set[str]) -> None:
        """Keeps what changed sidecars say, by session, and whose parent that changes."""
        touched: set[str] = set()
        if not self.quick:
            for path in sorted(gone):
                if self.known[path].role == "sidecar":
                    touched |= self.store.aside_keys(path)
                    self.store.put_asides(path, {})
        for file in files:
            observer = registry.observer(file.agent)
            data = self._whole(file)
            if data is None:
                continue
            said: dict[str, list[bytes]] = {}
            for event in observer.sidecar(file.relative, data):
                key = key_of(file.agent, event.session)
                event.session, event.path = key, file.relative
                if self.quick:
                    self.seen.asides.setdefault(key, []).append(event)
                else:
                    said.setdefault(key, []).append(encode_event(event))
            if self.quick:
                continue
            touched |= self.store.aside_keys(file.path) | said.keys()
            self.store.put_asides(
                file.path, {key: msgspec.msgpack.encode(lines) for key, lines in said.items()}
            )
            row = _row(file, "", observer.VERSION, file.size)
            if len(data) < SMALL:
                # it may be written anew within one tick of the file system's clock, between
                # its finding and its reading: what was read has this size
                row = msgspec.structs.replace(row, size=len(data))
            self.store.put_file(row, b"")
        if touched:
            self._refresh()
        for key in touched & self.seen.rows.keys():
            self._relate(key)

    def _relate(self, key: str) -> None:
        """A sidecar changed: the session's parent may have."""
        files = self.seen.files.get(key, ())
        found = msgspec.msgpack.decode(files[0].found, type=Found) if files else None
        row = self._related(self.seen.rows[key], self.store.fold(key), found)
        self.seen.changed.add(key)
        if row != self.seen.rows[key]:
            self.seen.rows[key] = row
            self.store.put_facts_of(row)
            self.moved.add(key)

    def _drop(self, gone: set[str]) -> None:
        """Forgets files that are gone, and sessions without any file."""
        lost = self._lost()
        for key in lost:
            self.responses.setdefault(key, set()).update(self.store.shared_of(key))
            self.moved.add(key)
            del self.seen.rows[key]
        self.store.drop(gone, lost)

    def _lost(self) -> set[str]:
        """Sessions without any file; those that another process found meanwhile are not lost."""
        mine = self.before | self.seen.changed
        return {key for key in mine & self.seen.rows.keys() if not self.seen.files.get(key)}

    def _settle(self) -> None:
        """Who owns which response, where something changed."""
        if not self.responses and not self.moved:
            return
        self._refresh()
        for key in self._below(self.moved):
            self.responses.setdefault(key, set()).update(self.store.shared_of(key))
        parents = {
            key: row.parent if row.parent in self.seen.rows else None
            for key, row in self.seen.rows.items()
        }
        settled = claims.settle(self.store, self.engine.memory, self.responses, parents, self.whole)
        for key, totals in settled.items():
            row = msgspec.structs.replace(self.seen.rows[key], totals=totals)
            self.seen.rows[key] = row
            self.store.put_facts_of(row)
        self.responses, self.moved, self.whole = {}, set(), {}

    def _refresh(self) -> None:
        """Takes the lock, and the rows anew if another process wrote meanwhile."""
        self.store.hold()
        if self.store.version() != self.version:
            # its sessions may share responses or sidecars with these
            self.seen.rows, self.version = self.store.sessions(), self.store.version()

    def _below(self, keys: set[str]) -> set[str]:
        """These sessions and everything below them: who owns what goes by parents."""
        children: dict[str, list[str]] = {}
        for key, row in self.seen.rows.items() if keys else ():
            if row.parent is not None:
                children.setdefault(row.parent, []).append(key)
        out, todo = set(keys), list(keys)
        while todo:
            for child in children.get(todo.pop(), ()):
                if child not in out:
                    out.add(child)
                    todo.append(child)
        return out

    def _registry(self, file: File) -> None:
        data = self._whole(file)
        if data is None:
            return
        observer: Observer = registry.observer(file.agent)
        claim = observer.live(file.relative, data)
        if claim is None and data.strip():
            # written in place: look once more before it is taken for unreadable
            data = self._whole(file) or b""
            claim = observer.live(file.relative, data)
        if claim is not None:
            key = key_of(file.agent, claim.session)
            self.seen.claims.setdefault(key, []).append((file, claim))

    def _lock(self, file: File) -> None:
        key = key_of(file.agent, file.found.id)
        row = _row(file, key, registry.observer(file.agent).VERSION, 0)
        self.known[file.path] = row
        if not self.quick:
            self.store.put_file(row, b"")

    def _whole(self, file: File) -> bytes | None:
        try:
            descriptor = open_regular(file.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = Trouble(
                file.agent, file.root, file.relative, file.path, why(error), file.found
            )
            self.seen.troubles.append(problem)
            return None
        with os.fdopen(descriptor, "rb") as stream:
            return read_from(stream.fileno(), 0, SMALL)

    def _order(self) -> None:
        """A session's files in the order of its reading."""
        for key, rows in self.seen.files.items():
            if len(rows) > 1:
                names = self.seen.rows[key].names.split("\n") if key in self.seen.rows else []
                places = {name: place for place, name in enumerate(names)}
                rows.sort(key=lambda row: places.get(row.relative, len(places)))


def asides_of(store: Store, key: str) -> list[Event]:
    """The events that known sidecars have for a session."""
    return [
        decode_event(line)
        for body in store.asides(key)
        for line in msgspec.msgpack.decode(body, type=list[bytes])
    ]


def chosen(files: Sequence[File]) -> list[File]:
    """The files of one session that are read, in order: of equal ones, the one that replaces."""
    best: dict[str, File] = {}
    for file in files:
        other = best.get(file.found.order)
        if other is None or _rank(file) > _rank(other):
            best[file.found.order] = file
    return [best[order] for order in sorted(best)]


def _rank(file: File) -> tuple[int, int, int, str]:
    return file.found.replaces, file.size, file.mtime_ns, file.relative


def _file_of(row: FileRow) -> File:
    """A known file, as discovery would find it."""
    found = msgspec.msgpack.decode(row.found, type=Found)
    return File(
        row.agent, row.root, row.relative, row.path, found, row.device, row.inode, row.size,
        row.mtime,
    )  # fmt: skip


def _row(
    file: File, key: str, version: int, position: int, read: reading.FileRead | None = None
) -> FileRow:
    """The row of a file: as it was when it was read, else as it was found."""
    device, inode, size, mtime = (
        (read.device, read.inode, read.size, read.mtime)
        if read is not None and (read.device, read.inode) == (file.device, file.inode)
        # another one since it was found is found anew by the next step
        else (file.device, file.inode, file.size, file.mtime_ns)
    )
    return FileRow(
        file.path, key, file.agent, file.root, file.relative, file.found.role,
        file.found.framing, device, inode, size, mtime, version, position,
        msgspec.msgpack.encode(file.found),
    )  # fmt: skip
