"""An environment in; the engine over this machine's homes out, with its store and settings."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from hub import config, paths
from hub.errors import PlatformError
from hub.liveness import Machine, this_machine
from hub.memory import Memory
from hub.observe import Engine
from hub.price import Pricer
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
    _same_prices(store, settings)
    engine = Engine(
        env, home, machine or this_machine(), store,
        memory=Memory(places.state / "state.db"),
        roots={name: agent.roots for name, agent in settings.agents.items()},
        exclude=settings.exclude,
        pricer=Pricer(store.fact, store.put_fact, settings.prices),
        processes=min(os.cpu_count() or 1, 4),
    )  # fmt: skip
    return Local(env, home, places, settings, store, engine)


def _same_prices(store: Store, settings: config.Settings) -> None:
    """Costs are kept with what was read: with other prices everything is read anew."""
    mine = msgspec.msgpack.encode(settings.prices)
    if (store.fact("prices") or msgspec.msgpack.encode({})) != mine:
        store.rebuild("other prices")
        store.put_fact("prices", mine)
