"""What every test gets: clean environments, the cases, and a header that says what is tested."""

import os
from pathlib import Path

import pytest

import hub

REPO = Path(__file__).resolve().parent.parent
FIXTURES = REPO / "fixtures"
CASES = sorted(path.parent for path in FIXTURES.glob("*/*/SOURCE.toml"))
LOOPS = int(os.environ.get("AGENTHUB_LOOPS", "1"))


def pytest_report_header() -> str:
    return f"hub {hub.__version__} from {hub.__file__}; {len(CASES)} fixture cases"


def case_id(case: Path) -> str:
    return f"{case.parent.name}/{case.name}"


@pytest.fixture(autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the HOME or the agents of this machine."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name not in {"PATH", "TMPDIR", "LANG", "CI", "AGENTHUB_TESTED", "AGENTHUB_LOOPS"}:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AGENTHUB_HOME", str(home / "agenthub"))
