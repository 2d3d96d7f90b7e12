"""What the engine saw in; each session as everybody gets it out: joined, judged, claimed.

Nothing is decoded before it is asked for: a list of the last week never touches the rest.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from typing import Any

import msgspec

from hub import reading
from hub.decode import bounded
from hub.discover import Trouble
from hub.errors import StoreError
from hub.events import Event
from hub.fold import TEXT, Fold
from hub.keys import native_of
from hub.model import Alert, Context, CostBasis, Counted, Session, Source, Usage
from hub.observe import Engine
from hub.rows import FileRow, SessionRow, Totals
from hub.seen import WARMUP, Seen
from hub.state import Trace, Verdict, judge
from hub.step import asides_of
from hub.traces import Traces

TITLE = 200
YEAR_9999 = 253_402_300_799
"""Unix seconds of the last moment that a date can have."""


def catalogue(engine: Engine, *, quick: bool = False, host: str | None = None) -> "Catalogue":
    """Looks at everything once.

    Args:
        engine: the homes.
        quick: head and tail only where the store knows nothing; counts are null there.
        host: name of this machine.
    """
    return Catalogue(engine, engine.step(quick=quick), host)


class Catalogue:
    """Every session of one look; nothing is decoded or judged before it is asked for."""

    def __init__(self, engine: Engine, seen: Seen, host: str | None) -> None:
        self.engine, self.seen, self.host = engine, seen, host
        self.now = engine.machine.now()
        self._traces = Traces(engine, seen)
        self._sessions: dict[str, Session] = {}
        self._folds: dict[str, Fold] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._children: dict[str, list[str]] | None = None
        self._asided: set[str] | None = None

    def keys(self) -> set[str]:
        """The key of every session."""
        rows = {key for key, row in self.seen.rows.items() if row.relation != WARMUP}
        return rows | self._traces.live_keys() | self.seen.trouble.keys()

    def __contains__(self, key: object) -> bool:
        return key in self.keys()

    def sessions(self, keys: Iterable[str] | None = None) -> Iterator[Session]:
        """These sessions, or all."""
        for key in sorted(self.keys() if keys is None else keys):
            yield self.session(key)

    def since(self, at: float) -> set[str]:
        """The sessions that may be live, could not be read, or have a record after `at`."""
        begin = datetime.fromtimestamp(min(max(at, 0), YEAR_9999), UTC).isoformat()[:19]
        recent = {
            key
            for key, row in self.seen.rows.items()
            if row.relation != WARMUP and (row.updated_at is None or row.updated_at >= begin)
        }
        return recent | self._traces.live_keys() | self.seen.trouble.keys() | self._live_families()

    def _live_families(self) -> set[str]:
        """Sub-agents of live sessions live with them."""
        out: set[str] = set()
        todo = list(self._traces.live_keys())
        while todo:
            for child in self.children(todo.pop()):
                if child not in out and self.seen.rows[child].relation != WARMUP:
                    out.add(child)
                    todo.append(child)
        return out

    def children(self, key: str) -> list[str]:
        """The sub-agents that a session made, and its agent's own warm-up runs."""
        if self._children is None:
            self._children = {}
            for name, row in self.seen.rows.items():
                if row.relation in {"subagent", WARMUP} and row.parent is not None:
                    self._children.setdefault(row.parent, []).append(name)
        return self._children.get(key, [])

    def fold(self, key: str) -> Fold:
        """What a session's records and sidecars say."""
        if key not in self._folds:
            self._folds[key] = self._fold(key)
        return self._folds[key]

    def _fold(self, key: str) -> Fold:
        if key in self.seen.quick:
            fold = self.seen.quick[key].fold
        elif key in self.seen.rows:
            fold = self.engine.store.fold(key)
        else:
            fold = Fold()
        asides = self.asides(key)
        if asides:
            fold = copy(fold)
            fold.meta = dict(fold.meta)
            for event in asides:
                fold.apply(event)
        if key not in self.seen.rows:
            for trace in self.traces(key):
                if trace.claim is not None and trace.claim.cwd is not None:
                    fold.meta["cwd"] = trace.claim.cwd
        return fold

    def asides(self, key: str) -> list[Event]:
        """The events that sidecars have for a session."""
        if self._asided is None:
            self._asided = self.engine.store.aside_sessions()
        kept = asides_of(self.engine.store, key) if key in self._asided else []
        return [*kept, *self.seen.asides.get(key, ())]

    def traces(self, key: str) -> list[Trace]:
        """Registry entries and locks of a session."""
        return self._traces.of(key)

    def totals(self, key: str) -> Totals:
        """What a session owns of its responses."""
        row = self.seen.rows.get(key)
        return row.totals if row is not None else Totals()

    def files(self, key: str) -> list[FileRow]:
        """A session's log files, in the order of reading."""
        return self.seen.files.get(key, [])

    def verdict(self, key: str) -> Verdict:
        """The state of a session, its parent's judged first."""
        chain: list[str] = []
        name: str | None = key
        while name is not None and name not in self._verdicts and name not in chain:
            chain.append(name)
            row = self.seen.rows.get(name)
            above = row.parent if row is not None and row.relation == "subagent" else None
            name = above if above in self.seen.rows or above in self._traces else None
        for one in reversed(chain):
            row = self.seen.rows.get(one)
            above = row.parent if row is not None and row.relation == "subagent" else None
            parent = self._verdicts.get(above) if above is not None else None
            self._verdicts[one] = self._judge(one, parent)
        return self._verdicts[key]

    def _judge(self, key: str, parent: Verdict | None) -> Verdict:
        fold, traces = self.fold(key), self.traces(key)
        memory = self.engine.memory
        verdict = judge(fold, traces, self.now, parent)
        if fold.open_turn is None or verdict.live is not False or self.seen.quick:
            return verdict
        remembered = self._traces.crashes.get(key)
        if traces:
            if remembered is None or remembered[0] != fold.events:
                trace = next((one for one in traces if one.live is False), traces[0])
                memory.crashed(key, fold.events, self.now, trace.path, trace.text)
        elif remembered is not None and remembered[0] == fold.events:
            text = f"{remembered[2]} (remembered: the agent has tidied it away since)"
            return judge(fold, [Trace(remembered[1], False, text)], self.now, parent)
        return verdict

    def session(self, key: str) -> Session:
        """One session, as everybody gets it."""
        if key not in self._sessions:
            try:
                self._sessions[key] = self._session(key)
            except (StoreError, msgspec.MsgspecError) as error:
                self._look_again(key, error)
                self._sessions[key] = self._session(key)
        return self._sessions[key]

    def _look_again(self, key: str, error: Exception) -> None:
        """The cache turned out to be damaged: everything is read anew."""
        if not isinstance(error, StoreError):
            self.engine.store.rebuild(error)
        row = self.seen.rows.get(key)
        self.seen = self.engine.step(quick=bool(self.seen.quick))
        if row is not None:
            self.seen.rows.setdefault(key, row)
        self._traces = Traces(self.engine, self.seen)
        self._children = None
        self._folds.clear()
        self._verdicts.clear()

    def forget(self, key: str) -> None:
        """Lets go of what was decoded of a session: a long list is made a row at a time."""
        self._sessions.pop(key, None)
        self._folds.pop(key, None)
        if key in self.seen.quick:
            self.seen.quick[key].fold = Fold()

    def _session(self, key: str) -> Session:
        fold, verdict = self.fold(key), self.verdict(key)
        trouble = self.seen.trouble.get(key, [])
        if key not in self.seen.rows and trouble and not self.traces(key):
            return _unreadable(key, trouble, self.host)
        row = self.seen.rows.get(key) or self._unwritten(key)
        complete = key not in self.seen.quick and not trouble and not _unread(fold)
        counted = complete or None
        files = self.files(key)
        times = [file.mtime for file in files]
        totals, meta = row.totals, fold.meta
        own = [mine - theirs for mine, theirs in zip(fold.counts(), totals.inherited, strict=True)]
        names = [one.claim.name for one in self.traces(key) if one.claim and one.claim.name]
        parent, relation = self._parent(row)
        cost, basis = _cost(totals, meta)
        return Session(
            key=key,
            agent=row.agent,
            id=row.id,
            host=self.host,
            root=row.root,
            parent=parent,
            relation=relation,
            title=_title(fold, names[0] if names else None),
            cwd=_text(meta, "cwd"),
            git_branch=_text(meta, "git_branch"),
            model=_text(meta, "model"),
            effort=_text(meta, "effort"),
            cli_version=_text(meta, "cli_version"),
            surface=self._surface(row),
            state=verdict.state,
            outcome=verdict.outcome,
            waiting_for=verdict.waiting_for,
            activity=verdict.activity,
            evidence=verdict.evidence,
            certain=verdict.certain,
            alternatives=verdict.alternatives,
            pid=verdict.pid,
            tty=verdict.tty,
            tmux=verdict.tmux,
            live=verdict.live,
            started_at=totals.own_at or fold.started_at or (stamp(min(times)) if times else None),
            updated_at=fold.updated_at or (stamp(max(times)) if times else None),
            turns=counted and own[0],
            prompts=counted and own[1],
            tool_calls=counted and own[2],
            errors=counted and own[3] + own[4],
            last_prompt=fold.last_prompt,
            last_answer=fold.last_answer,
            last_tools=fold.last_tools,
            last_command=fold.last_command,
            last_error=fold.last_error,
            files_touched=fold.files,
            usage=totals.usage if complete else None,
            usage_with_children=self._with_children(key) if complete else None,
            context=_context(fold),
            cost_usd=cost if complete else None,
            cost_basis=basis if complete else None,
            alerts=_alerts(trouble, fold),
            sources=[
                Source(file.relative, file.framing, file.size, file.position) for file in files
            ],
            notes=[_counted(name, count) for name, count in sorted(fold.notes.items())],
            complete=complete,
        )

    def _surface(self, row: SessionRow) -> str:
        """Its own, else that of the session whose sub-agent it is."""
        seen: set[str] = set()
        while row.key not in seen:
            seen.add(row.key)
            own = _text(self.fold(row.key).meta, "surface")
            above = self.seen.rows.get(row.parent or "") if row.relation == "subagent" else None
            if own not in {None, "unknown"} or above is None:
                return own or "unknown"
            row = above
        return "unknown"

    def _parent(self, row: SessionRow) -> tuple[str | None, Any]:
        """The stated parent, else the owner of what was copied: shared ids prove a fork."""
        if row.parent is not None:
            return row.parent, row.relation
        copied = row.totals.copied
        if not copied:
            return None, None
        return max(copied, key=lambda owner: (copied[owner], owner)), "fork"

    def _with_children(self, key: str) -> Usage:
        """Tokens of a session and of every sub-agent below it, forks never."""
        usage, seen, todo = Usage(), {key}, [key]
        while todo:
            name = todo.pop()
            usage = usage.plus(self.totals(name).usage)
            for child in self.children(name):
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
        return usage

    def _unwritten(self, key: str) -> SessionRow:
        """A session that has a process or a lock and no transcript yet."""
        root = self._traces.root(key)
        return SessionRow(
            key, key.partition(":")[0], native_of(key), root, "", None, None, None, Totals()
        )


def _text(meta: Mapping[str, object], name: str) -> str | None:
    value = meta.get(name)
    return value if isinstance(value, str) else None


def _title(fold: Fold, name: str | None) -> str | None:
    """The agent's own title, else the name in its registry, else the first prompt in one line."""
    if fold.title is not None:
        return fold.title
    if name is not None:
        return name
    if fold.first_prompt is None:
        return None
    line = " ".join(fold.first_prompt.split())
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"


def _context(fold: Fold) -> Context | None:
    if fold.context_tokens is None:
        return None
    window = fold.meta.get("window")
    if not isinstance(window, int) or window <= 0:
        return Context(fold.context_tokens)
    return Context(fold.context_tokens, window, round(fold.context_tokens / window, 4))


def _alerts(trouble: Iterable[Trouble], fold: Fold) -> list[Alert]:
    alerts = [
        Alert("unreadable", "error", f"{problem.path}: {problem.reason}") for problem in trouble
    ]
    unknown = {
        name.partition(":")[2]: count
        for name, count in fold.notes.items()
        if name.startswith("unknown_record:")
    }
    if unknown:
        kinds = ", ".join(f"{kind} x{count}" for kind, count in sorted(unknown.items()))
        alerts.append(Alert("drift", "info", f"records that are not understood: {kinds}"))
    return alerts


def _counted(name: str, count: int) -> Counted:
    code, _, detail = name.partition(":")
    return Counted(code, count, bounded(detail, TEXT) or None)


def _unread(fold: Fold) -> bool:
    """Is there a log of which nothing could be read?"""
    broken = (reading.UNFINISHED, "bad_frame", "frame_too_large")
    return fold.events == 0 and any(note in fold.notes for note in broken)


def _cost(totals: Totals, meta: Mapping[str, object]) -> tuple[float | None, CostBasis | None]:
    """The list price of what the session owns; else what its CLI said; USD only."""
    if totals.cost is not None and totals.currency == "USD":
        source, _, version = (totals.basis or "table:").partition(":")
        own = source == "override"
        return totals.cost, CostBasis("override" if own else "table", version or None)
    said = meta.get("cost_usd")
    if isinstance(said, (int, float)) and not totals.copied:
        return float(said), CostBasis("cli")
    return None, None


def _unreadable(key: str, trouble: list[Trouble], host: str | None) -> Session:
    """A file whose name alone says which session it is."""
    first = trouble[0]
    return Session(
        key=key, agent=first.agent, id=native_of(key), root=first.root, host=host,
        complete=False, certain=False, alerts=_alerts(trouble, Fold()),
    )  # fmt: skip


def stamp(nanoseconds: int) -> str:
    """RFC 3339 UTC with milliseconds."""
    at = datetime.fromtimestamp(min(max(nanoseconds / 1e9, -62135596800), 253402300799), UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
