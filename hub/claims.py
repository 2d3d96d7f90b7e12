"""Responses of all sessions in; for each response in several of them, its one owner out.

The owner is the stated parent, else the session wholly contained in the other, else the one whose
first unshared response is oldest (tie: the smaller key). Everybody else had it copied.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hub.store import Response


@dataclass
class Ledger:
    """Who owns what."""

    responses: dict[str, dict[str, Response]] = field(default_factory=dict)
    """Session -> response -> figures"""
    owner: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Sessions that share responses -> the owner of those."""
    shared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Response -> the sessions it stands in, where more than one."""

    def own(self, session: str) -> dict[str, Response]:
        """The responses that count for this session."""
        return {
            name: one
            for name, one in self.responses.get(session, {}).items()
            if name not in self.shared or self.owner[self.shared[name]] == session
        }

    def copied(self, session: str) -> dict[str, str]:
        """Response -> the session that owns it instead."""
        return {
            name: self.owner[self.shared[name]]
            for name in self.responses.get(session, {})
            if name in self.shared and self.owner[self.shared[name]] != session
        }


def resolve(responses: dict[str, dict[str, Response]], parents: Mapping[str, str | None]) -> Ledger:
    """Settles every shared response.

    Args:
        responses: session key -> response id -> figures; ids with `:` are local to a session.
        parents: session key -> key of its stated parent.
    """
    ledger = Ledger(responses)
    places: dict[str, list[str]] = {}
    for key, ones in responses.items():
        agent = key.partition(":")[0]
        for name in ones:
            if ":" not in name:
                places.setdefault(f"{agent}\0{name}", []).append(key)
    for name, keys in places.items():
        if len(keys) > 1:
            group = tuple(sorted(keys))
            ledger.shared[name.partition("\0")[2]] = group
            ledger.owner.setdefault(group, "")
    for group in ledger.owner:
        ledger.owner[group] = _owner(group, ledger, parents)
    return ledger


def _owner(group: tuple[str, ...], ledger: Ledger, parents: Mapping[str, str | None]) -> str:
    stated = [key for key in group if not _ancestors(key, parents) & set(group)]
    if len(stated) == 1:
        return stated[0]
    sets = {key: set(ledger.responses[key]) for key in stated}
    inner = [
        key for key in stated if all(sets[key] < sets[other] for other in stated if other != key)
    ]
    if len(inner) == 1:
        return inner[0]
    return min(stated, key=lambda key: (_first_own(key, ledger), key))


def _ancestors(key: str, parents: Mapping[str, str | None]) -> set[str]:
    seen: set[str] = set()
    parent = parents.get(key)
    while parent is not None and parent not in seen:
        seen.add(parent)
        parent = parents.get(parent)
    return seen


def _first_own(key: str, ledger: Ledger) -> str:
    """Time of the first response that no other session has; a session without one comes last."""
    times = [
        one.at or "" for name, one in ledger.responses[key].items() if name not in ledger.shared
    ]
    return min(times, default="\uffff")
