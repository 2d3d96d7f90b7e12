"""Tool calls of Codex: a call in, its intent and files out; an output in, its end out."""

from re import MULTILINE
from re import compile as pattern
from typing import Any, Final

from msgspec import Struct

from hub.decode import bounded
from hub.events import Event, Intent, ToolEnd, ToolStart
from observers.codex import code
from observers.codex.records import Item, loose, mapping, parts, text, whole

TERMINAL: Final = frozenset({
    "exec_command", "shell", "shell_command", "local_shell", "container.exec", "write_stdin",
    "unified_exec",
})  # fmt: skip
LOCATIONS: Final = frozenset({"read_file", "grep_files", "list_dir", "view_image", "list_files"})

_PATCHED = pattern(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\r?$", MULTILINE)
_ESCALATED = pattern(r"""sandbox_permissions["']?\s*:\s*["']require_escalated""")
_EXITED = pattern(r"(?:Process exited with code|Exit code:) (-?\d+)")
_RUNNING = pattern(r"Process running with session ID (\S+)|Script running with (cell) ID (\S+)")
_FAILED = pattern(
    r"aborted by user|.{0,60}failed(?: in sandbox)?:|Script failed|unsupported call|err:"
    r"|.{0,80}Rejected\("
)


class Ended(Struct):
    """What an output says."""

    ok: bool
    said: str
    exit_code: int | None = None
    running: str | None = None
    """The command goes on in the background under this id."""


def call(item: Item) -> ToolStart | None:
    """The start of a `function_call`, `custom_tool_call` or `local_shell_call`."""
    name = text(item.name) or ("local_shell" if item.type == "local_shell_call" else None)
    number = text(item.call_id) or text(item.id)
    if name is None or number is None:
        return None
    args: dict[str, Any]
    if item.type == "custom_tool_call":
        args = {"input": bounded(item.input) if isinstance(item.input, str) else item.input}
    elif item.type == "local_shell_call":
        args = mapping(item.action)
    else:
        args = _arguments(item.arguments)
    intent, files = _intent(name, args, item)
    if scripted(item):
        found = code.script(item.input)
        intent, files = found.intent, found.files
        if found.commands:
            args["cmd"] = code.shown(found.commands)
    return ToolStart(call=number, name=name, intent=intent, args=args, files=files)


def scripted(item: Item) -> bool:
    """Is it a call of code mode?"""
    named = item.type == "custom_tool_call" and item.name == code.NAME
    return named and isinstance(item.input, str)


def runs(item: Item) -> list[str]:
    """The commands of a script."""
    return code.script(item.input).commands if scripted(item) else []


def _arguments(value: Any) -> dict[str, Any]:
    """`arguments` is JSON in a string; what is no object is kept as `input`."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        return {}
    args = loose(value.encode())
    return args if isinstance(args, dict) else {"input": bounded(value)}


def _intent(name: str, args: dict[str, Any], item: Item) -> tuple[Intent, list[str]]:
    patch = patch_of(name, args, item)
    if patch is not None:
        return "diff", files_of(patch)
    if name in TERMINAL:
        return "terminal", []
    if name in LOCATIONS:
        path = args.get("path") or args.get("file_path") or args.get("dir_path")
        return "locations", [path] if isinstance(path, str) else []
    return "generic", []


def patch_of(name: str, args: dict[str, Any], item: Item) -> str | None:
    """The patch of `apply_patch`: a tool of its own, or (up to 0.120) a command of `shell`."""
    if name == "apply_patch":
        if item.type == "custom_tool_call" and isinstance(item.input, str):
            return item.input
        return next((one for one in args.values() if isinstance(one, str)), "")
    command = args.get("command", args.get("cmd"))
    if isinstance(command, list) and command[:1] in (["apply_patch"], ["applypatch"]):
        return command[1] if len(command) > 1 and isinstance(command[1], str) else ""
    if isinstance(command, str) and command.startswith("apply_patch"):
        return command
    return None


def files_of(patch: str) -> list[str]:
    """The paths that a patch names, in order, each once."""
    return list(dict.fromkeys(_PATCHED.findall(patch)))


def asks(item: Item) -> bool:
    """Does the call ask to leave the sandbox?

    0.171: `"sandbox_permissions":"require_escalated"` in the arguments or in the JavaScript of code
    mode; up to 0.98 `with_escalated_permissions`.
    """
    said = item.input if item.type == "custom_tool_call" else item.arguments
    if not isinstance(said, str):
        return False
    if "require_escalated" in said:
        return _ESCALATED.search(said) is not None
    return "with_escalated_permissions" in said and bool(
        _arguments(said).get("with_escalated_permissions")
    )


def output(item: Item, out: list[Event]) -> Ended:
    """What a `*_output` says: text, or a list of parts (MCP, images, code mode)."""
    value = loose(item.output, out)
    success: Any = None
    if isinstance(value, dict):
        success = value.get("success")
        value = value.get("content", value.get("output"))
    said = parts(value)
    if said.startswith('{"output":'):
        old = mapping(loose(said.encode()))
        code = whole(mapping(old.get("metadata")).get("exit_code"))
        if isinstance(old.get("output"), str):
            return Ended(code in (0, None), old["output"], code)
    head, mark, rest = said.partition("Output:\n")
    head = head[:400]
    running = _RUNNING.search(head)
    if running:
        own = running[1] or f"{running[2]} {running[3]}"
        return Ended(ok=True, said=said, running=own)
    exited = _EXITED.search(head)
    code = int(exited[1]) if exited else None
    known = mark and (exited is not None or head.startswith(("Wall time", "Script")))
    plain = rest.removeprefix("\n") if known else said
    ok = success is not False and code in (0, None) and not _failed(head)
    return Ended(ok, plain, code)


def _failed(head: str) -> bool:
    if head.startswith("Wall time"):
        head = head.partition("\n")[2]
    return _FAILED.match(head) is not None


def end(number: str, ended: Ended) -> ToolEnd:
    """The event of an end."""
    said = ended.said
    return ToolEnd(
        call=number,
        ok=ended.ok,
        exit_code=ended.exit_code,
        bytes=len(said) if said.isascii() else len(said.encode(errors="replace")),
        text=bounded(said),
    )


def finished(item: Item) -> Ended:
    """What a finished item says (0.149+): CommandExecution, FileChange, McpToolCall, WebSearch."""
    code = whole(item.exit_code)
    ok = item.status in ("completed", None) and code in (0, None) and not item.error
    if item.type == "CommandExecution":
        return Ended(ok, text(item.aggregated_output) or "", code)
    if item.type == "FileChange":
        said = (text(item.stdout) or "") + (text(item.stderr) or "")
        return Ended(ok, said)
    if item.type == "McpToolCall":
        result = mapping(item.result)
        failed = bool(result.get("is_error") or result.get("isError"))
        said = parts(result.get("content"))
        return Ended(ok and not failed, said or text(mapping(item.error).get("message")) or "")
    return Ended(ok, "")


def inner(item: Item, number: str) -> ToolStart | None:
    """The start of an item without a call of its own: what code mode runs, and web searches."""
    if item.type == "CommandExecution":
        return ToolStart(
            call=number, name="exec_command", intent="terminal", args={"cmd": command(item.command)}
        )
    if item.type == "FileChange":
        files = [path for path in mapping(loose(item.changes)) if isinstance(path, str)]
        return ToolStart(call=number, name="apply_patch", intent="diff", files=files)
    if item.type == "McpToolCall":
        name = "__".join(("mcp", text(item.server) or "", text(item.tool) or ""))
        return ToolStart(call=number, name=name, args=mapping(item.arguments))
    if item.type == "WebSearch":
        return ToolStart(call=number, name="web_search", args=search(item))
    return None


def search(item: Item) -> dict[str, Any]:
    """The arguments of a web search."""
    query = text(item.query) or text(mapping(item.action).get("query"))
    return {"query": query} if query else mapping(item.action)


def command(value: Any) -> str:
    """A command line; `bash -lc TEXT` is TEXT."""
    if isinstance(value, str):
        return value
    words = [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
    if len(words) == 3 and words[1] in ("-lc", "-c"):
        return words[2]
    return " ".join(words)
