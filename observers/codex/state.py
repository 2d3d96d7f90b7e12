"""What the observer remembers between the lines of one rollout, and the steps that change it."""

from typing import Any
from zlib import crc32

from msgspec import Struct, field

from hub.events import Answer, Event, Meta, ToolStart, TurnEnd, TurnStart, Wait, WaitEnd
from observers.codex import code

FINISHED = 64
"""Ids of finished turns that are kept."""
STARTS = 1000
"""Offsets of turn starts that are kept, for roll-backs."""


class Call(Struct):
    """A call without a result."""

    name: str
    waits: bool = False
    running: bool = False
    """It goes on in the background: its output has come, its end has not."""
    session: str | None = None
    """The background session that a `write_stdin` (code mode: `wait`) looks at."""
    commands: list[str] = field(default_factory=list)
    """Code mode: fingerprints of what the script runs."""
    failed: bool = False
    """Code mode: something that the script ran has failed."""
    exit_code: int | None = None
    """Code mode: of the first command that failed, else of the last one."""


class State(Struct):
    """Plain values only: the store keeps it."""

    id: str
    """Thread id, from the file's name."""
    segment: bool = False
    met: bool = False
    """The thread's own `session_meta` has been read."""
    child: bool = False
    """A sub-agent: its prompts are tasks."""
    forked: bool = False
    """Its counters go on from those of another thread or file."""
    paginated: bool = False
    """The last line had an `ordinal`: items stand in `item_completed` (0.149+)."""
    pretty: bool = False
    """An indented file of the TypeScript CLI; `piece` holds the lines of an open item."""
    piece: list[bytes] = field(default_factory=list)
    piece_at: int = 0
    floor: int = -1
    """Lines below this ordinal are the parent's."""
    inherited: bool = False
    """The last line was one of those."""
    copying: bool = False
    """In the copied history of a legacy fork or child (0.34 .. 0.147)."""
    copied_turns: bool = False
    copied_at: str | None = None
    unstarted: bool = False
    """`started_at` is still to come: the first own record says it."""

    turn: str | None = None
    """The open turn."""
    turn_records: bool = False
    """The file has `task_started` (0.100+)."""
    turns: int = 0
    finished: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    reviewing: bool = False
    """In a review (`/review`): its order to the reviewer is no prompt."""
    prompted: bool = False
    worked: bool = False
    """Something was said or called in this turn."""
    failed: bool = False
    plan: str | None = None
    """Id of the plan that this turn proposed (plan mode, 0.171)."""
    said: list[str] = field(default_factory=list)
    """Fingerprints of this turn's answers."""
    fresh: list[str] = field(default_factory=list)
    """Those of them whose response is not yet complete: a retry repeats them."""

    response: str | None = None
    """The last response that a `record_type` line names (0.8)."""

    open: dict[str, Call] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    """Background session -> its call."""

    model: str | None = None
    policy: str | None = None
    asks_user: bool = True
    told: dict[str, Any] = field(default_factory=dict)
    """Descriptive fields as they were last said."""
    limits: dict[str, Any] = field(default_factory=dict)
    limits_text: bytes = b""
    """`rate_limits` as they were last written."""

    ledger: bool = False
    """The file has `token_usage_record` (0.155+): `token_count` adds nothing."""
    total: list[int] = field(default_factory=list)
    """input, cached, cache write, output, reasoning of the last `token_count`."""
    counted: int = 0
    """Usages said in this turn."""
    context: int | None = None


def tell(state: State, out: list[Event], **facts: Any) -> None:
    """A `meta` event of the facts that are new."""
    fresh = {
        name: value
        for name, value in facts.items()
        if value is not None and state.told.get(name) != value
    }
    if fresh:
        state.told.update(fresh)
        out.append(Meta(**fresh))


def begin(state: State, turn: str | None, offset: int, out: list[Event]) -> None:
    """A turn begins; calls of an earlier one that never ended are dropped, background ones stay."""
    if state.plan is not None and state.turn is None and state.told.get("surface") == "tui":
        out.append(WaitEnd(call=state.plan))
    state.plan = None
    state.turns += 1
    state.turn = turn or str(state.turns)
    state.prompted = state.worked = state.failed = False
    state.said.clear()
    state.fresh.clear()
    state.counted = 0
    state.open = {key: call for key, call in state.open.items() if call.running}
    state.starts.append(offset)
    del state.starts[:-STARTS]
    out.append(TurnStart(turn=state.turn))


def reopen(state: State, out: list[Event]) -> None:
    """A turn that seemed to be over goes on (no turn records: up to 0.98)."""
    if state.turn is None and not state.turn_records and state.finished:
        state.turn = state.finished.pop()
        out.append(TurnStart(turn=state.turn))


def finish(state: State, turn: str | None, reason: str, out: list[Event]) -> None:
    """The turn ends: by its own id, or one never seen (a review's); a finished one's is ignored."""
    if state.turn is None or (turn is not None and turn in state.finished and turn != state.turn):
        return
    for key, call in state.open.items():
        settle(key, call, out)
    out.append(TurnEnd(reason=reason, turn=state.turn))
    state.finished.append(state.turn)
    if turn is not None and turn != state.turn:
        state.finished.append(turn)
    del state.finished[:-FINISHED]
    state.turn = None
    state.fresh.clear()


def opened(
    state: State, start: ToolStart, out: list[Event], *, asking: bool, runs: list[str]
) -> None:
    """A call is on disk; says what it waits for."""
    name, number = start.name, start.call
    call = Call(name, commands=[fingerprint(one) for one in runs[:50]])
    if name == "write_stdin" and start.args.get("session_id") is not None:
        call.session = str(start.args["session_id"])
    elif name == code.WAIT and start.args.get("cell_id") is not None:
        call.session = f"cell {start.args['cell_id']}"
    state.open[number] = call
    state.worked = True
    if name == "request_user_input":
        call.waits = True
        out.append(Wait(for_="question", call=number))
    elif asking and state.policy not in (None, "never") and state.asks_user:
        call.waits = True
        out.append(Wait(for_="permission", call=number, certain=False))


def settle(number: str, call: Call, out: list[Event]) -> None:
    """What the call waited for is over."""
    if call.waits:
        call.waits = False
        out.append(WaitEnd(call=number))


def answer(state: State, said: str, out: list[Event], *, final: bool, repeats: bool) -> None:
    """Text of the agent.

    A broken stream is tried again and its finished items are written again under new ids: text that
    was said in the same unfinished response is dropped (`repeats`: the record can be such a one).
    """
    mark = fingerprint(said)
    if repeats and mark in state.fresh:
        return
    state.worked = True
    state.said.append(mark)
    state.fresh.append(mark)
    out.append(Answer(text=said, final=final))


def fingerprint(said: str) -> str:
    """A short name for a text."""
    return f"{len(said)}:{crc32(said.encode(errors='replace')):08x}"


def reset(state: State) -> None:
    """The copied history is over: nothing of its turns and calls is this thread's."""
    state.copying = False
    state.turn = None
    state.turns = 0
    state.prompted = state.worked = state.failed = False
    state.plan = None
    for kept in (state.finished, state.starts, state.said, state.fresh):
        kept.clear()
    state.open.clear()
    state.sessions.clear()
