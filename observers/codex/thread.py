"""Who a Codex thread is, and what each turn runs with: `session_meta` and `turn_context` in."""

from hashlib import sha256
from typing import Any, Final

from hub.decode import bounded
from hub.events import Event, Rewind, Surface, System
from observers.codex.records import SessionMeta, TurnContext, mapping, moment, text, whole
from observers.codex.state import State, tell

_TUI: Final = ("codex-tui", "codex_cli_rs", "codex_tui")
_IDE: Final = ("vscode", "cursor", "windsurf", "jetbrains", "xcode", "zed", "ide")


def surface(originator: Any, source: Any) -> Surface | None:
    """Where the thread was started.

    `originator` decides: `source` is `vscode` for a plain TUI behind the daemon (0.171) and for
    migrated files. Up to 0.42 `exec` writes `codex_cli_rs` too, then with `source` exec (0.44+).
    """
    who = originator.lower() if isinstance(originator, str) else ""
    if source == "exec" or who == "codex_exec":
        return "headless"
    if who in _TUI:
        return "tui"
    if any(word in who for word in _IDE):
        return "ide"
    if who or source in ("mcp", "vscode"):
        return "sdk"
    return None


def parent_of(meta: SessionMeta) -> tuple[str | None, str | None]:
    """The parent and the relation.

    0.44+: `source.subagent` is `{"thread_spawn": {...}}`, `{"other": ...}` or a word ("review");
    0.107+: `parent_thread_id`. A child can have `forked_from_id` as well: it stays a child.
    """
    child = mapping(meta.source).get("subagent")
    fork = text(meta.forked_from_id)
    if child:
        spawn = mapping(mapping(child).get("thread_spawn"))
        parent = text(spawn.get("parent_thread_id")) or text(meta.parent_thread_id) or fork
        return parent, "subagent"
    if fork:
        return fork, "fork"
    return None, None


def session_meta(meta: SessionMeta, state: State, out: list[Event]) -> None:
    """A `session_meta`: only the thread's own counts; any other one heads a copied history."""
    own = text(meta.id)
    if own is not None and own != state.id:
        if not state.turns and state.floor < 0:
            state.copying = True
            state.unstarted = state.met and state.unstarted
        return
    if state.met:
        return
    state.met = True
    parent, relation = parent_of(meta)
    state.child = relation == "subagent"
    state.floor = whole(meta.subagent_history_start_ordinal) or -1
    state.inherited = state.floor >= 0
    base = mapping(meta.history_base)
    state.forked = relation is not None or bool(base)
    started = moment(meta.timestamp)
    if relation is not None and not base and (state.floor >= 0 or not state.paginated):
        state.unstarted, started = True, None
    tell(
        state,
        out,
        cwd=text(meta.cwd),
        cli_version=text(meta.cli_version),
        git_branch=text(mapping(meta.git).get("branch")),
        surface=surface(meta.originator, meta.source),
        parent=parent,
        relation=relation,
        started_at=None if state.segment else started,
    )
    system(meta.base_instructions or meta.instructions, state, out)
    if state.segment:
        # `history_base` names the file before the rewind (by its segment, if it is one itself);
        # it is absent where nothing is left. A fork's names its parent, of which nothing is dead.
        end = whole(base.get("end_ordinal_exclusive")) or 0
        out.append(Rewind(seq=end, to_offset=whole(base.get("end_byte_offset")) or 0))


def system(value: Any, state: State, out: list[Event]) -> None:
    """The system prompt. 0.89+: `base_instructions: {text}`; before: `instructions`, a string."""
    said = text(mapping(value).get("text")) or text(value)
    if said is not None:
        mark = sha256(said.encode(errors="replace")).hexdigest()
        if state.told.get("system") != mark:
            state.told["system"] = mark
            out.append(System(text=bounded(said, 2_000), fingerprint=mark))


def turn_context(context: TurnContext, state: State, out: list[Event]) -> None:
    """A `turn_context` (0.36+): what holds from here on."""
    state.model = text(context.model) or state.model
    if context.approval_policy is not None:
        policy = context.approval_policy
        state.policy = policy if isinstance(policy, str) else "granular"
    state.asks_user = context.approvals_reviewer in (None, "user")
    tell(
        state,
        out,
        cwd=text(context.cwd),
        model=text(context.model),
        effort=text(context.effort),
    )
