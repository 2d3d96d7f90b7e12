"""The one exception tree of agenthub; every error carries fields, so that nobody parses messages.

AgenthubError
├── UsageError            the call was wrong (exit 2)
│   ├── AmbiguousKey      .key .candidates
│   └── UnknownAgent      .agent .known
├── NotFoundError         no such session or job (exit 1)      .key
├── PlatformError         this system is not supported (exit 1)
├── ConfigError           config.toml cannot be used (exit 2)   .path .line
├── AdapterError          an adapter is broken or foreign (exit 1)  .module .path
├── StoreError            the cache cannot be used              .path
└── RunError              a dispatched run failed               .code .fields .answer
"""

from typing import Any, Final

EXIT_CODES: Final[dict[str, int]] = {
    "completed": 0,
    "not_installed": 3,
    "unsupported_version": 3,
    "model_not_found": 3,
    "bad_cwd": 3,
    "bad_prompt": 3,
    "sandbox_unavailable": 3,
    "auth": 4,
    "rate_limited": 5,
    "quota": 5,
    "permission_denied": 6,
    "refused": 6,
    "empty_answer": 7,
    "leaked_tool_call": 7,
    "schema_mismatch": 7,
    "output_truncated": 7,
    "context_overflow": 8,
    "max_tokens": 8,
    "budget_exceeded": 8,
    "network": 9,
    "server_error": 9,
    "api_rejected": 9,
    "timed_out": 124,
    "cancelled": 130,
    "session_busy": 1,
    "session_not_found": 1,
    "wrong_session": 1,
    "crashed": 1,
    "lost": 1,
    "protocol": 1,
}
"""Every outcome code of a run, and the exit code of `agenthub run`."""


class AgenthubError(Exception):
    """Something that a person can act on; `exit_code` is the command's."""

    exit_code = 1

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields


class UsageError(AgenthubError):
    """The call was wrong."""

    exit_code = 2


class AmbiguousKey(UsageError):  # noqa: N818  # the contract's word
    """A prefix fits more than one key."""

    def __init__(self, key: str, candidates: list[str]) -> None:
        shown = ", ".join(candidates[:10]) + (", ..." if len(candidates) > 10 else "")
        super().__init__(
            f"{key!r} fits {len(candidates)} sessions: {shown}. Type more of the key.",
            key=key,
            candidates=candidates,
        )
        self.key = key
        self.candidates = candidates


class UnknownAgent(UsageError):  # noqa: N818
    """No adapter of that name."""

    def __init__(self, agent: str, known: list[str]) -> None:
        super().__init__(
            f"there is no agent {agent!r}; known are {', '.join(known)}", agent=agent, known=known
        )
        self.agent = agent
        self.known = known


class NotFoundError(AgenthubError):
    """No session or job has that key."""

    def __init__(self, key: str, hint: str = "") -> None:
        super().__init__(f"no session fits {key!r}{hint}", key=key)
        self.key = key


class PlatformError(AgenthubError):
    """This operating system is not supported."""


class ConfigError(AgenthubError):
    """The configuration file cannot be used."""

    exit_code = 2

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}", path=path)
        self.path = path


class AdapterError(AgenthubError):
    """An adapter module is broken, or a foreign package took our name."""


class StoreError(AgenthubError):
    """The cache or the state file cannot be used."""


class RunError(AgenthubError):
    """A dispatched run did not succeed; `code` is one of `EXIT_CODES`."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.code = code
        self.exit_code = EXIT_CODES[code]


def why(error: OSError) -> str:
    """The reason in a person's words: `permission denied`."""
    return (error.strerror or str(error)).lower()
