"""Registry entries and locks in; by session, which of them speak for a live process out."""

from collections.abc import Mapping  # noqa: TC003

from hub import registry
from hub.adapter import Claim
from hub.discover import File
from hub.liveness import Inode, Machine
from hub.observe import Engine
from hub.rows import FileRow
from hub.seen import Seen
from hub.state import Trace


class Traces:
    """Registry entries and locks by session, looked at when they are asked for."""

    def __init__(self, engine: Engine, seen: Seen) -> None:
        self.machine, self.seen = engine.machine, seen
        self.domains = engine.machine.domains()
        self.held: Mapping[Inode, int] = engine.machine.locks() if seen.locks else {}
        self.crashes = engine.memory.crashes()
        self._done: dict[str, list[Trace]] = {}
        self._live: set[str] | None = None

    def __contains__(self, key: object) -> bool:
        return key in self.seen.claims or key in self.live_keys()

    def live_keys(self) -> set[str]:
        """Sessions with a registry entry, or with a lock that is held."""
        if self._live is None:
            held = {
                key
                for key, rows in self.seen.locks.items()
                if self.domains is None or any((row.device, row.inode) in self.held for row in rows)
            }
            self._live = self.seen.claims.keys() | held
        return self._live

    def root(self, key: str) -> str:
        """The agent home that a session's traces are in."""
        if key in self.seen.claims:
            return self.seen.claims[key][0][0].root
        return self.seen.locks[key][0].root

    def of(self, key: str) -> list[Trace]:
        """The traces of one session."""
        if key not in self._done:
            agent = key.partition(":")[0]
            claims = [
                _claimed(agent, file, claim, self.machine, self.domains)
                for file, claim in self.seen.claims.get(key, ())
            ]
            self._done[key] = [*claims, *map(self._lock, self.seen.locks.get(key, ()))]
        return self._done[key]

    def _lock(self, row: FileRow) -> Trace:
        pid = self.held.get((row.device, row.inode))
        if pid is None and self.domains is None:
            text = "a lock whose owner cannot be seen on this system"
            return Trace(row.relative, None, text)
        if pid is None:
            return Trace(row.relative, False, "the lock file is there and nobody holds it")
        if pid == 0:
            text = "the lock is held by a process of another pid namespace"
            return Trace(row.relative, True, text)
        text = f"the lock is held by process {pid}"
        return Trace(row.relative, True, text, process=self.machine.process(pid), pid=pid)


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
