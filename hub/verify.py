"""This machine's real sessions in; how much of them is understood out: structure, never a text."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from hub import registry
from hub.catalogue import Catalogue, catalogue
from hub.cursor import open_regular
from hub.errors import why
from hub.local import Local
from hub.model import Session

UNKNOWN: Final = "unknown"
_DRIFT: Final = "unknown_record"
_WORD: Final = re.compile(r"[\w.:/+-]{1,64}", re.ASCII)
_NEVER: Final = frozenset({"key", "agent", "id", "host", "root", "complete", "certain"})
"""Fields that the hub fills whatever the files say."""
FIELDS: Final = tuple(name for name in Session.__struct_fields__ if name not in _NEVER)


def report(local: Local, agents: Sequence[str] = ()) -> dict[str, Any]:
    """The fidelity report.

    Args:
        local: the homes.
        agents: only these; all by default.
    """
    found = catalogue(local.engine)
    chosen = [name for name in registry.agents() if not agents or name in agents]
    sessions: dict[str, dict[str, list[Session]]] = {name: {} for name in chosen}
    for session in found.sessions():
        if session.agent in sessions:
            version = session.cli_version or UNKNOWN
            sessions[session.agent].setdefault(version, []).append(session)
    closed = {name: _closed(found, name) for name in chosen}
    out = {
        name: {
            "label": registry.observer(name).LABEL,
            "looked_in": [
                {"path": root.path, "exists": there}
                for agent, root, there in found.seen.tree.roots
                if agent == name
            ],
            "versions": {
                version: _version(found, sessions[name][version])
                for version in sorted(sessions[name], key=_natural)
            },
            "unreadable": [
                {"path": one.path, "reason": one.reason}
                for one in found.seen.troubles
                if one.agent == name
            ]
            + closed[name],
        }
        for name in chosen
    }
    return {"agents": out, "ok": all(_understood(agent) for agent in out.values())}


def _closed(found: Catalogue, agent: str) -> list[dict[str, Any]]:
    """Files that were read once and cannot be opened now: the list has them from its cache."""
    out = []
    told = {one.path for one in found.seen.troubles}
    for rows in found.seen.files.values():
        for row in rows:
            if row.agent != agent or row.path in told:
                continue
            try:
                os.close(open_regular(row.path))
            except FileNotFoundError:
                continue
            except OSError as error:
                out.append({"path": row.path, "reason": why(error)})
    return out


def _understood(agent: dict[str, Any]) -> bool:
    unknown = any(version["not_understood"] for version in agent["versions"].values())
    return not unknown and not agent["unreadable"]


def _version(found: Catalogue, sessions: Sequence[Session]) -> dict[str, Any]:
    filled = Counter(name for one in sessions for name in FIELDS if _filled(one, name))
    notes = Counter[str]()
    for one in sessions:
        notes.update({note.code: note.count for note in one.notes if note.code != _DRIFT})
    return {
        "sessions": len(sessions),
        "sub_agents": sum(one.relation == "subagent" for one in sessions),
        "fields": {
            name: {"count": filled[name], "share": round(filled[name] / len(sessions), 4)}
            for name in FIELDS
        },
        "not_understood": not_understood(sessions),
        "notes": dict(sorted(notes.items())),
        "no_turn": sorted(
            one.key for one in sessions if one.turns == 0 and found.fold(one.key).events > 0
        ),
    }


def _filled(session: Session, name: str) -> bool:
    value = getattr(session, name)
    if isinstance(value, msgspec.Struct):
        return any(getattr(value, part) is not None for part in value.__struct_fields__)
    return value is not None and value not in ([], UNKNOWN)


def not_understood(sessions: Iterable[Session]) -> dict[str, int]:
    """Types of records that no adapter knows, and how many there are.

    A type that does not look like one is not told: it could be anything.
    """
    out = Counter[str]()
    for session in sessions:
        for note in session.notes:
            if note.code == _DRIFT:
                kind = note.detail or ""
                odd = f"<not a word, {len(kind)} characters>" if kind else "<no type>"
                out[kind if _WORD.fullmatch(kind) else odd] += note.count
    return dict(sorted(out.items()))


def _natural(version: str) -> list[tuple[int, int, str]]:
    """Sorts 2.10 behind 2.9, and what is unknown last."""
    parts = re.split(r"(\d+)", version if version != UNKNOWN else "~")
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
