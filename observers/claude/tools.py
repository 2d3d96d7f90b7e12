"""Tool calls and their results: blocks in, `tool_start`, `tool_end`, waits and sub-agents out."""

import re
from collections.abc import Iterator
from typing import Final

from hub.decode import bounded
from hub.events import Event, Intent, Subagent, ToolEnd, ToolStart, Wait, WaitEnd, WaitingFor
from observers.claude.records import Block, Record, ResultInfo
from observers.claude.state import Place, State

_INTENTS: Final[dict[str, Intent]] = {
    "Bash": "terminal",
    "BashOutput": "terminal",
    "KillShell": "terminal",
    "Edit": "diff",
    "Write": "diff",
    "MultiEdit": "diff",
    "NotebookEdit": "diff",
    "Read": "locations",
    "Glob": "locations",
    "Grep": "locations",
    "LS": "locations",
}
_ASKS: Final[dict[str, WaitingFor]] = {"AskUserQuestion": "question", "ExitPlanMode": "plan"}
_PATHS: Final = ("file_path", "path", "notebook_path")
_EXIT: Final = re.compile(r"\s*(?:Error: )?Exit code (\d+)")


def started(block: Block, response: str, place: Place, state: State) -> Iterator[Event]:
    """A `tool_use` or `server_tool_use` block: the model asked for a call."""
    call, name = block.id or "", block.name or ""
    args = block.input or {}
    files = [args[key] for key in _PATHS if isinstance(args.get(key), str) and args[key]]
    yield ToolStart(
        call=call,
        name=name,
        intent=_INTENTS.get(name, "generic"),
        args=args,
        files=files,
        **place,
    )
    if block.type == "server_tool_use" or not call:
        return  # its result stands in the same response
    state.calls[call] = response
    if name in _ASKS and call not in state.asking:
        state.asking.append(call)
        yield Wait(for_=_ASKS[name], call=call, **place)


def finished(block: Block, record: Record, place: Place, state: State) -> Iterator[Event]:
    """A `tool_result` block; `toolUseResult` beside it is an object, text or absent."""
    call = block.tool_use_id or ""
    text, size = output(block.content)
    info = record.tool_use_result
    spill = None
    if isinstance(info, ResultInfo):
        spill = info.persisted_output_path
        if spill and info.persisted_output_size is not None:
            size = info.persisted_output_size
    failed = block.is_error is True or text.startswith("<tool_use_error>")
    code = _EXIT.match(text) if failed else None
    state.calls.pop(call, None)
    state.told = False
    if call in state.asking:
        state.asking.remove(call)
        yield WaitEnd(call=call, **place)
    yield ToolEnd(
        call=call,
        ok=not failed,
        exit_code=int(code[1]) if code and len(code[1]) < 10 else None,
        bytes=size,
        text=bounded(text),
        spill=spill,
        **place,
    )
    if isinstance(info, ResultInfo) and info.agent_id:
        yield Subagent(child=f"{state.root}/{info.agent_id}", call=call or None, **place)


def served(block: Block, place: Place) -> Iterator[Event]:
    """The result of a server tool (`web_search_tool_result`, ...), in the response itself."""
    text, size = output(block.content)
    failed = isinstance(block.content, Block) or block.is_error is True
    yield ToolEnd(
        call=block.tool_use_id or "", ok=not failed, bytes=size, text=bounded(text), **place
    )


def output(content: str | list[Block] | Block | None) -> tuple[str, int]:
    """The text of a result with placeholders for images, and its size in UTF-8 bytes."""
    if content is None:
        return "", 0
    if isinstance(content, str):
        return content, len(content.encode())
    blocks = [content] if isinstance(content, Block) else content
    text = "\n".join(part for part in map(plain, blocks) if part)
    return text, len(text.encode())


def plain(block: Block) -> str:
    """A block as text; an image or document as its kind and size."""
    if block.text is not None:
        return block.text
    if block.source is not None:
        size = max(0, (len(bytes(block.source.data)) - 2) * 3 // 4)
        return f"[{block.type} {block.source.media_type or 'unknown'}, {size} bytes]"
    return block.title or block.error_code or ""
