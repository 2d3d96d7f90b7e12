"""hub.config and hub.paths: what people write is used or refused with a sentence, never a crash."""

import os
from pathlib import Path

import pytest

from hub import config, paths
from hub.config import Agent, Settings
from hub.errors import ConfigError

GOOD = b"""
[agents.codex]
roots = ["~/a", "/b"]
executable = "/bin/one"
[privacy]
exclude = ["~/secret"]
[adapters]
enable = ["four"]
"""
SETTINGS = Settings({"codex": Agent(["~/a", "/b"], "/bin/one")}, ["~/secret"], ["four"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_no_file_is_the_defaults(file: Path) -> None:
    assert config.load(file) == Settings()


@pytest.mark.parametrize("data", [GOOD, b"\xef\xbb\xbf" + GOOD, GOOD.replace(b"\n", b"\r\n")])
def test_a_good_file(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    assert config.load(file) == SETTINGS


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a = [", "no valid TOML"),
        (b"a = 1\na = 2", "no valid TOML"),
        (b"# \xff", "no valid TOML"),
        (b"a = " + b"[" * 50_000, "no valid TOML"),
        (b"a = " + b"9" * 5_000, "no valid TOML"),
        (b"a = 9999-99-99", "no valid TOML"),
        (b"\0", "no valid TOML"),
        (b"[colours]\n", "colours: extra inputs"),
        (b"[privacy]\nexlude = []", "privacy.exlude: extra inputs"),
        (b"agents = 3", "agents: input should be a valid dictionary"),
        (b"[agents.codex]\nroots = '/a'", "agents.codex.roots: input should be a valid list"),
        (b"[agents.codex]\nroots = [1]\nx = 1", "agents.codex.roots.0: .*; agents.codex.x: "),
    ],
)
def test_a_bad_file_is_told_in_one_sentence(file: Path, data: bytes, words: str) -> None:
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=words) as raised:
        config.load(file)
    assert raised.value.path == str(file)


def test_what_is_no_file_is_told(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="not a regular file"):
        config.load(file)
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigError, match="not a regular file"):
        config.load(file)
    with pytest.raises(ConfigError, match="file name too long"):
        config.load(file / ("x" * 300))


def test_a_file_is_validated_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, bytes] = {}
    file.write_bytes(GOOD)
    config.load(file, kept.get, kept.__setitem__)
    monkeypatch.setattr(config, "_validate", lambda *_: pytest.fail("validated again"))
    assert config.load(file, kept.get, kept.__setitem__) == SETTINGS


@pytest.mark.parametrize("junk", [b"", b"\xc1", b"\x81\xa6agents\x01"])
def test_kept_settings_that_are_none_are_made_anew(file: Path, junk: bytes) -> None:
    file.write_bytes(GOOD)
    assert config.load(file, lambda _: junk) == SETTINGS


def test_settings_of_another_file_are_not_taken(file: Path) -> None:
    kept: dict[str, bytes] = {}
    file.write_bytes(b"[privacy]\nexclude = ['/a']")
    config.load(file, kept.get, kept.__setitem__)
    file.write_bytes(GOOD)
    assert config.load(file, kept.get, kept.__setitem__) == SETTINGS


def test_one_folder_holds_everything_when_it_is_named(tmp_path: Path) -> None:
    own = paths.places({"AGENTHUB_HOME": str(tmp_path / "own")})
    assert {own.config.parent, own.cache, own.state, own.run.parent} == {tmp_path / "own"}
    assert own.cache_db == tmp_path / "own" / f"cache-{paths.SCHEMA}.db"
    assert paths.places({"AGENTHUB_HOME": " "}) == paths.places({})
    assert not (tmp_path / "own").exists()


def test_the_socket_stands_where_only_its_owner_may_write() -> None:
    assert paths.places({"XDG_RUNTIME_DIR": "/run/user/5"}).run == Path("/run/user/5/agenthub")
    places = paths.places({})
    assert places.run == places.state / "run"


def test_a_user_who_is_not_there_is_a_folder_name() -> None:
    assert paths.expanded("~nobody-of-that-name/x") == Path("~nobody-of-that-name/x")
    assert paths.expanded("~/x") == Path(os.environ["HOME"]) / "x"
    assert paths.places({"AGENTHUB_HOME": "~nobody-of-that-name"}).cache.is_absolute()


def test_home_is_the_environments_the_accounts_or_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.home({"HOME": "/h"}) == "/h"
    assert paths.home({"HOME": " "}) == os.environ["HOME"]

    def nobody(path: type[Path]) -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", classmethod(nobody))
    assert paths.home({}) == "/"
