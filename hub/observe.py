"""Agent homes in; what changed in them, read and kept: discover -> reading -> store -> claims.

Synchronous and step-driven: `Engine.step()` looks once at everything. A file that is as it was is
not opened. Clock, processes and locks come from the injected machine.
"""

from collections.abc import Mapping, Sequence

import msgspec

from hub import discover, registry
from hub.discover import Tree, Trouble
from hub.errors import StoreError
from hub.events import UsageEvent
from hub.liveness import Machine
from hub.memory import Memory
from hub.price import Pricer
from hub.rows import FileRow
from hub.seen import Seen
from hub.step import Step
from hub.store import Store


class Engine:
    """Looks at the homes of every agent, once a step.

    Args:
        env: environment that says where the homes are.
        home: the user's home folder.
        machine: clock, processes, locks.
        store: cursors and folds.
        memory: what outlives the cache.
        roots: configured homes by agent.
        exclude: folders that are never entered.
        agents: names of the agents to look at; all known ones by default.
        pricer: prices requests when they are read.
        processes: how many may read at once.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        home: str,
        machine: Machine,
        store: Store,
        *,
        memory: Memory | None = None,
        roots: Mapping[str, Sequence[str]] | None = None,
        exclude: Sequence[str] = (),
        agents: Sequence[str] | None = None,
        pricer: Pricer | None = None,
        processes: int = 1,
    ) -> None:
        self.env, self.home, self.machine, self.store = env, home, machine, store
        self.memory = memory or Memory(None)
        self.roots = roots or {}
        self.exclude = exclude
        self.agents = registry.agents() if agents is None else agents
        self.pricer, self.processes = pricer, processes

    def scan(self, known: Mapping[str, FileRow] | None = None) -> Tree:
        """The files of every agent that are new or changed; only names and stats are read."""
        tree = Tree()
        processes = list(self.machine.environments(self.home))
        for agent in self.agents:
            try:
                observer = registry.observer(agent)
            except Exception as error:  # noqa: BLE001  # a broken adapter costs only its own agent
                reason = f"its adapter cannot be loaded: {error}"
                tree.troubles.append(Trouble(agent, "", "", f"observers/{agent}", reason))
                continue
            live = [
                env for process, env in processes if observer.process(process.exe, process.argv)
            ]
            roots, named = discover.roots_of(
                observer, self.env, self.home, self.roots.get(agent, ()), live
            )
            discover.scan(agent, observer, roots, tree, self.exclude, known, named)
        return tree

    def step(self, *, quick: bool = False) -> Seen:
        """Looks at everything; reads only what changed since the store last saw it.

        Args:
            quick: read only head and tail of what the store does not know; keep nothing.
        """
        for _ in range(2):
            try:
                return Step(self, quick=quick).run()
            except StoreError:
                continue  # it was rebuilt, or works in memory now
            except msgspec.MsgspecError as error:
                self.store.rebuild(error)  # rows of another shape
        return Step(self, quick=quick).run()

    def unread(self) -> int:
        """Bytes of log files that the store has not seen."""
        files = self.scan(self.store.files()).files
        return sum(file.size for file in files if file.found.role == "log")

    def price(self, event: UsageEvent) -> tuple[float | None, str, str | None]:
        """The list price of one request."""
        if self.pricer is None:
            return None, "USD", None
        found = self.pricer.price(event.model, event.counts, event.raw, event.at)
        if found is None:
            return None, "USD", None
        return found.amount, found.currency, f"{found.source}:{found.version or ''}"
