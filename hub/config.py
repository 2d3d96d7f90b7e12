"""config.toml in; validated settings out; pydantic is imported only for a file that changed."""

import contextlib
import hashlib
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hub import registry
from hub.cursor import open_regular
from hub.errors import ConfigError, why
from hub.price import UNITS, Rate, Sheet


class Agent(Struct):
    """`[agents.NAME]`."""

    roots: list[str] = field(default_factory=list)
    executable: str | None = None


class Settings(Struct):
    """What the hub needs of the configuration."""

    agents: dict[str, Agent] = field(default_factory=dict)
    exclude: list[str] = field(default_factory=list)
    """`[privacy] exclude`: folders that are never entered."""
    adapters: list[str] = field(default_factory=list)
    """`[adapters] enable`: foreign adapters that may be loaded."""
    prices: dict[str, Sheet] = field(default_factory=dict)
    """`[prices."MODEL"]`: the user's own, of a gateway say."""


def load(
    path: Path,
    kept: Callable[[str], bytes | None] = lambda _: None,
    keep: Callable[[str, bytes], None] = lambda _name, _value: None,
) -> Settings:
    """The settings; the defaults where there is no file.

    Args:
        path: config.toml.
        kept: gives settings that were validated before, by the file's hash.
        keep: takes them.

    Raises:
        ConfigError: the file cannot be read, or says what it may not say.
    """
    try:
        with os.fdopen(open_regular(str(path)), "rb") as stream:  # a FIFO would hang every command
            data = stream.read()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {why(error)}") from error
    shape = f"{Settings.__struct_fields__}{Agent.__struct_fields__}".encode()
    name = f"config:{hashlib.sha256(shape + data).hexdigest()}"
    body = kept(name)
    if body is not None:
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.msgpack.decode(body, type=Settings)
    try:
        raw = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # numbers of 5,000 digits, brackets without end
        raise ConfigError(str(path), f"is no valid TOML: {error}") from error
    settings = _validate(path, raw)
    keep(name, msgspec.msgpack.encode(settings))
    return settings


def _validate(path: Path, raw: dict[str, object]) -> Settings:
    from hub.configfile import File, problems  # noqa: PLC0415  # pydantic: only for a changed file

    try:
        file = File.model_validate(raw)
    except ValueError as error:
        raise ConfigError(str(path), problems(error)) from error
    for name in file.agents:
        if name not in registry.agents():
            known = ", ".join(registry.agents())
            raise ConfigError(str(path), f"[agents.{name}] is no agent; the agents are {known}")
    return Settings(
        agents={name: Agent(list(one.roots), one.executable) for name, one in file.agents.items()},
        exclude=list(file.privacy.exclude),
        adapters=list(file.adapters.enable),
        prices={
            model: Sheet(
                {unit: Rate(price) for unit in UNITS if (price := getattr(one, unit)) is not None},
                source="override",
                currency=one.currency,
            )
            for model, one in file.prices.items()
        },
    )
