"""A session of a catalogue in; why it says what it says out, each piece with its place."""

from typing import Any

from hub.catalogue import Catalogue
from hub.model import Session


def explain(catalogue: Catalogue, key: str) -> dict[str, Any]:
    """The explanation as plain data: `state`, `title`, `counts`, `usage`, `cost`, `files`."""
    session = catalogue.session(key)
    return {
        "key": key,
        "state": {
            "value": session.state,
            "outcome": session.outcome,
            "waiting_for": session.waiting_for,
            "certain": session.certain,
            "evidence": session.evidence,
            "alternatives": session.alternatives,
        },
        "title": _title(catalogue, session),
        "counts": _counts(catalogue, session),
        "usage": _usage(catalogue, session),
        "cost": _cost(catalogue, session),
        "files": _files(catalogue, session),
        "notes": session.notes,
        "alerts": session.alerts,
    }


def _title(catalogue: Catalogue, session: Session) -> dict[str, Any]:
    fold = catalogue.fold(session.key)
    if session.title is None:
        return {"value": session.title, "rule": "nothing gives it a title"}
    if fold.title_spot is not None and fold.title is not None:
        spot = fold.title_spot
        rule = f"the agent's own title (rank {fold.title_rank})"
        return {"value": session.title, "rule": rule, "path": spot.path, "offset": spot.offset}
    if fold.first_prompt is None:
        return {"value": session.title, "rule": "the name in the agent's registry"}
    return {"value": session.title, "rule": "the first prompt, in one line"}


_INHERITED = ("turns", "prompts", "tool_calls", "failed_tools", "failed_turns")


def _counts(catalogue: Catalogue, session: Session) -> dict[str, Any]:
    inherited = catalogue.totals(session.key).inherited
    return {
        "turns": session.turns,
        "prompts": session.prompts,
        "tool_calls": session.tool_calls,
        "errors": session.errors,
        "rule": "turns = begun turns; prompts = human, dispatched and queued texts;"
        " errors = failed tools + failed turns",
        "turns_without_an_end": catalogue.fold(session.key).lost_turns,
        "inherited": dict(zip(_INHERITED, inherited, strict=True)),
    }


def _usage(catalogue: Catalogue, session: Session) -> dict[str, Any]:
    totals = catalogue.totals(session.key)
    by_owner = totals.copied
    mine = totals.responses + sum(by_owner.values())
    repeats = max(0, catalogue.fold(session.key).usage_events - mine)
    return {
        "value": session.usage,
        "with_children": session.usage_with_children,
        "responses": totals.responses,
        "dropped": [
            *(
                [{"rule": "a record repeats the response it belongs to", "records": repeats}]
                if repeats
                else []
            ),
            *(
                {
                    "rule": "copied from the session that owns the response",
                    "owner": owner,
                    "responses": count,
                }
                for owner, count in sorted(by_owner.items())
            ),
        ],
    }


def _cost(catalogue: Catalogue, session: Session) -> dict[str, Any]:
    """The cost and how it came about; whoever pays by subscription pays otherwise."""
    totals = catalogue.totals(session.key)
    basis = session.cost_basis
    if session.cost_usd is not None and basis is not None:
        rule = {
            "table": f"list price (genai-prices {basis.version}), request by request;"
            " a subscription is billed otherwise",
            "override": "your own [prices], request by request",
            "cli": "what the agent itself says; no table knows its model",
        }[basis.source]
        return {"usd": session.cost_usd, "rule": rule}
    if totals.cost is not None:
        rule = "your own [prices], request by request; not in USD"
        return {"usd": None, "rule": rule, "amount": totals.cost, "currency": totals.currency}
    if not totals.models:
        return {"usd": None, "rule": "no request is known that could be priced"}
    return {"usd": None, "rule": f"no price is known for a request of {', '.join(totals.models)}"}


def _files(catalogue: Catalogue, session: Session) -> list[dict[str, Any]]:
    sidecars = sorted({event.path for event in catalogue.asides(session.key)})
    return [
        *(
            {"path": source.path, "format": source.format, "size": source.size,
             "read": source.offset}
            for source in session.sources
        ),
        *({"path": path, "format": "sidecar"} for path in sidecars),
    ]  # fmt: skip


def text_of(explanation: dict[str, Any]) -> list[str]:
    """The explanation in lines for people."""
    state = explanation["state"]
    sure = "" if state["certain"] else " (not certain)"
    words = [state["value"], state["outcome"], state["waiting_for"]]
    out = [explanation["key"], "", f"state: {' / '.join(one for one in words if one)}{sure}"]
    for one in state["evidence"]:
        spot = f"  [{one.path}{'' if one.offset is None else f' @ {one.offset}'}]"
        out.append(f"  {one.tier:<9} {one.text}{spot if one.path else ''}")
    unread = [one for one in explanation["alerts"] if one.kind == "unreadable"]
    out += [f"  file      {one.detail}" for one in unread]
    for one in state["alternatives"]:
        reading = f"{one.state}/{one.outcome}" if one.outcome else one.state
        out.append(f"  or        {reading}: {one.text}")
    title = explanation["title"]
    spot = f"  [{title['path']} @ {title['offset']}]" if "path" in title else ""
    out += ["", f"title: {title['value'] or 'none'}", f"  {title['rule']}{spot}"]
    counts = explanation["counts"]
    names = ("turns", "prompts", "tool_calls", "errors")
    figures = (f"{name} {'unknown' if counts[name] is None else counts[name]}" for name in names)
    out += ["", f"counts: {', '.join(figures)}"]
    out.append(f"  {counts['rule']}")
    if any(counts["inherited"].values()):
        told = ", ".join(f"{name} {one}" for name, one in counts["inherited"].items())
        out.append(f"  not counted, inherited with a copied history: {told}")
    if counts["turns_without_an_end"]:
        out.append(f"  {counts['turns_without_an_end']} turn(s) never ended and count as turns")
    usage = explanation["usage"]
    out += ["", f"tokens: {_tokens(usage['value'])} in {usage['responses']} response(s)"]
    out.append(f"  with sub-agents: {_tokens(usage['with_children'])}")
    for one in usage["dropped"]:
        what = (
            f"{one['records']} record(s)" if "records" in one else f"{one['responses']} response(s)"
        )
        owner = f" ({one['owner']})" if "owner" in one else ""
        out.append(f"  not counted: {what}: {one['rule']}{owner}")
    cost = explanation["cost"]
    amount = "unknown" if cost["usd"] is None else f"{cost['usd']:.6f} USD"
    if "currency" in cost:
        amount = f"{cost['amount']:.6f} {cost['currency']}"
    out += ["", f"cost: {amount}", f"  {cost['rule']}", "", "files:"]
    for one in explanation["files"]:
        read = f", {one['read']} of {one['size']} bytes read" if "size" in one else ""
        out.append(f"  {one['path']} ({one['format']}{read})")
    for one in explanation["notes"]:
        detail = f" {one.detail}" if one.detail else ""
        out.append(f"  note: {one.code}{detail} x{one.count}")
    out += [f"  alert: {one.kind}: {one.detail}" for one in explanation["alerts"]]
    return out


def _tokens(usage: Any) -> str:
    if usage is None or all(getattr(usage, name) is None for name in usage.__struct_fields__):
        return "unknown"
    names = ("input", "cache_read", "cache_write", "output", "reasoning")
    known = [(name, getattr(usage, name)) for name in names]
    return ", ".join(f"{name} {'unknown' if one is None else one}" for name, one in known)
