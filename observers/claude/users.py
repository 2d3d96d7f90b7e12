"""User records: prompts, tool results, interruptions; most of them no person wrote."""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import UNSET

from hub.events import Event, Note, Prompt, Rewind
from observers.claude.records import Block, Record
from observers.claude.state import Place, State, begin, end, resume
from observers.claude.tools import finished, plain

INTERRUPTED: Final = "[Request interrupted by user"
"""`[Request interrupted by user]` or `... for tool use]`, every version."""
_WARMUP: Final = "Warmup"
"""What 2.0.7x to 2.1.0 says to the agents it starts by itself, to warm up the caches."""
_NUDGE: Final = "[Your previous response had no visible output"
_INJECTED: Final = (
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<system-reminder>",
    "<user-memory-input>",
    "<ide_opened_file>",
    "<ide_selection>",
    "<ide_diagnostics>",
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
)
_PLACES: Final = 64
"""Prompts to which a rewind is understood."""


def user(record: Record, place: Place, state: State) -> Iterator[Event]:
    """The events of a `type: user` record."""
    content = record.message.content if record.message is not None else None
    blocks = [Block(type="text", text=content)] if isinstance(content, str) else content or []
    results = [block for block in blocks if block.type == "tool_result"]
    aside = bool(record.is_sidechain) and not state.child
    if aside:
        return  # 1.0.128: a sub-agent inside the session's file
    for block in results:
        yield from finished(block, record, place, state)
    texts = [block.text for block in blocks if block.type == "text" and block.text]
    if any(text.startswith(INTERRUPTED) for text in texts) and not record.is_meta:
        yield from resume(place, state)
        yield from end("interrupted", place, state)
        return
    if results or record.is_compact_summary or record.is_visible_in_transcript_only:
        return
    if record.is_meta:
        if any(text.startswith(_NUDGE) for text in texts):
            state.empty = state.nudged = True
        return
    if any(texts):
        state.paused = False  # what follows answers this record
    if record.origin is not None and record.origin.kind not in {None, "human"}:
        return
    text = said(blocks)
    if text:
        queued = record.prompt_source == "queued"
        yield from asked(text, "queued" if queued else "human", record, place, state)


def said(blocks: list[Block]) -> str:
    """What a person wrote: without injected blocks; images only where there is no text."""
    texts = [block.text for block in blocks if block.type == "text" and block.text]
    if any(texts):
        own = [text for text in texts if not text.lstrip().startswith(_INJECTED)]
        return "\n".join(own)
    return "\n".join(filter(None, (plain(block) for block in blocks if block.source is not None)))


def asked(
    text: str,
    source: Literal["human", "queued"],
    record: Record,
    place: Place,
    state: State,
) -> Iterator[Event]:
    """A prompt, and the turn that it begins.

    An Esc with a queued prompt writes that prompt before the marks of the interruption (2.1.332):
    those end the old turn, and the reply begins the new one.
    """
    yield from _rewound(record, place, state)
    at, unasked = place["at"], state.unasked_at
    if at is not None and unasked is not None and at < unasked:
        state.unasked_at = None  # 2.1.197 can write the first prompt behind its answer
    elif not (state.open and source == "queued"):
        yield from begin(record, place, state)
    yield Prompt(text=text, source="task" if state.child else source, **place)
    if state.child and text == _WARMUP:
        yield Note(code="warmup", **place)


def steered(text: str, record: Record, place: Place, state: State) -> Iterator[Event]:
    """A prompt that was typed while the agent worked (`attachment/queued_command`)."""
    if not state.open:
        yield from begin(record, place, state)
    yield Prompt(text=text, source="task" if state.child else "queued", **place)


def _rewound(record: Record, place: Place, state: State) -> Iterator[Event]:
    """A prompt with the parent of an earlier prompt takes its place: /rewind, or Esc before output.

    Nothing else marks a /rewind in time (`last-prompt` follows the new prompt). While the earlier
    turn goes on it is no rewind: two processes can write to one session.
    """
    if record.parent_uuid is UNSET:
        return
    parent = record.parent_uuid or ""
    for index, (before, offset) in enumerate(state.prompts):
        if before == parent:
            if state.silent or not state.open:
                del state.prompts[index:]
                yield Rewind(to_offset=offset, **place)
            break
    state.prompts.append((parent, place["offset"]))
    del state.prompts[:-_PLACES]
