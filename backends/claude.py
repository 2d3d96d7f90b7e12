"""Claude Code: how `agenthub verify --live` tries it, `claude -p` with the prompt by stdin."""

import json
import re
from typing import Final

from hub.adapter import Launch

LABEL: Final = "Claude Code"
VERSION_ARGV: Final = ("--version",)
ON_SIGINT: Final = "interrupted"
UNCOUNTED: Final = frozenset[str]()
_TOOLS: Final = ("Bash", "Read", "Write", "Edit", "Glob", "Grep", "Task", "Agent")
_VERSION: Final = re.compile(rb"\d+\.\d+\.\d+\S*")


def version(stdout: bytes) -> str | None:
    """The version in `2.1.332 (Claude Code)`."""
    found = _VERSION.search(stdout)
    return found[0].decode(errors="replace") if found else None


def trial(prompt: bytes, cwd: str, home: str, url: str, resume: str | None = None) -> Launch:
    """One run of one prompt; first-start dialogs are answered, updates and telemetry are off."""
    settings = {
        "hasCompletedOnboarding": True,
        "projects": {cwd: {"hasTrustDialogAccepted": True}, home: {"hasTrustDialogAccepted": True}},
    }
    again = ("--resume", resume) if resume else ()
    return Launch(
        ("-p", "--output-format", "stream-json", "--verbose", *again, "--allowedTools", *_TOOLS),
        prompt,
        {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk-ant-made-up-key-0000000000000000000000",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        {} if resume else {".claude.json": json.dumps(settings).encode()},
    )


def trial_session(stdout: bytes) -> str | None:
    """The session's id in the first complete line that has one."""
    for line in stdout.split(b"\n")[:-1]:
        if b'"session_id"' in line:
            return str(json.loads(line)["session_id"])
    return None
