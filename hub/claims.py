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
    shared: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """(agent, response) -> the sessions it stands in, where more than one."""

    def own(self, session: str) -> dict[str, Response]:
        """The responses that count for this session."""
        agent = agent_of(session)
        return {
            name: one
            for name, one in self.responses.get(session, {}).items()
            if (agent, name) not in self.shared or self.owner[self.shared[agent, name]] == session
        }

    def copied(self, session: str) -> dict[str, str]:
        """Response -> the session that owns it instead."""
        agent = agent_of(session)
        owners = {
            name: self.owner[self.shared[agent, name]]
            for name in self.responses.get(session, {})
            if (agent, name) in self.shared
        }
        return {name: owner for name, owner in owners.items() if owner != session}


def agent_of(session: str) -> str:
    """The agent in a key: ids of responses are its own, another agent may use the same ones."""
    return session.partition(":")[0]


def resolve(responses: dict[str, dict[str, Response]], parents: Mapping[str, str | None]) -> Ledger:
    """Settles every shared response.

    Args:
        responses: session key -> response id -> figures; ids with `:` are local to a session.
        parents: session key -> key of its stated parent.
    """
    ledger = Ledger(responses)
    places: dict[tuple[str, str], list[str]] = {}
    for key, ones in responses.items():
        agent = agent_of(key)
        for name in ones:
            if ":" not in name:
                places.setdefault((agent, name), []).append(key)
    for place, keys in places.items():
        if len(keys) > 1:
            group = tuple(sorted(keys))
            ledger.shared[place] = group
            ledger.owner.setdefault(group, "")
    for group in ledger.owner:
        ledger.owner[group] = _owner(group, ledger, parents)
    return ledger


def _owner(group: tuple[str, ...], ledger: Ledger, parents: Mapping[str, str | None]) -> str:
    # parents that are each other's children state nothing
    members = set(group)
    stated = [key for key in group if not _ancestors(key, parents) & members] or list(group)
    if len(stated) == 1:
        return stated[0]
    sets = {key: set(ledger.responses[key]) for key in stated}
    inner = min(stated, key=lambda key: (len(sets[key]), key))
    if all(sets[inner] < sets[other] for other in stated if other != inner):
        return inner
    return min(stated, key=lambda key: (_first_own(key, ledger), key))


def _ancestors(key: str, parents: Mapping[str, str | None]) -> set[str]:
    seen: set[str] = set()
    parent = parents.get(key)
    while parent is not None and parent not in seen:
        seen.add(parent)
        parent = parents.get(parent)
    return seen - {key}


def _first_own(key: str, ledger: Ledger) -> str:
    """Time of the first response that no other session has; a session without one comes last."""
    times = [
        one.at or ""
        for name, one in ledger.responses[key].items()
        if (agent_of(key), name) not in ledger.shared
    ]
    return min(times, default="\uffff")
