"""DeepSeek Harness: how `agenthub verify --live` tries it: `dsh headless`, prompt by stdin."""

import json
import re
from typing import Final

from hub.adapter import Launch

LABEL: Final = "DeepSeek Harness"
VERSION_ARGV: Final = ("--version",)
ON_SIGINT: Final = "lost"
UNCOUNTED: Final = frozenset({"reasoning"})
_VERSION: Final = re.compile(rb"\d+\.\d+\.\d+\S*")
# Without these rows every request carries the whole log and a second one asks for a title.
_QUIET: Final = b"""\
- id: session-log-deepseek
  disabled: true
- id: plugin-package-inventory-deepseek
  disabled: true
- id: session-title-llm
  disabled: true
"""


def version(stdout: bytes) -> str | None:
    """The version that it prints."""
    found = _VERSION.search(stdout)
    return found[0].decode(errors="replace") if found else None


def trial(prompt: bytes, cwd: str, home: str, url: str, resume: str | None = None) -> Launch:
    """One run of one prompt, unconfined: only scripted commands run, in a scratch folder."""
    del cwd
    return Launch(
        ("headless", "--json", *(("--session-id", resume) if resume else ())),
        prompt,
        {
            "DSH_HOME": f"{home}/.dsh",
            "DEEPSEEK_API_KEY": "made-up",
            "DEEPSEEK_BASE_URL": f"{url}/v1",
            "DSH_TELEMETRY_DISABLED": "1",
            "DSH_PERMISSION_MODE": "danger-full-access",
        },
        {} if resume else {".dsh/cordis.patch.yml": _QUIET},
    )


def trial_session(stdout: bytes) -> str | None:
    """The session's id, from the first event."""
    for line in stdout.split(b"\n")[:-1]:
        if b'"sessionId"' in line:
            return str(json.loads(line)["sessionId"])
    return None
