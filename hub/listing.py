"""A catalogue in; the sessions that the filters of a list let through out, in its order."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from hub.catalogue import Catalogue
from hub.model import Session
from hub.state import seconds
from hub.text import json_of

STATES = (
    "working", "waiting", "idle", "ended", "unknown",
    "completed", "interrupted", "failed", "lost",
)  # fmt: skip
"""What `--state` takes: the states, and the outcomes of what has come to rest."""
DAYS = 7
"""A session that is not live is listed this long after its last record."""


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

    @property
    def recent(self) -> bool:
        """Whether the last 7 days bound the list: who names another time, means that one."""
        return not self.everything and self.since is None


def listed(found: Catalogue, filters: Filters) -> list[Session]:
    """The sessions that the filters let through: live ones first, then the newest, then by key."""
    return [found.session(key) for _, key, _ in _ordered(found, filters, lambda _: b"")]


def listed_json(found: Catalogue, filters: Filters) -> list[bytes]:
    """The same as JSON, a document each; only the documents are held."""

    def row(session: Session) -> bytes:
        document = json_of(session)
        found.forget(session.key)
        return document

    return [document for _, _, document in _ordered(found, filters, row)]


def _ordered(
    found: Catalogue, filters: Filters, row: Callable[[Session], bytes]
) -> list[tuple[tuple[bool, str], str, bytes]]:
    """((live, last record), key, what `row` made of it) of each session that is shown, in order.

    Sessions that the filters cannot let through are not even looked at.
    """
    week = found.now - timedelta(days=DAYS).total_seconds()
    bound = week if filters.recent else filters.since
    keys = found.keys() if bound is None else found.since(bound)
    if filters.agents:
        keys = {key for key in keys if key.partition(":")[0] in filters.agents}
    out = []
    for session in found.sessions(keys):
        if _shown(session, filters, found.now):
            rank = (session.live is True, session.updated_at or "")
            out.append((rank, session.key, row(session)))
    out.sort(key=lambda one: one[0], reverse=True)  # by key already: sorting is stable
    return out if filters.limit is None else out[: filters.limit]


def _shown(session: Session, filters: Filters, now: float) -> bool:
    if session.live is not True and session.relation is None and session.turns == 0:
        return False
    at = seconds(session.updated_at)
    unreadable = any(alert.kind == "unreadable" for alert in session.alerts)
    if (
        filters.recent
        and session.live is not True
        and not unreadable
        and (at is None or at < now - timedelta(days=DAYS).total_seconds())
    ):
        return False
    if filters.agents and session.agent not in filters.agents:
        return False
    outcome = session.outcome if session.state in {"ended", "idle"} else None
    if filters.states and not {session.state, outcome} & set(filters.states):
        return False
    if filters.since is not None and (at is None or at < filters.since):
        return False
    return filters.cwd is None or _below(session.cwd, filters.cwd)


def _below(cwd: str | None, folder: str) -> bool:
    if cwd is None:
        return False
    folder = folder.rstrip("/\\") or folder
    return cwd == folder or cwd.startswith((f"{folder}/", f"{folder}\\")) or folder in {"/", "\\"}
