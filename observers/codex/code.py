"""Code mode of Codex (0.171): one call of `exec` runs JavaScript, which calls the tools.

The model makes one call, so one call counts: the outer one, which is also the only trace of a
command that still runs. What its JavaScript will run is read out of the text; the items that say
how each inner command ended (`exec-...` ids) are merged into the end of the outer call.
"""

from json import loads
from re import compile as pattern
from typing import Final

from msgspec import Struct, field

from hub.decode import bounded
from hub.events import Intent

NAME: Final = "exec"
WAIT: Final = "wait"
"""The tool that looks at a script which goes on in the background."""
INNER: Final = "exec-"
"""How the ids of inner commands begin."""

_LOOK: Final = 100_000
"""Characters of a script that are looked at."""
_TOOL = pattern(r"\btools\.(\w+)\(")
_COMMAND = pattern(r"""\bcmd["']?\s*:\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)""")
_FILE = pattern(r"""\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)(?:\\r)?(?:\\n|[\n"'`])""")


class Script(Struct):
    """What a piece of JavaScript will do, as far as its text says."""

    intent: Intent = "generic"
    commands: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def script(text: str) -> Script:
    """Reads a script: the tools that it names, the commands and patches in it."""
    text = text[:_LOOK]
    named = set(_TOOL.findall(text))
    found = Script()
    if "exec_command" in named:
        found.intent = "terminal"
        found.commands = [_literal(one) for one in _COMMAND.findall(text)]
    if "apply_patch" in named:
        found.intent = "diff"
        found.files = list(dict.fromkeys(_FILE.findall(text)))
    return found


def shown(commands: list[str]) -> str:
    """Several commands as one text."""
    return bounded("\n".join(commands), 2_000)


def _literal(text: str) -> str:
    """The value of a JavaScript string literal; its text where it is no JSON."""
    if text.startswith('"'):
        try:
            return str(loads(text, strict=False))
        except ValueError:
            pass
    return text[1:-1]
