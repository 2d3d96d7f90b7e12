"""A model request in any protocol comes in as JSON; what it asks and how to answer it goes out."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

from hub.scripts import Directive, Usage, find_directive

Json = dict[str, object]
Purpose = Literal["turn", "title", "other"]

TITLE = "Mock title"
VERDICT = "<block>no</block>"
SUMMARY = "<summary>\nThe user asked for the answer; the answer is 42.\n</summary>"
# Context that agents put into user messages. It may quote a prompt, so no directive counts in it.
_INJECTED = re.compile(
    r"<(system-reminder|environment_context|user_instructions|INSTRUCTIONS|skills_instructions|"
    r"permissions instructions|subagent_notification|task-notification|turn_aborted)>.*?</\1>",
    re.DOTALL,
)
_INJECTED_STARTS = ("# AGENTS.md instructions", "Current runtime context.")
_CWD = re.compile(
    r'<cwd>([^<]+)</cwd>|[Ww]orking directory: "([^"\n]+)"|[Ww]orking directory: ([^"\n]+)'
)
_SIDE_WORDS = ("CHECKPOINT COMPACTION", "create a detailed summary")
_SIDE_PROMPTS = ("Warmup", "quota")


@dataclass(frozen=True, slots=True)
class Turn:
    """One step of the conversation so far: what a user said, or that the model answered."""

    role: Literal["user", "model"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool the request offers: its kind in the protocol and the names of its parameters."""

    name: str
    kind: str = "function"
    namespace: str = ""
    parameters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Request:
    """One model request, read from its JSON and headers."""

    model: str
    stream: bool
    session: str
    system: str
    context: str
    """Everything said that is not the model's: it tells the working directory."""
    turns: Sequence[Turn]
    tools: Mapping[str, Offered]
    schema: Json | None = None
    agents: Sequence[str] = ()
    """Ids of the subagents started so far, where the protocol's agent needs them."""

    @property
    def cwd(self) -> str:
        """The agent's working directory as the request tells it, or an empty text."""
        places = _CWD.findall(self.context)
        return next((part.strip() for part in places[-1] if part), "") if places else ""

    def purpose(self) -> Purpose:
        """What the agent wants the answer for: its own turn, or a side request."""
        if not self.tools and self.schema is not None:
            return "title" if "title" in mapping(self.schema.get("properties")) else "other"
        if self.is_verdict() or any(words in self.last for words in _SIDE_WORDS):
            return "other"
        if self.last in _SIDE_PROMPTS:
            return "other"
        return "title" if not self.tools and "title" in self.system.lower() else "turn"

    @property
    def last(self) -> str:
        """What the user side said last, if the model has not answered it."""
        return self.turns[-1].text if self.turns else ""

    def is_verdict(self) -> bool:
        """Whether Claude Code's auto mode asks if a tool call shall be blocked."""
        return not self.tools and "<block>" in self.last

    def directive(self) -> tuple[Directive, str, int]:
        """The script asked for, the prompt that asks, and how many answers came after it."""
        prompt, directive, step = "", Directive(), 0
        for turn in self.turns:
            if turn.role == "model":
                step += 1
            elif said := human(turn.text):
                found = find_directive(said)
                if found or not find_directive(prompt):
                    prompt, directive, step = said, found or Directive(), 0
        return directive, prompt, step


def human(text: str) -> str:
    """The part of a user message that its author wrote."""
    kept = _INJECTED.sub("", text).strip()
    return "" if kept.startswith(_INJECTED_STARTS) else kept


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as it goes out; `arguments` is an object, or the raw input of a custom tool."""

    id: str
    name: str
    arguments: Mapping[str, object] | str
    kind: str = "function"
    namespace: str = ""

    @property
    def text(self) -> str:
        """The arguments as the text that is sent."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(slots=True)
class Reply:
    """What every protocol needs to know of one answer."""

    id: str
    model: str
    usage: Usage
    stop: str = ""
    """A scripted stop reason; without one it follows from the content."""
    created_at: int = 0
    calls: int = field(default=0, init=False)
    """How many tools were called so far."""

    @property
    def reason(self) -> str:
        """The stop reason in the words of the Messages API."""
        return self.stop or ("tool_use" if self.calls else "end_turn")


class Encoder(Protocol):
    """Turns the parts of one answer into a protocol's stream events, and keeps the whole."""

    def begin(self) -> bytes:
        """The events before any content."""
        ...

    def text(self, piece: str) -> bytes:
        """Some answer text; pieces in a row make one block."""
        ...

    def thinking(self, piece: str) -> bytes:
        """Some reasoning."""
        ...

    def tool(self, call: ToolCall) -> bytes:
        """One tool call."""
        ...

    def fail(self, kind: str, message: str) -> bytes:
        """The event that ends a stream with an error."""
        ...

    def end(self) -> bytes:
        """The events after the content, with the usage."""
        ...

    def whole(self) -> Json:
        """The same answer as one document, for a request that does not stream."""
        ...


class Wire(Protocol):
    """One protocol: these names, as a module has them."""

    @property
    def PROTOCOL(self) -> str:  # noqa: N802 - a module constant
        """Its name in the ledger."""
        ...

    def read(self, body: Json, headers: Mapping[str, str]) -> Request:
        """Read a request; header names are lower case."""
        ...

    def response_id(self) -> str:
        """A fresh id for an answer."""
        ...

    def call_id(self, number: int, place: int) -> str:
        """A fresh id for a tool call: the request's number, its place in the answer."""
        ...

    def encoder(self, reply: Reply) -> Encoder:
        """The encoder of one answer."""
        ...

    def error(self, code: int, kind: str, message: str, request_id: str) -> Json:
        """The document of an HTTP error."""
        ...


def side_answer(request: Request) -> str:
    """The fixed answer to a side request: what its schema wants, a title, a verdict, a summary."""
    if not request.tools and request.schema is not None:
        return json.dumps(_filled(request.schema))
    if request.purpose() == "title":
        return json.dumps({"title": TITLE}) if "json" in request.system.lower() else TITLE
    return VERDICT if request.is_verdict() else SUMMARY


def _filled(schema: Json) -> object:
    """A small value that fits a JSON schema."""
    choices = items(schema.get("enum"))
    if choices:
        return choices[0]
    match schema.get("type"):
        case "object":
            fields = mapping(schema.get("properties"))
            return {name: _filled(mapping(part)) for name, part in fields.items()}
        case "boolean":
            return True
        case "integer" | "number":
            return 1
        case "array":
            return []
        case _:
            return TITLE


def mapping(value: object) -> Json:
    """The value if it is a JSON object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """The value if it is a JSON array, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def string(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def texts(content: object) -> list[str]:
    """The texts in a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return [content]
    parts = (mapping(part) for part in items(content))
    return [string(part.get("text")) or string(part.get("encrypted_content")) for part in parts]


def user_turns(content: object) -> list[Turn]:
    """A user message as turns, without the parts that an agent put there."""
    kept = [said for text in texts(content) if (said := human(text))]
    return [Turn("user", "\n".join(kept))] if kept else []


def parameters(schema: object) -> frozenset[str]:
    """The parameter names of a tool's JSON schema."""
    return frozenset(mapping(mapping(schema).get("properties")))


def by_name(tools: Iterable[Offered]) -> dict[str, Offered]:
    """Tools by their names."""
    return {tool.name: tool for tool in tools if tool.name}


def sse(document: Json, event: str = "") -> bytes:
    """One server-sent event; JSON escapes keep it on one line and in ASCII."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(document)}\n\n".encode()
