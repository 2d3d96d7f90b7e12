"""The folders observers/ and backends/ in; their adapter modules by name out.

The module is the adapter: found by listing its folder, imported when first asked for. A foreign
package that took one of our names is named, never used.
"""

import importlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hub.errors import AdapterError, UnknownAgent

if TYPE_CHECKING:
    from hub.adapter import Backend, Observer, Trial

_HERE = Path(__file__).resolve().parent.parent
_OBSERVER_PARTS = ("LABEL", "VERSION", "roots", "process", "find", "start", "events", "sidecar",
                   "live")  # fmt: skip
_BACKEND_PARTS = ("LABEL", "CAN", "NATIVE_MODES", "STATE_PATHS", "VERSION_ARGV", "version",
                  "launch", "progress", "outcome")  # fmt: skip
_TRIAL_PARTS = ("LABEL", "VERSION_ARGV", "ON_SIGINT", "UNCOUNTED", "version", "trial",
                "trial_session")  # fmt: skip


@cache
def agents() -> tuple[str, ...]:
    """Names of the agents that can be observed, sorted."""
    return _names("observers")


@cache
def launchable() -> tuple[str, ...]:
    """Names of the agents that work can be handed to, sorted."""
    return _names("backends")


def observer(agent: str) -> "Observer":
    """The observer of an agent.

    Raises:
        UnknownAgent: there is none of that name.
        AdapterError: it lacks a part, or a foreign package stands in its place.
    """
    return cast("Observer", _load("observers", agent, agents(), _OBSERVER_PARTS))


def backend(agent: str) -> "Backend":
    """The backend of an agent; raises as `observer` does."""
    return cast("Backend", _load("backends", agent, launchable(), _BACKEND_PARTS))


def trial(agent: str) -> "Trial":
    """The parts of a backend that try its CLI; raises as `observer` does."""
    return cast("Trial", _load("backends", agent, launchable(), _TRIAL_PARTS))


def _names(folder: str) -> tuple[str, ...]:
    return tuple(
        sorted(
            path.stem
            for path in (_HERE / folder).iterdir()
            if not path.name.startswith(("_", "."))
            and (path.suffix == ".py" or (path / "__init__.py").is_file())
        )
    )


@cache
def _load(folder: str, agent: str, known: Sequence[str], parts: Sequence[str]) -> object:
    if agent not in known:
        raise UnknownAgent(agent, list(known))
    name = f"{folder}.{agent}"
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise AdapterError(f"{name} cannot be imported: {error}", module=name, path="") from error
    place = Path(module.__file__ or "").resolve()
    if _HERE not in place.parents:
        raise AdapterError(
            f"{name} was imported from {place}, which is not agenthub's: another package named"
            f" {folder!r} is installed beside it. Remove that package, or install agenthub in an"
            " environment of its own.",
            module=name,
            path=str(place),
        )
    missing = [part for part in parts if not hasattr(module, part)]
    if missing:
        raise AdapterError(
            f"{place} is no complete adapter: it lacks {', '.join(missing)}",
            module=name,
            path=str(place),
        )
    return module
