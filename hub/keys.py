"""Agents and native ids in; session keys out, and back: `claude:<id>`, odd characters as %XX."""

import re
from collections.abc import Iterable

from hub.errors import AmbiguousKey, NotFoundError

_ODD = re.compile(r"[^A-Za-z0-9._/-]+")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
WORD = re.compile(r"(?:[a-z]+-)?")
"""What an id may begin with that tells nothing (dsh's `session-`): it may be left out."""
SHORTEST = 4
"""Characters of a prefix that may stand for a key."""


def key_of(agent: str, native: str) -> str:
    """The key of a session; characters outside `[A-Za-z0-9._-/]` as %XX."""
    return f"{agent}:{_ODD.sub(_escaped, native)}"


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode(errors="surrogatepass"))


def native_of(key: str) -> str:
    """The agent's own id in a key."""
    native = key.partition(":")[2]
    return _PERCENT.sub(
        lambda match: bytes.fromhex(match.group().replace("%", "")).decode(errors="replace"), native
    )


def find(wanted: str, keys: Iterable[str]) -> str:
    """The one key that `wanted` stands for: a key, or a prefix of one with or without agent.

    Raises:
        NotFoundError: no key fits, or the prefix is too short to try.
        AmbiguousKey: several fit.
    """
    every = sorted(keys)
    exact = [key for key in every if wanted in {key, key.partition(":")[2]}]
    if len(exact) == 1:
        return exact[0]
    before, colon, after = wanted.partition(":")
    if not exact and len(after if colon else before) < SHORTEST:
        raise NotFoundError(wanted, f": give at least {SHORTEST} characters of its key")
    fits = exact or [key for key in every if _begins(key, wanted)]
    # a session and its own sub-agents share their beginning: the session is meant
    among = set(fits)
    tops = [key for key in fits if not any(above in among for above in _above(key))]
    if len(tops) == 1:
        return tops[0]
    if not fits:
        raise NotFoundError(wanted, "; agenthub ls --all shows every key")
    raise AmbiguousKey(wanted, fits)


def _above(key: str) -> Iterable[str]:
    """The keys that this one stands below: `a:b/c/d` -> `a:b`, `a:b/c`."""
    spot = key.find("/")
    while spot >= 0:
        yield key[:spot]
        spot = key.find("/", spot + 1)


def _begins(key: str, wanted: str) -> bool:
    """Is it a prefix of the key; `<parent's>/<own>` may be prefixes of a sub-agent's two parts."""
    native = key.partition(":")[2]
    if key.startswith(wanted) or native.startswith(wanted):
        return True
    if bare(native).startswith(wanted.rpartition(":")[2]) and _same_agent(key, wanted):
        return True
    above, slash, own = wanted.rpartition("/")
    parent, _, child = native.rpartition("/")
    return bool(slash) and child.startswith(own) and parent.startswith(above.rpartition(":")[2])


def bare(native: str) -> str:
    """The id without the word it begins with."""
    return WORD.sub("", native, count=1)


def _same_agent(key: str, wanted: str) -> bool:
    return ":" not in wanted or key.startswith(f"{wanted.partition(':')[0]}:")
