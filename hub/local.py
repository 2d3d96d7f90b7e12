"""An environment in; the engine over this machine's homes out, with its store and settings."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from hub import config, paths
from hub.errors import PlatformError
from hub.liveness import Machine, this_machine
from hub.observe import Engine
from hub.store import Store


@dataclass
class Local:
    """Everything that a command of this process works with."""

    env: Mapping[str, str]
    home: str
    places: paths.Places
    settings: config.Settings
    store: Store
    engine: Engine


def open_local(env: Mapping[str, str], machine: Machine | None = None) -> Local:
    """Opens the cache and the settings of this environment.

    Raises:
        PlatformError: Windows.
        ConfigError: config.toml cannot be used.
    """
    if sys.platform == "win32":
        raise PlatformError(
            "agenthub does not run on Windows: it needs /proc and file locks. Run it in WSL."
        )
    places = paths.places(env)
    home = paths.home(env)
    store = Store(places.cache_db)
    settings = config.load(places.config, store.fact, store.put_fact)
    engine = Engine(
        env, home, machine or this_machine(), store,
        roots={name: agent.roots for name, agent in settings.agents.items()},
        exclude=settings.exclude,
    )  # fmt: skip
    return Local(env, home, places, settings, store, engine)
