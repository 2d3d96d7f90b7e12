"""The items of a Codex rollout: what the model wrote and what came back, as events.

Paginated files (0.149+) say everything twice: as `item_completed` and as `response_item`. There the
former is taken for what is seen (texts, ends), the latter only for calls that begin.
"""

from re import compile as pattern
from typing import Any, Final

from msgspec import Raw

from hub.events import Event, Note, Prompt, Subagent, Thinking
from observers.codex import code, records, state, tools
from observers.codex.records import Item, mapping, parts, text
from observers.codex.state import State

_SAID: Final = (b'{"type":"message",', b'{"type":"reasoning",')
"""How items begin that events say as well."""
_ENDED = pattern(
    rb'\{"type":"(?:function|custom_tool)_call_output",(?:"id":"[\w-]*",)?"call_id":"([\w-]+)"'
)
"""How the output of a call begins; where an item has ended it, there is no need to read it."""
_INJECTED: Final = (
    "<environment_context>", "# AGENTS.md instructions", "<user_instructions>", "<INSTRUCTIONS>",
    "<turn_aborted>", "<subagent_notification>", "<user_shell_command>", "<user_action>",
    "<skill", "<permissions instructions>", "Warning: apply_patch was requested via",
)  # fmt: skip
"""How text begins that Codex writes in the user's role."""
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
_TOOLS: Final = ("CommandExecution", "FileChange", "McpToolCall", "WebSearch")


def prompt(memory: State, said: str, turn: str | None, offset: int, out: list[Event]) -> None:
    """Text given to the agent: opens a turn where none is open; a second one in a turn is queued.

    In files without turn records (up to 0.98) every prompt opens one.
    """
    if memory.turn is None or (not memory.turn_records and not memory.open):
        if memory.turn is not None:
            state.finish(memory, None, "completed" if memory.said else "failed", out)
        state.begin(memory, turn, offset, out)
    if memory.child or memory.reviewing:
        out.append(Prompt(text=said, source="task"))
    else:
        out.append(Prompt(text=said, source="queued" if memory.prompted else "human"))
    memory.prompted = True


def thinking(memory: State, said: str, out: list[Event]) -> None:
    """Reasoning: a summary, or nothing where it is only kept encrypted."""
    state.reopen(memory, out)
    memory.worked = True
    out.append(Thinking(text=said))


def completed(item: Item, turn: object, offset: int, memory: State, out: list[Event]) -> str | None:
    """`item_completed` (0.149+; before only for plans)."""
    kind = item.type
    number = text(item.id)
    if kind == "UserMessage":
        prompt(memory, records.content(item.content, out), text(turn), offset, out)
    elif kind == "AgentMessage":
        if said := records.content(item.content, out):
            final = item.phase == "final_answer"
            state.answer(memory, said, out, final=final, repeats=True)
    elif kind == "Plan":
        plan = text(item.text)
        if plan is not None:
            state.answer(memory, plan, out, final=False, repeats=True)
            memory.plan = None if memory.child else number
    elif kind == "Reasoning":
        lines = item.summary_text if isinstance(item.summary_text, list) else []
        thinking(memory, "\n\n".join(line for line in lines if isinstance(line, str)), out)
    elif kind in _TOOLS:
        _tool(item, number, memory, out)
    elif kind == "CollabAgentToolCall":
        if item.tool == "spawn_agent" and isinstance(item.receiver_thread_ids, list):
            children = [child for child in item.receiver_thread_ids if isinstance(child, str)]
            out.extend(Subagent(child=child, call=number) for child in children)
    elif kind == "SubAgentActivity":
        child = text(item.agent_thread_id)
        if item.kind == "started" and child is not None:
            out.append(Subagent(child=child, call=number))
    elif kind in ("EnteredReviewMode", "ExitedReviewMode"):
        memory.reviewing = kind == "EnteredReviewMode"
    elif not isinstance(kind, str) or kind not in records.IGNORED_ITEMS:
        out.append(Note(code="unknown_record", detail=f"item_completed/{kind}"[:80]))
    return number


def _tool(item: Item, number: str | None, memory: State, out: list[Event]) -> None:
    """A finished tool: ends its call, once.

    A command that was given up has ended with its output already; what the user ran (`!cmd`) is no
    call of the model.
    """
    if number is None:
        return
    call = memory.open.pop(number, None)
    if call is None and number.startswith(code.INNER):
        _inner(item, memory, out)
        return
    if call is None:
        start = tools.inner(item, number)
        if item.type != "WebSearch" or start is None:
            return
        memory.worked = True
        out.append(start)
    else:
        state.settle(number, call, out)
    out.append(tools.end(number, tools.finished(item)))


def _inner(item: Item, memory: State, out: list[Event]) -> None:
    """What a script of code mode ran: a part of the open call that names it, or of the first.

    Several scripts can run at once, and their commands end in any order. A script in the background
    that nobody waits for has no end of its own: its only command's is its end.
    """
    scripts = [key for key, call in memory.open.items() if call.name == code.NAME]
    mark = state.fingerprint(tools.command(item.command))
    named = [key for key in scripts if mark in memory.open[key].commands]
    ended = tools.finished(item)
    for key in (named or scripts)[:1]:
        call = memory.open[key]
        if not call.failed:
            call.exit_code = ended.exit_code
        call.failed = call.failed or not ended.ok
        if call.running and call.commands == [mark]:
            del memory.open[key]
            out.append(tools.end(key, ended))


def response(
    payload: Raw | bytes, offset: int, memory: State, out: list[Event], *, bare: bool = False
) -> str | None:
    """A `response_item`; `bare`: a naked one (0.8 .. 0.29), where no event says the texts."""
    if memory.turn_records and not bare:
        head = records.begins(payload, 200)
        if head.startswith(_SAID):
            return None
        ended = _ENDED.match(head)
        if ended is not None and ended[1].decode() not in memory.open:
            return None
    item = records.read(records.item, payload, "response_item", out)
    if item is None:
        return None
    kind = item.type
    if kind in _CALLS:
        return _call(item, memory, out)
    if kind in _OUTPUTS:
        _output(item, memory, out)
    elif kind == "message":
        if bare:
            _bare_message(item, offset, memory, out)
        if item.role == "assistant" and not memory.turn_records and not memory.open:
            state.finish(memory, None, "completed", out)
    elif kind == "reasoning":
        if bare:
            thinking(memory, parts(records.loose(item.summary, out)), out)
    elif kind == "web_search_call":
        if not memory.paginated:
            number = text(item.id) or text(item.call_id) or f"web:{offset}"
            call = tools.inner(Item(type="WebSearch", action=item.action), number)
            if call is not None:
                out.extend((call, tools.end(number, tools.finished(Item(status=item.status)))))
    elif kind == "agent_message":
        _letter(item, memory, out)
    elif not isinstance(kind, str) or kind not in records.IGNORED_RESPONSES:
        name = "" if bare else "response_item/"
        out.append(Note(code="unknown_record", detail=f"{name}{kind}"[:80]))
    return text(item.id)


def _call(item: Item, memory: State, out: list[Event]) -> str | None:
    start = tools.call(item)
    if start is None:
        out.append(Note(code="wrong_shape", detail=f"response_item/{item.type}"))
        return None
    if start.call in memory.open:
        return None
    state.reopen(memory, out)
    out.append(start)
    state.opened(memory, start, out, asking=tools.asks(item), runs=tools.runs(item))
    return text(item.id) or start.call


def _output(item: Item, memory: State, out: list[Event]) -> None:
    """An output ends its call, unless the command goes on in the background."""
    number = text(item.call_id)
    call = memory.open.get(number) if number is not None else None
    if number is None or call is None:
        return
    ended = tools.output(item, out)
    state.settle(number, call, out)
    poll = next((key for key, own in memory.sessions.items() if own == number), None)
    if ended.running is not None and call.session is None:
        call.running = True
        memory.sessions[ended.running] = number
        return
    del memory.open[number]
    if call.name == code.NAME:
        ended.ok = ended.ok and not call.failed
        ended.exit_code = call.exit_code if ended.exit_code is None else ended.exit_code
    if poll is not None:
        del memory.sessions[poll]
    out.append(tools.end(number, ended))
    if call.name == "spawn_agent" and not memory.paginated:
        child = mapping(records.loose(ended.said.encode(errors="replace"))).get("agent_id")
        if isinstance(child, str):
            out.append(Subagent(child=child, call=number))
    over = ended.exit_code is not None or call.name == code.WAIT
    if call.session is not None and ended.running is None and over:
        first = memory.sessions.pop(call.session, None)
        script = memory.open.pop(first, None) if first is not None else None
        if first is not None and script is not None:
            ended.ok = ended.ok and not script.failed
            ended.exit_code = ended.exit_code if script.exit_code is None else script.exit_code
            out.append(tools.end(first, ended))


def _bare_message(item: Item, offset: int, memory: State, out: list[Event]) -> None:
    said = parts(records.loose(item.content, out))
    if item.role == "assistant" and said:
        state.reopen(memory, out)
        state.answer(memory, said, out, final=False, repeats=False)
    elif item.role == "user" and said:
        if said.startswith("<environment_context>"):
            state.tell(memory, out, cwd=_cwd(said))
        if not said.lstrip().startswith(_INJECTED):
            prompt(memory, said, None, offset, out)


def _cwd(said: str) -> str | None:
    """The folder in an `<environment_context>` (0.29: the only place that has it)."""
    _, mark, rest = said.partition("<cwd>")
    if mark:
        return rest.partition("</cwd>")[0].strip() or None
    _, mark, rest = said.partition("Current working directory: ")
    return rest.partition("\n")[0].strip() or None if mark else None


def _letter(item: Item, memory: State, out: list[Event]) -> None:
    """`agent_message` (multi-agent v2, 0.171): a parent's order in a child's file, often encrypted.

    What a child sends back ("FINAL_ANSWER") is a notification.
    """
    content: Any = records.loose(item.content, out)
    said = parts(content).strip()
    if memory.child and said.startswith("Message Type:") and "FINAL_ANSWER" not in said[:40]:
        head, _, body = said.partition("Payload:")
        name = head.partition("Task name:")[2].partition("\n")[0]
        out.append(Prompt(text=body.strip() or name.strip() or said, source="task"))
        memory.prompted = True
