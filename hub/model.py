"""Session, Job, Outcome and Task: what the hub lists, runs and hands out, as msgspec structs.

The contract is `docs/contracts.md` sections 2 and 4; the JSON schemas are in `docs/schema/`.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

State: TypeAlias = Literal["working", "waiting", "idle", "ended", "unknown"]
TurnOutcome: TypeAlias = Literal["completed", "failed", "interrupted", "lost"]
Tier: TypeAlias = Literal["process", "lock", "registry", "record", "inferred"]
Mode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]


class Usage(Struct, frozen=True):
    """Tokens. Unknown = null, never 0."""

    input: int | None = None
    """Uncached input."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Includes `reasoning`."""
    reasoning: int | None = None

    def plus(self, other: "Usage") -> "Usage":
        """The sum; a count unknown on both sides stays unknown."""
        return Usage(
            _add(self.input, other.input),
            _add(self.cache_read, other.cache_read),
            _add(self.cache_write, other.cache_write),
            _add(self.output, other.output),
            _add(self.reasoning, other.reasoning),
        )


def _add(one: int | None, two: int | None) -> int | None:
    if one is None:
        return two
    return one if two is None else one + two


class Activity(Struct):
    """What a working or waiting session does now."""

    kind: Literal["tool", "thinking", "compacting", "retrying"]
    tool: str | None = None
    summary: str = ""
    since: str | None = None


class Evidence(Struct):
    """One reason for the state, and where it stands."""

    tier: Tier
    text: str
    path: str | None = None
    offset: int | None = None


class Alternative(Struct):
    """Another reading of the same evidence."""

    state: State
    outcome: TurnOutcome | None
    text: str
    waiting_for: str | None = None


class Context(Struct):
    """How full the model's context is, in tokens of the last request."""

    tokens: int
    window: int | None = None
    fraction: float | None = None


class CostBasis(Struct):
    """Where a cost comes from."""

    source: Literal["cli", "table", "override"]
    version: str | None = None


class Alert(Struct):
    """Advice, never an action."""

    kind: str
    level: Literal["info", "warning", "error"]
    detail: str
    since: str | None = None


class Source(Struct):
    """One file of the session."""

    path: str
    format: str
    size: int
    offset: int
    """How far it was read, in bytes of the file."""


class Counted(Struct):
    """Odd input of one kind, and how often it was met."""

    code: str
    count: int
    detail: str | None = None


class Session(Struct, kw_only=True):
    """One session of one agent. Unknown = null."""

    key: str
    agent: str
    id: str
    host: str | None = None
    root: str
    parent: str | None = None
    """Key of the parent."""
    relation: Literal["subagent", "fork"] | None = None
    title: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    model: str | None = None
    effort: str | None = None
    cli_version: str | None = None
    surface: str = "unknown"
    state: State = "unknown"
    outcome: TurnOutcome | None = None
    waiting_for: str | None = None
    activity: Activity | None = None
    evidence: list[Evidence] = field(default_factory=list)
    certain: bool = True
    alternatives: list[Alternative] = field(default_factory=list)
    job: str | None = None
    pid: int | None = None
    tty: str | None = None
    tmux: str | None = None
    live: bool | None = None
    started_at: str | None = None
    updated_at: str | None = None
    turns: int | None = None
    prompts: int | None = None
    tool_calls: int | None = None
    errors: int | None = None
    last_prompt: str | None = None
    last_answer: str | None = None
    last_tools: list[str] = field(default_factory=list)
    last_command: str | None = None
    last_error: str | None = None
    files_touched: list[str] = field(default_factory=list)
    usage: Usage | None = None
    usage_with_children: Usage | None = None
    context: Context | None = None
    cost_usd: float | None = None
    cost_basis: CostBasis | None = None
    alerts: list[Alert] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    notes: list[Counted] = field(default_factory=list)
    complete: bool = True


class Outcome(Struct, kw_only=True):
    """How a dispatched run ended."""

    ok: bool
    code: str
    answer: str | None = None
    partial: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    cost_usd: float | None = None
    exit_status: int | None = None
    signal: int | None = None
    warnings: list[str] = field(default_factory=list)


class Attempt(Struct, kw_only=True):
    """One launch of a CLI for a job."""

    started_at: str
    ended_at: str | None = None
    pid: int | None = None
    code: str | None = None


class Job(Struct, kw_only=True):
    """A task that was handed to an agent."""

    id: str
    agent: str
    state: Literal["queued", "running", "finished", "lost"]
    session: str | None = None
    mode: Mode
    cwd: str
    created_at: str
    started_at: str | None = None
    ended_at: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    outcome: Outcome | None = None


class Task(Struct, kw_only=True):
    """What a backend is asked to launch."""

    prompt: bytes
    cwd: str
    mode: Mode = "workspace-write"
    model: str | None = None
    effort: str | None = None
    resume: str | None = None
    """Native id of the session to continue."""
    fork: bool = False
    system: str | None = None
    name: str | None = None
    timeout: float = 3600.0
    """Seconds."""
    env: dict[str, str] = field(default_factory=dict)
    executable: str = ""
    before: Usage | None = None
    """The session's totals before the run: some CLIs report cumulative ones."""
