"""This machine in; what agenthub can see, cannot see and did not understand out."""

import os
import platform
import resource
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hub
from hub import registry
from hub.catalogue import catalogue
from hub.local import Local

_TIMEOUT = 20.0
"""Seconds that a CLI may take to print its version."""


def report(local: Local) -> dict[str, Any]:
    """Agents, roots, what was read and not read, limits, sandbox tools: plain data."""
    out = catalogue(local.engine)
    seen = out.seen
    agents: dict[str, dict[str, Any]] = {}
    for agent in registry.agents():
        agents[agent] = {
            "label": registry.observer(agent).LABEL,
            "executable": executable(agent, local),
            "roots": [],
            "sessions": 0,
            "files": 0,
            "bytes": 0,
            "versions": {},
            "unknown_records": {},
            "notes": {},
        }
    for agent, root, there in seen.tree.roots:
        agents[agent]["roots"].append({"path": root.path, "exists": there})
    for key in sorted(out.keys()):
        for file in out.files(key):
            agents[file.agent]["files"] += 1
            agents[file.agent]["bytes"] += file.size
    for session in out.sessions():
        entry = agents[session.agent]
        entry["sessions"] += 1
        version = session.cli_version or "unknown"
        entry["versions"][version] = entry["versions"].get(version, 0) + 1
        for note in session.notes:
            kind = "unknown_records" if note.code == "unknown_record" else "notes"
            name = f"{version} {note.detail}" if note.code == "unknown_record" else note.code
            entry[kind][name] = entry[kind].get(name, 0) + note.count
    return {
        "agenthub": hub.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "agents": agents,
        "unreadable": [{"path": one.path, "reason": one.reason} for one in seen.troubles],
        "cache": {"path": str(local.places.cache_db), "notice": local.store.notice},
        "config": {"path": str(local.places.config), "exists": local.places.config.is_file()},
        "foreign_adapters": foreign(local),
        "limits": limits(),
        "sandbox": sandbox(),
    }


def executable(agent: str, local: Local) -> dict[str, Any]:
    """Where the CLI is and what version it says; it is asked with an empty environment."""
    path = program(agent, local)
    if not path:
        return {"path": None, "version": None}
    return {"path": path, "version": _version(path, local.env)}


def program(agent: str, local: Local) -> str | None:
    """Where the CLI is: `[agents.X] executable`, then `AGENTHUB_<X>_BIN`, then PATH."""
    configured = local.settings.agents.get(agent)
    return (
        (configured.executable if configured else None)
        or local.env.get(f"AGENTHUB_{agent.upper()}_BIN", "").strip()
        or shutil.which(agent, path=local.env.get("PATH", ""))
    )


def _version(path: str, env: Mapping[str, str]) -> str | None:
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="agenthub-version-") as scratch:
        clean = {"PATH": env.get("PATH", os.defpath), "HOME": scratch, "DSH_HOME": scratch}
        try:
            ran = subprocess.run(
                [path, "--version"], capture_output=True, timeout=_TIMEOUT, check=False,
                env=clean, cwd=scratch, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"cannot be asked: {error}"
    words = ran.stdout.decode(errors="replace").strip().splitlines()
    return words[0] if words else f"said nothing (exit {ran.returncode})"


def foreign(local: Local) -> list[dict[str, Any]]:
    """Adapters that other packages offer, and whether they are enabled."""
    from importlib.metadata import entry_points  # noqa: PLC0415

    return [
        {"group": group, "name": one.name, "value": one.value,
         "enabled": one.name in local.settings.adapters}
        for group in ("agenthub.observers", "agenthub.backends")
        for one in entry_points(group=group)
    ]  # fmt: skip


def limits() -> dict[str, Any]:
    """What bounds watching and reading here."""
    return {
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "inotify_watches": _number("/proc/sys/fs/inotify/max_user_watches"),
        "inotify_instances": _number("/proc/sys/fs/inotify/max_user_instances"),
        "inotify_queue": _number("/proc/sys/fs/inotify/max_queued_events"),
        "processes_visible": Path("/proc/self/stat").exists(),
        "locks_visible": Path("/proc/locks").exists(),
    }


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None


def sandbox() -> dict[str, Any]:
    """Whether runs can be walled in on this machine."""
    bubblewrap = shutil.which("bwrap")
    allowed = _number("/proc/sys/kernel/unprivileged_userns_clone")
    spaces = _number("/proc/sys/user/max_user_namespaces")
    return {
        "bubblewrap": bubblewrap,
        "user_namespaces": None if spaces is None else spaces > 0 and allowed != 0,
    }


def text_of(found: dict[str, Any]) -> list[str]:
    """The report in lines for people."""
    out = [f"agenthub {found['agenthub']} on Python {found['python']}, {found['system']}", ""]
    for name, agent in found["agents"].items():
        tool = agent["executable"]
        where = f"{tool['path']} ({tool['version']})" if tool["path"] else "not installed"
        out.append(f"{agent['label']} ({name}): {where}")
        out += [
            f"  looks in   {root['path']}{'' if root['exists'] else '  (not there)'}"
            for root in agent["roots"]
        ]
        out.append(
            f"  read       {agent['sessions']} sessions, {agent['files']} files,"
            f" {agent['bytes']} bytes"
        )
        if agent["versions"]:
            versions = ", ".join(f"{one} x{count}" for one, count in agent["versions"].items())
            out.append(f"  written by {versions}")
        for what, title in (("unknown_records", "not understood"), ("notes", "odd input")):
            for one, count in sorted(agent[what].items()):
                out.append(f"  {title:<10} {one} x{count}")
    out += ["", "not readable: nothing" if not found["unreadable"] else "not readable:"]
    out += [f"  {one['path']}: {one['reason']}" for one in found["unreadable"]]
    out.append(f"cache: {found['cache']['path']}")
    if found["cache"]["notice"]:
        out.append(f"  {found['cache']['notice']}")
    missing = "" if found["config"]["exists"] else " (none: defaults)"
    out.append(f"configuration: {found['config']['path']}{missing}")
    out += [
        f"adapter of another package: {one['name']} ({one['value']}),"
        f" {'enabled' if one['enabled'] else 'not enabled: [adapters] enable'}"
        for one in found["foreign_adapters"]
    ]
    out.append("limits: " + ", ".join(f"{name} {one}" for name, one in found["limits"].items()))
    walls = found["sandbox"]
    out.append(
        f"sandbox: bubblewrap {walls['bubblewrap'] or 'not installed'},"
        f" user namespaces {walls['user_namespaces']}"
    )
    return out
