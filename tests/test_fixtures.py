"""Every recorded case is whole and says where it comes from; no fixture has foreign texts."""

import contextlib
from pathlib import Path

import pytest
import zstandard
from conftest import CASES, FIXTURES, case_id
from recorder import check, driver, scenarios
from recorder.packing import frames

RECORDED = [case for case in CASES if b"\npackage = " in (case / "SOURCE.toml").read_bytes()]


@pytest.mark.parametrize("case", RECORDED, ids=case_id)
def test_case_is_clean_and_whole(case: Path):
    assert check.problems(case) == []


@pytest.mark.parametrize("agent", driver.names())
def test_every_case_is_recorded_for_every_agent(agent: str):
    recorded = {case.name for case in RECORDED if case.parent.name == agent}
    assert scenarios.CASES.keys() - recorded == set()


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_nothing_foreign_is_committed(case: Path):
    for path in sorted((case / "root").rglob("*")):
        if path.is_file():
            name = str(path.relative_to(FIXTURES))
            assert list(check.leaks(name, _text(path))) == []


def _text(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        with contextlib.suppress(zstandard.ZstdError):  # damaged on purpose
            data = b"".join(frames(data))
    return data.decode("utf-8", "replace")
