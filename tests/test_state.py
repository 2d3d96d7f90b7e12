"""hub.state: the verdict over what records and machine say, and the reasons it gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.adapter import Claim
from hub.events import Compact as Compacting
from hub.events import Event, Retry, ToolStart, TurnEnd, TurnStart, Wait
from hub.fold import Fold
from hub.liveness import Process
from hub.state import RECENT, Trace, Verdict, judge, seconds, settled

AT = "2026-11-30T10:00:00.000Z"
NOW = 1_796_032_800.0
CALL = ToolStart(call="1", name="Shell", args={"command": "ls"}, at=AT)
DONE = TurnEnd(reason="completed", at=AT)
START = TurnStart(at=AT, path="log", offset=7)


def fold(*events: Event) -> Fold:
    out = Fold()
    for event in events:
        out.apply(event)
    return out


def claim(status: str | None = None, live: bool | None = True, **more: str) -> Trace:
    said = Claim("s", 5, status=status, **more)  # type: ignore[arg-type]
    process = Process(5, "777", tty="/dev/pts/1", tmux="%1") if live else None
    return Trace("registry", live, "claims", said, process, 5)


def lock(live: bool | None = True) -> Trace:
    return Trace("lock", live, "a lock")


def word(verdict: Verdict) -> tuple[object, ...]:
    return verdict.state, verdict.outcome, verdict.live, verdict.certain


ASK = Wait(for_="question", call="1")
MAYBE = Wait(for_="permission", call="1", certain=False)


def test_the_clock_of_these_tests() -> None:
    assert seconds(AT) == NOW


@pytest.mark.parametrize(
    ("events", "traces", "expected"),
    [
        # nobody claims it: the records alone
        ([], [], ("ended", None, False, True)),
        ([START, DONE], [], ("ended", "completed", False, True)),
        ([START], [], ("ended", "lost", False, False)),
        ([START, TurnEnd(reason="refused")], [], ("ended", "failed", False, True)),
        # a trace whose process is gone proves the death
        ([START], [claim(live=False)], ("ended", "lost", False, True)),
        ([START, DONE], [lock(live=False)], ("ended", "completed", False, True)),
        # a live process with the records
        ([START], [lock()], ("working", None, True, True)),
        ([START, DONE], [lock()], ("idle", "completed", True, True)),
        ([], [claim()], ("idle", None, True, True)),
        # the claim's own status wins
        ([START, DONE], [claim("working")], ("working", None, True, True)),
        ([START, DONE], [claim("idle")], ("idle", "completed", True, True)),
        ([START], [claim("idle")], ("idle", "interrupted", True, False)),
        ([START], [claim("waiting")], ("waiting", None, True, True)),
        # a dead trace beside a live one
        ([START], [claim(live=False), lock()], ("working", None, True, True)),
        # nobody can be seen: the records and how old they are
        ([START], [lock(live=None)], ("working", None, None, False)),
        ([START, DONE], [claim(live=None)], ("ended", "completed", None, False)),
        ([START], [claim("waiting", live=None)], ("waiting", None, None, False)),
        ([START, CALL, ASK], [lock(live=None)], ("waiting", None, None, False)),
        ([START, CALL, MAYBE], [lock(live=None)], ("working", None, None, False)),
    ],
)
def test_the_verdict(
    events: list[Event], traces: list[Trace], expected: tuple[object, ...]
) -> None:
    verdict = judge(fold(*events), traces, NOW)
    assert word(verdict) == expected
    assert verdict.certain or verdict.alternatives or verdict.evidence
    assert [one for one in verdict.evidence if one.tier in {"registry", "lock"}] or not traces


def test_silence_is_death_only_where_nothing_can_be_proven() -> None:
    for age, state in ((RECENT, "working"), (RECENT + 1, "ended"), (-1.0, "ended")):
        assert judge(fold(START), [lock(live=None)], NOW + age).state == state
        assert judge(fold(START), [lock()], NOW + age).state == "working"


def test_who_is_asked_may_be_silent() -> None:
    """What waits is not taken for dead, however long ago it asked."""
    for trace in (claim("waiting", live=None, waiting_for="plan"), lock(live=None)):
        verdict = judge(fold(START, CALL, ASK), [trace], NOW + 10 * RECENT)
        assert (verdict.state, verdict.waiting_for) == ("waiting", "question")
        assert [(one.state, one.outcome) for one in verdict.alternatives] == [("ended", "lost")]
    verdict = judge(fold(START), [claim("waiting", live=None, waiting_for="plan")], NOW)
    assert verdict.waiting_for == "plan"


def test_a_question_waits() -> None:
    ask = Wait(for_="question", call="1", at=AT)
    verdict = judge(fold(START, CALL, ask), [lock()], NOW)
    assert (verdict.state, verdict.waiting_for, verdict.certain) == ("waiting", "question", True)
    maybe = Wait(for_="permission", call="1", certain=False)
    verdict = judge(fold(START, CALL, maybe), [lock()], NOW)
    assert (verdict.state, verdict.waiting_for, verdict.certain) == ("waiting", "permission", False)
    assert [one.state for one in verdict.alternatives] == ["working"]
    assert judge(fold(START, CALL, ask), [], NOW).waiting_for is None


def test_what_a_waiting_claim_waits_for() -> None:
    ask = Wait(for_="plan", call="1")
    for said, asked, expected in (
        ("permission", [ask], "plan"), ("dialog", [ask], "dialog"), ("question", [], "question"),
    ):  # fmt: skip
        verdict = judge(fold(START, *asked), [claim("waiting", waiting_for=said)], NOW)
        assert verdict.waiting_for == expected
    assert judge(fold(), [claim("waiting")], NOW).waiting_for == "other"


def test_of_two_live_ones_the_one_that_needs_a_person_speaks() -> None:
    traces = [claim("idle"), claim("waiting", waiting_for="plan"), claim("working")]
    for order in (traces, traces[::-1]):
        assert judge(fold(START), order, NOW).waiting_for == "plan"


def test_where_it_runs_is_said() -> None:
    verdict = judge(fold(START), [claim()], NOW)
    assert (verdict.pid, verdict.tty, verdict.tmux) == (5, "/dev/pts/1", "%1")
    tiers = [one.tier for one in verdict.evidence]
    assert tiers == ["registry", "process", "record"]
    assert (verdict.evidence[-1].path, verdict.evidence[-1].offset) == ("log", 7)


@pytest.mark.parametrize(
    ("events", "kind", "summary"),
    [
        ([START], "thinking", ""),
        ([START, CALL], "tool", "ls"),
        ([START, Retry(attempt=1, text="busy")], "retrying", "busy"),
        ([START, CALL, Compacting(phase="start")], "compacting", ""),
    ],
)
def test_what_it_does_now(events: list[Event], kind: str, summary: str) -> None:
    activity = judge(fold(*events), [lock()], NOW).activity
    assert activity is not None
    assert (activity.kind, activity.summary, activity.since) == (kind, summary, AT)
    assert judge(fold(*events), [], NOW).activity is None


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        (Verdict("working", live=True, pid=9), ("working", None, True, True)),
        (Verdict("waiting", live=True), ("working", None, True, True)),
        (Verdict("idle", live=True), ("ended", "interrupted", False, False)),
        (Verdict("ended", live=False), ("ended", "lost", False, True)),
        (Verdict("working", live=None), ("working", None, None, False)),
    ],
)
def test_a_child_lives_in_its_parent(parent: Verdict, expected: tuple[object, ...]) -> None:
    assert word(judge(fold(START), [], NOW, parent)) == expected
    own = judge(fold(START), [lock()], NOW, parent)
    assert word(own) == ("working", None, True, True), "its own trace says more"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (None, None), ("", None), ("yesterday", None), ("2026-13-45T99:99:99Z", None),
        ("0000-01-01T00:00:00Z", None), ("10000-01-01T00:00:00Z", None), ("\0", None),
        ("9999-12-31T23:59:59Z", 253402300799.0), ("1970-01-01T00:00:00.5Z", 0.5),
        ("9999-12-31T23:59:59-23:59", 253402387139.0),
    ],
)  # fmt: skip
def test_a_time_that_is_none_is_none(at: str | None, expected: float | None) -> None:
    assert seconds(at) == expected


@given(st.text(max_size=30))
def test_no_time_raises(at: str) -> None:
    assert seconds(at) is None or isinstance(seconds(at), float)
    assert settled(fold(TurnEnd(reason=at))) in {"completed", "interrupted", "lost", "failed"}
