"""An act comes in with the tools a request offers; calls in that agent's own words go out."""

import json
import posixpath
import shlex
from collections.abc import Callable, Iterable, Mapping

from hub.scripts import (
    Ask,
    Call,
    CloseAgents,
    Plan,
    Read,
    Shell,
    Step,
    Subagent,
    Text,
    Tool,
    WaitAgents,
    Write,
)
from hub.wire import Offered, Request, ToolCall

Named = tuple[str, Mapping[str, object] | str]
"""A tool's name and its arguments, or the raw input of a custom tool."""
Identify = Callable[[int], str]
_CLAUDE, _DSH, _CODEX = "claude", "dsh", "codex"
_WHY = "The script asks for it."


def applies(step: Step, request: Request) -> bool:
    """Whether a step says anything to this agent: some have no tool to wait for subagents."""
    waits = [act for act in step if isinstance(act, WaitAgents | CloseAgents)]
    return len(waits) < len(step) or not step or any(list(_named(act, request)) for act in waits)


def calls(act: Tool, request: Request, identify: Identify, place: int) -> list[ToolCall | Text]:
    """The calls an act makes, numbered from `place`; a plan may be plain text to an agent."""
    if isinstance(act, Plan) and _dialect(request) == _CODEX:
        return [Text(f"\n<proposed_plan>\n{act.text}\n</proposed_plan>\n")]
    made: list[ToolCall | Text] = []
    for name, arguments in _named(act, request):
        tool = request.tools.get(name, Offered(name))
        made.append(
            ToolCall(identify(place + len(made)), name, arguments, tool.kind, tool.namespace)
        )
    return made


def _dialect(request: Request) -> str:
    if "Bash" in request.tools or "Agent" in request.tools:
        return _CLAUDE
    return _DSH if "bash" in request.tools else _CODEX


def _named(act: Tool, request: Request) -> Iterable[Named]:
    match act:
        case Shell():
            return [_shell(act, request)]
        case Read():
            return [_read(act, request)]
        case Write():
            return [_write(act, request)]
        case Ask():
            return [_ask(act, request)]
        case Plan():
            name = "ExitPlanMode" if _dialect(request) == _CLAUDE else "exit_plan_mode"
            return [(name, {"plan": act.text})]
        case Subagent():
            return [_subagent(act, request)]
        case WaitAgents():
            return _wait(request)
        case CloseAgents():
            return _close(request)
        case Call():
            return [(act.name, act.arguments)]


def _shell(act: Shell, request: Request) -> Named:
    offered, command = request.tools, act.command
    if "Bash" in offered or "bash" in offered:
        arguments: dict[str, object] = {"command": command, "description": "Run it"}
        if act.background:
            arguments["run_in_background"] = True
        if act.escalate and "bash" in offered:
            arguments |= {"sandbox_permissions": "danger-full-access", "justification": _WHY}
        return "Bash" if "Bash" in offered else "bash", arguments
    asks: dict[str, object] = {}
    if act.escalate:
        asks = {"sandbox_permissions": "require_escalated", "justification": _WHY}
    execute = {"cmd": command, "yield_time_ms": 250 if act.background else 30000, **asks}
    if "exec" in offered and offered["exec"].kind == "custom":
        return "exec", _code("exec_command", execute)
    if "exec_command" in offered:
        return "exec_command", execute
    if "shell_command" in offered:
        return "shell_command", {"command": command, **asks}
    argv = ["bash", "-lc", command]
    if "local_shell" in offered:
        return "local_shell", {"type": "exec", "command": argv, "timeout_ms": 600000, "env": {}}
    if act.escalate:
        asks = {"with_escalated_permissions": True, "justification": _WHY}
    return "shell", {"command": argv, "timeout_ms": 600000, **asks}


def _code(tool: str, argument: object) -> str:
    """A line of JavaScript that calls a tool, for agents whose only tool runs code."""
    return (
        f"const result = await tools.{tool}({json.dumps(argument)}); "
        "text(result.output ?? JSON.stringify(result));"
    )


def _read(act: Read, request: Request) -> Named:
    for name in ("Read", "read"):
        if name in request.tools:
            return name, {"file_path": posixpath.join(request.cwd, act.path)}
    return _shell(Shell(f"cat {shlex.quote(act.path)}"), request)


def _write(act: Write, request: Request) -> Named:
    offered = request.tools
    for name in ("Write", "write"):
        if name in offered:
            path = posixpath.join(request.cwd, act.path)
            return name, {"file_path": path, "content": act.content}
    added = "".join(f"+{line}\n" for line in act.content.removesuffix("\n").split("\n"))
    patch = f"*** Begin Patch\n*** Add File: {act.path}\n{added}*** End Patch\n"
    if "apply_patch" in offered:
        custom = offered["apply_patch"].kind == "custom"
        return "apply_patch", patch if custom else {"input": patch}
    if "exec" in offered and offered["exec"].kind == "custom":
        return "exec", _code("apply_patch", patch)
    command = f"printf %s {shlex.quote(act.content)} > {shlex.quote(act.path)}"
    return _shell(Shell(command), request)


def _ask(act: Ask, request: Request) -> Named:
    options = [{"label": option, "description": option} for option in act.options]
    question: dict[str, object] = {
        "question": act.question,
        "header": "Question",
        "options": options,
    }
    match _dialect(request):
        case "claude":
            return "AskUserQuestion", {"questions": [{**question, "multiSelect": False}]}
        case "dsh":
            return "ask_user_question", {"questions": [{"id": "question", **question}]}
        case _:
            return "request_user_input", {"questions": [{"id": "question", **question}]}


def _subagent(act: Subagent, request: Request) -> Named:
    offered = request.tools
    task: dict[str, object] = {"description": act.description, "prompt": act.prompt}
    if "spawn_agent" in offered:
        task = {"message": act.prompt}
        if "task_name" in offered["spawn_agent"].parameters:
            task["task_name"] = act.description.lower().replace(" ", "_")
        return "spawn_agent", task
    if _dialect(request) == _DSH:
        return "subagent", task
    name = "Agent" if "Agent" in offered else "Task"
    task["subagent_type"] = "general-purpose"
    if "run_in_background" in offered.get(name, Offered(name)).parameters:
        task["run_in_background"] = act.background
    return name, task


def _wait(request: Request) -> Iterable[Named]:
    tool = request.tools.get("wait_agent")
    if tool is None:
        old = request.tools.get("wait", Offered("wait")).parameters  # Codex 0.98
        ids = list(request.agents)
        return [("wait", {"ids": ids, "timeout_ms": 60000})] if "ids" in old and ids else []
    if "targets" not in tool.parameters:
        return [("wait_agent", {"timeout_ms": 60000})]
    return [("wait_agent", {"targets": [agent], "timeout_ms": 60000}) for agent in request.agents]


def _close(request: Request) -> Iterable[Named]:
    tool = request.tools.get("close_agent")
    if tool is None:
        return []
    name = "id" if "id" in tool.parameters else "target"
    return [("close_agent", {name: agent}) for agent in request.agents]
