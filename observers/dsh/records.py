"""The records of a dsh log that say something: 0.2.1rc2 (format v4), with what v0 to v3 had else.

Field names are dsh's own, and every field has a default. What is not named is skipped:
`assistant/message` repeats its whole stream, `request/header` holds 10 kB of tool descriptions.
"""

from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from msgspec import Meta, Raw, Struct, field

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
"""What JavaScript counts exactly; anything else is no count."""
EMPTY = Raw(b"{}")
D = TypeVar("D")


class Envelope(Struct, rename="camel"):
    """A row of any kind, the same from v0 to v4; `data` is not decoded."""

    type: str
    time: Any = None
    seq: Any = None
    seq0: Any = None
    data: Raw = EMPTY
    surface_op: Any = None


class Row(Struct, Generic[D], rename="camel"):
    """A row of a kind that says something."""

    type: str
    data: D
    time: Any = None
    """Epoch milliseconds."""
    seq: Any = None
    seq0: Any = None
    """First `seq` of a packed row (v0, v1)."""
    surface_op: Any = None
    """`append` or `{op: replace, ...}` (a copy for the model only)."""


class Header(Struct, rename="camel"):
    """Line 1, `type: session`."""

    version: Any = None
    id: Any = None
    created_at: Any = None
    """Epoch milliseconds."""
    cwd: Any = None
    parent_session: Any = None
    origin: Any = None
    """`subagent`, or absent."""
    is_seeded: Any = None
    """v2 on: the rows up to `session/end-seed {inherited: true}` are the parent's."""
    seed_length: Any = None
    """v0, v1: so many first `seq`s are the parent's."""
    agent_preset: Any = None
    """Written by the web host only."""


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


class Dispatched(Struct, rename="camel"):
    """`tool/ptc-dispatch` (v3 on), `tool/code-dispatch`: a call that a program made has ended."""

    root_call_id: str = ""
    """The model's own call, which runs the program."""
    name: str = ""
    is_error: bool = False
    content: list[Part] = field(default_factory=list)


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
    """`subagent/catalog` (v3 on), `subagent/descriptor`."""

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
