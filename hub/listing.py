"""What the engine saw in; the sessions as everybody gets them out: judged, claimed, ordered.

`Catalogue` joins files, registry entries and locks into `Session` rows; `select` applies the
filters that the table and `--json` share.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hub import registry
from hub.adapter import Claim
from hub.claims import Ledger, resolve
from hub.decode import bounded
from hub.discover import File, Trouble
from hub.fold import TEXT, Fold
from hub.keys import key_of, native_of
from hub.liveness import Inode, Machine
from hub.model import Alert, Context, Counted, Session, Source, Usage
from hub.observe import Engine, Indexed, Seen
from hub.state import Trace, Verdict, judge, seconds

DAYS = 7
"""A session that is not live is listed this long after its last record."""
TITLE = 200


@dataclass
class Catalogue:
    """Every session, and what it was made of."""

    sessions: dict[str, Session] = field(default_factory=dict)
    indexed: dict[str, Indexed] = field(default_factory=dict)
    folds: dict[str, Fold] = field(default_factory=dict)
    """With the sidecars' titles and parents in."""
    traces: dict[str, list[Trace]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    seen: Seen | None = None


def catalogue(engine: Engine, *, quick: bool = False, host: str | None = None) -> Catalogue:
    """Looks at everything once.

    Args:
        engine: the homes.
        quick: head and tail only where the store knows nothing; counts are null there.
        host: name of this machine.
    """
    seen = engine.step(quick=quick)
    out = Catalogue(seen=seen)
    out.traces = _traces(seen, engine.machine)
    for key in out.traces.keys() - seen.sessions.keys():
        seen.sessions[key] = _unwritten(key, out.traces[key], seen)
    for key, indexed in seen.sessions.items():
        fold = indexed.fold
        if indexed.sidecars:
            fold = copy(fold)
            fold.meta = dict(fold.meta)
            for event in indexed.sidecars:
                fold.apply(event)
        out.folds[key] = fold
        parent = fold.meta.get("parent")
        if isinstance(parent, str):
            indexed.parent = key_of(indexed.agent, parent)
            indexed.relation = str(fold.meta.get("relation") or "subagent")
    out.indexed = seen.sessions
    out.ledger = resolve(seen.responses, {key: one.parent for key, one in seen.sessions.items()})
    verdicts: dict[str, Verdict] = {}
    for key in sorted(seen.sessions):
        _verdict(key, out, verdicts, engine.machine.now(), set())
    for key, indexed in seen.sessions.items():
        out.sessions[key] = _session(indexed, out, verdicts[key], host)
    _families(out.sessions)
    for problem in seen.troubles:
        _unreadable(problem, out, host)
    return out


def _verdict(
    key: str, out: Catalogue, done: dict[str, Verdict], now: float, above: set[str]
) -> Verdict:
    """The verdict of a session, its parent's first; a parent that is its own child is nobody's."""
    if key in done:
        return done[key]
    indexed = out.indexed[key]
    parent: Verdict | None = None
    if (
        indexed.relation == "subagent"
        and indexed.parent in out.indexed
        and indexed.parent not in above
    ):
        parent = _verdict(indexed.parent, out, done, now, above | {key})
    done[key] = judge(out.folds[key], out.traces.get(key, ()), now, parent)
    return done[key]


def _traces(seen: Seen, machine: Machine) -> dict[str, list[Trace]]:
    """Registry entries and locks by session."""
    out: dict[str, list[Trace]] = {}
    domains = machine.domains()
    for agent, file, claim in seen.claims:
        out.setdefault(key_of(agent, claim.session), []).append(
            _claimed(agent, file, claim, machine, domains)
        )
    held: Mapping[Inode, int] = machine.locks() if seen.locks else {}
    for file in seen.locks:
        pid = held.get((file.device, file.inode))
        key = key_of(file.agent, file.found.id)
        if pid is None and domains is None:
            trace = Trace(file.relative, None, "a lock whose owner cannot be seen on this system")
        elif pid is None:
            trace = Trace(file.relative, False, "the lock file is there and nobody holds it")
        elif pid == 0:
            text = "the lock is held by a process of another pid namespace"
            trace = Trace(file.relative, True, text)
        else:
            text = f"the lock is held by process {pid}"
            trace = Trace(file.relative, True, text, process=machine.process(pid), pid=pid)
        out.setdefault(key, []).append(trace)
    return out


def _claimed(
    agent: str, file: File, claim: Claim, machine: Machine, domains: frozenset[str] | None
) -> Trace:
    """Whether the process of a registry entry is the one that wrote it."""
    text = claim.text or f"process {claim.pid} claims the session"
    if domains is None or (claim.domain is not None and claim.domain not in domains):
        return Trace(file.relative, None, f"{text} (in another pid namespace or boot)", claim)
    process = machine.process(claim.pid)
    if process is None:
        text += f"; process {claim.pid} does not live"
        return Trace(file.relative, False, text, claim)
    if claim.start is not None:
        if process.start != claim.start:
            text += f"; pid {claim.pid} belongs to another process now"
            return Trace(file.relative, False, text, claim)
        return Trace(file.relative, True, text, claim, process, claim.pid)
    if registry.observer(agent).process(process.exe, process.argv):
        # no start time in the entry (Claude Code before 2.1.197): the program is all there is
        return Trace(file.relative, True, text, claim, process, claim.pid, sure=False)
    return Trace(file.relative, False, f"{text}; pid {claim.pid} is another program", claim)


def _unwritten(key: str, traces: Sequence[Trace], seen: Seen) -> Indexed:
    """A session that has a process or a lock and no transcript yet."""
    agent = key.partition(":")[0]
    paths = {trace.path for trace in traces}
    file = next(
        file
        for file in [*seen.locks, *(one[1] for one in seen.claims)]
        if file.agent == agent and file.relative in paths
    )
    indexed = Indexed(key, agent, native_of(key), file.root)
    claim = next((trace.claim for trace in traces if trace.claim is not None), None)
    if claim is not None and claim.cwd is not None:
        indexed.fold.meta["cwd"] = claim.cwd
    return indexed


def _session(indexed: Indexed, out: Catalogue, verdict: Verdict, host: str | None) -> Session:
    fold = out.folds[indexed.key]
    meta = fold.meta
    claims = [trace.claim for trace in out.traces.get(indexed.key, ()) if trace.claim]
    name = next((claim.name for claim in claims if claim.name), None)
    complete = indexed.complete and not indexed.trouble
    counted = complete or None
    times = [file.mtime_ns for file in indexed.files]
    return Session(
        key=indexed.key,
        agent=indexed.agent,
        id=indexed.id,
        host=host,
        root=indexed.root,
        parent=indexed.parent,
        relation=_relation(indexed),
        title=_title(fold, name),
        cwd=_text(meta, "cwd"),
        git_branch=_text(meta, "git_branch"),
        model=_text(meta, "model"),
        effort=_text(meta, "effort"),
        cli_version=_text(meta, "cli_version"),
        surface=_text(meta, "surface") or "unknown",
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
        started_at=fold.started_at or (stamp(min(times)) if times else None),
        updated_at=fold.updated_at or (stamp(max(times)) if times else None),
        turns=counted and fold.turns,
        prompts=counted and fold.prompts,
        tool_calls=counted and fold.tool_calls,
        errors=counted and fold.failed_tools + fold.failed_turns,
        last_prompt=fold.last_prompt,
        last_answer=fold.last_answer,
        last_tools=fold.last_tools,
        last_command=fold.last_command,
        last_error=fold.last_error,
        files_touched=fold.files,
        usage=total(out.ledger.own(indexed.key).values()) if complete else None,
        context=_context(fold),
        cost_usd=None,
        alerts=_alerts(indexed, fold),
        sources=[
            Source(file.relative, file.found.framing, file.size, indexed.read_to.get(file.path, 0))
            for file in indexed.files
        ],
        notes=[_counted(name, count) for name, count in sorted(fold.notes.items())],
        complete=complete,
    )


def _relation(indexed: Indexed) -> Any:
    return indexed.relation if indexed.parent is not None else None


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


def total(responses: Iterable[Any]) -> Usage:
    """The sum over responses; all null where there is none."""
    out = Usage()
    for one in responses:
        out = out.plus(one.counts)
    return out


def _context(fold: Fold) -> Context | None:
    if fold.context_tokens is None:
        return None
    window = fold.meta.get("window")
    if not isinstance(window, int) or window <= 0:
        return Context(fold.context_tokens)
    return Context(fold.context_tokens, window, round(fold.context_tokens / window, 4))


def _alerts(indexed: Indexed, fold: Fold) -> list[Alert]:
    alerts = [
        Alert("unreadable", "error", f"{problem.path}: {problem.reason}")
        for problem in indexed.trouble
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


def _families(sessions: dict[str, Session]) -> None:
    """usage_with_children: a session and every sub-agent below it, forks never."""
    children: dict[str, list[str]] = {}
    for key, session in sessions.items():
        if session.relation == "subagent" and session.parent is not None:
            children.setdefault(session.parent, []).append(key)

    def below(key: str, seen: frozenset[str]) -> Usage | None:
        usage = sessions[key].usage
        for child in children.get(key, ()):
            if child not in seen:
                more = below(child, seen | {child})
                usage = more if usage is None else usage.plus(more or Usage())
        return usage

    for key, session in sessions.items():
        session.usage_with_children = below(key, frozenset({key}))


def _unreadable(problem: Trouble, out: Catalogue, host: str | None) -> None:
    """A file whose name alone says which session it is still gets a row."""
    if problem.found is None or problem.found.role != "log":
        return
    key = key_of(problem.agent, problem.found.id)
    if key in out.sessions:
        return
    alert = Alert("unreadable", "error", f"{problem.path}: {problem.reason}")
    out.sessions[key] = Session(
        key=key, agent=problem.agent, id=problem.found.id, root=problem.root, host=host,
        complete=False, certain=False, alerts=[alert],
    )  # fmt: skip


def stamp(nanoseconds: int) -> str:
    """RFC 3339 UTC with milliseconds."""
    at = datetime.fromtimestamp(min(max(nanoseconds / 1e9, -62135596800), 253402300799), UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Filters:
    """What `ls` shows."""

    everything: bool = False
    """Also what was last used more than 7 days ago."""
    agents: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    cwd: str | None = None
    since: float | None = None
    """Unix seconds."""
    limit: int | None = None


def select(sessions: Iterable[Session], filters: Filters, now: float) -> list[Session]:
    """The sessions that the filters let through: live ones first, then the newest, then by key."""
    chosen = [session for session in sessions if _shown(session, filters, now)]
    chosen.sort(key=lambda session: session.key)
    chosen.sort(key=lambda session: session.updated_at or "", reverse=True)
    chosen.sort(key=lambda session: session.live is not True)
    return chosen if filters.limit is None else chosen[: filters.limit]


def _shown(session: Session, filters: Filters, now: float) -> bool:
    if session.live is not True and session.relation is None and session.turns == 0:
        return False
    at = seconds(session.updated_at)
    unreadable = any(alert.kind == "unreadable" for alert in session.alerts)
    if (
        not filters.everything
        and session.live is not True
        and not unreadable
        and (at is None or at < now - timedelta(days=DAYS).total_seconds())
    ):
        return False
    if filters.agents and session.agent not in filters.agents:
        return False
    if filters.states and session.state not in filters.states:
        return False
    if filters.since is not None and (at is None or at < filters.since):
        return False
    return filters.cwd is None or _below(session.cwd, filters.cwd)


def _below(cwd: str | None, folder: str) -> bool:
    if cwd is None:
        return False
    folder = folder.rstrip("/\\") or folder
    return cwd == folder or cwd.startswith((f"{folder}/", f"{folder}\\")) or folder in {"/", "\\"}
