"""Where dsh keeps its sessions: environment and patch files in, roots out; paths in, `Found` out.

A session is `<project>/<escaped id>/session[.vN].jsonl[.zstd]` (v0 has no `.vN`; `.zstd` unless
`compression: none`), with `session.lock` beside it from 0.1.5 on. Older generations stay beside
newer ones; the highest N counts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hub.adapter import Found, Names, Read, Root

_LOG = re.compile(r"session(?:\.v([1-9][0-9]{0,8}))?\.jsonl(\.zstd)?")
_UNIT = re.compile(r"~([0-9A-F]{4})")
_CALL = re.compile(r"""dshHomePath\(\s*(['"])((?:(?!\1|\\).)+)\1\s*,?\s*\)""")
_ROWS = frozenset({"session-persistence-jsonl", "sessions"})
_PACKAGE = "@deepseek-ai/dsh-session-persistence-jsonl"
_PROFILES = frozenset({"headless", "web", "acp", "sdk", "sdk-minimal"})
_RUNTIME = "deepseek-harness-sdk-runtime"
_SCRIPTS = frozenset({"dsh", "dsh.js", "dsh.mjs", "runtime-bootstrap.mjs"})
_PROBES = frozenset({"--help", "-h", "--version", "-V", "--dump-config"})


class _Script(str):
    """A `!!js` scalar: a JavaScript expression."""

    __slots__ = ()


def roots(env: Mapping[str, str], home: str, read: Read, names: Names) -> Sequence[Root]:
    """`$DSH_HOME` and `~/.dsh`, and the literal session roots that their patch files name."""
    homes = [_home(env.get("DSH_HOME", ""), home), f"{home.rstrip('/')}/.dsh"]
    out: dict[str, Root] = {}
    for place in filter(None, homes):
        out.setdefault(place, Root(place, ("sessions",)))
        for root in _custom(place, read, names):
            if root != f"{place}/sessions":
                out.setdefault(root, Root(root, ("",)))
    return list(out.values())


def _home(value: str, home: str) -> str:
    """`$DSH_HOME` as dsh resolves it; "" where it is blank, or relative to an unknown folder."""
    value = value.strip()
    if value == "~" or value.startswith("~/"):
        value = home.rstrip("/") + value[1:]
    return (value.rstrip("/") or "/") if value.startswith("/") else ""


def _custom(place: str, read: Read, names: Names) -> Iterator[str]:
    profiles = [f"{place}/profiles/{name}" for name in sorted(names(f"{place}/profiles"))]
    for folder in [*profiles, place]:
        data = read(f"{folder}/cordis.patch.yml")
        if data:
            for row in _rows(_yaml(data)):
                if row.get("id") in _ROWS or row.get("name") == _PACKAGE:
                    config = row.get("config")
                    value = config.get("root") if isinstance(config, dict) else None
                    root = _literal(value, place) if isinstance(value, str) else ""
                    if root:
                        yield root


def _yaml(data: bytes) -> Any:
    import yaml  # noqa: PLC0415  # only homes with a patch file pay for it

    class Loader(yaml.SafeLoader):
        """Reads tags that it does not know as text."""

    def scalar(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> _Script | None:
        del loader, tag
        return _Script(node.value) if isinstance(node, yaml.ScalarNode) else None

    Loader.add_multi_constructor("", scalar)
    try:
        return yaml.load(data, Loader)  # noqa: S506  # a SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    """The rows of a patch: a list of them, or of `{insert: [rows]}`."""
    for row in value if isinstance(value, list) else []:
        if isinstance(row, dict):
            yield row
            inserted = row.get("insert")
            for inner in inserted if isinstance(inserted, list) else []:
                if isinstance(inner, dict):
                    yield inner


def _literal(value: str, place: str) -> str:
    """The folder that is meant; "" where only running the expression would tell."""
    if isinstance(value, _Script):
        call = _CALL.fullmatch(value.strip())
        return f"{place}/{call[2].strip('/')}" if call and ".." not in call[2] else ""
    return value.rstrip("/") if value.startswith("/") else ""


def process(exe: str, argv: Sequence[str]) -> bool:
    """The runtime binary (0.2.1: Python's `dsh` becomes it by exec), or node with dsh's script."""
    rest = list(argv[1:])
    program = exe.rpartition("/")[2]
    if not program.startswith(_RUNTIME) or program.endswith("-rg"):  # its ripgrep
        names = [one.rpartition("/")[2] for one in [exe, *argv[:2]]]
        if not (names[0].startswith("node") and len(names) > 2 and names[2] in _SCRIPTS):
            return False
        rest = rest[1:]
    if not _PROBES.isdisjoint(rest):
        return False
    named = any(one == "--profile" or one.startswith("--profile=") for one in rest)
    return named or (bool(rest) and rest[0] in _PROFILES)


def find(relative: str) -> Found | None:
    """The session file at this path below a home (`sessions/...`) or a custom session root."""
    parts = relative.split("/")
    if len(parts) == 4 and parts[0] == "sessions":
        del parts[0]
    if len(parts) != 3:
        return None
    project, folder, name = parts
    if project != "_no-cwd" and not (project.startswith("--") and project.endswith("--")):
        return None
    if name == "session.lock":
        return Found(unescape(folder), role="lock")
    match = _LOG.fullmatch(name)
    if match is None or not folder:
        return None
    return Found(
        unescape(folder),
        framing="zstd" if match[2] else "lines",
        replaces=int(match[1] or 0),
    )


def unescape(folder: str) -> str:
    """The session id of a folder name: `~XXXX` stands for one UTF-16 unit."""
    if "~" not in folder:
        return folder
    text = _UNIT.sub(lambda match: chr(int(match[1], 16)), folder)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
