"""hub.fold: what the events of a session add up to, whatever order and size they come in."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.decode import packed
from hub.events import (
    Answer,
    Compact,
    ErrorEvent,
    Event,
    Meta,
    Note,
    Prompt,
    Retry,
    Rewind,
    Subagent,
    Thinking,
    Title,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
    UsageEvent,
    Wait,
    WaitEnd,
)
from hub.fold import KEPT_DETAIL, KEPT_FILES, KEPT_NOTES, KEPT_TOOLS, TEXT, Fold, summarise
from hub.model import Usage


def fold(*events: Event) -> Fold:
    out = Fold()
    for event in events:
        out.apply(event)
    return out


def at(hour: int) -> str:
    return f"2026-11-30T{hour:02}:00:00.000Z"


def test_times_are_first_latest_and_last() -> None:
    out = fold(TurnStart(at=at(5)), Thinking(text="", at=at(9)), Thinking(text="", at=at(7)))
    assert (out.started_at, out.updated_at, out.last_at) == (at(5), at(9), at(7))
    assert fold(TurnStart()).updated_at is None
    assert fold(TurnStart(at=at(5)), Meta(started_at=at(6))).started_at == at(6)


def test_prompts_are_those_of_people() -> None:
    out = fold(
        Prompt(text="do", source="task"), Prompt(text="a"), Prompt(text="b", source="queued")
    )
    assert (out.prompts, out.first_prompt, out.last_prompt) == (2, "do", "b")


def test_of_titles_the_highest_rank_then_the_last_wins() -> None:
    titles = [Title(title="a", rank=2), Title(title="b", rank=1), Title(title="c", rank=2)]
    assert fold(*titles).title == "c"
    assert fold(*titles[:2]).title == "a"


def test_a_turn_that_another_began_over_is_lost() -> None:
    out = fold(TurnStart(), TurnStart(), TurnEnd(reason="completed"))
    assert (out.turns, out.lost_turns, out.open_turn, out.last_end) == (2, 1, None, "completed")


@pytest.mark.parametrize(
    ("reason", "failed"),
    [("completed", 0), ("interrupted", 0), ("lost", 0), ("failed", 1), ("max_tokens", 1)],
)
def test_only_failures_fail(reason: str, failed: int) -> None:
    assert fold(TurnStart(), TurnEnd(reason=reason)).failed_turns == failed


@pytest.mark.parametrize("end", [TurnEnd(reason="completed"), TurnStart(), Rewind()])
def test_what_is_open_ends_with_its_turn(end: Event) -> None:
    begun = (TurnStart(), ToolStart(call="1", name="T"), Wait(for_="question", call="1"))
    out = fold(*begun)
    assert (list(out.calls), list(out.waits)) == (["1"], ["1"])
    out.apply(end)
    assert (out.calls, out.waits) == ({}, {})


def test_a_result_ends_its_call_and_what_was_asked_for_it() -> None:
    out = fold(
        ToolStart(call="1", name="T"), ToolStart(call="2", name="T"), Wait(for_="plan", call="1"),
        ToolEnd(call="1", ok=False), ToolEnd(call="unknown", ok=True),
    )  # fmt: skip
    assert (list(out.calls), out.waits, out.tool_calls, out.failed_tools) == (["2"], {}, 2, 1)
    assert fold(Wait(for_="dialog"), WaitEnd()).waits == {}


def test_a_retry_lasts_until_something_comes() -> None:
    assert fold(Retry(attempt=1, text="busy")).retrying == "busy"
    for event in (Thinking(text=""), Answer(text=""), ToolStart(call="", name=""), TurnStart()):
        assert fold(Retry(attempt=1, text="busy"), event).retrying is None
    assert fold(Compact(phase="start")).compacting
    assert not fold(Compact(phase="start"), Compact()).compacting


def test_blocks_of_one_response_are_one_answer() -> None:
    out = fold(Answer(text="a", response="r"), Answer(text="b", response="r"))
    assert out.last_answer == "a\nb"
    assert fold(Answer(text="a", response="r"), Answer(text="b", response="s")).last_answer == "b"
    assert fold(Answer(text="a"), Answer(text="b")).last_answer == "b"


def test_the_context_is_the_last_request() -> None:
    counts = Usage(input=1, cache_read=10, output=100, reasoning=50)
    assert fold(UsageEvent(response="r", model=None, counts=counts)).context_tokens == 111
    assert fold(UsageEvent(response="r", model=None, counts=Usage())).context_tokens is None


def test_the_last_tools_commands_and_files_are_kept() -> None:
    starts = [
        ToolStart(call=str(n), name=f"T{n}", intent="diff", files=[f"f{n}", "same"])
        for n in range(KEPT_FILES + 5)
    ]
    command = ToolStart(call="c", name="Shell", intent="terminal", args={"command": ["ls", "-l"]})
    out = fold(*starts, command)
    assert (len(out.last_tools), out.last_tools[-1]) == (KEPT_TOOLS, "Shell")
    assert (out.last_command, len(out.files), out.files[:2]) == (
        "ls -l",
        KEPT_FILES,
        ["f0", "same"],
    )


@pytest.mark.parametrize(
    ("args", "files", "text"),
    [
        ({"command": " ls \n"}, [], "ls"),
        ({"command": "", "path": "/a"}, [], "/a"),
        ({"cmd": ["a", "b c"]}, [], "a b c"),
        ({"cmd": ["a", 3], "query": {"x": 1}}, ["f", "g"], "f, g"),
        ({"command": 2**70, "url": None}, [], ""),
    ],
)
def test_a_call_is_summarised(args: dict[str, Any], files: list[str], text: str) -> None:
    assert summarise(ToolStart(call="1", name="T", args=args, files=files)) == text


def test_long_texts_are_cut_once() -> None:
    long = "h" * 5_000 + "t" * 5_000
    out = fold(
        Prompt(text=long), Answer(text=long), ErrorEvent(text=long), Title(title=long, rank=0),
        ToolStart(call="1", name="T", intent="terminal", args={"command": long}),
    )  # fmt: skip
    texts = [out.last_prompt, out.last_answer, out.last_error, out.title, out.last_command]
    for text in texts:
        assert text is not None
        assert len(text) < TEXT + 60
        assert "8000 characters left out" in text
        assert text.count("left out") == 1


def test_whoever_invents_kinds_of_records_does_not_fill_the_store() -> None:
    notes = [Note(code="unknown", detail=f"{n}" * KEPT_DETAIL) for n in range(KEPT_NOTES * 3)]
    out = fold(*notes, Note(code="plain"))
    assert sum(out.notes.values()) == len(notes) + 1
    assert len(out.notes) <= KEPT_NOTES + 2
    assert max(map(len, out.notes)) <= KEPT_DETAIL + len("unknown:")
    assert fold(Note(code="a", detail="b"), Note(code="a", detail="b")).notes == {"a:b": 2}


def test_children_and_meta_are_remembered() -> None:
    out = fold(Subagent(child="c", call="1"), Meta(cwd="/a", model="m"), Meta(model="n"))
    assert (out.children, out.meta) == ({"c": "1"}, {"cwd": "/a", "model": "n"})


texts = st.text(max_size=5)
every_event = st.one_of(
    st.builds(TurnStart, at=st.none() | texts),
    st.builds(TurnEnd, reason=texts),
    st.builds(Prompt, text=texts, source=st.sampled_from(["human", "queued", "task"])),
    st.builds(Answer, text=texts, response=st.none() | texts),
    st.builds(ToolStart, call=texts, name=texts, intent=st.sampled_from(["diff", "terminal"])),
    st.builds(ToolEnd, call=texts, ok=st.booleans()),
    st.builds(Note, code=texts, detail=st.none() | texts),
    st.builds(Wait, for_=st.just("other"), call=st.none() | texts),
    st.builds(Rewind),
)


@given(st.lists(every_event, max_size=12), st.integers(0, 12))
def test_a_fold_that_was_kept_goes_on_as_if_it_had_not_been(events: list[Event], cut: int) -> None:
    kept = msgspec.msgpack.decode(packed(fold(*events[:cut])), type=Fold)
    for event in events[cut:]:
        kept.apply(event)
    assert kept == fold(*events)
