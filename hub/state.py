"""What the records say and what the machine says in; state, outcome and the evidence for them out.

Precedence: a live claim's own status, then a held lock or live process with the records, then the
records alone. Whatever is inferred says so (`certain`, `alternatives`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hub.adapter import Claim
from hub.fold import Fold, OpenCall, OpenWait
from hub.liveness import Process
from hub.model import Activity, Alternative, Evidence, State, Tier, TurnOutcome

RECENT = 600.0
"""Seconds of silence after which an open turn is taken for dead where nothing can prove it."""


@dataclass
class Trace:
    """What one registry entry or lock says of a session."""

    path: str
    live: bool | None
    """None: it belongs to a pid namespace or system that cannot be seen."""
    text: str
    claim: Claim | None = None
    process: Process | None = None
    pid: int | None = None
    sure: bool = True


@dataclass
class Verdict:
    """The state fields of a session."""

    state: State = "unknown"
    outcome: TurnOutcome | None = None
    waiting_for: str | None = None
    activity: Activity | None = None
    certain: bool = True
    live: bool | None = None
    pid: int | None = None
    tty: str | None = None
    tmux: str | None = None
    evidence: list[Evidence] = field(default_factory=list)
    alternatives: list[Alternative] = field(default_factory=list)


def judge(
    fold: Fold, traces: Sequence[Trace], now: float, parent: Verdict | None = None
) -> Verdict:
    """The verdict over one session.

    Args:
        fold: what its records say.
        traces: registry entries and locks of this session.
        now: Unix seconds.
        parent: for a session without traces of its own that runs in its parent's process.
    """
    out = Verdict()
    for trace in traces:
        tier: Tier = "registry" if trace.claim is not None else "lock"
        out.evidence.append(Evidence(tier, trace.text, trace.path))
        if trace.process is not None:
            text = f"process {trace.process.pid} lives, started at tick {trace.process.start}"
            out.evidence.append(Evidence("process", text))
    alive = [trace for trace in traces if trace.live]
    if alive:
        _living(out, fold, alive)
    elif any(trace.live is None for trace in traces):
        asked = next((one.claim for one in traces if one.claim is not None
                      and one.live is None and one.claim.status == "waiting"), None)  # fmt: skip
        _unseen(out, fold, now, "its process cannot be seen from here", asked)
    elif parent is not None and not traces:
        _child(out, fold, parent, now)
    else:
        _dead(out, fold, traced=bool(traces))
    if out.state in {"working", "waiting"}:
        out.activity = _activity(fold)
    return out


def _records(out: Verdict, fold: Fold) -> None:
    """Adds the record that decides to the evidence."""
    for wait in fold.waits.values():
        out.evidence.append(
            Evidence("record", f"asks: {wait.what}", wait.path, _known(wait.offset))
        )
    for call in fold.calls.values():
        text = f"{call.name} was called and has no result"
        out.evidence.append(Evidence("record", text, call.path, _known(call.offset)))
    if fold.open_turn is not None:
        spot = fold.open_turn
        text = "a turn began and has not ended"
        out.evidence.append(Evidence("record", text, spot.path, _known(spot.offset)))
    elif fold.last_end_spot is not None:
        spot = fold.last_end_spot
        out.evidence.append(Evidence("record", spot.text, spot.path, _known(spot.offset)))


def _living(out: Verdict, fold: Fold, alive: Sequence[Trace]) -> None:
    out.live = True
    first = max(alive, key=_weight)
    out.pid = first.pid
    if first.process is not None:
        out.tty, out.tmux = first.process.tty, first.process.tmux
    out.certain = first.sure
    status = first.claim.status if first.claim is not None else None
    wait = _wait(fold)
    _records(out, fold)
    if status == "waiting" and first.claim is not None:
        out.state = "waiting"
        said = first.claim.waiting_for or "other"
        asked = wait.what if wait is not None and wait.certain else None
        out.waiting_for = asked if asked is not None and said != "dialog" else said
    elif status == "working":
        out.state = "working"
    elif status == "idle":
        out.state = "idle"
        out.outcome = settled(fold)
        if fold.open_turn is not None:
            out.outcome, out.certain = "interrupted", False
            text = "the agent says idle, but the last turn has no end: withdrawn before an answer"
            out.evidence.append(Evidence("inferred", text))
            text = "its last records are not written yet"
            out.alternatives.append(Alternative("idle", "completed", text))
    elif wait is not None:
        out.state, out.waiting_for = "waiting", wait.what
        if fold.open_turn is None:
            # a question may outlive its turn (dsh's timed ones)
            out.outcome = settled(fold)
        if not wait.certain:
            out.certain = False
            text = "the records cannot tell a question from a tool that runs"
            out.evidence.append(Evidence("inferred", text))
            if fold.open_turn is None:
                out.alternatives.append(Alternative("idle", out.outcome, "it was answered"))
            else:
                text = "the call was approved and runs"
                out.alternatives.append(Alternative("working", None, text))
    elif fold.open_turn is not None:
        out.state = "working"
    else:
        out.state, out.outcome = "idle", settled(fold)


def _weight(trace: Trace) -> tuple[int, str]:
    """Of several live processes on one session, the one that needs a person speaks for it."""
    status = trace.claim.status if trace.claim is not None else None
    order = {"waiting": 3, "working": 2, None: 1, "idle": 0}
    return order[status], trace.path


def _wait(fold: Fold) -> OpenWait | None:
    waits = sorted(fold.waits.values(), key=lambda wait: (not wait.certain, wait.offset))
    return waits[0] if waits else None


def _dead(out: Verdict, fold: Fold, *, traced: bool) -> None:
    out.live, out.state = False, "ended"
    out.outcome = settled(fold)
    _records(out, fold)
    if fold.open_turn is None:
        if not traced:
            out.evidence.append(Evidence("inferred", "no live process claims this session"))
        return
    out.outcome = "lost"
    if traced:
        text = "its process died in this turn"
        out.evidence.append(Evidence("inferred", text))
        return
    out.certain = False
    text = "no process, registry entry or lock claims this session: its process died in this turn"
    out.evidence.append(Evidence("inferred", text))
    text = "the files belong to another machine or container, where it may still run"
    out.alternatives.append(Alternative("working", None, text))


def _child(out: Verdict, fold: Fold, parent: Verdict, now: float) -> None:
    """A sub-agent runs in its parent's process and has no trace of its own."""
    text = f"it runs in its parent's process, which {_words(parent)}"
    out.evidence.append(Evidence("inferred", text))
    if parent.live is None:
        _unseen(out, fold, now, "its parent's process cannot be seen from here")
    elif parent.live and fold.open_turn is not None and parent.state in {"working", "waiting"}:
        out.live, out.state, out.pid = True, "working", parent.pid
        wait = _wait(fold)
        if wait is not None and parent.state == "waiting":
            out.state, out.waiting_for = "waiting", wait.what
        out.certain = parent.certain
        _records(out, fold)
    else:
        _dead(out, fold, traced=True)
        if parent.live and fold.open_turn is not None:
            out.outcome, out.certain = "interrupted", False
            text = "it was still running when its parent came to rest"
            out.evidence.append(Evidence("inferred", text))


def _words(parent: Verdict) -> str:
    return {True: "lives", False: "is gone", None: "cannot be seen"}[parent.live]


def _unseen(out: Verdict, fold: Fold, now: float, text: str, asked: Claim | None = None) -> None:
    out.live, out.certain = None, False
    _records(out, fold)
    out.evidence.append(Evidence("inferred", text))
    last = seconds(fold.updated_at)
    fresh = last is not None and 0 <= now - last <= RECENT
    wait = _wait(fold)
    if asked is not None or (wait is not None and wait.certain and fold.open_turn is not None):
        # somebody who is asked may be silent for long: no silence makes this one dead
        out.state = "waiting"
        out.waiting_for = (
            wait.what if wait is not None and wait.certain
            else (asked.waiting_for if asked is not None else None) or "other"
        )  # fmt: skip
        out.alternatives.append(Alternative("ended", "lost", "its process died"))
    elif fold.open_turn is None:
        out.state, out.outcome = "ended", settled(fold)
        out.alternatives.append(Alternative("idle", out.outcome, "it is still open there"))
    elif fresh:
        out.state = "working"
        out.alternatives.append(Alternative("ended", "lost", "its process died"))
    else:
        out.state, out.outcome = "ended", "lost"
        out.alternatives.append(Alternative("working", None, "a long silent step"))


def settled(fold: Fold) -> TurnOutcome | None:
    """The outcome of the last turn that ended; null before the first."""
    match fold.last_end:
        case None:
            return None
        case "completed" | "interrupted" | "lost":
            return fold.last_end
        case _:
            return "failed"


def _activity(fold: Fold) -> Activity:
    if fold.compacting:
        return Activity("compacting", None, "", fold.last_at)
    if fold.calls:
        call = _foremost(fold)
        return Activity("tool", call.name, call.summary, call.at)
    if fold.retrying is not None:
        return Activity("retrying", None, fold.retrying, fold.last_at)
    return Activity("thinking", None, "", fold.last_at)


def _foremost(fold: Fold) -> OpenCall:
    """The call that is asked about, else the oldest open one."""
    for call in fold.waits:
        if call in fold.calls:
            return fold.calls[call]
    return next(iter(fold.calls.values()))


def seconds(at: str | None) -> float | None:
    """Unix seconds of an RFC 3339 time; None where it is none."""
    if at is None:
        return None
    try:
        return datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError):
        return None


def _known(offset: int) -> int | None:
    """A quick reading does not know where its last records stand in a compressed file."""
    return offset if offset >= 0 else None
