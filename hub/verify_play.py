"""One scenario and one CLI in; what the list says at each moment, beside what it must, out."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hub import verify
from hub.adapter import Trial
from hub.catalogue import Catalogue, catalogue
from hub.liveness import this_machine
from hub.model import Session, Usage
from hub.modelserver import ModelServer
from hub.observe import Engine
from hub.store import Store
from hub.verify_cases import ANY, AS_MEASURED, GATE, RUNS, Moment, Scenario
from hub.verify_scratch import Running, Scratch
from hub.wire.ledger import LedgerEntry

SETTLE = 15.0
"""Seconds after which the list of a program that runs is taken for wrong."""
SETTLE_ENDED = 5.0
"""The same where it has ended: its files are final."""
_ITS_OWN = "its own"
_KINDS = Usage.__struct_fields__


@dataclass
class Row:
    """One cell of the matrix."""

    agent: str
    scenario: str
    seconds: float = 0.0
    expected: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    """Why there was nothing to look at."""
    said: str | None = None
    """How the program ended and the last it said, where something differs."""

    def differs(self) -> list[str]:
        """The fields that are not as expected."""
        return [name for name, value in self.expected.items() if self.seen.get(name) != value]

    def ok(self) -> bool:
        """Whether everything is as expected."""
        return self.problem is None and bool(self.expected) and not self.differs()


class Play:
    """One scenario with one CLI."""

    def __init__(
        self, agent: str, trial: Trial, program: str, scenario: Scenario, server: ModelServer,
        scratch: Scratch,
    ) -> None:  # fmt: skip
        self.agent, self.trial, self.program = agent, trial, program
        self.scenario, self.server, self.scratch = scenario, server, scratch
        self.engine = Engine({}, str(scratch.home), this_machine(), Store(None), agents=[agent])
        self.running: Running | None = None

    def look(self, row: Row, moment: Moment) -> None:
        """Brings the scenario to the moment, and asks the list until it is right."""
        row.problem = self._reach() if self.running is None else None
        if row.problem is None and moment.signal is not None:
            row.problem = self._signal(moment.signal)
        if row.problem is not None:
            return
        row.expected = self._expected(moment)

        def right() -> bool:
            row.seen = self._seen(row.expected)
            return not row.differs()

        running = self.running
        assert running is not None  # noqa: S101
        self.scratch.until(right, SETTLE_ENDED if running.ended() else SETTLE)
        if not row.ok():
            row.said = running.said()
        if not row.seen["sessions"]:
            row.problem = f"no session is listed: {row.said}"

    def _reach(self) -> str | None:
        """Runs the prompts; None, or why the moment never came."""
        native = None
        for prompt in self.scenario.prompts:
            if self.running is not None:
                if not self.scratch.until(self.running.ended):
                    return f"a run does not end: {self.running.said()}"
                native = self.trial.trial_session(self.running.printed())
                if native is None:
                    return f"a run names no session to resume: {self.running.said()}"
            launch = self.trial.trial(
                prompt.encode(), str(self.scratch.work), str(self.scratch.home), self.server.url,
                native,
            )  # fmt: skip
            self.running = self.scratch.start(self.program, launch)
        running, reach = self.running, self.scenario.reach
        assert running is not None  # noqa: S101
        there = {
            "end": running.ended,
            "gate": self._at_gate,
            "tool": (self.scratch.work / RUNS).exists,
        }[reach]
        self.scratch.until(lambda: there() or running.ended())
        return None if there() else f"the {reach} was not reached: {running.said()}"

    def _at_gate(self) -> bool:
        try:
            self.server.holding(GATE, 0)
        except TimeoutError:
            return False
        return True

    def _signal(self, one: signal.Signals) -> str | None:
        """Sends it to the process that the list names, else to the program; waits for the end."""
        running = self.running
        assert running is not None  # noqa: S101
        tops = _tops(catalogue(self.engine))
        self.scratch.send(tops[0].pid if tops else None, one)
        if self.scratch.until(running.ended):
            return None
        return f"it does not end by {one.name}: {running.said()}"

    def _expected(self, moment: Moment) -> dict[str, Any]:
        """What the scenario, the ledger and the scratch home say together."""
        ledger = [entry for entry in self.server.ledger if entry.purpose == "turn"]
        given = [entry for entry in ledger if entry.ended == "complete" and entry.status == 200]
        answers = [one.answer for one in given if one.answer and not one.script.startswith("child")]
        out = {name: self.trial.ON_SIGINT if value is AS_MEASURED else value
               for name, value in moment.expected.items()}  # fmt: skip
        turns = len(self.scenario.prompts)
        every = {
            "sessions": 1,
            "children": 0,
            "certain": True,
            "pid": _ITS_OWN if out["live"] else None,
            "turns": turns,
            "prompts": turns,
            "prompt": self.scenario.prompts[-1],
            "answer": answers[-1] if answers else None,
            # some name their model only in an answer's record
            "model": given[-1].model if given else ANY,
            "cwd": str(self.scratch.work),
            "tokens": _given(given, self.trial.UNCOUNTED),
            "not_understood": {},
            "unreadable": [],
        }
        return {name: value for name, value in (every | out).items() if value is not ANY}

    def _seen(self, expected: Mapping[str, Any]) -> dict[str, Any]:
        """The same fields, as the list has them now."""
        found = catalogue(self.engine)
        tops = _tops(found)
        seen: dict[str, Any] = {
            "sessions": len(tops),
            "not_understood": verify.not_understood(found.sessions()),
            "unreadable": [one.reason for one in found.seen.troubles],
        }
        if not tops:
            return seen
        top = tops[0]
        children = [one for one in found.sessions() if one.relation == "subagent"]
        own = self.scratch.processes() if top.pid else ()
        usage = top.usage_with_children or Usage()
        seen |= {
            "state": top.state,
            "outcome": top.outcome,
            "live": top.live,
            "activity": top.activity.kind if top.activity is not None else None,
            "certain": top.certain,
            "children": sum(one.parent == top.key and one.state == "ended" for one in children),
            "tool_calls": top.tool_calls,
            "errors": top.errors,
            "pid": _ITS_OWN if top.pid in own else top.pid,
            "turns": top.turns,
            "prompts": top.prompts,
            "prompt": top.last_prompt,
            "answer": top.last_answer,
            "model": top.model,
            "cwd": top.cwd,
            "tokens": _counts(usage, self.trial.UNCOUNTED),
        }
        return {name: seen[name] for name in expected}


def _tops(found: Catalogue) -> list[Session]:
    return [one for one in found.sessions() if one.relation != "subagent"]


def _given(entries: Sequence[LedgerEntry], uncounted: frozenset[str]) -> dict[str, int]:
    """The tokens that the server gave out in whole answers, in the counts that the files hold."""
    usages = [entry.usage for entry in entries if entry.usage is not None]
    return {
        kind: sum(getattr(usage, kind) for usage in usages)
        for kind in _KINDS
        if kind not in uncounted
    }


def _counts(usage: Usage, uncounted: frozenset[str]) -> dict[str, int]:
    return {kind: getattr(usage, kind) or 0 for kind in _KINDS if kind not in uncounted}
