"""Sessions whose responses changed in; for each response in several of them its one owner out.

The owner is the stated parent, else the session wholly contained in the other, else the one whose
first unshared response is oldest (tie: the smaller key). Everybody else had it copied. An owner
whose files are gone stays the owner (`Memory`): what was counted once is not counted again.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from hub.fold import Response
from hub.model import Usage
from hub.reading import total
from hub.rows import Totals
from hub.store import Store


class Memory(Protocol):
    """Owners that outlive the cache."""

    def owners(self, agent: str, names: Iterable[str]) -> dict[str, str]:
        """Response -> the session that once claimed it, for those that were ever shared."""
        ...

    def claim(self, agent: str, owners: Mapping[str, str]) -> None:
        """Remembers owners of shared responses."""
        ...


def settle(
    store: Store,
    memory: Memory,
    changed: Mapping[str, Iterable[str]],
    parents: Mapping[str, str | None],
    fresh: Mapping[str, dict[str, Response]] | None = None,
) -> dict[str, Totals]:
    """Settles who owns what, and what the sessions concerned own in all.

    Args:
        store: every response of every session.
        memory: owners of earlier days.
        changed: session -> its responses that are new or changed.
        parents: session -> its stated parent; a changed one that is not in it is gone.

        fresh: all responses of sessions that were just read whole, to be spared reading them back.

    Returns:
        Totals of every session whose own figures changed.
    """
    groups = _Groups(store, memory, parents, fresh or {})
    by_agent: dict[str, set[str]] = {}
    for key, names in changed.items():
        by_agent.setdefault(agent_of(key), set()).update(name for name in names if ":" not in name)
    concerned = set(changed)
    for agent, names in by_agent.items():
        concerned |= groups.settle(agent, names | groups.moved(agent, names, changed))
    return {key: groups.totals(key) for key in concerned & parents.keys()}


def agent_of(session: str) -> str:
    """The agent in a key: ids of responses are its own, another agent may use the same ones."""
    return session.partition(":")[0]


class _Groups:
    """Sessions that share responses."""

    def __init__(
        self,
        store: Store,
        memory: Memory,
        parents: Mapping[str, str | None],
        fresh: Mapping[str, dict[str, Response]],
    ) -> None:
        self.store, self.memory, self.parents = store, memory, parents
        self._sets: dict[str, dict[str, Response]] = dict(fresh)
        self._shared: dict[str, list[str]] = {}
        self._owner: dict[tuple[str, ...], str] = {}
        self._common: set[str] | None = None
        self._first: dict[str, str] = {}

    def moved(self, agent: str, names: set[str], changed: Mapping[str, Iterable[str]]) -> set[str]:
        """Further responses whose owner these may change.

        Who owns is judged by what sessions have alone: where they share more or less than before,
        or where another own response of theirs is the first, all that they share is judged anew.
        """
        keys = {key for ones in self.store.sharers(sorted(names)).values() for key in ones}
        for key, ones in changed.items():
            if agent_of(key) != agent:
                continue
            if key not in self.parents:
                keys |= {one for name in ones for one in self.store.holders(name, agent)}
            elif key not in keys and self._begins_anew(key, set(ones)):
                keys.add(key)
        shared = (self.store.shared_of(key) for key in keys if agent_of(key) == agent)
        return set().union(*shared)

    def _begins_anew(self, key: str, names: set[str]) -> bool:
        """May these be the first that the session has alone?"""
        shared = self.store.shared_of(key)
        if not shared:
            return False
        mine = self._of(key)
        old = [one.at or "" for name, one in mine.items() if name not in names | shared]
        new = [one.at or "" for name, one in mine.items() if name in names - shared]
        return not old or (bool(new) and min(new) < min(old))

    def settle(self, agent: str, names: set[str]) -> set[str]:
        """Writes who owns these responses; the sessions whose figures change by it."""
        self._common = None
        asked = sorted(names)
        self._shared = {
            name: [key for key in keys if agent_of(key) == agent]
            for name, keys in self.store.sharers(asked).items()
        }
        known = self.memory.owners(agent, asked)
        rows: list[tuple[str, str, str | None]] = []
        fresh: dict[str, str] = {}
        concerned: set[str] = set()
        for name in names & (self._shared.keys() | known.keys()):
            keys = self._shared.get(name, [])
            if len(keys) < 2:
                keys = self.store.holders(name, agent)
            remembered = known.get(name)
            gone = remembered is not None and remembered not in self.parents
            if len(keys) < 2 and not gone:
                rows += [(key, name, None) for key in keys]
                concerned |= set(keys)
                if keys and remembered not in {None, keys[0]}:
                    fresh[name] = keys[0]  # its owner has it no more
                continue
            owner = remembered if gone and remembered is not None else self._decide(tuple(keys))
            if remembered != owner:
                fresh[name] = owner
            rows += [(key, name, None if key == owner else owner) for key in keys]
            concerned |= set(keys)
        self.store.put_copies(rows)
        self.memory.claim(agent, fresh)
        return concerned & self.parents.keys()

    def _decide(self, group: tuple[str, ...]) -> str:
        if group not in self._owner:
            self._owner[group] = self._choose(group)
        return self._owner[group]

    def _choose(self, group: tuple[str, ...]) -> str:
        # parents that are each other's children state nothing
        members = set(group)
        stated = [key for key in group if not self._descends(key, members)] or list(group)
        if len(stated) == 1:
            return stated[0]
        sets = {key: self._of(key).keys() for key in stated}
        inner = min(stated, key=lambda key: (len(sets[key]), key))
        if all(sets[inner] < sets[other] for other in stated if other != inner):
            return inner
        return min(stated, key=lambda key: (self._first_own(key), key))

    def _of(self, key: str) -> dict[str, Response]:
        if key not in self._sets:
            self._sets[key] = self.store.responses(key)
        return self._sets[key]

    def _descends(self, key: str, members: set[str]) -> bool:
        """Is one of these above it?"""
        seen = {key}
        parent = self.parents.get(key)
        while parent is not None and parent not in seen:
            if parent in members:
                return True
            seen.add(parent)
            parent = self.parents.get(parent)
        return False

    def _first_own(self, key: str) -> str:
        """Time of the first response that nobody else has; a session without one comes last."""
        if key not in self._first:
            mine = self._of(key)
            if self._common is None:
                self._common = self.store.common(agent_of(key))
            common = self._common
            times = [one.at or "" for name, one in mine.items() if name not in common]
            self._first[key] = min(times, default="\uffff")
        return self._first[key]

    def totals(self, key: str) -> Totals:
        """What a session owns of its responses, and what it inherited with the copied ones."""
        mine = self._of(key)
        copies = self.store.copies(key)
        return totals_of(mine, copies)


def totals_of(responses: Mapping[str, Response], copies: Mapping[str, str]) -> Totals:
    """The totals of a session with these responses, of which these are somebody else's."""
    stated = {name: one.owner for name, one in responses.items() if one.owner is not None}
    copies = {**stated, **copies}
    own = {name: one for name, one in responses.items() if name not in copies}
    out = Totals(total(own) if own else Usage(), responses=len(own))
    costs = [one.cost for one in own.values()]
    currencies = {one.currency for one in own.values()}
    if costs and len(currencies) == 1 and all(cost is not None for cost in costs):
        out.cost = sum(cost for cost in costs if cost is not None)
        out.currency = currencies.pop()
        bases = sorted({one.basis for one in own.values() if one.basis})
        out.basis = bases[-1] if bases else None
    out.models = sorted({one.model for one in own.values() if one.model})
    for name, owner in copies.items():
        if name in responses:
            out.copied[owner] = out.copied.get(owner, 0) + 1
    copied = [one for name, one in responses.items() if name in copies]
    if copied:
        last = max(copied, key=lambda one: one.n)
        out.inherited, out.own_at = last.upto, last.next_at
    return out
