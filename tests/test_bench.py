"""The benchmark corpus: the installed command lists what its truth says, and a seed is a corpus."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parent / "bench"
SCALE = "0.004"


def generate(folder: Path, seed: int) -> Path:
    """A tiny corpus."""
    argv = [sys.executable, str(BENCH / "corpus.py"), str(folder), "--scale", SCALE]
    subprocess.run([*argv, "--seed", str(seed)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("corpus") / "one", 1)


@pytest.fixture(scope="module")
def found(corpus: Path) -> list[str]:
    """Everything that is listed otherwise than it is true."""
    argv = [sys.executable, str(BENCH / "check.py"), str(corpus), "--most", "10000"]
    ran = subprocess.run(argv, check=False, capture_output=True, text=True)
    *lines, last = ran.stdout.splitlines()
    assert last.endswith(f"{len(lines)} differences"), ran.stderr
    assert ran.returncode == (1 if lines else 0)
    return lines


def truth(corpus: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((corpus / "truth.json").read_text(encoding="utf-8"))
    return said


def forks(corpus: Path) -> set[str]:
    rows = truth(corpus)["sessions"].items()
    return {key for key, row in rows if row["relation"] == "fork"}


def digest(corpus: Path) -> dict[str, str]:
    """Every file below a corpus."""
    return {
        str(path.relative_to(corpus)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(corpus.rglob("*"))
        if path.is_file()
    }


def test_the_corpus_holds_every_kind_of_session(corpus: Path) -> None:
    rows = truth(corpus)["sessions"].values()
    assert {row["relation"] for row in rows} == {None, "subagent", "fork"}
    agents = {key.partition(":")[0] for key in truth(corpus)["sessions"]}
    assert agents == set(truth(corpus)["totals"])
    assert len(agents) > 1
    assert "completed" in {row["outcome"] for row in rows}


def test_every_row_but_a_forks_equals_the_truth(corpus: Path, found: list[str]) -> None:
    copied = forks(corpus)
    assert [line for line in found if line.split(": ")[0] not in copied] == []


def test_every_token_counts_once(found: list[str]) -> None:
    """Forks included: a copied response belongs to the session that made it."""
    assert [line for line in found if "usage" in line or "in all" in line] == []


def test_forks_equal_the_truth(found: list[str]) -> None:
    assert found == []


def test_a_seed_is_a_corpus(corpus: Path, tmp_path: Path) -> None:
    again = digest(generate(tmp_path / "again", 1))
    assert again == digest(corpus)
    other = digest(generate(tmp_path / "other", 2))
    assert set(other) & set(again) <= {"truth.json"}
