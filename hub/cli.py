"""The command line: arguments in; text or one JSON document, and an exit code out.

Every heavy import stands inside the command that needs it: `ls` is called all day.
"""

import gc
import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hub
from hub.errors import AgenthubError, why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hub.catalogue import Catalogue
    from hub.listing import Filters
    from hub.local import Local

app = typer.Typer(
    name="agenthub",
    help="One list of every coding agent that runs on this machine.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,  # it looks at the parent processes to find the shell: ours is told
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMPLETE = "_AGENTHUB_COMPLETE"
"""Set by a shell's completion script."""
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]
Key = Annotated[str, typer.Argument(help="A session's key, or 4 and more characters of it.")]


def main() -> None:
    """Runs the command; an error is one sentence on stderr, never a traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        # LC_ALL=C must not turn a transcript into an exception
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="replace")
    # a list lives for a moment and makes no cycles: looking for them costs a tenth of it
    gc.disable()
    try:
        if COMPLETE in os.environ:
            from typer._completion_classes import completion_init  # noqa: PLC0415

            completion_init()
        app()
    except AgenthubError as error:
        _complain(error.message)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "the output cannot be written: "
        _complain(f"{where}{why(error)}")
        # what is still buffered cannot be written either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Without a command: the list."""
    if version:
        typer.echo(f"agenthub {hub.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        ls()


@app.command()
def ls(
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Also those not used in the last 7 days.")
    ] = False,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", help="Only this agent; may be repeated.")
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only such ones: waiting, say, or failed; may be repeated."),
    ] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", help="Only sessions in this folder and below.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only used since: 90m, 12h, 30d or a date."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many.")] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Sub-agents below their parents.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Read only head and tail of what is new.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the sessions: who works, who waits for you, who died."""
    from hub import listing  # noqa: PLC0415
    from hub.catalogue import catalogue  # noqa: PLC0415

    filters = listing.Filters(
        everything, tuple(agent or ()), _states(state), _folder(cwd), _moment(since), limit
    )
    local = _open()
    _known_agents(filters.agents)
    if not as_json and not quick and sys.stdout.isatty():
        _first_look(local, filters, tree=tree)
    found = catalogue(local.engine, quick=quick, host=os.uname().nodename)
    if as_json:
        _print_rows(listing.listed_json(found, filters))
    else:
        _print_table(local, found, filters, tree=tree)
    _troubles(local, found)


def _first_look(local: "Local", filters: Any, *, tree: bool) -> None:
    """On a terminal, a home that would take long to read is shown at once from heads and tails."""
    from hub.catalogue import catalogue  # noqa: PLC0415

    if local.engine.unread() < 32 << 20:
        return
    found = catalogue(local.engine, quick=True, host=os.uname().nodename)
    lines = _print_table(local, found, filters, tree=tree)
    typer.echo("reading what is new ...", err=True)
    if sys.stderr.isatty() and lines + 1 < _size()[1]:
        # the exact table is written over this one
        sys.stdout.write(f"\x1b[{lines + 1}A\x1b[J")
        sys.stdout.flush()


def _print_table(local: "Local", found: "Catalogue", filters: "Filters", *, tree: bool) -> int:
    """Prints the table; the lines of the terminal that it takes."""
    from dataclasses import replace  # noqa: PLC0415

    from hub import listing, render  # noqa: PLC0415

    # a limit is one of rows: sub-agents that are folded away take none
    chosen = listing.listed(found, replace(filters, limit=None))
    if not chosen:
        return _empty(found, filters)
    rows = render.fold_rows(chosen, found.keys(), tree=tree)[: filters.limit]
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    columns = _size()[0]
    lines = render.table(rows, columns, local.engine.machine.now(), colour=colour)
    typer.echo("\n".join(lines))
    return sum(render.height(one, columns) for one in lines)


def _empty(found: "Catalogue", filters: "Filters") -> int:
    """With no sessions: where it looked, and what to do next."""
    from hub import registry  # noqa: PLC0415
    from hub.text import line  # noqa: PLC0415

    looked = found.seen.tree.roots
    hint = (
        "agenthub ls --all lists older ones"
        if filters.recent
        else "fewer or other filters show more"
    )
    lines = (
        [f"No session fits ({len(found.keys())} with all sub-agents): {hint}."]
        if found.keys()
        else [
            "No sessions yet.",
            "Looked in:",
            *(
                f"  {line(where.path)}{'' if there else '  (not there)'}"
                for _, where, there in looked
            ),
            f"Start {' or '.join(registry.agents())} in a project, then run agenthub again.",
            "Sessions elsewhere: agenthub doctor tells how to name their folders.",
        ]
    )
    typer.echo("\n".join(lines))
    return len(lines)


@app.command()
def show(
    key: Key,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, help="Only the last N events.")
    ] = None,
    raw: Annotated[
        int | None, typer.Option("--raw", min=0, help="The last N lines as the agent wrote them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a session's transcript: who said what, which tools ran."""
    from hub import events, transcript  # noqa: PLC0415

    if raw is not None and tail is not None:
        raise typer.BadParameter("--raw N gives lines, --tail N events: one of them")
    _, found, whole = _find(key)
    if not found.files(whole) and found.session(whole).alerts:
        detail = "; ".join(alert.detail for alert in found.session(whole).alerts)
        raise AgenthubError(f"{whole} cannot be shown: {detail}")
    try:
        if raw is not None:
            _raw(transcript.raw(found, whole, raw), as_json=as_json)
            return
        stream = list(transcript.events(found, whole))
    except OSError as error:
        raise AgenthubError(f"{error.filename}: {why(error)}") from error
    if tail is not None:
        stream = stream[-tail:] if tail else []
    if as_json:
        _write_json(b"[" + b",\n".join(events.encode(one) for one in stream) + b"]\n")
        return
    for text in transcript.text_of(stream):
        typer.echo(text)


def _raw(lines: "Sequence[bytes]", *, as_json: bool) -> None:
    """Lines as the agent wrote them: byte by byte in a pipe, never so on a terminal."""
    from hub.text import line  # noqa: PLC0415

    if as_json:
        _print_json([one.decode(errors="replace") for one in lines])
    elif sys.stdout.isatty():
        for one in lines:
            typer.echo(line(one.decode(errors="replace")))
    else:
        _write(b"".join(one + b"\n" for one in lines))


@app.command()
def explain(key: Key, as_json: AsJson = False) -> None:
    """Explain why a session has this state, title, count and cost."""
    from hub import explain as reasons  # noqa: PLC0415
    from hub.text import lines  # noqa: PLC0415

    _, found, whole = _find(key)
    explanation = reasons.explain(found, whole)
    if as_json:
        _print_json(explanation)
        return
    for text in reasons.text_of(explanation):
        typer.echo(lines(text.replace("\n", " ")))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what agenthub sees here: agents, folders, what it could not read or understand."""
    from hub import doctor as health  # noqa: PLC0415
    from hub.text import lines  # noqa: PLC0415

    found = health.report(_open())
    if as_json:
        _print_json(found)
    else:
        typer.echo(lines("\n".join(health.text_of(found))))


@app.command()
def verify(
    agent: Annotated[
        list[str] | None, typer.Option("--agent", help="Only this agent; may be repeated.")
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Try the installed programs against scripted model answers."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say how much of the real sessions is understood; with --live, try the installed programs.

    Exit code 1: a record was not understood or a file not readable; with --live: something is not
    as expected, or nothing is installed. Prompts and answers are never shown.
    """
    from hub import verify as fidelity  # noqa: PLC0415
    from hub import verify_text  # noqa: PLC0415
    from hub.text import lines  # noqa: PLC0415

    agents = tuple(agent or ())
    local = _open()
    _known_agents(agents)
    if live:
        from hub import verify_live  # noqa: PLC0415

        found = verify_live.report(local, agents, _progress if sys.stderr.isatty() else None)
    else:
        found = fidelity.report(local, agents)
    if as_json:
        _print_json(found)
    else:
        told = verify_text.matrix(found) if live else verify_text.fidelity(found)
        typer.echo(lines("\n".join(told)))
    raise typer.Exit(0 if found["ok"] else 1)


def _progress(text: str) -> None:
    """On a terminal, the line that is done last; it is written over."""
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


@app.command()
def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print the completion script of a shell."""
    from typer._completion_shared import get_completion_script  # noqa: PLC0415

    if shell not in {"bash", "zsh", "fish"}:
        raise typer.BadParameter(f"{shell!r} is none of bash, zsh, fish")
    typer.echo(get_completion_script(prog_name="agenthub", complete_var=COMPLETE, shell=shell))


def _open() -> "Local":
    from hub.local import open_local  # noqa: PLC0415

    return open_local(os.environ)


def _find(wanted: str) -> "tuple[Local, Catalogue, str]":
    from hub import keys  # noqa: PLC0415
    from hub.catalogue import catalogue  # noqa: PLC0415

    local = _open()
    found = catalogue(local.engine, host=os.uname().nodename)
    return local, found, keys.find(wanted, found.keys())


def _troubles(local: "Local", found: "Catalogue") -> None:
    """Each path that could not be read, once, on stderr."""
    from hub.text import line  # noqa: PLC0415

    told = {one.path: one.reason for one in found.seen.troubles}
    for path, reason in sorted(told.items()):
        _complain(f"{line(path)}: {reason}; agenthub lists what it can read")
    if local.store.notice is not None:
        _complain(local.store.notice)


def _states(given: list[str] | None) -> tuple[str, ...]:
    from hub.listing import STATES  # noqa: PLC0415

    for one in given or ():
        if one not in STATES:
            raise typer.BadParameter(f"{one!r} is no state: {', '.join(STATES)}")
    return tuple(given or ())


def _known_agents(names: tuple[str, ...]) -> None:
    from hub import registry  # noqa: PLC0415

    for name in names:
        registry.observer(name)


def _folder(given: str | None) -> str | None:
    if given is None:
        return None
    windows = len(given) > 1 and (given[1] == ":" or given.startswith("\\\\"))
    return given if windows else os.path.abspath(os.path.expanduser(given))  # noqa: PTH100, PTH111


def _moment(given: str | None) -> float | None:
    """`90m` ago, or a date, local where it names no zone: Unix seconds."""
    if given is None:
        return None
    from datetime import datetime  # noqa: PLC0415

    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    try:
        if given[-1:] in units and given[:-1].isdecimal():
            return time.time() - int(given[:-1]) * units[given[-1]]
        return datetime.fromisoformat(given).timestamp()  # without a zone: of this machine
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{given!r} is neither 90m, 12h, 3d nor a date") from None


def _size() -> tuple[int, int]:
    import shutil  # noqa: PLC0415

    size = shutil.get_terminal_size((100, 24))
    return size.columns, size.lines


def _print_rows(rows: "Sequence[bytes]") -> None:
    """One array, written row by row."""
    import msgspec  # noqa: PLC0415

    _write(b"[")
    for start in range(0, len(rows), 200):
        some = [msgspec.json.format(row, indent=1) for row in rows[start : start + 200]]
        _write_json((b",\n" if start else b"\n") + b",\n".join(some))
    _write(b"\n]\n" if rows else b"]\n")


def _print_json(value: Any) -> None:
    import msgspec  # noqa: PLC0415

    from hub.text import json_of  # noqa: PLC0415

    _write_json(msgspec.json.format(json_of(value), indent=1) + b"\n")


def _write_json(document: bytes) -> None:
    from hub.text import json_safe  # noqa: PLC0415

    _write(json_safe(document.decode()).encode())


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _complain(text: str) -> None:
    from hub.text import line  # noqa: PLC0415

    sys.stderr.write(f"agenthub: {line(text)}\n")


if __name__ == "__main__":
    main()
