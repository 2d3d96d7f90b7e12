"""The environment in; the places where agenthub keeps its own files out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCHEMA = 2
"""Of the cache; an older cache is removed."""


@dataclass(frozen=True)
class Places:
    """Folders and files of agenthub itself; nothing is made until it is written to."""

    config: Path
    """config.toml"""
    cache: Path
    """Folder of `cache-<schema>.db`: disposable."""
    state: Path
    """Folder of state.db, jobs/ and kept/: never dropped."""
    run: Path
    """Folder of hub.sock."""

    @property
    def cache_db(self) -> Path:
        """The cache of this schema."""
        return self.cache / f"cache-{SCHEMA}.db"


def places(env: Mapping[str, str]) -> Places:
    """`$AGENTHUB_HOME` holds everything if set, else each kind has the platform's place."""
    own = env.get("AGENTHUB_HOME", "").strip()
    if own:
        home = expanded(own).absolute()
        return Places(home / "config.toml", home, home, home / "run")
    import platformdirs  # noqa: PLC0415  # only where the platform decides

    runtime = env.get("XDG_RUNTIME_DIR", "").strip()
    dirs = platformdirs.PlatformDirs("agenthub", appauthor=False)
    return Places(
        Path(dirs.user_config_dir) / "config.toml",
        Path(dirs.user_cache_dir),
        Path(dirs.user_state_dir),
        # without one, platformdirs warns and takes a name in /tmp that anybody can take first
        Path(runtime) / "agenthub" if runtime else Path(dirs.user_state_dir) / "run",
    )


def home(env: Mapping[str, str]) -> str:
    """HOME as the environment says it, else the account's."""
    own = env.get("HOME", "").strip()
    if own:
        return own
    try:
        return str(Path.home())
    except RuntimeError:  # no HOME, and an account without an entry, as in containers
        return "/"


def expanded(path: str) -> Path:
    """The path with `~` as the home folder; as it is where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
