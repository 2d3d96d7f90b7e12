"""A prompt's directive, e.g. `[[http:429]]`, comes in; steps of acts that know no agent go out."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

FINAL_ANSWER = "The answer is 42."
SUB_ANSWER = "Sub result: 7."
DIRECTIVE = re.compile(r"\[\[([a-z][a-z0-9_]*)((?::[^:\]\n]*)*)\]\]")


@dataclass(frozen=True, slots=True)
class Text:
    """Say `text`, streamed in `pieces` deltas with `pause` seconds between them."""

    text: str
    pieces: int = 3
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Thinking:
    """Show `text` as reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Run a shell command; `escalate` asks to leave the sandbox, where an agent can ask that."""

    command: str
    escalate: bool = False
    background: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Read a file; a relative path is taken from the agent's working directory."""

    path: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write a file; a relative path is taken from the agent's working directory."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the user one question with fixed options."""

    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Propose a plan, in Markdown, and leave plan mode."""

    text: str


@dataclass(frozen=True, slots=True)
class Subagent:
    """Hand `prompt` to a new subagent, and wait for it where the agent has a choice."""

    description: str
    prompt: str
    background: bool = False


@dataclass(frozen=True, slots=True)
class WaitAgents:
    """Wait for the subagents of this prompt, where the agent has a tool for it; else nothing."""


@dataclass(frozen=True, slots=True)
class CloseAgents:
    """Close the subagents of this prompt, where the agent has a tool for it; else nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """Call the tool `name` with these arguments (or this raw text), offered or not."""

    name: str
    arguments: Mapping[str, object] | str


@dataclass(frozen=True, slots=True)
class Before:
    """Send nothing, not even the headers, for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop for so many seconds in mid answer."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Stop until the gate is released; as the first act of a step not even headers are sent."""

    gate: str


@dataclass(frozen=True, slots=True)
class HttpError:
    """Answer with an HTTP error: always, or for the first `times` tries of a step."""

    code: int
    type: str = ""
    message: str = ""
    times: int | None = None
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection in mid stream; an answer that is not streamed is given whole."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Accept the request and send nothing until the client leaves."""


@dataclass(frozen=True, slots=True)
class StreamError:
    """End the stream with the protocol's error event."""

    type: str = "overloaded_error"
    message: str = "scripted stream error"


@dataclass(frozen=True, slots=True)
class Stop:
    """End with this reason, in the words of the Messages API: `max_tokens`, `refusal`, ..."""

    reason: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer: `input` is uncached only, `reasoning` is part of `output`."""

    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int = 0


Tool = Shell | Read | Write | Ask | Plan | Subagent | WaitAgents | CloseAgents | Call
Act = (
    Text
    | Thinking
    | Tool
    | Before
    | Pause
    | Hold
    | HttpError
    | Cut
    | Silent
    | StreamError
    | Stop
    | Usage
)
Step = Sequence[Act]
"""One answer of the model; a step without acts is an empty answer."""
Steps = Sequence[Step]
Script = Steps | Callable[[Sequence[str]], Steps]
"""The answers to one prompt, or a function that makes them from the directive's arguments."""

FINAL: Step = (Text(FINAL_ANSWER),)


@dataclass(frozen=True, slots=True)
class Directive:
    """What a prompt asks the model to play: `[[name:args]]`; without one, `answer`."""

    name: str = "answer"
    args: tuple[str, ...] = ()


def find_directive(text: str) -> Directive | None:
    """The last directive in a text, if any."""
    found = list(DIRECTIVE.finditer(text))
    if not found:
        return None
    return Directive(found[-1][1], tuple(found[-1][2].split(":")[1:]))


def steps_of(scripts: Mapping[str, Script], directive: Directive) -> Steps:
    """The steps a directive selects; one that makes no sense gives an answer that says so."""
    script = scripts.get(directive.name)
    if script is None:
        return ((Text(f"No script is called {directive.name}."),),)
    try:
        return script(directive.args) if callable(script) else script
    except (ValueError, LookupError):
        return ((Text(f"The script {directive.name} takes no {directive.args}."),),)


def _argument(args: Sequence[str], place: int, default: str) -> str:
    return args[place] if len(args) > place and args[place] else default


def _always(*acts: Act) -> Steps:
    """The same answer however often the agent asks to go on."""
    return (acts,) * 50


def _http(args: Sequence[str]) -> Steps:
    return _always(HttpError(int(_argument(args, 0, "500")), _argument(args, 1, "")))


def _once(args: Sequence[str]) -> Steps:
    error = HttpError(int(_argument(args, 0, "529")), times=int(_argument(args, 1, "1")))
    return ((error, *FINAL),)


def _slowstream(args: Sequence[str]) -> Steps:
    return ((Text("The answer "), Hold(_argument(args, 0, "slowstream")), Text("is 42.")),)


def _hold(args: Sequence[str]) -> Steps:
    return ((Hold(_argument(args, 0, "hold")), *FINAL),)


def _long(args: Sequence[str]) -> Steps:
    size = int(_argument(args, 0, "100000"))
    line = "lorem ipsum dolor sit amet, all work and no play makes a dull text\n"
    return ((Text((line * (size // len(line) + 1))[:size], pieces=size // 16384 + 1),),)


def _usage(args: Sequence[str]) -> Steps:
    counts = [int(_argument(args, place, "0")) for place in range(4)]
    return ((Usage(*counts), *FINAL),)


def _bigout(args: Sequence[str]) -> Steps:
    return ((Text("Printing a lot."), Shell(f"seq 1 {int(_argument(args, 0, '60000'))}")), FINAL)


def _sleeptool(args: Sequence[str]) -> Steps:
    return ((Text("Sleeping."), Shell(f"sleep {int(_argument(args, 0, '600'))}")), FINAL)


def _write(args: Sequence[str]) -> Steps:
    return ((Text("Writing."), Write(_argument(args, 0, "new.txt"), "hello\n")), FINAL)


def _read(args: Sequence[str]) -> Steps:
    return ((Text("Reading."), Read(_argument(args, 0, "new.txt"))), FINAL)


def _shell(args: Sequence[str]) -> Steps:
    return ((Text("Running."), Shell(":".join(args))), FINAL)


LEAKED_FRAMES = {
    "dsml": (
        "Let me list the files.\n<｜DSML｜function_calls>\n"
        '<｜DSML｜invoke name="bash">\n'
        '<｜DSML｜parameter name="command" string="true">ls</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "epse": 'I will run it.\n<|EPSE_tool_call name="bash">{"command":"ls"}</|EPSE_tool_call>',
}


def _leak(args: Sequence[str]) -> Steps:
    return ((Text(LEAKED_FRAMES[_argument(args, 0, "dsml")]),),)


def _hand(args: Sequence[str], *, background: bool = True) -> Steps:
    """Hand a prompt with the directive `args` to a subagent."""
    prompt = f"Please do it. [[{':'.join(args) or 'child'}]]"
    acts = (Text("Handing on."), Subagent("Do it", prompt, background=background))
    return (acts, FINAL) if background else (acts, (WaitAgents(),), (CloseAgents(),), FINAL)


def _shellbg(args: Sequence[str]) -> Steps:
    command = ":".join(args) or "sleep 5; echo done"
    return ((Text("In background."), Shell(command, background=True)), FINAL)


_CHILD = "Please count. [[child]]"

SCRIPTS: Mapping[str, Script] = {
    "answer": (FINAL,),
    "thinking": ((Thinking("Let me think about it."), *FINAL),),
    "tool": ((Text("I will run a command."), Shell("echo hi from tool")), FINAL),
    "parallel": (
        (
            Text("Three at once."),
            Shell("sleep 1; echo one"),
            Shell("echo two"),
            Shell("sleep 0.3; echo three"),
        ),
        FINAL,
    ),
    "failtool": (
        (Text("This will fail."), Shell("echo to stdout; echo to stderr >&2; exit 3")),
        FINAL,
    ),
    "multi": (
        (Text("Step 1."), Shell("echo 1")),
        (Text("Step 2."), Shell("echo 2")),
        (Text("Step 3."), Shell("echo 3")),
        FINAL,
    ),
    "child": ((Text("Sub working."), Shell("echo sub")), (Text(SUB_ANSWER),)),
    "subagent": (
        (Text("Delegating."), Subagent("Count things", _CHILD)),
        (WaitAgents(),),
        (CloseAgents(),),
        FINAL,
    ),
    "subagents2": (
        (
            Text("Delegating twice."),
            Subagent("Count apples", "Apples. " + _CHILD),
            Subagent("Count pears", "Pears. " + _CHILD),
        ),
        (WaitAgents(),),
        (CloseAgents(),),
        FINAL,
    ),
    "subagentbg": (
        (Text("Delegating in the background."), Subagent("Count things", _CHILD, background=True)),
        FINAL,
    ),
    "hand": _hand,
    "delegate": partial(_hand, background=False),
    "nested": (
        (Text("Delegating on."), Subagent("Delegate on", "Please delegate. [[subagent]]")),
        (WaitAgents(),),
        (CloseAgents(),),
        FINAL,
    ),
    "shell": _shell,
    "shellbg": _shellbg,
    "background": ((Text("In background."), Shell("sleep 5; echo done", background=True)), FINAL),
    "sleeptool": _sleeptool,
    "slowstream": _slowstream,
    "hold": _hold,
    "ask": ((Text("I need to ask."), Ask("Which colour?", ("Red", "Blue"))), FINAL),
    "plan": ((Text("Here is my plan."), Plan("# Plan\n\n1. Do it.\n")), FINAL),
    "permission": (
        (Text("I need permission."), Shell("touch ../outside.txt; echo done", escalate=True)),
        FINAL,
    ),
    "write": _write,
    "read": _read,
    "http": _http,
    "once": _once,
    "cut": _always(Text("Partial text that stops"), Cut()),
    "silent": _always(Silent()),
    "maxtokens": _always(Text("The text ends at"), Stop("max_tokens")),
    "refusal": _always(Text("I cannot help with that."), Stop("refusal")),
    "emptyanswer": _always(),
    "streamerror": _always(Text("Partial text, then an error"), StreamError()),
    "unicode": (
        (
            Text('你好 🎉 \u2028 line \u2029 paragraph \x85 next "quote" \\ \ud83d lone'),
            Shell("printf 'h\u00e9llo 🎉 日本\\n'"),
        ),
        (Text("完成 ✅"),),
    ),
    "bigout": _bigout,
    "leak": _leak,
    "long": _long,
    "usage": _usage,
}
"""The scripts every server knows."""
