"""The contracts an agent is added by: `Observer` (bytes in, events out), `Backend` and `Trial`.

An adapter is a module, not a class: its functions and `Final` constants are checked against these
Protocols. Both are pure. The hub does every stat, read, `/proc` look-up and lock match.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from hub.events import Event, Relation
from hub.model import Outcome, Task

Role: TypeAlias = Literal["log", "sidecar", "registry", "lock"]
Framing: TypeAlias = Literal["lines", "zstd", "whole"]
Head: TypeAlias = Callable[[], bytes]
"""Gives the first 16 KiB of a file, decompressed; read only when called."""
Read: TypeAlias = Callable[[str], bytes | None]
"""Gives a small file's bytes, or None where it cannot be read."""
Names: TypeAlias = Callable[[str], Sequence[str]]
"""Gives the names in a folder; empty where it cannot be listed."""


class Root(Struct, frozen=True):
    """One agent home."""

    path: str
    folders: tuple[str, ...] = ("",)
    """Folders below it that are worth walking; "" = all of it."""


class Found(Struct, frozen=True):
    """What a file below a root is."""

    id: str
    """Native id of its session; for a registry file or a many-session sidecar, any stable name."""
    role: Role = "log"
    framing: Framing = "lines"
    parent: str | None = None
    relation: Relation | None = None
    order: str = ""
    """Sorts the files of one session; a later one continues it."""
    replaces: int = 0
    """Of files with equal `id` and `order`, only the highest `replaces` is read."""


class Claim(Struct, frozen=True):
    """What a registry entry says about a live process."""

    session: str
    pid: int
    start: str | None = None
    """Start time of the process, in clock ticks since boot (`/proc/<pid>/stat` field 22)."""
    domain: str | None = None
    """Boot and pid namespace the pid is valid in, as the agent writes it; null = not said."""
    status: Literal["working", "waiting", "idle"] | None = None
    """Null where the agent does not say; then the records decide."""
    waiting_for: Literal["permission", "question", "plan", "dialog", "other"] | None = None
    cwd: str | None = None
    name: str | None = None
    text: str = ""
    """The claim in the agent's own words, for `explain`."""


class Launch(Struct, frozen=True):
    """How to start a CLI."""

    argv: tuple[str, ...]
    stdin: bytes
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    """Files to write into the job folder first, by name."""


class Trial(Protocol):
    """The parts of a backend by which `agenthub verify --live` tries an installed CLI; pure too."""

    @property
    def LABEL(self) -> str:  # noqa: N802
        """The agent's name for people."""
        ...

    @property
    def VERSION_ARGV(self) -> Sequence[str]:  # noqa: N802
        """Arguments that print the version."""
        ...

    @property
    def ON_SIGINT(self) -> str:  # noqa: N802
        """Outcome of a turn that SIGINT ended in a tool, as this CLI's files tell it."""
        ...

    @property
    def UNCOUNTED(self) -> frozenset[str]:  # noqa: N802
        """Token counts that its files do not hold."""
        ...

    def version(self, stdout: bytes) -> str | None:
        """The version in that output."""
        ...

    def trial(self, prompt: bytes, cwd: str, home: str, url: str, resume: str | None) -> Launch:
        """One headless run with tools allowed, and no traffic but to the model server at `url`.

        `argv` is without the executable; `files` are written below the scratch `home` first;
        `resume` is a native session id.
        """
        ...

    def trial_session(self, stdout: bytes) -> str | None:
        """The native session id in what such a run has printed so far."""
        ...


class Observer(Protocol):
    """Reads one agent's files. State is a msgspec Struct, so that the store can keep it."""

    @property
    def LABEL(self) -> str:  # noqa: N802
        """The agent's name for people."""
        ...

    @property
    def VERSION(self) -> int:  # noqa: N802
        """Raised with every change of what the events say: older stored cursors are dropped."""
        ...

    def roots(self, env: Mapping[str, str], home: str, read: Read, names: Names) -> Sequence[Root]:
        """The agent's homes: from the environment, the defaults, and its own configuration."""
        ...

    def process(self, exe: str, argv: Sequence[str]) -> bool:
        """Is this process the agent itself (not a wrapper, updater, probe or app server)?"""
        ...

    def find(self, relative: str, head: Head) -> Found | None:
        """What the file at this path below a root is; None = not ours."""
        ...

    def start(self, found: Found) -> Any:
        """The state before the file's first line."""
        ...

    def events(self, line: bytes, offset: int, state: Any) -> Iterable[Event]:
        """The events of one complete line (without its newline); changes `state`; never raises."""
        ...

    def sidecar(self, name: str, data: bytes) -> Iterable[Event]:
        """The events of a whole sidecar file; each names its session (native id)."""
        ...

    def live(self, name: str, data: bytes) -> Claim | None:
        """What a registry file claims; None = nothing that can be read."""
        ...


class Backend(Protocol):
    """Launches one agent's CLI and reads what it printed."""

    @property
    def LABEL(self) -> str:  # noqa: N802
        """The agent's name for people."""
        ...

    @property
    def CAN(self) -> frozenset[str]:  # noqa: N802
        """Capability words: resume, fork, system, schema, max_turns, ..."""
        ...

    @property
    def NATIVE_MODES(self) -> Mapping[str, Sequence[str]]:  # noqa: N802
        """Arguments that set a mode in the CLI itself."""
        ...

    @property
    def STATE_PATHS(self) -> Sequence[str]:  # noqa: N802
        """Paths below the agent home that a run must be able to write."""
        ...

    @property
    def VERSION_ARGV(self) -> Sequence[str]:  # noqa: N802
        """Arguments that print the version."""
        ...

    def version(self, stdout: bytes) -> str | None:
        """The version in that output."""
        ...

    def launch(self, task: Task) -> Launch:
        """How to start the CLI for this task."""
        ...

    def progress(self, line: bytes, state: Any) -> Iterable[Event]:
        """The events of one line that the CLI printed."""
        ...

    def outcome(self, task: Task, stdout: bytes, stderr: bytes, exit_status: int | None) -> Outcome:
        """The proven outcome of a run; never a guess."""
        ...
