"""One line of a dsh log in; typed records out: what 0.2.1rc2 (format v4) and older releases write.

Every field has a default: a field of an unexpected type costs only itself (`read`). Field names are
dsh's own. `data` stays raw until its kind is known to be needed: `assistant/message` repeats its
whole stream there, and `request/header` is 10 kB of tool descriptions.
"""

import json
from types import UnionType
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, Struct, field

from hub.decode import Decoder

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
"""What JavaScript counts exactly; anything else is no count."""
EMPTY = Raw(b"{}")
T = TypeVar("T", bound=Struct)


class Row(Struct, rename="camel"):
    """The envelope (v0..v4), and the fields of the header, which is line 1 and has no `data`."""

    type: str
    time: Any = None
    """Epoch milliseconds."""
    seq: Any = None
    data: Raw = EMPTY
    surface_op: Any = None
    """`append` or `{op: replace, ...}` (a copy for the model only)."""
    seq0: Any = None
    """First `seq` of a packed row (v0, v1)."""
    version: Any = None
    id: Any = None
    created_at: Any = None
    cwd: Any = None
    parent_session: Any = None
    origin: Any = None
    is_seeded: Any = None
    seed_length: Any = None
    agent_preset: Any = None


class Source(Struct, rename="camel"):
    """Where a message or a title comes from."""

    kind: str = ""
    model: Any = None
    """Of an assistant message: the name of the model that answered."""
    call_id: str = ""
    """Of a `user-question-reply`: the question's call."""


class Failure(Struct):
    """Why a request, a tool or a turn failed."""

    message: str = ""
    code: str = ""
    status: Count | None = None


class Reason(Struct):
    """Why a turn ended; `error` only with kind `error`."""

    kind: str = ""
    error: Failure = field(default_factory=Failure)


class Part(Struct, rename="camel"):
    """One block of a message."""

    type: str = ""
    text: str = ""
    id: str = ""
    """Of a `tool-call`."""
    tool_call_id: str = ""
    """Of a `tool-result` (v0..v3)."""
    is_error: bool = False
    content: Any = None


class Message(Struct, rename="camel"):
    """A message of the model-visible surface."""

    id: str = ""
    content: list[Part] = field(default_factory=list)
    source: Source = field(default_factory=Source)
    tool_call_id: str = ""
    """Of a tool result, v4."""
    is_error: bool = False


class Tokens(Struct, rename="camel"):
    """Usage of one response; `inputTokens` is uncached input in every version."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class Turn(Struct):
    """`turn/start`, `turn/end`."""

    turn: Count | None = None
    reason: Reason = field(default_factory=Reason)


class Said(Struct):
    """`assistant/message`, `system/message`, `tool/result`."""

    turn: Count | None = None
    step: Count | None = None
    message: Message = field(default_factory=Message)
    usage: Tokens | None = None
    interrupted: bool = False
    error: Failure | None = None


class Chunk(Struct):
    """A streamed piece."""

    type: str = ""
    usage: Tokens | None = None


class Streamed(Struct):
    """A row of `assistant/attempt.data.stream`."""

    chunk: Chunk | None = None


class Attempt(Struct):
    """`assistant/attempt` (v2 on), `assistant/chunk` (v0, v1)."""

    turn: Count | None = None
    step: Count | None = None
    stream: list[Streamed] = field(default_factory=list)
    chunk: Chunk | None = None


class Called(Struct, rename="camel"):
    """`tool/call`; `arguments` is JSON in a string."""

    call_id: str = ""
    name: str = ""
    arguments: str = ""


class Spliced(Struct, rename="camel"):
    """`agent/inbox/spliced`: an edit of one of the two input queues."""

    inserted: list[Message] = field(default_factory=list)


class Approval(Struct, rename="camel"):
    """`approval/asked`, `approval/decided`."""

    id: str = ""
    tool_name: str = ""
    call_id: str = ""


class Again(Struct, rename="camel"):
    """`llm/retry`."""

    retry: Count = 0
    max_retries: Count | None = None
    delay_ms: Annotated[float, Meta(ge=0, le=2**53)] | None = None
    failure: Failure = field(default_factory=Failure)


class Compaction(Struct, rename="camel"):
    """`compaction/summary`, `compaction/end`."""

    compaction_id: str = ""
    usage: Tokens | None = None
    model: str = ""
    error: Any = None


class Catalog(Struct, rename="camel"):
    """`subagent/catalog` (v3 on)."""

    child_id: str = ""
    label: str = ""


class Plan(Struct):
    """`plan/mode`."""

    active: bool = False


class Titled(Struct):
    """`session/title`."""

    title: str = ""
    source: Source = field(default_factory=Source)


class Config(Struct, rename="camel"):
    """`request/header.data.header.config`."""

    model: str = ""
    reasoning_effort: str | None = None


class Head(Struct):
    """`request/header.data.header`; `system` up to v2."""

    config: Config = field(default_factory=Config)
    system: Any = None


class Asked(Struct):
    """`request/header`."""

    header: Head = field(default_factory=Head)


class Place(Struct, rename="camel"):
    """`request/context`, `model/selection`, `working-directory/change`, `session/end-seed`."""

    model: str = ""
    context_window: Count | None = None
    reasoning_effort: str | None = None
    cwd: str = ""
    inherited: bool = False


class Ran(Struct, rename="camel"):
    """`job/settled` (v4): every bash call is a job."""

    tool_call: Called = field(default_factory=Called)
    detail: str = ""
    """`exit code: N`."""


class Data(Generic[T]):
    """Reads a row's raw `data` into one kind."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._fast = msgspec.json.Decoder(kind)
        self._mending = Decoder(kind)

    def __call__(self, raw: Raw) -> tuple[T, str | None]:
        """The record, and a note's code where the text had to be mended."""
        try:
            return self._fast.decode(raw), None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            data = bytes(raw)
            value, note = self._mending(data)
        if value is not None:
            return value, note
        try:
            loose = json.loads(data.decode(errors="replace"), strict=False)
            whole = json.dumps(loose, ensure_ascii=False).encode("utf-16", "surrogatepass")
            loose = json.loads(whole.decode("utf-16", "replace"), strict=False)
        except (ValueError, RecursionError):
            return self._kind(), note
        return lenient(self._kind, loose), note


def lenient(kind: type[T], value: Any) -> T:
    """The fields of `value` that have the expected type; the others keep their defaults."""
    found: dict[str, Any] = {}
    if isinstance(value, dict):
        for one in msgspec.structs.fields(kind):
            if one.encode_name in value:
                try:
                    found[one.name] = _field(one.type, value[one.encode_name])
                except (msgspec.MsgspecError, RecursionError):
                    continue
    return kind(**found)


def _field(kind: Any, value: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.MsgspecError:
        inner = _struct(kind)
        if inner is not None and isinstance(value, dict):
            return lenient(inner, value)
        if get_origin(kind) is list and isinstance(value, list):
            inner = _struct(get_args(kind)[0])
            if inner is not None:
                return [lenient(inner, one) for one in value if isinstance(one, dict)]
        raise


def _struct(kind: Any) -> type[Struct] | None:
    """The struct type in `X` or `X | None`."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return next((one for one in options if isinstance(one, type) and issubclass(one, Struct)), None)


def parts(value: Any) -> list[Part]:
    """Blocks from a value of any type: a list of them, one text, or nothing."""
    if isinstance(value, str):
        return [Part(type="text", text=value)]
    if not isinstance(value, list):
        return []
    return [lenient(Part, one) for one in value if isinstance(one, dict)]
