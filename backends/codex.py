"""Codex: how `agenthub verify --live` tries it, `codex exec` with the prompt by stdin."""

import json
import re
from typing import Final

from hub.adapter import Launch

LABEL: Final = "Codex"
VERSION_ARGV: Final = ("--version",)
ON_SIGINT: Final = "interrupted"
UNCOUNTED: Final = frozenset[str]()
_VERSION: Final = re.compile(rb"\d+\.\d+\.\d+\S*")
# Analytics and plugins are what it would reach the network for; the daemon would outlive the run.
_CONFIG: Final = """\
model = "gpt-5.2-codex"
model_provider = "trial"
check_for_update_on_startup = false
[model_providers.trial]
name = "trial"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "TRIAL_KEY"
[analytics]
enabled = false
[features]
plugins = false
daemon_auto_start = false
multi_agent = true
"""


def version(stdout: bytes) -> str | None:
    """The version in `codex-cli 0.171.0`."""
    found = _VERSION.search(stdout)
    return found[0].decode(errors="replace") if found else None


def trial(prompt: bytes, cwd: str, home: str, url: str, resume: str | None = None) -> Launch:
    """One run of one prompt, unconfined: only scripted commands run, in a scratch folder."""
    del cwd, home
    return Launch(
        ("exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access",
         *(("resume", resume) if resume else ()), "-"),
        prompt,
        {"TRIAL_KEY": "made-up"},
        {} if resume else {".codex/config.toml": _CONFIG.format(url=url).encode()},
    )  # fmt: skip


def trial_session(stdout: bytes) -> str | None:
    """The thread's id, from the first event."""
    for line in stdout.split(b"\n")[:-1]:
        if b'"thread.started"' in line:
            return str(json.loads(line)["thread_id"])
    return None
